// What elf-sample's command line becomes, and what the terminal view draws.
#include "../../src/app/sample_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "../../src/app/eval_settings.h"
#include "../../src/app/sampler_setting.h"
#include "../../src/app/watch.h"
#include "support/errors.h"

namespace elf::app {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

SampleOptions parse(std::vector<std::string> arguments) {
  Command app;
  SampleOptions options;
  add_sample_options(app, options);
  arguments.insert(arguments.begin(), {"--model", "m"});
  app.parse(arguments);
  return options;
}

std::string refusal(const std::vector<std::string>& arguments) {
  return test::usage_message([&] {
    const SampleOptions options = parse(arguments);
    check_sample_options(options);
    sweep_points(SamplingConfig{}, options);
  });
}

SamplingConfig config_of(const std::vector<std::string>& arguments) {
  return sweep_points(SamplingConfig{}, parse(arguments)).front().config;
}

TEST(SampleOptions, SettingsGoOverTheModels) {
  const SamplingConfig config =
      config_of({"--sampler", "heun", "--steps", "8", "--seed", "18446744073709551615", "--sc-cfg",
                 "2@0.2-0.8", "--cfg", "-1.5", "--sde-update", "paper"});
  EXPECT_EQ(config.sampler, SamplerKind::kHeun);
  EXPECT_EQ(config.steps, 8);
  EXPECT_EQ(config.seed, UINT64_MAX);
  EXPECT_EQ(config.self_cond_cfg_schedule, "2@0.2-0.8");
  EXPECT_EQ(config.cfg, -1.5);
  EXPECT_EQ(config.sde_update, SdeUpdate::kPaper);
  SamplingConfig scheduled;
  scheduled.cfg_schedule = "0:1,1:3";
  apply_sampler_setting(scheduled, "cfg", "2", "--cfg");
  EXPECT_EQ(scheduled.cfg_schedule, "");
  EXPECT_EQ(scheduled.cfg, 2.0);
  EXPECT_EQ(config_of({"--times", "0.1,0.5"}).steps, 3);
  EXPECT_TRUE(config_of({"--num-samples", "1"}).cuda_graph);
  EXPECT_FALSE(config_of({"--num-samples", "1", "--no-graph"}).cuda_graph);
}

// A sweep hands a setting on as text: nothing of it may be lost.
TEST(SampleOptions, ASettingIsReadAsItIsWritten) {
  SamplingConfig model;
  model.cfg_schedule = "0:1,1:3";
  const SamplingConfig set = parse_setting("steps=4,sampler=ode,sc-cfg=2@0.2-0.8", model).config;
  const SamplingConfig again = parse_setting(setting_text(set), model).config;
  EXPECT_EQ(again.steps, 4);
  EXPECT_EQ(again.sampler, SamplerKind::kOde);
  EXPECT_EQ(again.self_cond_cfg_schedule, "2@0.2-0.8");
  EXPECT_EQ(again.cfg_schedule, "0:1,1:3");
  EXPECT_THAT(test::usage_message([&] { parse_setting("times=0.5", model); }), HasSubstr("no times here"));
}

TEST(SampleOptions, BadValuesNameTheirOption) {
  EXPECT_THAT(refusal({"--num-samples", "1", "--seed", "-1"}), HasSubstr("--seed: found '-1'"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--seed", "18446744073709551616"}), HasSubstr("--seed"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--steps", "0"}), HasSubstr("--steps: found '0'"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--gamma", "-0.5"}), HasSubstr("--gamma"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--gamma", "nan"}), HasSubstr("--gamma"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--cfg", "inf"}), HasSubstr("--cfg"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--sampler", "rk4"}), HasSubstr("sde, ode, heun, multistep"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--times", "0.5,0.1"}), HasSubstr("--times"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--times", "0.5", "--steps", "3"}), HasSubstr("--steps"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--first-index", "9223372036854775807"}),
              HasSubstr("--first-index"));
  EXPECT_THAT(refusal({"--num-samples", "2", "--first-index", "1099511627775"}), HasSubstr("--num-samples"));
  EXPECT_THAT(refusal({"--num-samples", "0"}), HasSubstr("--num-samples"));
  EXPECT_THAT(refusal({"--input", "a", "--infill", "b"}), HasSubstr("one of --num-samples"));
  EXPECT_THAT(refusal({"--num-samples", "4", "--num-candidates", "3"}), HasSubstr("--num-candidates"));
  EXPECT_THAT(refusal({"--num-samples", "4", "--resume"}), HasSubstr("--resume needs"));
  EXPECT_THAT(refusal({"--num-samples", "4", "--trajectory", "a.txt"}), HasSubstr(".jsonl, .html or .svg"));
  EXPECT_THAT(refusal({"--infill", "a", "--infill-method", "magic"}), HasSubstr("--infill-method"));
}

TEST(SampleOptions, ASweepIsEveryCombination) {
  const std::vector<SweepPoint> points =
      sweep_points(SamplingConfig{}, parse({"--num-samples", "1", "--output", "d/s.jsonl", "--gamma", "0.5",
                                            "--sweep", "sc-cfg=1,2", "steps=16,32"}));
  std::vector<std::string> files;
  for (const SweepPoint& point : points) {
    files.push_back(point.file("d/s.jsonl"));
    EXPECT_EQ(point.config.gamma, 0.5);
  }
  EXPECT_THAT(files, ElementsAre("d/s.sc-cfg=1.steps=16.jsonl", "d/s.sc-cfg=1.steps=32.jsonl",
                                 "d/s.sc-cfg=2.steps=16.jsonl", "d/s.sc-cfg=2.steps=32.jsonl"));
  EXPECT_EQ(points[2].config.self_cond_cfg, 2.0);
  EXPECT_EQ(points[2].config.steps, 16);
  EXPECT_THAT(refusal({"--num-samples", "1", "--output", "s", "--sweep", "stps=1"}),
              HasSubstr("no setting 'stps'"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--output", "s", "--sweep", "steps="}), HasSubstr("steps="));
  EXPECT_THAT(refusal({"--num-samples", "1", "--output", "s", "--sweep", "steps=1,,2"}),
              HasSubstr("--sweep steps: found ''"));
  EXPECT_THAT(refusal({"--num-samples", "1", "--sweep", "steps=1"}), HasSubstr("--output"));
}

TEST(Watch, AScreenIsCutToTheTerminal) {
  StepView view;
  view.step = 3;
  view.t = 0.25;
  view.confidence = 0.5;
  view.tokens = {{" the", 0.1, 1}, {" \u00e4\u00f6\u00fc", 0.95, 1}, {"", 1.0, 0}};
  const std::vector<StepView> views(20, view);
  const std::vector<std::string> lines = watch_screen(views, 8, 7, 5);
  ASSERT_EQ(lines.size(), 5u);
  EXPECT_EQ(lines[0], "step   ");
  // "the" in a dark grey, four characters left for the sure one.
  EXPECT_EQ(lines[1], "\033[38;5;238mthe\033[38;5;114m \u00e4\u00f6\u00fc\033[0m");
  EXPECT_THAT(watch_screen(views, 8, 200, 100)[0], HasSubstr("step   3/8   t 0.250   confidence 0.50"));
  EXPECT_EQ(watch_screen(views, 8, 200, 100).size(), 9u);
}

}  // namespace
}  // namespace elf::app

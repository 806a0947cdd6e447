// Files of sweeps: what they say, and what is refused.
#include "elf/config/ablation_spec.h"

#include "config/support.h"

namespace elf {
namespace {

using test::expect_parts;
using test::message_of;

class Ablation : public test::Folder {
 protected:
  void SetUp() override {
    Folder::SetUp();
    write("base.yaml", "model: {preset: nano, latent_dim: 8}\ntrain: {steps: 7}\n");
  }

  // A whole file with `train` in the place of its arms and `more` after it.
  std::filesystem::path spec(const std::string& train, const std::string& more = "") {
    return write("sweep.yaml", "base: base.yaml\ntrain:\n" + train +
                                   "sample:\n  ode: {sampler: ode, steps: [8, 16]}\n  sde: {sampler: sde}\n"
                                   "score: {by: ngram, text: train.txt}\n" +
                                   more);
  }
  std::string refusal(const std::string& train, const std::string& more = "") {
    return message_of([&] { load_ablation_spec(spec(train, more)); });
  }
};

TEST_F(Ablation, ArmsAreConfigurationsOverTheBase) {
  write("wide.yaml", "model: {hidden_size: 256}\ntrain: {steps: 9}\n");
  const AblationSpec s =
      load_ablation_spec(spec("  plain:\n  wide: {base: wide.yaml, optimizer: {lr: 0.5}}\n",
                              "set: {train: {steps: 8}}\nseeds: [3, 4]\n"));
  EXPECT_EQ(s.name, "sweep");
  ASSERT_EQ(s.train.size(), 2u);
  EXPECT_EQ(s.train[0].config.model.hidden_size, 128);
  EXPECT_EQ(s.train[0].config.train.steps, 8);  // `set` wins over the bases
  EXPECT_EQ(s.train[1].config.model.hidden_size, 256);
  EXPECT_EQ(s.train[1].config.train.steps, 8);
  EXPECT_EQ(s.train[1].config.optimizer.lr, 0.5);
  EXPECT_EQ(s.seeds, (std::vector<uint64_t>{3, 4}));
  EXPECT_EQ(s.score.text, (folder_ / "train.txt").string());  // relative to the file
  EXPECT_EQ(s.score.figure, "perplexity");
}

TEST_F(Ablation, AListIsTheAxisOfACurveAndAnotherOneMakesMoreCurves) {
  const AblationSpec s = load_ablation_spec(
      write("grid.yaml",
            "base: base.yaml\ntrain: {a: {}}\nscore: {by: ngram, text: t}\n"
            "sample: {g: {steps: [4, 8], sampler: sde, gamma: [0, 1.5]}, one: {steps: 3}}\n"));
  std::vector<std::string> labels, settings;
  for (const SampleArm& arm : s.sample) {
    labels.push_back(arm.label());
    settings.push_back(arm.setting);
  }
  EXPECT_EQ(labels, (std::vector<std::string>{"g gamma=0 steps=4", "g gamma=1.5 steps=4", "g gamma=0 steps=8",
                                              "g gamma=1.5 steps=8", "one"}));
  EXPECT_EQ(settings[1], "steps=4,sampler=sde,gamma=1.5");
  EXPECT_EQ(settings[4], "steps=3");
}

TEST_F(Ablation, AnArmMayHaveSomeSettingsOrNone) {
  const AblationSpec s = load_ablation_spec(spec("  a: {}\n  b: {sample: ode}\n  c: {sample: none}\n"));
  EXPECT_EQ(s.settings_of(s.train[0]).size(), 3u);
  EXPECT_EQ(s.settings_of(s.train[1]).size(), 2u);
  EXPECT_EQ(s.settings_of(s.train[2]).size(), 0u);
}

TEST_F(Ablation, PublishedRowsAndBounds) {
  const AblationSpec s =
      load_ablation_spec(spec("  a: {}\n",
                              "published:\n  source: Table 7\n  rows:\n"
                              "    - {train: a, sample: ode, steps: 8, ppl: 104.29, ppl_error: 0.5}\n"
                              "    - {name: another, ppl: 30}\n"));
  const PublishedRow& row = s.published.rows.at(0);
  EXPECT_EQ(row.at.at("steps"), "8");
  EXPECT_EQ(row.figures.at("ppl"), 104.29);
  EXPECT_EQ(row.errors.at("ppl"), 0.5);
  EXPECT_FALSE(s.score.red_above.has_value());
  const AblationSpec gpt2 = load_ablation_spec(write(
      "gpt2.yaml", "base: base.yaml\ntrain: {a: {}}\nsample: {x: {}}\nscore: {by: gpt2, scorer: gpt2}\n"));
  EXPECT_EQ(gpt2.score.red_above, 300);
  EXPECT_EQ(gpt2.score.red_below, 5);
}

TEST_F(Ablation, MistakesNameLineAndKey) {
  expect_parts(refusal("  a: {optimizer: {knd: muon}}\n"),
               {"sweep.yaml:3:", "optimizer.knd", "optimizer.kind"});
  expect_parts(refusal("  a: {optimiser: {kind: muon}}\n"), {"sweep.yaml:3:", "optimiser", "optimizer"});
  expect_parts(refusal("  a: {model: {depth: 0}}\n"), {"sweep.yaml:3:", "model.depth", "0"});
  expect_parts(refusal("  a: {}\n", "scores: {}\n"), {"sweep.yaml:8:", "scores", "'score'"});
  expect_parts(refusal("  a: {}\n", "seeds: [x]\n"), {"sweep.yaml:8:", "seeds", "x"});
  expect_parts(refusal("  a/b: {}\n"), {"sweep.yaml:3:", "a/b", "letters"});
  expect_parts(refusal("  a: {sample: heun}\n"), {"train.a.sample", "heun"});
  expect_parts(refusal("  a: {uses: {latents.decoder: b}}\n  b: {}\n"), {"sweep.yaml:3:", "'b'", "above"});
  expect_parts(refusal("  a: {uses: {data.train: a}}\n"), {"data.train", "latents.decoder"});
  expect_parts(refusal("  a: {}\n", "expect: [{better: a, than: c}]\n"), {"expect", "'c'"});
  expect_parts(refusal("  a: {}\n", "published: {rows: [{ppl: 3}]}\n"), {"sweep.yaml:8:", "train: ARM"});
  expect_parts(message_of([&] { load_ablation_spec(write("s.yaml", "base: base.yaml\ntrain: {a: {}}\n")); }),
               {"s.yaml", "'sample' is missing"});
  expect_parts(message_of([&] {
                 load_ablation_spec(write("s.yaml",
                                          "base: none.yaml\ntrain: {a: {}}\nsample: {x: {}}\n"
                                          "score: {by: ngram, text: t}\n"));
               }),
               {"s.yaml:1:", "none.yaml", "no such file"});
  expect_parts(message_of([&] {
                 load_ablation_spec(write("s.yaml",
                                          "base: base.yaml\ntrain: {a: {}}\nsample: {x: {}}\n"
                                          "score: {by: gpt3}\n"));
               }),
               {"s.yaml:4:", "score.by", "gpt3", "ngram"});
}

}  // namespace
}  // namespace elf

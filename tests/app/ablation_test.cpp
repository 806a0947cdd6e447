// elf-bench ablation by the tools themselves: a small sweep from end to end, killed and gone on with, with an
// arm that breaks.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstdio>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "support/tool_test.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using test::spill;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

class Ablations : public test::ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("ablation");
    make_small_data();
    spill(folder_ / "run.yaml",
          "model: {depth: 2, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8, "
          "num_time_tokens: 1, "
          "num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1}\n"
          "latents: {source: table, path: table, mean: 0.0, std: 1.0}\n"
          "data: {train: docs.h5, valid: valid.h5, tokenizer: words}\n"
          "flow: {pad_token: pad, denoiser_noise_scale: 0.5, decoder_noise_scale: 0.5}\n"
          "optimizer: {kind: adamw, lr: 3e-3, warmup_steps: 5, ema_decay: 0.9}\n"
          "train: {global_batch_size: 16, steps: 30, log_every: 5, valid_every: 0, save_every: 10}\n"
          "sampling: {steps: 4}\n");
    sweep("two", "  narrow: {}\n  wide: {model: {bottleneck_dim: 16}}\n");
  }

  static void sweep(const std::string& name, const std::string& arms, const std::string& more = "") {
    spill(
        folder_ / (name + ".yaml"),
        "title: A sweep of tests\nbase: run.yaml\ntrain:\n" + arms +
            "sample:\n  sde: {sampler: sde, steps: 4, gamma: 1, sc-cfg: [1, 2]}\n  ode: {sampler: ode, "
            "steps: 4}\n"
            "score: {by: ngram, text: docs.txt, samples: 12, seeds: [0, 1], red: {above: 1, below: 0.5}}\n" +
            more);
  }
  static std::vector<std::string> runs(const std::string& out) {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_ / out / "runs"))
      if (entry.is_directory()) names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    return names;
  }
  static json plan(const std::string& spec, const std::string& out) {
    return parse_json_or_throw(
        must("elf-bench ablation " + spec + ".yaml --out " + out + " --dry-run --json").out)["sweeps"][0];
  }
};

TEST_F(Ablations, ADryRunListsArmsAndCostsAndMakesNothing) {
  const json jobs = plan("two", "dry")["jobs"];
  ASSERT_EQ(jobs.size(), 2u);
  EXPECT_EQ(jobs[0]["name"], "narrow");
  EXPECT_EQ(jobs[0]["steps"], 30);
  EXPECT_EQ(jobs[0]["tokens"], 30 * 16 * 8);
  EXPECT_EQ(jobs[0]["settings"], json({"sde sc-cfg=1", "sde sc-cfg=2", "ode"}));
  EXPECT_GT(jobs[1]["train_flops"].get<double>(), jobs[0]["train_flops"].get<double>());
  EXPECT_GT(jobs[1]["parameters"].get<double>(), jobs[0]["parameters"].get<double>());
  EXPECT_TRUE(jobs[0]["seconds"].is_null());
  const std::string text = must("elf-bench ablation two.yaml --out dry --dry-run --rate 1e9").out;
  EXPECT_THAT(text, HasSubstr("2 arms on 2 runs, 6 settings"));
  EXPECT_THAT(text, HasSubstr("to do"));
  EXPECT_THAT(must("elf-bench ablation two.yaml --out dry --dry-run --measure").out,
              HasSubstr("(measured now)"));
  for (const char* option : {"--json", "--measure", "--rate 1e9"})
    expect_refusal(cat("elf-bench ablation two.yaml --out dry ", option), {"requires --dry-run"});
  expect_refusal("elf-bench ablation two.yaml --out dry --slurm=--gpus=8", {"requires --emit"});
  EXPECT_FALSE(fs::exists(folder_ / "dry"));
}

TEST_F(Ablations, EveryArmIsTrainedOnceAndScoredInEverySetting) {
  const Outcome first = must("elf-bench ablation two.yaml --out out --jobs 2 --threads 1");
  EXPECT_THAT(first.err, HasSubstr("all done"));
  const json made = parse_json_or_throw(slurp(folder_ / "out/two/sweep.json"));
  for (const json& job : made["jobs"]) {
    for (const json& setting : job["settings"]) {
      const fs::path file = folder_ / "out/two" / setting["record"].get<std::string>();
      const json record = parse_json_or_throw(slurp(file));
      EXPECT_EQ(record["samples"], 12);
      EXPECT_EQ(record["seeds"], json({0, 1}));
      EXPECT_GT(record["figures"]["perplexity"]["mean"].get<double>(), 1);
      EXPECT_GE(record["figures"]["corpus_entropy"]["mean"].get<double>(), 0);
      EXPECT_EQ(record["sampler"]["sampler"], setting["sample"]);
    }
  }
  // Nothing is done twice.
  const std::vector<std::string> before = runs("out");
  ASSERT_EQ(before.size(), 2u);
  const fs::path record = folder_ / "out/two" / made["jobs"][0]["settings"][0]["record"].get<std::string>();
  const std::string bytes = slurp(record);
  EXPECT_THAT(must("elf-bench ablation two.yaml --out out").err, Not(HasSubstr("training ")));
  EXPECT_EQ(slurp(record), bytes);
  EXPECT_EQ(plan("two", "out")["jobs"][0]["trained"], true);
  EXPECT_EQ(plan("two", "out")["jobs"][0]["scored"], 3);
  EXPECT_GT(plan("two", "out")["jobs"][0]["seconds"].get<double>(), 0);  // from the steps that were made
  // A setting more, and an equal arm of another sweep, use the same run.
  sweep("more", "  same: {model: {bottleneck_dim: 8}}\n  logged: {train: {log_every: 1}}\n");
  EXPECT_THAT(must("elf-bench ablation more.yaml --out out").err, Not(HasSubstr("training ")));
  EXPECT_EQ(runs("out"), before);
}

// Two sweeps name one recipe: it is followed once, before any arm, and what it made is used the next time.
TEST_F(Ablations, RecipesMakeTheDataBeforeTheArms) {
  spill(folder_ / "feed.yaml",
        "steps:\n  - corpus: {input: docs.txt, tokenizer: words, max-length: 8, out: fed.h5}\n");
  for (const char* name : {"fed", "fed2"})
    sweep(name, "  a: {data: {train: fed.h5}, train: {steps: 4}, sample: [ode]}\n", "recipes: [feed.yaml]\n");
  EXPECT_EQ(plan("fed", "fed")["jobs"][0]["trained"], false);
  EXPECT_FALSE(fs::exists(folder_ / "fed.h5"));  // a dry run makes nothing
  const std::string command = "elf-bench ablation fed.yaml fed2.yaml --out fed --threads 1",
                    first = must(command).err;
  const size_t recipe = first.find("preparing data: "), training = first.find(": training ");
  ASSERT_NE(recipe, std::string::npos);
  ASSERT_NE(training, std::string::npos);
  EXPECT_LT(recipe, training);
  EXPECT_EQ(first.find("preparing data: ", recipe + 1), std::string::npos);
  EXPECT_THAT(first, HasSubstr("feed.yaml:2: corpus -> fed.h5"));
  EXPECT_EQ(runs("fed").size(), 1u);
  for (const char* name : {"fed", "fed2"}) {
    EXPECT_EQ(plan(name, "fed")["jobs"][0]["trained"], true) << name;
    EXPECT_EQ(plan(name, "fed")["jobs"][0]["scored"], 1) << name;
  }
  const std::string bytes = slurp(folder_ / "fed.h5");
  EXPECT_THAT(must(command).err, AllOf(HasSubstr("fed.h5 is there already"), Not(HasSubstr(": training "))));
  EXPECT_TRUE(slurp(folder_ / "fed.h5") == bytes);
}

// The recipe's exit code is that of the sweep: 2 for what the user can mend.
TEST_F(Ablations, ARecipeThatFailsStopsTheSweepBeforeItsArms) {
  const auto starve = [](const std::string& options) {
    spill(folder_ / "starve.yaml",
          "steps:\n  - corpus: {" + options + ", tokenizer: words, max-length: 8}\n");
  };
  sweep("starved", "  a: {data: {train: never.h5}}\n", "recipes: [starve.yaml]\n");
  starve("input: gone.txt, out: never.h5");
  expect_refusal("elf-bench ablation starved.yaml --out starved",
                 {"gone.txt", "starve.yaml: elf-prepare recipe ended with exit code 2"}, "starved/runs");
  starve("input: docs.txt, out: /proc/never.h5");  // where nobody can write
  const Outcome outcome = tool("elf-bench ablation starved.yaml --out starved");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("starve.yaml: elf-prepare recipe ended with exit code 1"));
  EXPECT_FALSE(fs::exists(folder_ / "starved/runs"));
}

TEST_F(Ablations, SeedsAreRunsOfTheirOwnAndMayBeChosen) {
  sweep("seeds", "  a: {}\n", "seeds: [1, 2]\n");
  must("elf-bench ablation seeds.yaml --out seeded --only a.seed2");
  EXPECT_EQ(runs("seeded").size(), 1u);
  const json jobs = plan("seeds", "seeded")["jobs"];
  EXPECT_EQ(jobs[0]["trained"], false);
  EXPECT_EQ(jobs[1]["trained"], true);
  expect_refusal("elf-bench ablation seeds.yaml --out seeded --only b", {"--only b", "its arms are a"});
}

// Killed where it cannot be noticed; the same command ends where an undisturbed one does.
TEST_F(Ablations, AKilledSweepGoesOnWhereItWas) {
  // The hook of a checkpoint kills the sweep that is named there, once.
  spill(folder_ / "kill.sh", "[ \"$ELF_STEP\" = 30 ] && [ -e '" + folder_.string() +
                                 "/sweep.pid' ] || exit 0\nmv '" + folder_.string() + "/sweep.pid' '" +
                                 folder_.string() + "/killed.pid'\nkill -9 $(cat '" + folder_.string() +
                                 "/killed.pid')\n");
  sweep("long", "  a: {train: {steps: 120, hook: sh '" + (folder_ / "kill.sh").string() +
                    "'}}\n  b: {train: {steps: 20}}\n");
  const std::string command = "elf-bench ablation long.yaml --threads 1 --out ";
  tool("sh -c 'echo $$ >sweep.pid; exec " + command + "killed'");
  EXPECT_EQ(plan("long", "killed")["jobs"][0]["trained"], false);
  EXPECT_THAT(plan("long", "killed")["jobs"][0]["steps_done"].get<int>(), testing::Ge(30));
  const Outcome again = must("sleep 1; " + command + "killed");
  EXPECT_THAT(again.err, HasSubstr("on from step"));
  must(command + "straight");
  ASSERT_EQ(runs("killed"), runs("straight"));
  const json jobs = plan("long", "killed")["jobs"];
  for (const json& job : jobs) {
    const std::string checkpoint = job["run"].get<std::string>() + "/checkpoints/" +
                                   (job["name"] == "a" ? "step-00000120" : "step-00000020");
    expect_equal_checkpoints("killed/runs/" + checkpoint, "straight/runs/" + checkpoint);
  }
}

TEST_F(Ablations, ASignalSavesAndStops) {
  sweep("stop", "  a: {train: {steps: 1000000}}\n");
  const Outcome stopped =
      tool("elf-bench ablation stop.yaml --out stopped & pid=$!; " +
           until("grep -q loss stopped/runs/*/metrics.jsonl") + "kill -TERM $pid; wait $pid");
  EXPECT_EQ(stopped.code, 85) << stopped.err;
  EXPECT_GT(plan("stop", "stopped")["jobs"][0]["steps_done"].get<int>(), 0);
}

TEST_F(Ablations, ABrokenArmDoesNotStopTheRest) {
  sweep("broken", "  bad: {data: {train: gone.h5}}\n  after: {uses: {train.init_from: bad}}\n  good: {}\n");
  const Outcome outcome = tool("elf-bench ablation broken.yaml --out broken");
  EXPECT_EQ(outcome.code, 1);
  EXPECT_THAT(outcome.err, HasSubstr("2 arms failed"));
  EXPECT_THAT(outcome.err, HasSubstr("bad: training: exit code 2"));
  EXPECT_THAT(outcome.err, HasSubstr("gone.h5"));
  EXPECT_THAT(outcome.err, HasSubstr("after: uses the run of bad"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("tried again")));  // bad input stays bad
  const json jobs = plan("broken", "broken")["jobs"];
  EXPECT_EQ(jobs[0]["trained"], false);
  EXPECT_EQ(jobs[2]["scored"], 3);
}

// What the report says is what the records say.
TEST_F(Ablations, TheReportHoldsTheRecordsFigures) {
  sweep("shown", "  narrow: {}\n  wide: {model: {bottleneck_dim: 16}}\n",
        "published:\n  source: Table 7\n  verdict: wide is better\n  data: OpenWebText\n  scorer: GPT-2 "
        "Large\n  tokens: 45.2e9\n"
        "  rows: [{train: wide, sample: sde, sc-cfg: 1, ppl: 29.5, entropy: 5.23}]\n"
        "expect: [{better: wide, than: narrow}]\n");
  must("elf-bench ablation shown.yaml --out report --jobs 2");
  must("elf-bench report report --out report/all.html --svg");
  const json sweep = parse_json_or_throw(slurp(folder_ / "report/shown/sweep.json"));
  const std::string csv = slurp(folder_ / "report/all.csv"), text = slurp(folder_ / "report/all.md"),
                    html = slurp(folder_ / "report/all.html");
  for (const json& job : sweep["jobs"]) {
    for (const json& setting : job["settings"]) {
      const json record =
          parse_json_or_throw(slurp(folder_ / "report/shown" / setting["record"].get<std::string>()));
      for (const auto& [name, figure] : record["figures"].items()) {
        const std::string line =
            job["train"].get<std::string>() + "," + setting["sample"].get<std::string>() + "," +
            setting["axis"].get<std::string>() + "," + setting["value"].get<std::string>() + "," + name + ",";
        const size_t at = csv.find(line);
        ASSERT_NE(at, std::string::npos) << line;
        const double mean = figure["mean"];
        EXPECT_NEAR(std::stod(csv.substr(at + line.size())), mean, 1e-5 * std::abs(mean)) << line;
      }
      char shown[64];
      std::snprintf(shown, sizeof shown, "%.2f ± %.2f", record["figures"]["perplexity"]["mean"].get<double>(),
                    record["figures"]["perplexity"]["standard_error"].get<double>());
      EXPECT_THAT(text, HasSubstr(shown));
      EXPECT_THAT(html, HasSubstr(shown));
    }
  }
  EXPECT_THAT(text, HasSubstr("| RED |"));  // above 1, all of them
  EXPECT_THAT(text, HasSubstr("| 29.50 / 5.23 |"));
  EXPECT_THAT(text, HasSubstr("tokens seen (published: 45.2 billion)"));
  EXPECT_THAT(text, HasSubstr("a 3-gram model of docs.txt (published: GPT-2 Large)"));
  EXPECT_THAT(text, HasSubstr("wide better than narrow: **"));
  EXPECT_THAT(text, HasSubstr("![Loss while training](shown-loss.svg)"));
  EXPECT_TRUE(fs::exists(folder_ / "report/shown-frontier.svg"));
  EXPECT_THAT(html, Not(HasSubstr("src=")));  // nothing from elsewhere
  EXPECT_EQ(slurp(folder_ / "report/all.html"),
            (must("elf-bench report report/shown --out report/all.csv"), slurp(folder_ / "report/all.html")));
}

TEST_F(Ablations, ADamagedCheckpointIsNamed) {
  sweep("hurt", "  a: {train: {steps: 4}}\n");
  must("elf-bench ablation hurt.yaml --out hurt");
  const std::string state = "hurt/runs/" + runs("hurt").at(0) + "/checkpoints/step-00000004/state.json";
  for (const char* text : {"{\"step\": ", "[]", "{\"step\": \"four\"}"}) {
    spill(folder_ / state, text);
    for (const char* command :
         {"elf-bench ablation hurt.yaml --out hurt --dry-run --json", "elf-bench report hurt"}) {
      const Outcome outcome = tool(command);
      EXPECT_EQ(outcome.code, 2) << text << " " << command;
      EXPECT_THAT(outcome.err, HasSubstr(state + ": is damaged"));
    }
  }
}

// A tool that dies is tried again, and the arm that keeps dying is reported.
TEST_F(Ablations, WhatTheMachineBreaksIsTriedAgain) {
  sweep("flaky", "  a: {}\n");
  spill(folder_ / "flaky.sh",
        "#!/bin/sh\nif [ ! -e flaky.once ]; then touch flaky.once; exit 7; fi\nexec \"$@\"\n");
  const Outcome outcome = must("elf-bench ablation flaky.yaml --out flaky --launcher 'sh flaky.sh'");
  EXPECT_THAT(outcome.err, HasSubstr("exit code 7"));
  EXPECT_THAT(outcome.err, HasSubstr("attempt 2"));
  spill(folder_ / "always.sh", "#!/bin/sh\nexit 7\n");
  const Outcome failed =
      tool("elf-bench ablation flaky.yaml --out flaky2 --retries 2 --launcher 'sh always.sh'");
  EXPECT_EQ(failed.code, 1);
  EXPECT_THAT(failed.err, HasSubstr("attempt 3"));
}

TEST_F(Ablations, JobsForSlurm) {
  sweep("slurm", "  first: {}\n  second: {model: {bottleneck_dim: 16}, uses: {train.init_from: first}}\n");
  must(
      "elf-bench ablation slurm.yaml --out cluster --emit slurm --slurm '--gpus=8 --time=2-00:00' --launcher "
      "'torchrun x'");
  const std::string script = slurp(folder_ / "cluster/slurm/slurm/second.sh"),
                    submit = slurp(folder_ / "cluster/slurm/slurm/submit.sh");
  EXPECT_THAT(script, HasSubstr("#SBATCH --gpus=8\n#SBATCH --time=2-00:00\n"));
  EXPECT_THAT(script, HasSubstr("--only second --launcher 'torchrun x'"));
  EXPECT_THAT(submit, HasSubstr("--dependency=afterok:$job0"));
  must("sh -n cluster/slurm/slurm/second.sh && sh -n cluster/slurm/slurm/submit.sh");
  EXPECT_FALSE(fs::exists(folder_ / "cluster/runs"));
}

// Every file of configs/ablations can be planned on a machine without any data.
TEST_F(Ablations, EverySweepOfTheProjectLoads) {
  size_t files = 0;
  for (const auto& entry :
       fs::recursive_directory_iterator(fs::path(ELF_TEST_DIR) / "../configs/ablations")) {
    if (entry.path().extension() != ".yaml" || entry.path().parent_path().filename() == "runs") continue;
    const Outcome outcome = must("elf-bench ablation '" + entry.path().string() + "' --out none --dry-run");
    EXPECT_THAT(outcome.out, HasSubstr(" arms on ")) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 10u);
}

}  // namespace
}  // namespace elf

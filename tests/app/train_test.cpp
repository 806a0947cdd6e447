// elf-train as a long run meets the world: stopped, killed, filled up, restarted, started twice.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <map>
#include <set>

#include "elf/base/json.h"
#include "elf/tensor/safetensors.h"
#include "support/tiny_run.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class LongRun : public test::TinyRun {
 protected:
  static std::vector<int> logged_steps(const std::string& run_name) {
    std::vector<int> steps;
    for (const json& line : metrics(run_name)) {
      if (line.contains("loss")) steps.push_back(line["step"]);
    }
    return steps;
  }
  static std::vector<int> up_to(int last) {
    std::vector<int> steps;
    for (int i = 1; i <= last; ++i) steps.push_back(i);
    return steps;
  }
  // Every file of a run with its bytes, and every folder.
  static std::map<std::string, std::string> contents(const std::string& run_name) {
    std::map<std::string, std::string> found;
    for (const auto& entry : fs::recursive_directory_iterator(folder_ / run_name))
      found[entry.path().string()] = entry.is_directory() ? "" : slurp(entry.path());
    return found;
  }
};

// Field cases 10, 12 and 21: data order, randomness (dropout is on) and averages go on exactly.
TEST_F(LongRun, VerifyResumeSaysEqual) {
  const Outcome outcome =
      must("elf-train --config run.yaml --verify-resume 20 --json --out checked --set train.valid_every=5");
  const json verdict = parse_json_or_throw(outcome.out);
  EXPECT_TRUE(verdict.at("equal")) << verdict;
  EXPECT_GT(verdict.at("tensors"), 100);
  EXPECT_TRUE(verdict.at("different").empty());
  EXPECT_FALSE(fs::exists(folder_ / "checked.verify-resume"));
  EXPECT_FALSE(fs::exists(folder_ / "checked"));
}

// The proof can fail: one piece of state left out at resume is found.
TEST_F(LongRun, VerifyResumeFindsWhatIsForgotten) {
  for (const char* piece : {"optimizer", "ema"}) {
    const Outcome outcome = tool(std::string("export ELF_FAULTS=forget_") + piece +
                                 "@10; elf-train --config run.yaml --verify-resume 20 --json --out checked");
    EXPECT_EQ(outcome.code, 3) << outcome.err;
    const json verdict = parse_json_or_throw(outcome.out);
    EXPECT_FALSE(verdict.at("equal"));
    EXPECT_THAT(verdict.at("different").dump(), HasSubstr(std::string(piece) + "/"));
  }
}

TEST_F(LongRun, VerifyResumeNamesWhatDiffers) {
  const Outcome outcome =
      tool("ELF_FAULTS=forget_ema@10 elf-train --config run.yaml --verify-resume 20 --out checked");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.out, AllOf(HasSubstr("unequal: "), HasSubstr("\n  ema/")));
}

// Whether the stop comes before the length is known or after it.
TEST_F(LongRun, MinutesBecomeStepsOnce) {
  const std::string run =
      "elf-train --config run.yaml --set train.steps=0 --set train.minutes=0.04 --out timed";
  EXPECT_THAT(tool(run + " --stop-after 12").code, ::testing::AnyOf(85, 0));
  must(run);
  const json state =
      parse_json_or_throw(slurp(folder_ / "timed/checkpoints" / latest("timed") / "state.json"));
  EXPECT_EQ(state.at("step"), state.at("total_steps"));
  EXPECT_GT(state.at("step"), 7);  // what is timed: five to warm up, two at least
  const std::string log = slurp(folder_ / "timed/log.txt");
  const size_t first = log.find("a step takes ");
  EXPECT_NE(first, std::string::npos) << log;
  EXPECT_EQ(log.find("a step takes ", first + 1), std::string::npos) << log;
  EXPECT_EQ(logged_steps("timed"), up_to(state.at("step")));
}

TEST_F(LongRun, ATokenizerOrAModelIsNoRunFolder) {
  const auto tokenizer = contents("words"), table = contents("table");
  expect_refusal("elf-train --config run.yaml --out words",
                 {"words: holds spiece.model", "name another folder"});
  expect_refusal("elf-train --config run.yaml --out table", {"table: holds table.safetensors"});
  EXPECT_EQ(contents("words"), tokenizer);
  EXPECT_EQ(contents("table"), table);
}

TEST_F(LongRun, MetricsHaveEachStepOnce) {
  EXPECT_EQ(tool("elf-train --config run.yaml --out once --stop-after 7").code, 85);
  // Killed behind its last checkpoint: the lines of steps 8 to 11 are written again by the next start.
  EXPECT_EQ(tool("ELF_FAULTS=kill_step@12 elf-train --config run.yaml --out once").code, 137);
  EXPECT_EQ(logged_steps("once"), up_to(11));
  must("elf-train --config run.yaml --out once");
  EXPECT_EQ(logged_steps("once"), up_to(20));
}

// Field case 31.
TEST_F(LongRun, OneBadStepIsSkipped) {
  const Outcome outcome = must("ELF_FAULTS=nan_loss@5 elf-train --config run.yaml --out skipped");
  EXPECT_THAT(outcome.err, HasSubstr("step 5: the denoise loss is not finite (rows "));
  EXPECT_EQ(last_metrics("skipped").at("skipped_steps"), 1);
  for (const auto& [name, tensor] : read_safetensors(checkpoint("skipped", 20) / "model.safetensors"))
    EXPECT_TRUE(at::isfinite(tensor).all().item<bool>()) << name;
}

TEST_F(LongRun, ThreeBadStepsEndTheRun) {
  const Outcome outcome =
      tool("ELF_FAULTS=nan_loss@5-7 elf-train --config run.yaml --out bad --set train.save_every=1");
  EXPECT_EQ(outcome.code, 3) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("step 7: the denoise loss was not finite 3 times in a row (rows "));
  EXPECT_EQ(latest("bad"), "step-00000004");
  EXPECT_THAT(outcome.err, HasSubstr("the last checkpoint is of step 4"));
}

// Field case 15, by the tool: the best and the patience survive the restart.
TEST_F(LongRun, BestAndPatienceSurviveARestart) {
  const std::string command =
      "ELF_FAULTS=valid_loss@1:value=5,valid_loss@2:value=3,valid_loss@3-9:value=4 elf-train --config "
      "run.yaml "
      "--out patient --set train.valid_every=1 --set train.save_every=1 --set train.patience=3 "
      "--set train.keep_last=1";
  EXPECT_EQ(tool(command + " --stop-after 3").code, 85);
  const Outcome outcome = must(command);
  EXPECT_EQ(slurp(folder_ / "patient/checkpoints/best"), "step-00000002\n");
  EXPECT_TRUE(fs::exists(checkpoint("patient", 2) / "ema.safetensors"));
  EXPECT_EQ(latest("patient"), "step-00000005");
  EXPECT_THAT(outcome.err, HasSubstr("has not improved 3 times; the best was at step 2"));
}

// Field case 16: killed at the first change of a file, going on, killed at the second, and so on, until it
// gets to the end: no more than one save is ever lost, and the end is that of an undisturbed run.
TEST_F(LongRun, KilledAtWriteAfterWrite) {
  const std::string run =
      "elf-train --config run.yaml --set train.steps=12 --set train.save_every=1 --set train.keep_last=3 ";
  int saved = 0, changes = -2;
  Outcome outcome;
  do {
    outcome = tool(test::killed_at_write(changes += 3) + run + "--out killed");
    ASSERT_THAT(outcome.code, ::testing::AnyOf(0, 128 + SIGKILL)) << outcome.err;
    const std::string newest = latest("killed");
    ASSERT_GE(newest.empty() ? 0 : std::stoi(newest.substr(5)), saved) << "change " << changes;
    if (!newest.empty()) saved = std::stoi(newest.substr(5));
  } while (outcome.code != 0);
  RecordProperty("changes", changes);
  EXPECT_GT(changes, 20);
  must(run + "--out undisturbed");
  expect_equal_checkpoints(checkpoint("killed", 12), checkpoint("undisturbed", 12));
  for (const auto& entry : fs::directory_iterator(folder_ / "killed/checkpoints"))
    EXPECT_THAT(entry.path().string(), Not(HasSubstr(".tmp")));
}

// A full disk, by the limit on the size of a file: what was saved before stays good.
TEST_F(LongRun, AFileSizeLimitLeavesTheOldCheckpoint) {
  EXPECT_EQ(tool("elf-train --config run.yaml --out full --stop-after 3").code, 85);
  const Outcome outcome = tool(
      "ulimit -f 16; trap '' XFSZ; elf-train --config run.yaml --out full "
      "--set train.save_every=5 --set train.tensorboard=false");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("the one before is untouched"));
  EXPECT_THAT(outcome.err, HasSubstr("File too large"));
  EXPECT_EQ(latest("full"), "step-00000003");
  must("elf-train --config run.yaml --out full");
}

TEST_F(LongRun, AFullDiskLeavesTheOldCheckpoint) {
  const fs::path disk = folder_ / "disk";
  fs::create_directories(disk);
  if (tool("mount -t tmpfs -o size=450k tmpfs " + disk.string()).code != 0)
    GTEST_SKIP() << "a small tmpfs cannot be mounted here";
  const Outcome outcome = tool(
      "elf-train --config run.yaml --out disk/run --set train.save_every=1 "
      "--set train.keep_last=50; code=$?; cat disk/run/checkpoints/latest; exit $code");
  tool("cp -r disk/run saved-from-full-disk; umount " + disk.string());
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("No space left on device"));
  EXPECT_THAT(outcome.out, HasSubstr("step-"));
  const Outcome again = must("elf-train --config run.yaml --out saved-from-full-disk");
  EXPECT_THAT(again.err, HasSubstr("resuming"));
}

TEST_F(LongRun, SignalsSaveAndSayWhich) {
  const std::vector<std::pair<std::string, int>> signals = {
      {"TERM", SIGTERM}, {"USR1", SIGUSR1}, {"INT", SIGINT}, {"HUP", SIGHUP}};
  for (const auto& [signal, number] : signals) {
    const std::string name = "stopped-by-" + signal;
    const Outcome outcome =
        tool("ELF_FAULTS=kill_step@5:value=" + std::to_string(number) +
             " elf-train --config run.yaml --set 'train.stop_signals=TERM USR1 HUP' --out " + name);
    EXPECT_EQ(outcome.code, 85) << signal << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("stopped by SIG" + signal));
    EXPECT_EQ(latest(name), "step-00000005");
  }
  const Outcome unknown = tool("elf-train --config run.yaml --set train.stop_signals=KILL --out never");
  EXPECT_EQ(unknown.code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("train.stop_signals: found 'KILL'"));
}

TEST_F(LongRun, ASecondInterruptLeavesAtOnce) {
  const Outcome outcome =
      tool("ELF_FAULTS=sleep_step@3:value=30 elf-train --config run.yaml --out impatient & pid=$!; " +
           until("grep -q loss impatient/metrics.jsonl") +
           "sleep 0.5; kill -INT $pid; sleep 0.5; kill -INT $pid; wait $pid");
  EXPECT_EQ(outcome.code, 130) << outcome.err;
}

TEST_F(LongRun, TwoTrainersInOneFolderAreRefused) {
  const Outcome outcome =
      tool("ELF_FAULTS=sleep_step@3:value=60 elf-train --config run.yaml --out shared & first=$!; " +
           until("grep -q loss shared/metrics.jsonl") +
           "elf-train --config run.yaml --out shared; code=$?; kill -9 $first; exit $code");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("another trainer works here (host "));
  must("elf-train --config run.yaml --out shared");  // a process that was killed holds nothing
}

TEST_F(LongRun, FoldersOfOtherRunsAreRefused) {
  must("elf-train --config run.yaml --out mine");
  const auto refused = [](const std::string& options, const std::string& part) {
    const Outcome outcome = tool("elf-train --config run.yaml " + options);
    EXPECT_EQ(outcome.code, 2) << options << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << options;
  };
  refused("--out mine --resume never", "holds a run already");
  refused("--out mine --set model.depth=3", "another `model:` section");
  refused("--out fresh --resume none", "no such checkpoint or run");
  refused("--out fresh --resume mine/checkpoints", "name one of those in it: step-00000020");
  refused("--out docs.txt/run", "cannot be made");
  must("elf-prepare corpus --input docs.txt --tokenizer words --max-length 8 --out other.h5");
  refused("--out mine --set data.train=other.h5 --set train.steps=30", "another dataset");
  // Without a checkpoint too: a run that was killed early is still a run.
  fs::create_directories(folder_ / "early");
  fs::copy(folder_ / "mine", folder_ / "early", fs::copy_options::recursive);
  fs::remove_all(folder_ / "early/checkpoints");
  refused("--out early --set model.depth=3", "another `model:` section");
}

TEST_F(LongRun, RefusedCommandsChangeNothing) {
  must("elf-train --config run.yaml --out whole --set train.save_every=5 --set train.keep_last=9");
  must("elf-prepare corpus --input docs.txt --tokenizer words --max-length 8 --out all-rows.h5");
  must("elf-prepare table --data docs.h5 --kind gaussian --width 8 --out other-table");
  fs::remove(checkpoint("whole", 15) / "manifest.json");
  fs::create_directories(checkpoint("whole", 25).string() + ".tmp");
  const auto before = contents("whole");
  const std::string back = "--set train.steps=30 --resume whole/checkpoints/step-000000";
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"--resume never", "holds a run already"},
      {back + "10 --set model.depth=3", "another `model:` section"},
      {back + "10 --set data.train=all-rows.h5", "another dataset"},
      {back + "10 --set latents.path=other-table", "gives the latents"},
      {back + "15", "cannot be used"},
      {"--set train.steps=30 --set data.train=all-rows.h5", "another dataset"},
      {"--set train.steps=30 --set latents.path=other-table", "gives the latents"}};
  for (const auto& [options, part] : refused) {
    const Outcome outcome = tool("elf-train --config run.yaml --out whole " + options);
    EXPECT_EQ(outcome.code, 2) << options << "\n" << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr(part)) << options;
    EXPECT_TRUE(contents("whole") == before) << options;
  }
}

// What lies unfinished in another's run may be what its trainer is writing.
TEST_F(LongRun, GoingOnFromAnotherRunRemovesNothingThere) {
  must("elf-train --config run.yaml --out giver --set train.steps=5");
  const fs::path unfinished = checkpoint("giver", 9).string() + ".tmp";
  fs::create_directories(unfinished);
  must("elf-train --config run.yaml --out taker --resume giver --set train.steps=7");
  EXPECT_TRUE(fs::exists(unfinished));
  must("elf-train --config run.yaml --out giver --set train.steps=7");
  EXPECT_FALSE(fs::exists(unfinished)) << "left over in a run of one's own";
}

TEST_F(LongRun, ResumesFromTheCheckpointNamed) {
  must("elf-train --config run.yaml --out source --set train.save_every=5 --set train.keep_last=9");
  must("elf-train --config run.yaml --out branch --resume source/checkpoints/step-00000010");
  expect_equal_checkpoints(checkpoint("branch", 20), checkpoint("source", 20));
  const Outcome back =
      must("elf-train --config run.yaml --out source --resume source/checkpoints/step-00000010");
  EXPECT_THAT(back.err, HasSubstr("step-00000020 is set aside"));
  expect_equal_checkpoints(checkpoint("branch", 20), checkpoint("source", 20));
  EXPECT_EQ(logged_steps("source"), up_to(20));
}

TEST_F(LongRun, ChangedSettingsAreTold) {
  must("elf-train --config run.yaml --out changed --set train.steps=5");
  const Outcome outcome = must(
      "elf-train --config run.yaml --out changed --set optimizer.lr=1e-3 --set train.seed=5 "
      "--set train.global_batch_size=8 --set flow.decoder_prob=0.3");
  for (const char* change : {"optimizer.lr 0.002 -> 0.001", "train.seed 0 -> 5",
                             "train.global_batch_size 16 -> 8", "flow.decoder_prob 0.2 -> 0.3"})
    EXPECT_THAT(outcome.err, HasSubstr(change));
  EXPECT_THAT(slurp(folder_ / "changed/log.txt"), HasSubstr("train.seed 0 -> 5"));
  EXPECT_THAT(slurp(folder_ / "changed/config.yaml"), HasSubstr("global_batch_size: 8"));
  must("elf-sample --model changed --num-samples 1");
}

TEST_F(LongRun, AFinishedRunSaysSo) {
  must("elf-train --config run.yaml --out finished");
  const std::string before = slurp(folder_ / "finished/metrics.jsonl");
  const Outcome outcome = must("elf-train --config run.yaml --out finished");
  EXPECT_THAT(outcome.err, HasSubstr("nothing to do"));
  EXPECT_THAT(outcome.err, Not(HasSubstr("0%")));
  EXPECT_EQ(slurp(folder_ / "finished/metrics.jsonl"), before);
}

TEST_F(LongRun, KeepsEveryNthAndTheLast) {
  must(
      "elf-train --config run.yaml --out kept --set train.save_every=2 --set train.keep_last=2 "
      "--set train.keep_every=6 --set train.valid_every=20");
  std::set<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder_ / "kept/checkpoints")) {
    if (entry.is_directory()) names.insert(entry.path().filename().string());
  }
  EXPECT_THAT(names,
              ::testing::ElementsAre("step-00000006", "step-00000012", "step-00000018", "step-00000020"));
}

// Saving beside training gives the same files as saving between steps.
TEST_F(LongRun, SavingInTheBackgroundChangesNothing) {
  must("elf-train --config run.yaml --out background --set train.save_every=1 --set train.keep_last=30");
  must(
      "elf-train --config run.yaml --out between --set train.save_every=1 --set train.keep_last=30 "
      "--set train.save_in_background=false");
  for (const int step : {1, 7, 20})
    expect_equal_checkpoints(checkpoint("background", step), checkpoint("between", step));
}

TEST_F(LongRun, RecomputedBlocksChangeNothing) {
  must("elf-train --config run.yaml --out kept-activations --set train.steps=5");
  must("elf-train --config run.yaml --out recomputed --set train.steps=5 --set train.recompute=true");
  expect_equal_checkpoints(checkpoint("recomputed", 5), checkpoint("kept-activations", 5));
}

// Field case 25: without a launcher no port is opened, so nothing can clash.
TEST_F(LongRun, TwoSingleRunsAtOnce) {
  const Outcome outcome = tool(
      "elf-train --config run.yaml --out single-1 & first=$!; "
      "elf-train --config run.yaml --out single-2 && wait $first");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  expect_equal_checkpoints(checkpoint("single-1", 20), checkpoint("single-2", 20));
}

// Field case 24.
TEST_F(LongRun, FewerRowsThanABatchAreRefused) {
  test::spill(folder_ / "three.txt", small_text(3));
  must("elf-prepare corpus --input three.txt --tokenizer words --max-length 8 --out three.h5");
  const Outcome outcome = tool(
      "elf-train --config run.yaml --out never --set data.train=three.h5 "
      "--set train.global_batch_size=8");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("3 rows, fewer than one global batch of 8"));
}

}  // namespace
}  // namespace elf

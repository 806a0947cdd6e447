// Several processes over Gloo on this machine: the same result for every split, and what happens when one of
// them fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "elf/tensor/safetensors.h"
#include "support/free_port.h"
#include "support/tiny_run.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::Outcome;
using test::slurp;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class SeveralRanks : public test::TinyRun {
 protected:
  // `ranks` processes with the variables of torchrun; the exit code is that of the first, or the first that
  // is not 0. Their messages: out of the first in run-0.err, and so on, all of them in Outcome::err.
  static Outcome together(int ranks, const std::string& arguments, const std::string& variables = "") {
    const std::string count = std::to_string(ranks);
    const std::string port = std::to_string(test::free_port());
    std::string all = "pids=; ";
    for (int rank = 0; rank < ranks; ++rank) {
      const std::string number = std::to_string(rank);
      all += "RANK=" + number + " WORLD_SIZE=" + count + " LOCAL_RANK=" + number +
             " LOCAL_WORLD_SIZE=" + count + " MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port + " " + variables +
             " timeout 100 elf-train --device cpu " + arguments + " 2>run-" + number +
             ".err & pids=\"$pids $!\"; ";
    }
    return tool(all +
                "code=0; for pid in $pids; do wait $pid; c=$?; [ $code != 0 ] || code=$c; done; "
                "cat run-?.err >&2; rm -f run-?.err; exit $code");
  }
  // Largest relative difference of a tensor, over all of them.
  static double difference(const fs::path& a, const fs::path& b) {
    double largest = 0;
    const TensorMap other = read_safetensors(b / "model.safetensors");
    for (const auto& [name, tensor] : read_safetensors(a / "model.safetensors")) {
      const double scale = other.at(name).norm().item<double>();
      largest = std::max(largest, (tensor - other.at(name)).norm().item<double>() / std::max(scale, 1e-3));
    }
    return largest;
  }
};

// Micro-batches of 2 rows: 1 rank x 8, 2 x 4, 4 x 2; and 3 ranks, which divide nothing evenly.
TEST_F(SeveralRanks, EverySplitGivesTheSameWeights) {
  const std::string run = "--config run.yaml --set train.steps=5 --set train.micro_batch_size=2 --out split-";
  for (const char* optimizer : {"muon", "adamw"}) {
    const std::string kind = std::string(" --set optimizer.kind=") + optimizer;
    const std::string name = std::string("split-") + optimizer;
    must("elf-train " + run + optimizer + "1" + kind);
    for (const int ranks : {2, 3, 4}) {
      const Outcome outcome = together(ranks, run + optimizer + std::to_string(ranks) + kind);
      ASSERT_EQ(outcome.code, 0) << outcome.err;
      // Three ranks have other micro-batches: their products round otherwise.
      EXPECT_LT(difference(checkpoint(name + std::to_string(ranks), 5), checkpoint(name + "1", 5)),
                ranks == 3 ? 5e-6 : 1e-6)
          << optimizer << " on " << ranks << " ranks";
    }
  }
}

TEST_F(SeveralRanks, TheSameSplitIsBitwiseAndResumesSo) {
  const std::string run = "--config run.yaml --set train.micro_batch_size=3 --out ";
  ASSERT_EQ(together(3, run + "straight").code, 0);
  EXPECT_EQ(together(3, run + "halves --stop-after 10").code, 85);
  ASSERT_EQ(together(3, run + "halves").code, 0);
  expect_equal_checkpoints(checkpoint("straight", 20), checkpoint("halves", 20));
}

// Field case 14, both ways.
TEST_F(SeveralRanks, ResumesOnAnotherNumberOfRanks) {
  const std::string run = "--config run.yaml --set train.micro_batch_size=2 --set train.steps=6 --out ";
  EXPECT_EQ(together(2, run + "from-two --stop-after 3").code, 85);
  for (const char* copy : {"on-one", "on-four"})
    fs::copy(folder_ / "from-two", folder_ / copy, fs::copy_options::recursive);
  must("elf-train " + run + "on-one");
  ASSERT_EQ(together(4, run + "on-four").code, 0);
  must("elf-train " + run + "never-two");
  EXPECT_LT(difference(checkpoint("on-one", 6), checkpoint("never-two", 6)), 1e-6);
  EXPECT_LT(difference(checkpoint("on-four", 6), checkpoint("never-two", 6)), 1e-6);
  // Loaded and saved at once, every tensor is what it was.
  for (const int ranks : {1, 4}) {
    const std::string name = "loaded-" + std::to_string(ranks);
    EXPECT_EQ(together(ranks, run + name + " --resume from-two --stop-after 3").code, 85);
    expect_equal_checkpoints(checkpoint(name, 3), checkpoint("from-two", 3));
  }
}

// Field case 23: 15 rows, 2 ranks, an uneven last batch, an evaluation set of 5.
TEST_F(SeveralRanks, UnevenTailsEndAndValidationCountsEachRowOnce) {
  test::spill(folder_ / "fifteen.txt", small_text(15));
  test::spill(folder_ / "five.txt", small_text(5));
  for (const char* name : {"fifteen", "five"})
    must(std::string("elf-prepare corpus --input ") + name + ".txt --tokenizer words --max-length 8 --out " +
         name + ".h5");
  const std::string run =
      "--config run.yaml --set data.train=fifteen.h5 --set data.valid=five.h5 --set "
      "train.global_batch_size=5 "
      "--set train.micro_batch_size=2 --set train.steps=0 --set train.epochs=2 --out uneven";
  must("elf-train " + run + "-one");
  const Outcome outcome = together(2, run + "-two");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  const json one = metrics("uneven-one").back(), two = metrics("uneven-two").back();
  EXPECT_EQ(one.at("step"), 6);
  EXPECT_EQ(two.at("valid_rows"), 5);
  EXPECT_NEAR(one.at("valid_loss").get<double>(), two.at("valid_loss").get<double>(), 1e-5);
  EXPECT_NEAR(one.at("valid_accuracy").get<double>(), two.at("valid_accuracy").get<double>(), 1e-9);
}

// Field case 24 on several ranks.
TEST_F(SeveralRanks, FewerRowsThanRanksAreRefusedOnAll) {
  const Outcome outcome = together(3, "--config run.yaml --set train.global_batch_size=2 --out never");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("train.global_batch_size is 2, but there are 3 ranks"));
}

// Field case 25.
TEST_F(SeveralRanks, APortInUseIsNamed) {
  const Outcome outcome = tool(
      "python3 -c 'import socket, time\ns = socket.socket()\ns.bind((\"\", 0))\ns.listen()\n"
      "print(s.getsockname()[1], flush=True)\ntime.sleep(600)' >port & holder=$!; " +
      until("[ -s port ]") +
      "port=$(cat port); "
      "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=$port timeout 55 elf-train "
      "--config run.yaml "
      "--out never; code=$?; kill $holder; exit $code");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err,
              HasSubstr("cannot listen on 127.0.0.1:" + std::to_string(std::stoi(slurp(folder_ / "port")))));
  EXPECT_THAT(outcome.err, HasSubstr("set MASTER_PORT to a free port"));
}

// A rank of another job that came to this port is refused.
TEST_F(SeveralRanks, StrangersAreRefused) {
  const std::string common =
      "WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + std::to_string(test::free_port()) + " ";
  const Outcome outcome =
      tool(common + "RANK=0 LOCAL_RANK=0 elf-train --config run.yaml --out home & first=$!; " + common +
           "RANK=1 LOCAL_RANK=1 timeout 100 elf-train --config run.yaml --set train.seed=9 --out home; "
           "code=$?; kill -KILL $first; wait $first; exit $code");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("another configuration, data or job than rank 0"));
}

// Field case 26: rank 0 is slow in a save; the others wait as long as they are told.
TEST_F(SeveralRanks, SlowWorkOfTheFirstRankIsWaitedFor) {
  const std::string run =
      "--config run.yaml --set train.steps=4 --set train.save_every=2 --set train.save_in_background=false "
      "--set train.collective_timeout=20 --out ";
  const std::string slow = "ELF_FAULTS=sleep_save@2:rank=0:value=";
  const Outcome patient = together(2, run + "patient-ranks", slow + "25");
  EXPECT_EQ(patient.code, 0) << patient.err;
  EXPECT_THAT(patient.err, ContainsRegex("save on rank 0 took [0-9]+ s"));
  // Rank 0 is ended by the failure of the other, long before its save.
  const Outcome hurried = together(2, run + "hurried-ranks --set train.first_rank_timeout=3", slow + "60");
  EXPECT_NE(hurried.code, 0);
  EXPECT_THAT(hurried.err, HasSubstr("'save on rank 0', at most 3 s (train.first_rank_timeout)"));
}

// Also for a save in the background that the next one has to wait for.
TEST_F(SeveralRanks, ASlowSaveInTheBackgroundIsWaitedFor) {
  const Outcome outcome = together(
      2,
      "--config run.yaml --set train.steps=6 --set train.save_every=2 --set train.collective_timeout=10 "
      "--out patient-in-background",
      "ELF_FAULTS=sleep_save@2:rank=0:value=14");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("save on rank 0 took "));
  EXPECT_EQ(latest("patient-in-background"), "step-00000006");
}

// Field case 28: the first cause is told once, with rank and step, and nobody waits.
TEST_F(SeveralRanks, OneFailureEndsAll) {
  for (const std::string place : {"forward", "reader", "save"}) {
    const std::string rank = place == "save" ? "0" : "1";
    const Outcome outcome = together(2, "--config run.yaml --set train.save_every=3 --out failed-in-" + place,
                                     "ELF_FAULTS=throw_" + place + "@3:rank=" + rank);
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    const std::string cause = "a fault was asked for in " + place;
    EXPECT_THAT(outcome.err, HasSubstr("rank " + rank + ", step ")) << place;
    const size_t first = outcome.err.find(cause);
    ASSERT_NE(first, std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.err.find(cause, first + 1), std::string::npos) << outcome.err;
  }
}

// The save of before is still being written when another rank fails, and takes longer than a rank may that
// has not noticed.
TEST_F(SeveralRanks, AFailureElsewhereLetsASaveInTheBackgroundEnd) {
  const Outcome outcome = together(2, "--config run.yaml --set train.save_every=5 --out saved-late",
                                   "ELF_FAULTS=sleep_save@5:rank=0:value=12,throw_forward@6:rank=1");
  EXPECT_EQ(outcome.code, 1) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("rank 1, step 6: a fault was asked for in forward"));
  EXPECT_EQ(latest("saved-late"), "step-00000005") << outcome.err;
}

// A first rank that stands still (a stopped process, a machine off the network) closes no connection, and the
// store it holds answers nothing: the timeouts hold all the same, in a step and in a save.
TEST_F(SeveralRanks, AFirstRankThatStandsStillIsNotWaitedForForever) {
  for (const std::string place : {"step@5", "save@4"}) {
    const std::string port = std::to_string(test::free_port());
    const std::string common = " WORLD_SIZE=2 LOCAL_WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
                               " ELF_FAULTS=kill_" + place + ":rank=0:value=19 ";
    const std::string run =
        "elf-train --device cpu --config run.yaml --set train.save_every=4 --set "
        "train.save_in_background=false --set train.collective_timeout=5 --set train.first_rank_timeout=5 "
        "--out still-" +
        place.substr(0, 4);
    // TERM would only be noted.
    const Outcome outcome = tool("RANK=0 LOCAL_RANK=0" + common + run + " 2>run-0.err & first=$!; " +
                                 "RANK=1 LOCAL_RANK=1" + common + "timeout -s KILL 90 " + run +
                                 "; code=$?; kill -KILL $first; wait $first; rm -f run-0.err; exit $code");
    EXPECT_EQ(outcome.code, 1) << outcome.err;
    EXPECT_THAT(outcome.err, HasSubstr("rank 1 of 2 on ")) << place;
    EXPECT_THAT(outcome.err,
                HasSubstr(place == "save@4" ? " waited for 'save on rank 0', at most 5 s " : " waited for "))
        << place;
  }
}

// Field case 31 on several ranks: NaN on one rank skips the step on both.
TEST_F(SeveralRanks, NaNOnOneRankSkipsTheStepOnAll) {
  const Outcome outcome = together(2, "--config run.yaml --out nan-on-one", "ELF_FAULTS=nan_loss@5:rank=1");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(last_metrics("nan-on-one").at("skipped_steps"), 1);
  const Outcome ended = together(2, "--config run.yaml --out nan-ends", "ELF_FAULTS=nan_loss@5-7:rank=1");
  EXPECT_EQ(ended.code, 3) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("step 7: the denoise loss was not finite 3 times in a row (rows "));
}

TEST_F(SeveralRanks, ASignalAtAnyRankStopsAll) {
  const std::string port = std::to_string(test::free_port());
  const std::string common =
      "WORLD_SIZE=2 MASTER_ADDR=127.0.0.1 MASTER_PORT=" + port +
      " ELF_FAULTS=kill_step@4:rank=1:value=10 elf-train --config run.yaml --out signalled & ";
  const Outcome outcome = tool("RANK=0 LOCAL_RANK=0 " + common + "first=$!; RANK=1 LOCAL_RANK=1 " + common +
                               "second=$!; wait $first; a=$?; wait $second; b=$?; "
                               "echo $a $b");
  EXPECT_EQ(outcome.out, "85 85\n") << outcome.err;
  EXPECT_FALSE(latest("signalled").empty());
}

TEST_F(SeveralRanks, VerifyResumeOnTwoRanks) {
  const Outcome outcome = together(2, "--config run.yaml --verify-resume 6 --out checked");
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("equal: "));
}

// The launcher itself: one rank is killed, all start again, the end is that of an undisturbed run.
TEST_F(SeveralRanks, TorchrunRestartsAKilledRank) {
  const std::string torchrun = ELF_TORCHRUN;
  if (!fs::exists(torchrun)) GTEST_SKIP() << "no torchrun in " << torchrun;
  const std::string launch =
      torchrun + " --standalone --local-addr 127.0.0.1 --no-python --nproc_per_node 2 --max-restarts 2";
  const std::string run = " elf-train --device cpu --config run.yaml --set train.save_every=3 --out ";
  must(launch + run + "calm");
  const Outcome outcome = must("ELF_FAULTS=kill_step@8:rank=1:restart=0 " + launch + run + "disturbed");
  EXPECT_THAT(outcome.err, HasSubstr("resuming"));
  expect_equal_checkpoints(checkpoint("calm", 20), checkpoint("disturbed", 20));
}

// One process makes all rounds: its ranks meet once. (torchrun keeps what they left at their meeting point.)
TEST_F(SeveralRanks, RoundsOfDistillationFollowEachOther) {
  const std::string torchrun = ELF_TORCHRUN;
  test::spill(folder_ / "rounds.yaml",
              "base: run.yaml\n"
              "train: {objective: distillation, steps: 6, micro_batch_size: 2}\n"
              "distillation: {teacher: teacher, student_steps: [4, 2], teacher_steps: [2, 4], gamma: 0.5, "
              "self_cond_cfg: 1.5, eval_samples: 0}\n");
  must("elf-train --config run.yaml --set train.steps=6 --out teacher");
  must("elf-train --config rounds.yaml --out rounds-one");
  const Outcome outcome = together(2, "--config rounds.yaml --out rounds-two");
  ASSERT_EQ(outcome.code, 0) << outcome.err;
  if (fs::exists(torchrun)) {
    must(torchrun +
         " --standalone --local-addr 127.0.0.1 --no-python --nproc_per_node 2 elf-train --device cpu "
         "--config rounds.yaml --out "
         "rounds-torchrun");
    for (const std::string round : {"/steps-4", "/steps-2"})
      expect_equal_checkpoints(checkpoint("rounds-torchrun" + round, 6), checkpoint("rounds-two" + round, 6));
  }
  for (const std::string round : {"/steps-4", "/steps-2"})
    EXPECT_LT(difference(checkpoint("rounds-two" + round, 6), checkpoint("rounds-one" + round, 6)), 1e-6);
  EXPECT_THAT(slurp(folder_ / "rounds-two/steps-4/log.txt"), HasSubstr("run folder rounds-two/steps-4"));
  EXPECT_THAT(slurp(folder_ / "rounds-two/steps-4/log.txt"), Not(HasSubstr("rounds-two/steps-2")));
}

}  // namespace
}  // namespace elf

// What elf-bench speed reports; no figure of time is judged.
#include "elf/bench/speed.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstdio>
#include <sstream>
#include <thread>

#include "elf/base/json.h"
#include "elf/base/phases.h"
#include "elf/model/flops.h"
#include "support/command.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

using nlohmann::json;
using test::Outcome;

TEST(Median, OfOddEvenAndNone) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({}), 0);
}

TEST(MeasureRounds, WarmsUpCountsPhasesAndRelatesWorkToTheMachine) {
  std::vector<int64_t> rounds;
  const SpeedReport report = measure_rounds(3, at::kCPU, at::kFloat, [&](int64_t round) {
    rounds.push_back(round);
    in_phase("work", [] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); });
    if (round == 2) in_phase("rare", [] {});
    return RoundWork{2e9, {"work"}};
  });
  EXPECT_THAT(rounds, testing::ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(report.seconds.size(), 3u);
  ASSERT_EQ(report.phases.size(), 2u);
  EXPECT_EQ(report.phases.at("rare").size(), 3u);
  EXPECT_EQ(report.phases.at("rare")[0], 0.0);
  EXPECT_GT(report.gemm_gflops, 0);
  for (size_t i = 0; i < 3; ++i) {
    const double seconds = report.phases.at("work")[i];
    EXPECT_GE(seconds, 0.020);
    EXPECT_LE(seconds, report.seconds[i]);
    EXPECT_NEAR(report.utilisation[i], 2.0 / seconds / report.gemm_gflops, 1e-9);
  }
}

// Counted by hand from docs/ALGORITHM.md: H 8, 1 block, inner 21, D 4, bottleneck 2, V 10, L 5, 3 prefix
// tokens.
TEST(StepFlops, AreThoseOfTheMathematics) {
  ModelConfig model;
  model.depth = 1, model.hidden_size = 8, model.num_heads = 2, model.latent_dim = 4, model.bottleneck_dim = 2;
  model.vocab_size = 10, model.max_length = 5;
  model.num_time_tokens = model.num_self_cond_cfg_tokens = model.num_model_mode_tokens = 1;
  const double linear = 2.0 * 8 * (8 * 24 + 8 * 8 + 8 * 42 + 21 * 8), attention = 2 * 2.0 * 8 * 8 * 8;
  const double trunk = linear + attention + 2.0 * 5 * (8 * 4 + 4 * 2 + 2 * 8), denoise = 2.0 * 5 * 8 * 4,
               decode = 2.0 * 5 * (8 * 4 + 4 * 10);
  EXPECT_DOUBLE_EQ(step_flops(model, true, {8, 2, 3}, 5),
                   3 * (8 * trunk + 6 * denoise + 2 * decode) + 3 * (trunk + denoise));
}

class SpeedCommand : public testing::Test {
 protected:
  Outcome speed(const std::string& arguments) {
    return test::run(folder_.path(), "elf-bench speed " + arguments + " --preset nano --length 16");
  }
  // The report of a tiny network.
  json report(const std::string& arguments) {
    const Outcome outcome =
        speed(arguments + " --batch 4 --latent 8 --vocab 50 --steps 2 --threads 1 --json");
    EXPECT_EQ(outcome.code, 0) << outcome.err;
    return parse_json_or_throw(outcome.out);
  }

  test::TemporaryFolder folder_;
};

TEST_F(SpeedCommand, TrainReportsWhatScriptsRead) {
  const json j = report("train");
  EXPECT_EQ(j.at("what"), "train");
  EXPECT_EQ(j.at("preset"), "nano");
  EXPECT_EQ(j.at("batch"), 4);
  EXPECT_EQ(j.at("length"), 16);
  EXPECT_EQ(j.at("seconds").size(), 2u);
  for (const char* phase : {"data", "encoder", "no_grad_forward", "forward", "backward", "optimiser", "ema"})
    EXPECT_TRUE(j.at("phases_median").contains(phase)) << phase;
  for (const char* figure :
       {"seconds_median", "tokens_per_second", "gemm_gflops", "model_gflop", "utilisation", "peak_rss_mib"})
    EXPECT_GT(j.at(figure).get<double>(), 0) << figure;
}

TEST_F(SpeedCommand, SampleCountsBothHalvesOfGuidance) {
  const double plain = report("sample --sampling-steps 3 --condition 4").at("model_gflop");
  const double guided = report("sample --sampling-steps 3 --condition 4 --cfg 2").at("model_gflop");
  EXPECT_GT(guided, 1.4 * plain);  // six forwards and a decoding instead of three and one
  EXPECT_LT(guided, 2 * plain);
}

// The figures of time differ from one run to the next; what they are of, and how they hang together, does not.
TEST_F(SpeedCommand, PrintsForPeopleWhatScriptsRead) {
  struct Case {
    std::string what, more;
    double tokens;  // of a round
  };
  for (const Case& c :
       {Case{"train", "", 4 * 16}, Case{"sample", " --sampling-steps 3 --condition 4", 4 * 12}}) {
    SCOPED_TRACE(c.what);
    const std::string command =
        c.what + c.more + " --batch 4 --latent 8 --vocab 50 --steps 1 --threads 1 --device cpu";
    const Outcome plain = speed(command), machine = speed(command + " --json");
    ASSERT_EQ(plain.code, 0) << plain.err;
    ASSERT_EQ(machine.code, 0) << machine.err;
    const json j = parse_json_or_throw(machine.out);
    std::vector<std::string> lines;
    std::istringstream in(plain.out);
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    const size_t phases = j.at("phases_median").size();
    EXPECT_GT(phases, 0u);
    ASSERT_EQ(lines.size(), phases + 4) << plain.out;

    EXPECT_EQ(lines[0], c.what + " nano, batch 4 x 16, cpu, 1 threads");
    double seconds = 0, rate = 0;
    int rounds = 0;
    ASSERT_EQ(std::sscanf(lines[1].c_str(), "  %lf s a round (median of %d), %lf tokens/s", &seconds, &rounds,
                          &rate),
              3)
        << lines[1];
    EXPECT_EQ(rounds, 1);
    EXPECT_NEAR(c.tokens / rate, seconds, 1e-4 + 1e-3 * seconds);  // seconds are printed to 1e-4
    size_t next = 2;
    for (const auto& [name, ignored] : j.at("phases_median").items()) {
      std::istringstream line(lines[next++]);
      std::string phase, unit;
      double took = -1;
      line >> phase >> took >> unit;
      EXPECT_EQ(phase, name);
      EXPECT_EQ(unit, "s");
      EXPECT_GE(took, 0) << name;
      EXPECT_LE(took, seconds * 1.001 + 1e-4) << name;
    }
    double work = 0, machine_rate = 0, share = 0, share_of_whole = 0, memory = 0;
    ASSERT_EQ(
        std::sscanf(lines[next].c_str(), "  %lf GFLOP by the mathematics; matrix products run at %lf GFLOP/s",
                    &work, &machine_rate),
        2)
        << lines[next];
    EXPECT_DOUBLE_EQ(work, j.at("model_gflop").get<double>());
    EXPECT_GT(machine_rate, 0);
    ASSERT_EQ(std::sscanf(lines[next + 1].c_str(),
                          "  utilisation %lf %% (of the whole round %lf %%), peak memory %lf MiB", &share,
                          &share_of_whole, &memory),
              3)
        << lines[next + 1];
    EXPECT_GT(share, 0);
    EXPECT_GE(share, share_of_whole);
    EXPECT_GT(memory, 1);
  }
}

TEST_F(SpeedCommand, SamplingIsForOneProcess) {
  const Outcome outcome = test::run(
      folder_.path(),
      "RANK=0 WORLD_SIZE=2 LOCAL_RANK=0 MASTER_ADDR=127.0.0.1 MASTER_PORT=29500 elf-bench speed sample");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, testing::HasSubstr("elf-bench speed sample is for one process; 2 were started"));
}

TEST_F(SpeedCommand, RefusesAConditionThatLeavesNothing) {
  const Outcome outcome = speed("sample --condition 16");
  EXPECT_EQ(outcome.code, 2);
  EXPECT_THAT(outcome.err, testing::HasSubstr("--condition 16 leaves nothing of --length 16"));
}

}  // namespace
}  // namespace elf

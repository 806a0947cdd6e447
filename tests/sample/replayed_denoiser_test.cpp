// A walk with a replayed network is the walk of the network itself, bit for bit.
#include "elf/sample/replayed_denoiser.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "elf/sample/sampler.h"
#include "elf/tensor/device.h"
#include "elf/tensor/random.h"
#include "support/cpu_recorder.h"
#include "support/tiny_networks.h"

namespace elf {
namespace {

using test::CpuRecorder;
using test::RecorderCalls;

constexpr int64_t kLength = 16, kWidth = 32;

// Without SC-CFG tokens. Guided: both guidances stand in the batch, and the first step's is smaller.
// Unguided: what the network gives is the step's prediction itself.
struct Walker {
  bool guided;
  at::Device device;
  ElfNet network{test::tiny_config("nocfg"), device};
  SamplingConfig config;

  Walker(SamplerKind kind, bool guide, at::Device where = at::kCPU) : guided(guide), device(where) {
    network.load(test::tiny_weights("nocfg"));
    config.sampler = kind;
    config.steps = 5;
    config.self_cond_cfg = guided ? 2.0 : 1.0;
    config.cfg = 1.5;
  }

  // States and predictions of all steps, looked at when the walk is over.
  std::vector<at::Tensor> walk(Denoiser& denoiser, int64_t first, int64_t rows) const {
    const std::vector<int64_t> samples = sample_range(first, rows);
    SampleConditions conditions;
    if (guided) {
      conditions.latents = normal({3, Purpose::kTable}, samples, {kLength, kWidth}).to(device);
      conditions.mask = at::arange(kLength).lt(4).expand({rows, kLength}).contiguous().to(device);
    }
    std::vector<at::Tensor> seen;
    const SamplerModel model{denoiser, {.self_cond = true, .cfg_tokens = false, .dropout = false}, 2.0, 0.05};
    sample_latents(model, config, draw_sampler(config, samples, kLength, kWidth, device), conditions,
                   [&](const SamplerStep& step) {
                     seen.insert(seen.end(), {step.z, step.x_hat});
                   });
    return seen;
  }

  void expect_same_walks(Denoiser& replayed) {
    for (const auto& [first, rows] : {std::pair<int64_t, int64_t>{0, 3}, {3, 3}, {6, 2}, {8, 2}, {10, 3}}) {
      const std::vector<at::Tensor> plain = walk(network, first, rows), again = walk(replayed, first, rows);
      ASSERT_EQ(plain.size(), again.size());
      for (size_t i = 0; i < plain.size(); ++i)
        EXPECT_TRUE(at::equal(plain[i], again[i])) << "samples from " << first << ", tensor " << i;
    }
  }
};

class ReplayedWalk : public ::testing::TestWithParam<std::tuple<SamplerKind, bool>> {
 protected:
  const SamplerKind kind_ = std::get<0>(GetParam());
  const bool guided_ = std::get<1>(GetParam());
  // Two numbers of rows; with guidance each has a small first step and larger ones.
  const int64_t shapes_ = guided_ ? 4 : 2;
};

TEST_P(ReplayedWalk, IsThePlainOne) {
  Walker walker(kind_, guided_);
  RecorderCalls calls;
  ReplayedDenoiser replayed(walker.network, walker.config, std::make_unique<CpuRecorder>(calls));
  walker.expect_same_walks(replayed);
  EXPECT_EQ(calls.recordings, shapes_);
  const int64_t forwards_of_a_walk = kind_ == SamplerKind::kHeun ? 9 : 5;
  EXPECT_EQ(calls.replays, 5 * forwards_of_a_walk - shapes_);
}

TEST_P(ReplayedWalk, IsThePlainOneOnCuda) {
  const at::Device device = parse_device("auto");
  if (!device.is_cuda()) GTEST_SKIP() << "no CUDA device";
  for (const bool bfloat16 : {false, true}) {
    Walker walker(kind_, guided_, device);
    walker.network.set_bfloat16_blocks(bfloat16);
    // The recorder counts, so that a plain walk is not taken for a replayed one.
    class Counting final : public Recorder {
     public:
      Counting(at::Device device, int64_t& count) : recorder_(make_recorder(device)), count_(count) {}
      std::unique_ptr<Recording> record(const std::function<at::Tensor()>& work) override {
        auto recording = recorder_->record(work);
        ++count_;
        return recording;
      }

     private:
      std::unique_ptr<Recorder> recorder_;
      int64_t& count_;
    };
    ASSERT_NE(make_recorder(device), nullptr);
    int64_t recordings = 0;
    ReplayedDenoiser replayed(walker.network, walker.config, std::make_unique<Counting>(device, recordings));
    walker.expect_same_walks(replayed);
    EXPECT_EQ(recordings, shapes_);
    {
      const at::NoGradGuard no_grad;  // new weights in the old places
      for (const ParamRef& parameter : walker.network.parameters()) at::Tensor(parameter.tensor).mul_(0.9);
    }
    walker.expect_same_walks(replayed);
    EXPECT_EQ(recordings, shapes_);
  }
}

INSTANTIATE_TEST_SUITE_P(Samplers, ReplayedWalk,
                         ::testing::Combine(::testing::Values(SamplerKind::kSde, SamplerKind::kOde,
                                                              SamplerKind::kHeun, SamplerKind::kMultistep),
                                            ::testing::Bool()));

TEST(ReplayedDenoiser, PassesOnWhatIsNotAPrediction) {
  const at::NoGradGuard no_grad;
  Walker walker(SamplerKind::kOde, /*guide=*/true);
  RecorderCalls calls;
  ReplayedDenoiser replayed(walker.network, walker.config, std::make_unique<CpuRecorder>(calls));
  DenoiserInput input;
  input.z = input.self_cond = normal({3, Purpose::kTable}, {0, 1}, {kLength, kWidth});
  input.t = at::ones({2});
  input.mode = at::ones({2});
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(replayed.logits(input), walker.network.logits(input)));
  input.dropout = true;  // masks are named by a key that changes from call to call
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(at::equal(replayed.x_hat(input), walker.network.x_hat(input)));
  EXPECT_EQ(calls.recordings, 0);
}

TEST(ReplayedDenoiser, TheConfigurationTurnsItOff) {
  Walker walker(SamplerKind::kOde, /*guide=*/true);
  walker.config.cuda_graph = false;
  RecorderCalls calls;
  ReplayedDenoiser plain(walker.network, walker.config, std::make_unique<CpuRecorder>(calls));
  walker.expect_same_walks(plain);
  EXPECT_EQ(calls.recordings, 0);
}

}  // namespace
}  // namespace elf

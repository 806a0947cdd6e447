// Each fused layer against the same equation in plain ATen operations (values 1e-6, gradients 1e-5 of the
// largest entry), and the rotary embedding and timestep features against golden/forward (1e-5).
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <mutex>
#include <numeric>
#include <set>
#include <thread>

#include "../src/nn/kernels.h"
#include "../src/nn/short_attention.h"
#include "elf/base/error.h"
#include "elf/nn/attention.h"
#include "elf/nn/block.h"
#include "elf/nn/dropout.h"
#include "elf/nn/init.h"
#include "elf/nn/rms_norm.h"
#include "elf/nn/rope.h"
#include "elf/nn/swiglu.h"
#include "elf/nn/timestep_embedder.h"
#include "elf/tensor/parallel.h"
#include "elf/tensor/random.h"
#include "support/golden.h"

namespace elf::nn {
namespace {

using test::all_close;
using test::close_to_largest;

at::Tensor numbers(int64_t which, at::IntArrayRef shape) {
  return normal({17, Purpose::kInit}, {which}, shape).select(0, 0);
}

using Function = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>&)>;

// Values of both, and the gradient of every input under one random weighting of the outputs.
void expect_same(const Function& fast, const Function& plain, const std::vector<at::Tensor>& inputs,
                 double tolerance = 1e-6) {
  std::vector<std::vector<at::Tensor>> outputs, grads;
  for (const Function& function : {fast, plain}) {
    std::vector<at::Tensor> leaves;
    for (const at::Tensor& input : inputs) leaves.push_back(input.detach().clone().requires_grad_());
    outputs.push_back(function(leaves));
    at::Tensor total = at::zeros({});
    for (size_t i = 0; i < outputs.back().size(); ++i) {
      total = total +
              (outputs.back()[i] * numbers(100 + static_cast<int64_t>(i), outputs.back()[i].sizes())).sum();
    }
    total.backward();
    grads.emplace_back();
    for (const at::Tensor& leaf : leaves) grads.back().push_back(leaf.grad());
    const at::NoGradGuard no_grad;  // the path without a graph gives the same values
    const std::vector<at::Tensor> again = function(leaves);
    for (size_t i = 0; i < again.size(); ++i) EXPECT_TRUE(at::equal(again[i], outputs.back()[i]));
  }
  for (size_t i = 0; i < outputs[0].size(); ++i)
    EXPECT_TRUE(all_close(outputs[0][i], outputs[1][i], tolerance, tolerance)) << "output " << i;
  for (size_t i = 0; i < inputs.size(); ++i)
    EXPECT_TRUE(close_to_largest(grads[0][i], grads[1][i], 1e-5)) << "input " << i;
}

class RmsNormWidth : public ::testing::TestWithParam<int64_t> {};

TEST_P(RmsNormWidth, EqualsPlain) {
  const int64_t width = GetParam();
  expect_same([](const auto& in) { return std::vector{rms_norm(in[0], in[1])}; },
              [](const auto& in) { return std::vector{rms_norm_plain(in[0], in[1])}; },
              {numbers(1, {3, 67, width}), numbers(2, {width})});
}
INSTANTIATE_TEST_SUITE_P(Widths, RmsNormWidth, ::testing::Values(1, 7, 8, 24, 128, 1056));

TEST(RmsNorm, KnownValues) {
  const at::Tensor x = at::tensor({3.0f, 4.0f});  // root mean square sqrt(12.5)
  const at::Tensor y = rms_norm(x, at::tensor({1.0f, 10.0f}));
  EXPECT_TRUE(all_close(y, at::tensor({3 / std::sqrt(12.5f), 40 / std::sqrt(12.5f)}), 1e-6, 0));
}

TEST(RmsNorm, StridedInputAndNoRows) {
  const at::Tensor x = numbers(1, {4, 9, 24}).narrow(1, 2, 5), w = numbers(2, {24});
  EXPECT_TRUE(all_close(rms_norm(x, w), rms_norm_plain(x, w), 1e-6, 1e-6));
  const at::Tensor none = at::zeros({0, 24}).requires_grad_();
  rms_norm(none, w).sum().backward();
  EXPECT_EQ(none.grad().numel(), 0);
}

TEST(Heads, EqualPlain) {
  const int64_t heads = 3, dim = 10, prefix = 4;
  const RopeTable rope = make_rope_table(40, dim, at::kCPU);
  const auto with = [&](auto make) {
    return [=](const std::vector<at::Tensor>& in) {
      const Heads out = make(in[0], in[1], in[2], heads, rope, prefix);
      return std::vector{out.q, out.k, out.v};
    };
  };
  expect_same(with(make_heads), with(make_heads_plain),
              {numbers(1, {5, 33, 3 * heads * dim}), numbers(2, {dim}), numbers(3, {dim})});
}

TEST(Attention, EqualsSoftmaxWrittenOut) {
  const int64_t heads = 2, dim = 6, width = heads * dim, prefix = 2;
  const RopeTable rope = make_rope_table(9, dim, at::kCPU);
  const Attention layer{{numbers(2, {3 * width, width}) * 0.3, numbers(3, {3 * width})},
                        numbers(4, {dim}),
                        numbers(5, {dim}),
                        {numbers(6, {width, width}), numbers(7, {width})},
                        heads};
  const at::Tensor x = numbers(1, {3, 7, width});
  at::Tensor key_mask = at::ones({3, 7}, at::kBool);
  key_mask.narrow(1, 5, 2).narrow(0, 1, 1).fill_(false);
  const Heads h = make_heads_plain(layer.qkv(x), layer.q_norm, layer.k_norm, heads, rope, prefix);
  at::Tensor scores = at::matmul(h.q, h.k.transpose(-1, -2)) / std::sqrt(static_cast<double>(dim));
  const auto output = [&](const at::Tensor& s) {
    return layer.proj(at::matmul(s.softmax(-1), h.v).transpose(1, 2).flatten(2));
  };
  EXPECT_TRUE(all_close(layer(x, rope, prefix, {}), output(scores), 1e-5, 1e-5));
  scores = scores.masked_fill(key_mask.logical_not().unsqueeze(1).unsqueeze(1), -INFINITY);
  EXPECT_TRUE(all_close(layer(x, rope, prefix, key_mask), output(scores), 1e-5, 1e-5));
}

// Values and gradients of the loop for short sequences against ATen's attention; long sequences and odd
// widths go to ATen anyway.
TEST(Attention, ShortSequencesEqualAten) {
  for (const auto& [length, dim] :
       {std::pair<int64_t, int64_t>{2, 16}, {15, 32}, {16, 48}, {27, 32}, {48, 64}}) {
    const std::vector<int64_t> shape{3, length, 2, dim};  // [B, S, N, d]
    const auto heads_first = [](const at::Tensor& x) { return x.transpose(1, 2); };
    const std::vector<at::Tensor> inputs{numbers(1, shape) * 2, numbers(2, shape), numbers(3, shape)};
    ASSERT_TRUE(serves_short_attention(heads_first(inputs[0])));
    expect_same(
        [&](const auto& in) {
          return std::vector{short_attention(heads_first(in[0]), heads_first(in[1]), heads_first(in[2]))};
        },
        [&](const auto& in) {
          const at::Tensor out =
              at::scaled_dot_product_attention(heads_first(in[0]), heads_first(in[1]), heads_first(in[2]));
          return std::vector{out.transpose(1, 2).flatten(2)};
        },
        inputs);
  }
  const at::Tensor one = numbers(1, {1, 2, 1, 16});
  EXPECT_TRUE(all_close(short_attention(one, one, one), one.flatten(1).unsqueeze(1), 1e-6,
                        1e-6));  // one key: its value
  EXPECT_FALSE(serves_short_attention(at::zeros({1, 1, 49, 32})));
  EXPECT_FALSE(serves_short_attention(at::zeros({1, 1, 4, 12})));
}

TEST(Attention, ExtremeScoresStayFinite) {
  const at::Tensor q = numbers(1, {1, 2, 5, 16}) * 1e4, k = numbers(2, {1, 2, 5, 16}),
                   v = numbers(3, {1, 2, 5, 16});
  EXPECT_TRUE(all_close(short_attention(q, k, v),
                        at::scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2), 1e-4, 1e-4));
  const at::Tensor broken = short_attention(q * NAN, k, v);
  EXPECT_TRUE(broken.isnan().all().item<bool>());  // a broken network must show
}

TEST(SwiGlu, EqualsPlain) {
  expect_same([](const auto& in) { return std::vector{gated_silu(in[0])}; },
              [](const auto& in) {
                const std::vector<at::Tensor> halves = in[0].chunk(2, -1);
                return std::vector{at::silu(halves[0]) * halves[1]};
              },
              {numbers(1, {5, 33, 2 * 43})});
}

TEST(SwiGlu, LargeAndBrokenNumbers) {
  const at::Tensor gate = at::tensor({-1e4f, -100.0f, -30.0f, 30.0f, 100.0f, 1e4f}).repeat({4});
  const at::Tensor ab = at::cat({gate, at::ones({24})});
  EXPECT_TRUE(all_close(gated_silu(ab), at::silu(gate), 1e-6, 1e-30));
  EXPECT_TRUE(gated_silu(ab * NAN).isnan().all().item<bool>());
}

TEST(Kernels, FastExpIsExpToRounding) {  // 3e-7 relative
  double worst = 0;
  for (float x = -87.0f; x < 88.0f; x += 0.0137f) {
    worst = std::max(worst, std::abs(fast_exp(x) / std::exp(static_cast<double>(x)) - 1));
  }
  EXPECT_LT(worst, 3e-7);
  EXPECT_EQ(fast_exp(0.0f), 1.0f);
}

// A block in halves of their own gradient against its equations in plain operations; short sequences and
// those that ATen's attention serves. Values of magnitude 5: 1e-5. The gradients of every weight too.
TEST(FusedBlock, EqualsThePlainEquations) {
  const int64_t heads = 2, dim = 16, width = heads * dim, inner = 40, prefix = 4;
  const RopeTable rope = make_rope_table(80, dim, at::kCPU);
  const auto block_of = [&](const std::vector<at::Tensor>& in) {
    return Block{in[1],
                 in[2],
                 {{in[3], in[4]}, in[5], in[6], {in[7], in[8]}, heads},
                 {{in[9], in[10]}, {in[11], in[12]}}};
  };
  const auto plain = [&](const std::vector<at::Tensor>& in) {
    const Block b = block_of(in);
    const Heads h =
        make_heads_plain(b.attn.qkv(rms_norm_plain(in[0], b.norm1)), in[5], in[6], heads, rope, prefix);
    const at::Tensor weights = (at::matmul(h.q, h.k.mT()) / std::sqrt(static_cast<double>(dim))).softmax(-1);
    const at::Tensor middle = in[0] + b.attn.proj(at::matmul(weights, h.v).transpose(1, 2).flatten(2));
    const std::vector<at::Tensor> ab = b.mlp.w12(rms_norm_plain(middle, b.norm2)).chunk(2, -1);
    return std::vector{middle + b.mlp.w3(at::silu(ab[0]) * ab[1])};
  };
  for (const int64_t length : {20, 70}) {
    const auto weight = [](int64_t which, at::IntArrayRef shape) { return numbers(which, shape) * 0.2; };
    expect_same([&](const auto& in) { return std::vector{fused_block(block_of(in), in[0], rope, prefix)}; },
                plain,
                {numbers(1, {3, length, width}), numbers(2, {width}), numbers(3, {width}),
                 weight(4, {3 * width, width}), numbers(5, {3 * width}), numbers(6, {dim}), numbers(7, {dim}),
                 weight(8, {width, width}), numbers(9, {width}), weight(10, {2 * inner, width}),
                 numbers(11, {2 * inner}), weight(12, {width, inner}), numbers(13, {width})},
                1e-5);
  }
}

TEST(SwiGlu, InnerWidths) {
  EXPECT_EQ(swiglu_inner(24, 4.0), 64);
  EXPECT_EQ(swiglu_inner(768, 4.0), 2048);
  EXPECT_EQ(swiglu_inner(1056, 4.0), 2816);
  EXPECT_EQ(swiglu_inner(128, 4.0), 341);
}

TEST(Golden, RotaryEmbedding) {  // 1e-5
  const TensorMap golden = read_safetensors(test::golden("forward/forward.safetensors"));
  for (const int64_t dim : {64, 66}) {
    const std::string name = cat("rotary_", dim);
    const int64_t length = golden.at(name + "/q").size(2) - 12;
    const at::Tensor out = rotate(golden.at(name + "/q"), make_rope_table(length, dim, at::kCPU), 12);
    EXPECT_TRUE(all_close(out, golden.at(name + "/out"), 1e-5, 1e-5)) << name;
  }
}

TEST(Golden, TimestepFeatures) {  // 1e-5
  const TensorMap golden = read_safetensors(test::golden("forward/forward.safetensors"));
  EXPECT_TRUE(all_close(timestep_features(golden.at("timestep_features/s")),
                        golden.at("timestep_features/out"), 1e-5, 1e-5));
}

TEST(Dropout, MaskIsNamedBySampleStepAndSite) {
  const at::Tensor x = at::ones({4, 50, 40});
  const DropoutKey key{.seed = 3, .step = 5, .samples = {0, 1, 2, 3}};
  const at::Tensor y = dropout(x, 0.25, key, 1, DropoutSite::kAttention);
  EXPECT_NEAR(y.mean().item<double>(), 1.0, 0.03);
  EXPECT_NEAR(y.eq(0).to(at::kFloat).mean().item<double>(), 0.25, 0.02);
  EXPECT_NEAR(y.max().item<double>(), 1 / 0.75, 1e-6);
  const DropoutKey some{.seed = 3, .step = 5, .samples = {2, 0}};
  const at::Tensor part = dropout(x.narrow(0, 0, 2), 0.25, some, 1, DropoutSite::kAttention);
  EXPECT_TRUE(at::equal(part[0], y[2]));
  EXPECT_TRUE(at::equal(part[1], y[0]));
  EXPECT_FALSE(at::equal(dropout(x, 0.25, key, 2, DropoutSite::kAttention), y));
  EXPECT_FALSE(at::equal(dropout(x, 0.25, key, 1, DropoutSite::kSwiGlu), y));
  DropoutKey other = key;
  other.step = 6;
  EXPECT_FALSE(at::equal(dropout(x, 0.25, other, 1, DropoutSite::kAttention), y));
  other = key;
  other.pass = 1;
  EXPECT_FALSE(at::equal(dropout(x, 0.25, other, 1, DropoutSite::kAttention), y));
}

TEST(Init, BoundsAndIndependence) {
  const at::Tensor a = at::empty({300, 200}), b = at::empty({300, 200});
  initialise(a, Init::kXavierUniform, 1, "a", 200, 300);
  const double bound = std::sqrt(6.0 / 500);
  EXPECT_LE(a.abs().max().item<double>(), bound);
  EXPECT_NEAR(a.std().item<double>(), bound / std::sqrt(3.0), 1e-3);
  initialise(b, Init::kXavierUniform, 1, "b", 200, 300);
  EXPECT_FALSE(at::equal(a, b));
  initialise(b, Init::kXavierUniform, 1, "a", 200, 300);
  EXPECT_TRUE(at::equal(a, b));
  initialise(b, Init::kSmallNormal, 1, "b", 0, 0);
  EXPECT_NEAR(b.std().item<double>(), 0.02, 5e-4);
}

TEST(ParallelFor, CoversEveryIndexOnceInFixedPieces) {
  std::vector<int> visits(1000);
  parallel_for(1000, 64, [&](int64_t begin, int64_t end) {
    EXPECT_EQ(begin % 64, 0);
    for (int64_t i = begin; i < end; ++i) ++visits[i];
  });
  EXPECT_EQ(std::accumulate(visits.begin(), visits.end(), 0), 1000);
  EXPECT_EQ(*std::max_element(visits.begin(), visits.end()), 1);
  EXPECT_THROW(parallel_for(1000, 10,
                            [](int64_t begin, int64_t) {
                              if (begin == 500) throw std::runtime_error("x");
                            }),
               std::runtime_error);
}

TEST(ParallelFor, UsesTheThreadsOfAten) {
  if (at::get_num_threads() < 2) GTEST_SKIP() << "one thread";
  std::mutex mutex;
  std::set<std::thread::id> threads;
  parallel_for(64, 1, [&](int64_t, int64_t) {
    std::unique_lock lock(mutex);
    threads.insert(std::this_thread::get_id());
    for (int i = 0; i < 3000 && threads.size() < 2; ++i) {  // until another has come
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      lock.lock();
    }
  });
  EXPECT_GT(threads.size(), 1U);
}

}  // namespace
}  // namespace elf::nn

// Latents of a frozen T5 and of tables: normalisation, errors, identity.
#include "elf/model/latent_codec.h"

#include <gmock/gmock.h>

#include "elf/base/error.h"
#include "elf/model/latent_statistics.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class Codec : public ::testing::Test {
 protected:
  Codec() {
    table_ = at::arange(12, at::kFloat).view({4, 3});
    save_token_table(folder_, {table_, {{"kind", "gaussian"}}});
  }
  LatentsConfig table_config() const {
    return {.source = LatentSource::kTable, .path = folder_, .mean = 1.0, .std = 2.0, .statistics = ""};
  }
  LatentsConfig t5_config() const {
    return {.source = LatentSource::kT5,
            .path = test::golden("t5/model_relu"),
            .mean = 0.5,
            .std = 0.25,
            .statistics = ""};
  }
  std::string message_of(const LatentsConfig& config) const {
    try {
      make_latent_codec(config, at::kCPU);
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2);
      return error.what();
    }
    return "no error";
  }
  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
  at::Tensor table_;
};

TEST_F(Codec, T5LatentsAreTheNormalisedHiddenStates) {
  const TensorMap golden = read_safetensors(test::golden("t5/relu.safetensors"));
  const auto codec = make_latent_codec(t5_config(), at::kCPU);
  const at::Tensor latents =
      codec->encode(golden.at("elf_cond/input_ids"), golden.at("elf_cond/mask").to(at::kBool));
  EXPECT_TRUE(test::all_close(latents, (golden.at("elf_cond/last_hidden_state") - 0.5) / 0.25, 1e-5, 4e-5));
  EXPECT_FALSE(latents.requires_grad());
  EXPECT_EQ(codec->dim(), 16);
  EXPECT_EQ(codec->vocabulary(), 120);
  EXPECT_FALSE(codec->token_table().defined());
}

// bfloat16 keeps 8 bits: close to float32, not equal, and another source.
TEST_F(Codec, EncodesInBFloat16WhenAsked) {
  const TensorMap golden = read_safetensors(test::golden("t5/gated_gelu.safetensors"));
  LatentsConfig config = t5_config();
  config.path = test::golden("t5/model_gated_gelu");
  config.mean = 0;
  config.std = 1;
  const auto plain = make_latent_codec(config, at::kCPU);
  config.dtype = EncoderDtype::kBFloat16;
  const auto narrow = make_latent_codec(config, at::kCPU);
  const at::Tensor latents =
      narrow->encode(golden.at("elf_cond/input_ids"), golden.at("elf_cond/mask").to(at::kBool));
  const at::Tensor expected = golden.at("elf_cond/last_hidden_state");
  EXPECT_EQ(latents.scalar_type(), at::kFloat);
  const double error = (latents - expected).norm().item<double>() / expected.norm().item<double>();
  EXPECT_LT(error, 0.03);
  EXPECT_GT(error, 1e-4);
  EXPECT_EQ(narrow->source_digest(), plain->source_digest() + " bfloat16");
  EXPECT_NE(narrow->digest(), plain->digest());
}

// A feed-forward output beyond 65504, where float16 ends, is fine in both kinds of arithmetic (field case
// 33).
TEST_F(Codec, LargeActivationsStayFinite) {
  T5Model model = load_t5(test::golden("t5/model_relu"));
  for (T5Block& block : model.encoder.blocks) block.wo.mul_(1e8);
  fs::create_directories(folder_ / "large");
  save_t5(folder_ / "large", model);
  const TensorMap golden = read_safetensors(test::golden("t5/relu.safetensors"));
  LatentsConfig config = t5_config();
  config.path = folder_ / "large";
  for (const EncoderDtype dtype : {EncoderDtype::kFloat32, EncoderDtype::kBFloat16}) {
    config.dtype = dtype;
    const at::Tensor latents =
        make_latent_codec(config, at::kCPU)
            ->encode(golden.at("elf_cond/input_ids"), golden.at("elf_cond/mask").to(at::kBool));
    EXPECT_TRUE(at::isfinite(latents).all().item<bool>());
  }
  std::vector<at::Tensor> hidden;
  T5Encoder(model).forward(golden.at("elf_cond/input_ids"), {}, &hidden);
  EXPECT_GT(hidden.back().abs().max().item<double>(), 66000);
  EXPECT_THROW(to_dtype(model, at::kHalf), Error);
}

TEST_F(Codec, TableRowsAreNormalisedAndPicked) {
  const auto codec = make_latent_codec(table_config(), at::kCPU);
  EXPECT_TRUE(at::equal(codec->token_table(), (table_ - 1.0) / 2.0));
  const at::Tensor latents = codec->encode(at::tensor({3, 0, 1, 1}).to(at::kLong).view({2, 2}), {});
  EXPECT_TRUE(at::equal(latents[0][0], codec->token_table()[3]));
  EXPECT_TRUE(at::equal(latents[1][1], codec->token_table()[1]));
}

TEST_F(Codec, RefusesIdsOutsideTheTable) {
  const auto codec = make_latent_codec(table_config(), at::kCPU);
  for (const int64_t id : {4, -1}) EXPECT_THROW(codec->encode(at::full({1, 1}, id), {}), Error);
}

TEST_F(Codec, DigestFollowsWeightsAndNormalisation) {
  const std::string first = make_latent_codec(table_config(), at::kCPU)->digest();
  EXPECT_EQ(make_latent_codec(table_config(), at::kCPU)->digest(), first);
  LatentsConfig other = table_config();
  other.std = 3.0;
  EXPECT_NE(make_latent_codec(other, at::kCPU)->digest(), first);
  save_token_table(folder_, {table_ + 1, {{"kind", "gaussian"}}});
  EXPECT_NE(make_latent_codec(table_config(), at::kCPU)->digest(), first);
}

TEST_F(Codec, PerChannelStatisticsReplaceTheScalars) {
  StatisticsAccumulator accumulator;
  accumulator.add(table_);
  LatentsConfig config = table_config();
  config.statistics = folder_ / "statistics.json";
  write_file(config.statistics, to_json(accumulator.result()).dump());
  const at::Tensor table = make_latent_codec(config, at::kCPU)->token_table();
  EXPECT_TRUE(test::all_close(table.mean(0), at::zeros({3}), 0, 1e-6));
  EXPECT_TRUE(test::all_close(table.square().mean(0), at::ones({3}), 0, 1e-5));

  LatentStatistics elsewhere = accumulator.result();
  elsewhere.source = "xxh128:another";
  write_file(config.statistics, to_json(elsewhere).dump());
  EXPECT_THAT(message_of(config), HasSubstr("was measured on xxh128:another"));
}

TEST_F(Codec, RefusesAnotherTokenizer) {
  save_token_table(folder_, {table_, {{"kind", "gaussian"}, {"tokenizer_hash", "xxh128:mine"}}});
  const auto codec = make_latent_codec(table_config(), at::kCPU);
  EXPECT_NO_THROW(require_tokenizer(*codec, "table", "xxh128:mine", 4));
  EXPECT_THROW(require_tokenizer(*codec, "table", "xxh128:mine", 5), Error);
  EXPECT_THROW(require_tokenizer(*codec, "table", "xxh128:other", 4), Error);
  // An encoder that others made does not say.
  EXPECT_NO_THROW(require_tokenizer(*make_latent_codec(t5_config(), at::kCPU), "t5", "xxh128:other", 120));
}

TEST_F(Codec, NamesWhatIsWrong) {
  LatentsConfig config = table_config();
  config.std = 0;
  EXPECT_THAT(message_of(config), HasSubstr("latents.std: found 0"));
  config = table_config();
  config.path = folder_ / "nowhere";
  EXPECT_THAT(message_of(config), HasSubstr("no such folder"));
  config.path = "";
  EXPECT_THAT(message_of(config), HasSubstr("latents.path"));
}

TEST(Statistics, OnePassEqualsTwoPassesInFloat64) {
  const at::Tensor rows =
      (at::arange(700, at::kDouble).view({100, 7}) * 0.37).sin() + at::arange(7, at::kDouble) * 1000;
  StatisticsAccumulator accumulator;
  for (const auto& part : rows.split_with_sizes({1, 0, 60, 39})) accumulator.add(part);
  const LatentStatistics result = accumulator.result();
  EXPECT_EQ(result.positions, 100);
  EXPECT_TRUE(test::all_close(result.channel_mean, rows.mean(0), 1e-12, 1e-12));
  EXPECT_TRUE(test::all_close(result.channel_std, rows.var(0, /*unbiased=*/false).sqrt(), 1e-9, 1e-12));
  EXPECT_NEAR(result.mean, rows.mean().item<double>(), 1e-9);
  EXPECT_NEAR(result.std, rows.var(/*unbiased=*/false).sqrt().item<double>(), 1e-9);
  EXPECT_THROW(StatisticsAccumulator().result(), Error);
  // Parts that were measured apart, merged.
  StatisticsAccumulator first, second, nothing;
  first.add(rows.narrow(0, 0, 70));
  second.add(rows.narrow(0, 70, 30));
  first.merge(nothing);
  first.merge(second);
  nothing.merge(first);
  for (const LatentStatistics& merged : {first.result(), nothing.result()}) {
    EXPECT_EQ(merged.positions, 100);
    EXPECT_TRUE(test::all_close(merged.channel_mean, result.channel_mean, 1e-12, 1e-9));
    EXPECT_TRUE(test::all_close(merged.channel_std, result.channel_std, 1e-9, 1e-9));
  }
}

}  // namespace
}  // namespace elf

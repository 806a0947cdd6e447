// The T5 encoder against golden/t5: last hidden states and block inputs to 1e-5 (absolute and relative),
// buckets exactly.
#include "elf/model/t5.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/data/masks.h"
#include "elf/model/t5_config.h"
#include "elf/tensor/torch_pickle.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr double kTolerance = 1e-5;

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
    return error.what();
  }
  return "no error";
}

// [B, L] with the first lengths[b] positions set.
at::Tensor first_positions(const nlohmann::json& lengths, int64_t length) {
  return at::arange(length).unsqueeze(0) < at::tensor(lengths.get<std::vector<int64_t>>()).unsqueeze(1);
}

// The mask of a case; that of elf_long is not stored for the gated model and is built from the lengths.
at::Tensor mask_of(const TensorMap& tensors, const std::string& name, const nlohmann::json& description) {
  const auto stored = tensors.find(name + "/mask");
  if (stored != tensors.end()) return stored->second;
  if (description.at("mask") == "none") return {};
  const int64_t length = description.at("shape")[1].get<int64_t>();
  return encoder_mask(first_positions(description.at("total_lengths"), length),
                      first_positions(description.at("cond_lengths"), length));
}

class T5Golden : public ::testing::TestWithParam<std::string> {
 protected:
  T5Golden() : encoder_(load_t5(test::golden("t5/model_" + GetParam()))) {
    tensors_ = read_safetensors(test::golden("t5/" + GetParam() + ".safetensors"));
    cases_ = test::golden_json("t5/t5.json").at("models").at(GetParam()).at("cases");
  }
  T5Encoder encoder_;
  TensorMap tensors_;
  nlohmann::json cases_;
};

TEST_P(T5Golden, LastHiddenStateOfEveryCase) {
  const at::NoGradGuard no_gradients;
  ASSERT_EQ(cases_.size(), 8u);
  for (const auto& [name, description] : cases_.items()) {
    const at::Tensor output =
        encoder_.forward(tensors_.at(name + "/input_ids"), mask_of(tensors_, name, description));
    EXPECT_TRUE(test::all_close(output, tensors_.at(name + "/last_hidden_state"), kTolerance, kTolerance))
        << name;
  }
}

TEST_P(T5Golden, InputOfEveryBlock) {
  const at::NoGradGuard no_gradients;
  for (const std::string name : {"mask_2d", "elf_cond"}) {
    std::vector<at::Tensor> hidden;
    encoder_.forward(tensors_.at(name + "/input_ids"), tensors_.at(name + "/mask"), &hidden);
    ASSERT_EQ(static_cast<int64_t>(hidden.size()), encoder_.config().num_layers);
    for (size_t i = 0; i < hidden.size(); ++i) {
      const at::Tensor& expected = tensors_.at(cat(name, "/hidden_before_layer", i));
      EXPECT_TRUE(test::all_close(hidden[i], expected, kTolerance, kTolerance)) << name << " block " << i;
    }
  }
}

// The fused attention (no gradients) against the plain one (gradients on), which spells softmax out.
TEST_P(T5Golden, FusedAttentionEqualsThePlainOne) {
  T5Model model = encoder_.model();
  for (const ParamRef& param : t5_params(model)) param.tensor.requires_grad_(true);
  for (const auto& [name, description] : cases_.items()) {
    const at::Tensor mask = mask_of(tensors_, name, description);
    const at::Tensor plain = T5Encoder(model).forward(tensors_.at(name + "/input_ids"), mask);
    EXPECT_TRUE(plain.requires_grad());
    const at::NoGradGuard no_gradients;
    const at::Tensor fused = encoder_.forward(tensors_.at(name + "/input_ids"), mask);
    EXPECT_TRUE(test::all_close(fused, plain, kTolerance, kTolerance)) << name;
  }
  for (const ParamRef& param : t5_params(model)) param.tensor.requires_grad_(false);
}

TEST_P(T5Golden, ARowDoesNotChangeWhenItsNeighbourGrows) {
  const at::NoGradGuard no_gradients;
  const at::Tensor ids = at::arange(3, 133).remainder(100).view({1, 130});
  const auto encode = [&](int64_t neighbour) {  // row 0 has 5 tokens, row 1 `neighbour`
    const at::Tensor both = at::cat({ids.narrow(1, 0, neighbour), ids.narrow(1, 0, neighbour)});
    const at::Tensor lengths = at::tensor(std::vector<int64_t>{5, neighbour}).unsqueeze(1);
    return encoder_.forward(both, at::arange(neighbour).unsqueeze(0) < lengths)[0].narrow(0, 0, 5);
  };
  EXPECT_TRUE(test::all_close(encode(130), encode(6), kTolerance, kTolerance));
  // A shorter length after a longer one takes its biases from the kept ones.
  EXPECT_TRUE(test::all_close(encoder_.forward(ids.narrow(1, 0, 1))[0],
                              T5Encoder(encoder_.model()).forward(ids.narrow(1, 0, 1))[0], 0, 0));
}

INSTANTIATE_TEST_SUITE_P(Models, T5Golden, ::testing::Values("relu", "gated_gelu"),
                         [](const auto& info) { return info.param; });

TEST(T5, RelativeBucketsExactly) {
  const TensorMap golden = read_safetensors(test::golden("t5/relative_buckets.safetensors"));
  const at::Tensor& offsets = golden.at("key_minus_query");
  for (int64_t i = 0; i < offsets.numel(); ++i) {
    const int64_t offset = offsets[i].item<int64_t>();
    EXPECT_EQ(relative_bucket(offset, true, 32, 128), golden.at("bucket_32_128")[i].item<int64_t>())
        << offset;
    EXPECT_EQ(relative_bucket(offset, true, 16, 64), golden.at("bucket_16_64")[i].item<int64_t>()) << offset;
  }
}

TEST(T5, CausalBucketsSeeTheLeftOnly) {
  EXPECT_EQ(relative_bucket(3, false, 32, 128), 0);
  EXPECT_EQ(relative_bucket(-15, false, 32, 128), 15);
  EXPECT_EQ(relative_bucket(-1000, false, 32, 128), 31);
}

class T5Folder : public ::testing::Test {
 protected:
  T5Folder() {
    fs::copy_file(test::golden("t5/model_relu/config.json"), folder_ / "config.json",
                  fs::copy_options::overwrite_existing);
    tensors_ = read_safetensors(test::golden("t5/model_relu/model.safetensors"));
  }
  std::string load_error() {
    write_safetensors(folder_ / "model.safetensors", tensors_);
    return message_of([&] { load_t5(folder_); });
  }
  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
  TensorMap tensors_;
};

TEST_F(T5Folder, ReportsAllWrongTensorsAtOnce) {
  tensors_.erase("encoder.final_layer_norm.weight");
  tensors_["encoder.block.1.layer.0.SelfAttention.q.weight"] = at::zeros({24, 17});
  EXPECT_THAT(
      load_error(),
      AllOf(HasSubstr("encoder.final_layer_norm.weight: missing"),
            HasSubstr("encoder.block.1.layer.0.SelfAttention.q.weight: found [24, 17], expected [24, 16]"),
            Not(HasSubstr("block.0"))));
}

TEST_F(T5Folder, RefusesABiasTablePerBlock) {
  tensors_["encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight"] = at::zeros({32, 3});
  EXPECT_THAT(load_error(), HasSubstr("per-block bias not supported"));
}

TEST_F(T5Folder, TakesTheEmbeddingUnderEitherName) {
  const at::Tensor table = tensors_.at("shared.weight");
  tensors_.erase("shared.weight");
  EXPECT_THAT(load_error(), HasSubstr("shared.weight: missing"));
  tensors_["encoder.embed_tokens.weight"] = table;
  write_safetensors(folder_ / "model.safetensors", tensors_);
  EXPECT_TRUE(at::equal(load_t5(folder_).embedding, table));
}

// T5 v1.1 and Flan: gated, the head a matrix of its own; a whole model, of which the encoder is taken.
TEST_F(T5Folder, LeavesTheDecoderOutAndCountsIt) {
  const T5Model plain = load_t5(test::golden("t5/model_gated_gelu"));
  nlohmann::json config = test::golden_json("t5/model_gated_gelu/config.json");
  tensors_.clear();
  for (const auto& [name, tensor] : read_safetensors(test::golden("t5/model_gated_gelu/model.safetensors")))
    if (!name.starts_with("decoder.") && name != "lm_head.weight") tensors_[name] = tensor;
  tensors_["encoder.embed_tokens.weight"] = tensors_.at("shared.weight").clone();
  tensors_["decoder.embed_tokens.weight"] = tensors_.at("shared.weight").clone();
  tensors_["decoder.block.0.layer.0.SelfAttention.q.weight"] = at::zeros({3, 3});
  tensors_["decoder.final_layer_norm.weight"] = at::zeros({3});
  tensors_["lm_head.weight"] = at::zeros({7, 3});
  write_safetensors(folder_ / "model.safetensors", tensors_);
  for (const bool tied : {false, true}) {
    config["tie_word_embeddings"] = tied;
    write_file(folder_ / "config.json", config.dump());
    testing::internal::CaptureStderr();
    const T5Model model = load_t5(folder_);
    EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("3 tensors of the decoder left out"));
    EXPECT_EQ(model.config.tied_head, tied);
    EXPECT_EQ(T5Encoder(model).digest(), T5Encoder(plain).digest());
  }
}

TEST_F(T5Folder, TakesHalfPrecisionWeightsUnlessTheyOverflowed) {
  const std::string name = "encoder.block.1.layer.1.DenseReluDense.wo.weight";
  tensors_[name] = tensors_.at(name).to(at::kHalf);
  write_safetensors(folder_ / "model.safetensors", tensors_);
  EXPECT_EQ(load_t5(folder_).encoder.blocks[1].wo.scalar_type(), at::kFloat);
  tensors_[name] = tensors_.at(name).clone().fill_(std::numeric_limits<float>::infinity());
  EXPECT_THAT(load_error(), AllOf(HasSubstr(name), HasSubstr("overflowed")));
}

TEST_F(T5Folder, ReadsShards) {
  TensorMap first, second;
  nlohmann::json map;
  for (const auto& [name, tensor] : tensors_) {
    const bool in_first = first.size() < 10;
    (in_first ? first : second)[name] = tensor;
    map[name] = in_first ? "a.safetensors" : "b.safetensors";
  }
  write_safetensors(folder_ / "a.safetensors", first);
  write_safetensors(folder_ / "b.safetensors", second);
  write_file(folder_ / "model.safetensors.index.json", nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_EQ(T5Encoder(load_t5(folder_)).digest(), T5Encoder(load_t5(test::golden("t5/model_relu"))).digest());
}

TEST_F(T5Folder, ReadsPickledWeights) {
  const std::string expected = T5Encoder(load_t5(test::golden("t5/model_relu"))).digest();
  EXPECT_EQ(T5Encoder(load_t5(test::golden("t5/model_relu_bin"))).digest(), expected);
  // In shards, too.
  TensorMap first, second;
  nlohmann::json map;
  for (const auto& [name, tensor] : tensors_) {
    const bool in_first = first.size() < 10;
    (in_first ? first : second)[name] = tensor;
    map[name] = in_first ? "a.bin" : "b.bin";
  }
  write_torch_file(folder_ / "a.bin", TorchItem::of("", first).entries);
  write_torch_file(folder_ / "b.bin", TorchItem::of("", second).entries);
  write_file(folder_ / "pytorch_model.bin.index.json", nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_EQ(T5Encoder(load_t5(folder_)).digest(), expected);
  EXPECT_EQ(t5_files(folder_),
            (std::vector<std::string>{"a.bin", "b.bin", "config.json", "pytorch_model.bin.index.json"}));

  map["shared.weight"] = "b.bin";
  map[second.begin()->first] = "../b.bin";
  write_file(folder_ / "pytorch_model.bin.index.json", nlohmann::json{{"weight_map", map}}.dump());
  EXPECT_THAT(message_of([&] { load_t5(folder_); }), HasSubstr("expected the name of a file beside it"));
}

TEST_F(T5Folder, SaysWhatIsMissing) {
  EXPECT_THAT(message_of([&] { load_t5(folder_); }),
              AllOf(HasSubstr("model.safetensors"), HasSubstr("pytorch_model.bin")));
  EXPECT_THAT(message_of([&] { load_t5(folder_ / "nowhere"); }), HasSubstr("no such folder"));
}

TEST_F(T5Folder, RefusesOtherModels) {
  const auto with = [&](const char* key, const nlohmann::json& value) {
    nlohmann::json config = test::golden_json("t5/model_relu/config.json");
    config[key] = value;
    write_file(folder_ / "config.json", config.dump());
    return message_of([&] { read_t5_config(folder_ / "config.json"); });
  };
  EXPECT_THAT(with("model_type", "umt5"), HasSubstr("per-block bias not supported"));
  EXPECT_THAT(with("model_type", "bert"), HasSubstr("'bert' is no T5"));
  EXPECT_THAT(with("feed_forward_proj", "gated-silu"), HasSubstr("gated-silu"));
  EXPECT_THAT(with("d_model", "16"), HasSubstr("d_model: found \"16\""));
  EXPECT_THAT(with("num_layers", 10001),
              HasSubstr("num_layers 10001, num_decoder_layers 1: expected at most 10000"));
  EXPECT_THAT(with("num_decoder_layers", 10001),
              HasSubstr("num_layers 2, num_decoder_layers 10001: expected at most 10000"));
  for (const int64_t buckets : {2, 30}) {
    EXPECT_THAT(with("relative_attention_num_buckets", buckets),
                HasSubstr(cat("relative_attention_num_buckets ", buckets,
                              " with relative_attention_max_distance 128: expected a multiple of 4")));
  }
  EXPECT_THAT(with("relative_attention_max_distance", 16),
              HasSubstr("relative_attention_num_buckets 32 with relative_attention_max_distance 16"));
  EXPECT_THAT(with("layer_norm_epsilon", "small"), HasSubstr("a key has the wrong type"));
  EXPECT_THAT(with("tie_word_embeddings", 1), HasSubstr("a key has the wrong type"));
}

TEST(T5, UnknownPresetsAreToldWithTheKnownOnes) {
  EXPECT_THAT(
      message_of([] { t5_preset("t5-huge"); }),
      HasSubstr("preset 't5-huge' is not known; expected one of t5-nano, t5-tiny, t5-mini, t5-small"));
}

TEST_F(T5Folder, SavedModelIsTheSame) {
  for (const bool gated : {false, true}) {
    T5Config config = t5_preset("t5-nano");
    config.vocab_size = 50;
    config.gated = gated;
    config.tied_head = !gated;
    const T5Model model = random_t5(config, 7);
    save_t5(folder_, model);
    T5Model back = load_t5(folder_, /*with_decoder=*/true);
    EXPECT_EQ(back.config, config);
    T5Model original = model;
    const ParamList expected = t5_params(original), found = t5_params(back);
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i)
      EXPECT_TRUE(at::equal(found[i].tensor, expected[i].tensor)) << found[i].name;
  }
}

TEST(T5, RandomSmallHasThePublishedSize) {
  T5Model model;
  model.config = t5_preset("t5-small");
  model = random_t5(model.config, 1);
  int64_t count = 0;
  for (const ParamRef& param : t5_params(model)) count += param.tensor.numel();
  EXPECT_EQ(count, 60506624);  // as published for t5-small
}

TEST(T5, RefusesIdsOutsideTheTable) {
  const T5Encoder encoder(load_t5(test::golden("t5/model_relu")));
  EXPECT_THAT(message_of([&] {
                encoder.forward(at::full({1, 2}, 120));
              }),
              HasSubstr("id 120 is outside its 120 embeddings"));
}

}  // namespace
}  // namespace elf

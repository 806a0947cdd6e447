// GPT-2 against the published implementation (golden/eval/gpt2_small_vocab).
#include "elf/model/gpt2.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include "elf/tensor/torch_pickle.h"
#include "support/errors.h"
#include "support/golden.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

const fs::path kFolder = test::golden("eval/gpt2_small_vocab");

TEST(Gpt2, HiddenStatesAndLogits) {
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(kFolder, at::kCPU);
  std::vector<at::Tensor> hidden;
  const at::Tensor features = model.forward(golden.at("input_ids"), {}, &hidden);
  hidden.push_back(features);
  ASSERT_EQ(hidden.size(), 4u);
  for (size_t i = 0; i < hidden.size(); ++i)
    EXPECT_TRUE(test::all_close(hidden[i], golden.at("hidden_" + std::to_string(i)), 1e-5, 1e-5)) << i;
  EXPECT_TRUE(test::all_close(model.logits(features), golden.at("logits"), 1e-5, 1e-5));
}

TEST(Gpt2, KeyMask) {
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(kFolder, at::kCPU);
  const at::Tensor valid = golden.at("attention_mask").to(at::kBool).unsqueeze(2);
  const at::Tensor logits = model.logits(model.forward(golden.at("input_ids"), golden.at("attention_mask")));
  EXPECT_TRUE(test::all_close(logits.masked_fill(valid.logical_not(), 0),
                              golden.at("logits_with_mask").masked_fill(valid.logical_not(), 0), 1e-5, 1e-5));
}

TEST(Gpt2, NegativeLogLikelihoodIsThatOfTheWholeSoftmax) {
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(kFolder, at::kCPU);
  const at::Tensor ids = golden.at("input_ids"), targets = ids.flatten();
  const at::Tensor plain =
      at::log_softmax(golden.at("logits").flatten(0, 1), 1).gather(1, targets.unsqueeze(1));
  EXPECT_TRUE(
      test::all_close(model.nll(model.forward(ids).flatten(0, 1), targets), -plain.squeeze(1), 1e-5, 1e-5));
}

TEST(Gpt2, NamesWithoutPrefixAndWithMaskBuffers) {
  const test::TemporaryFolder folder;
  fs::copy_file(kFolder / "config.json", folder / "config.json");
  fs::copy_file(kFolder / "model_short_names.safetensors", folder / "model.safetensors");
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(folder.path(), at::kCPU);
  EXPECT_TRUE(
      test::all_close(model.logits(model.forward(golden.at("input_ids"))), golden.at("logits"), 1e-5, 1e-5));
}

TEST(Gpt2, WeightsOfTorchSave) {  // made by tests/oracle/eval_gpt2_bin.py
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(test::golden("eval/gpt2_small_vocab_bin"), at::kCPU);
  EXPECT_TRUE(
      test::all_close(model.logits(model.forward(golden.at("input_ids"))), golden.at("logits"), 1e-5, 1e-5));
}

TEST(Gpt2, PickledWeights) {
  const test::TemporaryFolder folder;
  fs::copy_file(kFolder / "config.json", folder / "config.json");
  write_torch_file(folder / "pytorch_model.bin",
                   TorchItem::of("", read_safetensors(kFolder / "model_short_names.safetensors")).entries);
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(folder.path(), at::kCPU);
  EXPECT_TRUE(
      test::all_close(model.logits(model.forward(golden.at("input_ids"))), golden.at("logits"), 1e-5, 1e-5));
}

TEST(Gpt2, Bfloat16) {
  const TensorMap golden = read_safetensors(test::golden("eval/gpt2_small_vocab.safetensors"));
  const Gpt2 model = Gpt2::load(kFolder, at::kCPU, at::kBFloat16);
  EXPECT_EQ(model.dtype(), at::kBFloat16);
  const at::Tensor logits = model.logits(model.forward(golden.at("input_ids")));
  // The published implementation is off by 1 % of the largest logit itself.
  EXPECT_TRUE(test::close_to_largest(logits, golden.at("logits"), 0.02));
}

TEST(Gpt2, SaysWhatIsWrong) {
  const test::TemporaryFolder folder;
  const auto load = [&] { Gpt2::load(folder.path(), at::kCPU); };
  EXPECT_THAT(test::usage_message(load), HasSubstr("holds none of model.safetensors, pytorch_model.bin"));
  TensorMap tensors = read_safetensors(kFolder / "model.safetensors");
  tensors.erase("transformer.ln_f.bias");
  tensors["transformer.wpe.weight"] = at::zeros({3, 12});
  tensors["transformer.ln_f.weight"] = at::ones({12}, at::kLong);
  write_safetensors(folder / "model.safetensors", tensors);
  fs::copy_file(kFolder / "config.json", folder / "config.json");
  const std::string message = test::usage_message(load);
  EXPECT_THAT(message, HasSubstr("ln_f.bias: missing, expected [12]"));
  EXPECT_THAT(message, HasSubstr("transformer.wpe.weight: found [3, 12], expected [40, 12]"));
  EXPECT_THAT(message, HasSubstr("transformer.ln_f.weight: found dtype Long, expected a floating one"));
  const Gpt2 model = Gpt2::load(kFolder, at::kCPU);
  EXPECT_THAT(test::usage_message([&] {
                model.forward(at::zeros({1, 41}, at::kLong));
              }),
              HasSubstr("41 tokens, but the model has 40 positions"));
  EXPECT_THAT(test::usage_message([&] {
                model.forward(at::full({1, 2}, 53, at::kLong));
              }),
              HasSubstr("id 53 is outside its vocabulary of 53"));
}

TEST(Gpt2, TensorsOfNoPartAreTold) {
  const test::TemporaryFolder folder;
  fs::copy_file(kFolder / "config.json", folder / "config.json");
  TensorMap tensors = read_safetensors(kFolder / "model.safetensors");
  tensors["transformer.extra.weight"] = at::zeros({2});
  tensors["transformer.h.0.attn.masked_bias"] = at::zeros({1});  // a constant that some files hold
  write_safetensors(folder / "model.safetensors", tensors);
  testing::internal::CaptureStderr();
  const Gpt2 model = Gpt2::load(folder.path(), at::kCPU);
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              testing::AllOf(HasSubstr("no part of a GPT-2 uses: transformer.extra.weight\n"),
                             testing::Not(HasSubstr("masked_bias"))));
  EXPECT_EQ(model.stored().count("transformer.extra.weight"), 0u);
}

TEST(Gpt2, RefusesOtherConfigurations) {
  const test::TemporaryFolder folder;
  const nlohmann::json good = test::golden_json("eval/gpt2_small_vocab/config.json");
  const auto message = [&](const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = good;
    config[key] = value;
    const std::string file = folder.write("config.json", config.dump());
    return test::usage_message([&] { read_gpt2_config(file); });
  };
  struct Wrong {
    const char* key;
    nlohmann::json value;
    const char* expected;
  };
  const Wrong cases[] = {
      {"model_type", "bert", "model_type 'bert' is no GPT-2"},
      {"n_positions", nullptr, "key 'n_positions' is missing"},
      {"vocab_size", "53", "vocab_size: found \"53\", expected an integer from 1 to 16777216"},
      {"n_embd", 0, "n_embd: found 0, expected an integer from 1"},
      {"n_inner", 1 << 25, "n_inner: found 33554432, expected an integer from 1 to 16777216"},
      {"n_layer", 10001, "n_layer: found 10001, expected at most 10000"},
      {"n_head", 5, "n_embd 12 is no multiple of n_head 5"},
      {"activation_function", "relu", "activation_function 'relu' is not supported"},
      {"tie_word_embeddings", false, "tie_word_embeddings: found false, expected true"},
      {"layer_norm_epsilon", "small", "a key has the wrong type"},
      {"scale_attn_weights", 1, "a key has the wrong type"}};
  for (const Wrong& wrong : cases)
    EXPECT_THAT(message(wrong.key, wrong.value), HasSubstr(wrong.expected)) << wrong.key;
  EXPECT_EQ(read_gpt2_config(folder.write("config.json", good.dump())).inner, 48);  // n_inner: null
}

}  // namespace
}  // namespace elf

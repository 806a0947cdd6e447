// Model directories: what is written is loaded, whole or not at all; stored precisions agree with float32.
#include "elf/model/model_dir.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/base/manifest.h"
#include "elf/model/published_weights.h"
#include "elf/model/weight_map.h"
#include "support/c_library.h"
#include "support/errors.h"
#include "support/model_folders.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::all_close;
using test::golden;
using test::usage_message;
using ::testing::AllOf;
using ::testing::HasSubstr;

void expect_equal(const TensorMap& found, const TensorMap& expected) {
  ASSERT_EQ(found.size(), expected.size());
  for (const auto& [name, tensor] : expected) EXPECT_TRUE(at::equal(found.at(name), tensor)) << name;
}

class ModelDir : public ::testing::Test {
 protected:
  ModelDir() {
    test::write_tiny_table(folder_ / "table");
    model_ = test::tiny_model(folder_ / "table");
  }
  fs::path write(const std::string& name, WeightPrecision precision = WeightPrecision::kFloat32) {
    fs::create_directories(folder_ / name);
    write_model_dir(folder_ / name, model_, {.precision = precision, .source = "a test"});
    return folder_ / name;
  }
  test::TemporaryFolder folder_;
  StoredModel model_;
};

TEST_F(ModelDir, IsSelfContained) {
  const fs::path written = write("m");
  fs::remove_all(folder_ / "table");
  const fs::path moved = folder_ / "elsewhere";
  fs::rename(written, moved);
  const Model model = load_model(moved, at::kCPU);
  expect_equal(model.network->state(), model_.ema);
  EXPECT_EQ(model.weights_kind, "ema");
  EXPECT_EQ(model.tokenizer->size(), 520);
  EXPECT_EQ(model.codec->dim(), 32);
  expect_equal(load_weights(moved, Weights::kRaw), model_.raw);
  const StoredModel stored = read_stored_model(moved);
  expect_equal(stored.ema, model_.ema);
  expect_equal(stored.raw, model_.raw);
  EXPECT_EQ(stored.step, 12);
  EXPECT_EQ(stored.config.data.train, "");
}

// A run folder has no last flush of everything: what its config.yaml names is on disk before it.
TEST_F(ModelDir, PartsAreOnDiskBeforeTheConfiguration) {
  const fs::path run = fs::canonical(folder_.path()) / "run";  // as the kernel names descriptors
  const fs::path statistics = folder_.write("statistics.json", "{}");
  fs::create_directories(folder_ / "table" / "more");
  folder_.write("table/more/notes", "of a user");
  model_.config.latents.statistics = statistics.string();
  std::set<std::string> flushed, before_configuration;
  {
    const test::WhileCallsAsk watching([&](const std::string& call, const std::string& path) {
      if (call == "fsync") flushed.insert(path);
      if (call == "rename" && path == run / "config.yaml") before_configuration = flushed;
      return 0;
    });
    write_model_parts(run, model_.config);
  }
  for (const char* part : {"statistics.json", "latents", "latents/more", "latents/more/notes"})
    EXPECT_TRUE(before_configuration.contains((run / part).string())) << part;
  for (const auto& entry : fs::directory_iterator(folder_ / "table")) {
    const fs::path copy = run / "latents" / entry.path().filename();
    EXPECT_TRUE(before_configuration.contains(copy.string())) << copy;
  }
}

TEST_F(ModelDir, OneSetOfWeightsSaysWhichItIs) {
  model_.ema.clear();
  const fs::path raw = write("raw");
  EXPECT_EQ(load_network(raw, at::kCPU, Weights::kEma).weights_kind, "raw");
  model_.ema = std::exchange(model_.raw, {});
  const fs::path ema = write("ema");
  EXPECT_EQ(load_network(ema, at::kCPU).weights_kind, "ema");
  EXPECT_THAT(usage_message([&] { load_network(ema, at::kCPU, Weights::kRaw); }),
              HasSubstr("averaged weights only"));
}

TEST_F(ModelDir, DamageIsTold) {
  const fs::path folder = write("m");
  const auto after = [&](const char* file, const std::function<std::string(std::string)>& change) {
    const fs::path path = folder / file;
    const std::string good = read_file(path);
    write_file(path, change(good));
    const std::string message = usage_message([&] { load_model(folder, at::kCPU); });
    write_file(path, good);
    EXPECT_THAT(message, HasSubstr(folder.string()));
    return message;
  };
  const auto flip = [](std::string text) { return text[text.size() / 2] ^= 1, text; };
  for (const char* file :
       {"model.safetensors", "config.yaml", "tokenizer/spiece.model", "latents/table.safetensors"})
    EXPECT_THAT(after(file, flip), AllOf(HasSubstr(file), HasSubstr("damaged"))) << file;
  EXPECT_THAT(after("manifest.json", [](std::string) { return "{"; }), HasSubstr("damaged"));
  fs::remove(folder / "latents/table.json");
  EXPECT_THAT(usage_message([&] { load_model(folder, at::kCPU); }),
              HasSubstr("latents/table.json is missing"));
}

TEST_F(ModelDir, LaterVersionsAndMissingPartsAreTold) {
  const fs::path folder = write("m");
  nlohmann::json facts = parse_json_or_throw(read_file(folder / "model.json"));
  facts["format_version"] = 99;
  write_file(folder / "model.json", facts.dump());
  write_manifest(folder, {"model.json", "model.safetensors", "config.yaml"});
  EXPECT_THAT(usage_message([&] { load_model(folder, at::kCPU); }),
              AllOf(HasSubstr("format_version 99"), HasSubstr("later version")));

  model_.config.data.tokenizer = "";
  const fs::path bare = write("bare");
  EXPECT_EQ(load_network(bare, at::kCPU).config.model.depth, 4);
  EXPECT_THAT(usage_message([&] { load_model(bare, at::kCPU); }),
              AllOf(HasSubstr("no tokenizer"), HasSubstr("elf-convert export")));
}

TEST_F(ModelDir, PartsMustFitEachOther) {
  model_.config.model.vocab_size = 519;
  EXPECT_THAT(usage_message([&] { write("m"); }), HasSubstr("unembed_kernel"));
  model_ = test::tiny_model(folder_ / "table");
  save_token_table(folder_ / "table", {gaussian_table(520, 31, 3), {{"kind", "gaussian"}}});
  EXPECT_THAT(usage_message([&] { write("m2"); }), AllOf(HasSubstr("31"), HasSubstr("32")));
}

TEST_F(ModelDir, ATokenizerLargerThanTheNetworkIsRefused) {
  model_.config.model.vocab_size = 519;
  ElfNet net(model_.config.model, at::kCPU);
  net.initialise(7);
  model_.ema.clear();
  model_.raw.clear();
  for (const auto& [name, tensor] : net.state()) model_.raw[name] = tensor.clone();
  EXPECT_THAT(usage_message([&] { write("m"); }),
              HasSubstr("spiece.model: has 520 ids, but the network's vocab_size is 519"));
}

TEST_F(ModelDir, ADecoderMustBeOfTheModelsSizes) {
  const fs::path written = write("decoder");
  const Model decoder = load_model(written, at::kCPU);
  RunConfig config = model_.config;
  config.latents.decoder = written.string();
  expect_equal(load_decoder(config, *decoder.codec, at::kCPU).network->state(), model_.ema);
  const ModelConfig good = config.model;
  const auto refusal = [&] { return usage_message([&] { load_decoder(config, *decoder.codec, at::kCPU); }); };
  const std::string theirs =
      cat("reads ", good.max_length, " latents of width 32 for 520 tokens, but the model has ");
  config.model.max_length = good.max_length + 1;
  EXPECT_THAT(refusal(), HasSubstr(cat(theirs, good.max_length + 1, ", 32 and 520")));
  config.model = good;
  config.model.latent_dim = 31;
  EXPECT_THAT(refusal(), HasSubstr(cat(theirs, good.max_length, ", 31 and 520")));
  config.model = good;
  config.model.vocab_size = 521;
  EXPECT_THAT(refusal(), HasSubstr(cat(theirs, good.max_length, ", 32 and 521")));
}

TEST_F(ModelDir, WrongPathsAreToldWithWhatToDo) {
  for (const char* name :
       {"bare", "unsaved/checkpoints", "run/checkpoints/step-1", "half/checkpoints/step-1",
        "lost/checkpoints/step-1", "blank/checkpoints", "runs/first", "runs/other", "empty"})
    fs::create_directories(folder_ / name);
  for (const std::string name : {"bare", "unsaved", "run", "half", "runs/first"})
    folder_.write(name + "/config.yaml", "");
  for (const std::string name : {"half", "lost"})
    folder_.write(name + "/checkpoints/step-1/state.json", "{}");
  write_manifest(folder_ / "lost/checkpoints/step-1", {"state.json"});
  folder_.write("blank/config.yaml", "");
  folder_.write("blank/checkpoints/latest", std::string(8, '\0'));
  folder_.write("file", "");
  const std::pair<const char*, const char*> cases[] = {
      {"gone", "gone: no such run, checkpoint or model directory"},
      {"file", "file: is a file; give a run folder, a checkpoint folder or a model directory"},
      {"bare", "bare: holds config.yaml but neither checkpoints/ nor model.json"},
      {"unsaved", "unsaved: the run has no checkpoints/latest; it has saved nothing yet"},
      {"blank", "latest: is damaged, expected the name of a checkpoint"},
      {"run", "run: the run has no checkpoints/latest; name one of its checkpoints: step-1"},
      {"half/checkpoints/step-1", "step-1: the checkpoint cannot be used: has no manifest.json"},
      {"lost/checkpoints/step-1", "step-1: the run's config.yaml is not in "},
      {"runs", "runs: is no run, checkpoint or model directory (no config.yaml); it holds these: first"},
      {"empty", "empty: is no run, checkpoint or model directory (no config.yaml)"}};
  for (const auto& [name, expected] : cases) {
    const fs::path path = folder_ / name;
    EXPECT_THAT(usage_message([&] { read_stored_model(path); }), HasSubstr(expected)) << path;
  }
}

// The network's answers with weights of a stored precision against those of float32.
TEST_F(ModelDir, StoredPrecisionsAgree) {
  model_.config.latents.path = model_.config.data.tokenizer = "";
  model_.config.model = test::tiny_config("full");
  model_.ema.clear();
  model_.raw = test::tiny_weights("full");
  const TensorMap golden_tensors = read_safetensors(golden("forward/forward.safetensors"));
  const auto input = [&](const char* name) {
    return golden_tensors.at(std::string("sc_w_per_row_gate/") + name);
  };
  DenoiserInput in;
  in.z = input("x").narrow(2, 0, 32);
  in.self_cond = input("x").narrow(2, 32, 32);
  in.t = input("t");
  in.w = input("w");
  in.mode = input("gate");
  const at::NoGradGuard no_gradients;
  const auto relative_error = [&](const fs::path& folder) {
    const at::Tensor x_hat = load_network(folder, at::kCPU).network->x_hat(in);
    return ((x_hat - input("x_hat")).norm() / input("x_hat").norm()).item<double>();
  };
  EXPECT_LT(relative_error(write("float32")), 1e-5);
  const fs::path bf16 = write("bf16", WeightPrecision::kBfloat16),
                 int8 = write("int8", WeightPrecision::kInt8);
  EXPECT_LT(relative_error(bf16), 0.02);  // measured: 0.0098
  EXPECT_GT(relative_error(bf16), 1e-6);
  EXPECT_LT(relative_error(int8), 0.05);  // measured: 0.0236
  const auto bytes = [](const fs::path& folder) {
    return static_cast<double>(fs::file_size(folder / "model.safetensors"));
  };
  EXPECT_LT(bytes(bf16), 0.6 * bytes(folder_ / "float32"));
  EXPECT_LT(bytes(int8), 0.5 * bytes(folder_ / "float32"));
}

TEST(WeightPrecision, Int8IsOffByHalfAStepAtMost) {
  const TensorMap weights = {{"m", at::arange(-60, 60).to(at::kFloat).view({8, 15}) * 0.37},
                             {"v", at::ones({3})}};
  const TensorMap packed = pack_weights(weights, WeightPrecision::kInt8);
  EXPECT_EQ(packed.at("m").scalar_type(), at::kChar);
  EXPECT_EQ(packed.at("v").scalar_type(), at::kFloat);
  const TensorMap back = unpack_weights(packed, "x");
  EXPECT_TRUE(((back.at("m") - weights.at("m")).abs() <= packed.at("m.scale") / 2 + 1e-6).all().item<bool>());
  EXPECT_TRUE(at::equal(back.at("v"), weights.at("v")));
  TensorMap broken = packed;
  broken.erase("m.scale");
  EXPECT_THAT(usage_message([&] { unpack_weights(broken, "x"); }),
              AllOf(HasSubstr("'m'"), HasSubstr("'m.scale'")));
  broken["m.scale"] = at::ones({3, 1});
  EXPECT_THAT(usage_message([&] { unpack_weights(broken, "x"); }), HasSubstr("'m.scale'"));
  const TensorMap zeros =
      unpack_weights(pack_weights({{"m", at::zeros({2, 2})}}, WeightPrecision::kInt8), "x");
  EXPECT_TRUE(at::equal(zeros.at("m"), at::zeros({2, 2})));
}

TEST(PublishedWeights, CheckpointsAndStateDicts) {
  const PublishedWeights both = read_published_weights(golden("elf_tiny/checkpoint.pt"));
  expect_equal(both.raw, test::tiny_weights("full"));
  expect_equal(both.ema, read_safetensors(golden("elf_tiny/ema.safetensors")));
  EXPECT_EQ(both.step, 2);
  EXPECT_EQ(both.epoch, 1);
  const PublishedWeights bare = read_published_weights(golden("elf_tiny/params_nocfg.safetensors"));
  EXPECT_TRUE(bare.ema.empty());
  EXPECT_EQ(bare.step, -1);
  // Wrapper prefixes are taken off.
  const PublishedWeights prefixed = read_published_weights(golden("elf_tiny/checkpoint_prefixed_names.pt"));
  for (const TensorMap& weights : {prefixed.raw, prefixed.ema}) {
    ASSERT_EQ(weights.size(), 3);
    for (const char* name : {"t_emb_tokens", "self_cond_cfg_tokens", "mode_tokens"})
      EXPECT_TRUE(weights.contains(name));
  }
  EXPECT_TRUE(at::equal(prefixed.raw.at("mode_tokens"), test::tiny_weights("full").at("mode_tokens")));
}

TEST(PublishedWeights, TensorsTellTheSizes) {
  for (const std::string network : {"full", "nocfg", "oddprefix"}) {
    ModelConfig known;
    known.max_length = 16;
    EXPECT_EQ(dimensions_of(test::tiny_weights(network), known, "x"), test::tiny_config(network)) << network;
    known.mlp_ratio = 2.5;  // does not fit the inner width: another is found
    EXPECT_EQ(parameter_count(dimensions_of(test::tiny_weights(network), known, "x")),
              parameter_count(test::tiny_config(network)));
  }
  TensorMap weights = test::tiny_weights("full");
  weights.erase("unembed_kernel");
  EXPECT_THAT(usage_message([&] { dimensions_of(weights, {}, "x.pt"); }),
              AllOf(HasSubstr("x.pt"), HasSubstr("'unembed_kernel' is missing")));
}

TEST(PublishedConfig, EveryFormIsRead) {
  const std::vector<RunConfig> networks = load_published_config(golden("elf_tiny/config.json"));
  ASSERT_EQ(networks.size(), 3);  // full, nocfg, oddprefix
  EXPECT_EQ(networks[0].model, test::tiny_config("full"));
  EXPECT_EQ(networks[2].model, test::tiny_config("oddprefix"));
  const RunConfig flat = load_published_config(golden("elf_tiny/train_config.yml")).at(0);
  EXPECT_EQ(flat.model.max_length, 16);
  EXPECT_EQ(flat.latents.std, 0.2);
  EXPECT_EQ(flat.optimizer.warmup_steps, 5);
  EXPECT_EQ(flat.flow.pad_token, PadToken::kPad);
  EXPECT_EQ(published_preset("elf-b-xsum").data.max_input_length, 1024);
  EXPECT_EQ(published_preset("elf-m-owt").model.depth, 24);
  EXPECT_THAT(usage_message([] { published_preset("elf-x"); }), HasSubstr("elf-b-owt"));
  const test::TemporaryFolder folder;
  EXPECT_THAT(usage_message([&] { load_published_config(folder.write("a.yaml", "colour: red\n")); }),
              HasSubstr("neither"));
  EXPECT_THAT(usage_message([&] { load_published_config(folder.write("a.json", "{\"x\": 1}")); }),
              HasSubstr("dims"));
  EXPECT_THAT(
      usage_message([&] { load_published_config(folder.write("b.json", "{\"dims\": {\"depth\": -1}}")); }),
      HasSubstr("model.depth"));
}

}  // namespace
}  // namespace elf

// elf-convert and elf-inspect as a user runs them: import, equal outputs, export, equality in Python.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "convert_fixture.h"
#include "elf/model/model_dir.h"
#include "elf/train/checkpoint.h"
#include "support/model_folders.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using test::all_close;
using test::golden;
using test::Outcome;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Convert : public test::ConvertFixture {};

// Every case of golden/forward through the imported networks.
TEST_F(Convert, ImportedNetworksGiveTheGoldenOutputs) {
  import("checkpoint.pt", "full");
  import("params_nocfg.safetensors", "nocfg");
  import("params_oddprefix.safetensors", "oddprefix");
  const TensorMap tensors = read_safetensors(golden("forward/forward.safetensors"));
  const auto get = [&](const std::string& name) {
    const auto found = tensors.find(name);
    return found == tensors.end() ? at::Tensor() : found->second;
  };
  int cases = 0;
  const json about_cases = test::golden_json("forward/forward.json");
  for (const auto& [name, about] : about_cases.items()) {
    if (!about.contains("network")) continue;
    const at::Tensor x = get(name + "/x");
    TensorMap inputs = {{"z", x.narrow(2, 0, 32).contiguous()}, {"t", get(name + "/t")}};
    if (about.at("self_condition_half")) inputs["self_cond"] = x.narrow(2, 32, 32).contiguous();
    if (const at::Tensor w = get(name + "/w"); w.defined()) inputs["w"] = w;
    if (about.at("mode") == "decode") inputs["mode"] = at::ones({x.size(0)});
    if (about.at("mode") == "denoise_explicit") inputs["mode"] = at::zeros({x.size(0)});
    if (about.at("mode") == "per_row") inputs["mode"] = get(name + "/gate");
    if (about.at("attention_mask")) inputs["key_mask"] = get(name + "/attention_mask");
    write_safetensors(folder_ / "in.safetensors", inputs);
    done("elf-inspect forward --weights raw --model " + about.at("network").get<std::string>() +
         " --inputs in.safetensors --output out.safetensors");
    const TensorMap outputs = read_safetensors(folder_ / "out.safetensors");
    EXPECT_TRUE(all_close(outputs.at("x_hat"), get(name + "/x_hat"), 1e-5, 1e-5)) << name;
    EXPECT_EQ(outputs.contains("logits"), inputs.contains("mode")) << name;
    if (inputs.contains("mode"))
      EXPECT_TRUE(all_close(outputs.at("logits"), get(name + "/logits"), 1e-5, 1e-5)) << name;
    ++cases;
  }
  EXPECT_EQ(cases, 11);
}

TEST_F(Convert, ImportThenExportEqualsInPython) {
  const std::string python = std::string(ELF_TEST_DIR) + "/../.venv/bin/python3";
  if (run(python + " -c 'import torch'").code != 0) GTEST_SKIP() << "no Python with torch in .venv";
  import("checkpoint.pt", "model");
  done("elf-convert export model --to elf-pytorch --out back.pt");
  const std::string compare = python + " " + ELF_TEST_DIR + "/oracle/torch_equal.py ";
  const std::string out =
      done(compare + "back.pt params=" + golden("elf_tiny/params.safetensors").string() +
           " ema_params1=" + golden("elf_tiny/ema.safetensors").string() + " step=2 epoch=0");
  EXPECT_THAT(out, AllOf(HasSubstr("params: 71 tensors"), HasSubstr("ema_params1: 71 tensors")));
  // The comparison can fail.
  EXPECT_EQ(run(compare + "back.pt params=" + golden("elf_tiny/ema.safetensors").string()).code, 1);
  // And back again: the same weights.
  done("elf-convert import back.pt --config " + golden("elf_tiny/train_config.yml").string() +
       " --out again");
  for (const Weights which : {Weights::kEma, Weights::kRaw}) {
    const TensorMap first = load_weights(folder_ / "model", which),
                    second = load_weights(folder_ / "again", which);
    for (const auto& [name, tensor] : first) EXPECT_TRUE(at::equal(tensor, second.at(name))) << name;
  }
}

TEST_F(Convert, ImportChoosesWeightsAndPrecision) {
  import("checkpoint.pt", "ema", "--weights ema --precision bf16");
  json object = inspected("ema");
  EXPECT_EQ(object.at("kind"), "model");
  EXPECT_EQ(object.at("weights"), "ema");
  EXPECT_EQ(object.at("precision"), "bf16");
  EXPECT_EQ(object.at("parameters"), 50577);
  EXPECT_EQ(object.at("step"), 2);
  EXPECT_EQ(object.at("tensors").at("proj_bias").at("dtype"), "BFloat16");
  EXPECT_FALSE(fs::exists(folder_ / "ema/raw.safetensors"));
  EXPECT_THAT(refused("elf-convert import " + golden("elf_tiny/params.safetensors").string() + " --config " +
                      golden("elf_tiny/config.json").string() + " --weights ema --out x"),
              HasSubstr("no such weights"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
}

TEST_F(Convert, WhatDoesNotFitIsRefused) {
  const std::string config = " --config " + golden("elf_tiny/config.json").string();
  EXPECT_THAT(refused("elf-convert import " + golden("elf_tiny/checkpoint_prefixed_names.pt").string() +
                      config + " --out x"),
              HasSubstr("final_layer.norm_final.weight"));
  EXPECT_THAT(refused("elf-convert import " + golden("torch/trap.pt").string() + config + " --out x"),
              AllOf(HasSubstr("'trap'"), HasSubstr("not run")));
  EXPECT_THAT(refused("elf-convert import " + golden("torch/module.pt").string() + config + " --out x"),
              HasSubstr("state_dict()"));
  EXPECT_THAT(refused("elf-convert import nothing.pt" + config + " --out x"),
              HasSubstr("nothing.pt: no such file"));
  EXPECT_THAT(
      refused("elf-convert import " + golden("elf_tiny/checkpoint.pt").string() + " --config elf-q --out x"),
      HasSubstr("elf-b-owt"));
  EXPECT_THAT(refused("elf-convert import " + golden("elf_tiny/checkpoint.pt").string() + config +
                      " --out x --precision fp4"),
              HasSubstr("float32, bf16 or int8"));
  EXPECT_THAT(refused("elf-convert export nothing --out x"), HasSubstr("no such run"));
  EXPECT_FALSE(fs::exists(folder_ / "x"));
  // A model directory may be written again; what holds anything else is left alone.
  import("params.safetensors", "x");
  import("params.safetensors", "x");
  test::spill(folder_ / "x/notes.txt", "mine");
  EXPECT_THAT(
      refused("elf-convert import " + golden("elf_tiny/params.safetensors").string() + config + " --out x"),
      HasSubstr("--overwrite"));
  EXPECT_TRUE(fs::exists(folder_ / "x/notes.txt"));
  import("params.safetensors", "x", "--overwrite");
  EXPECT_FALSE(fs::exists(folder_ / "x/notes.txt"));
}

TEST_F(Convert, AWholeModelMakesTexts) {
  test::write_tiny_table(folder_ / "table");
  fs::create_directories(folder_ / "m");
  StoredModel model = test::tiny_model(folder_ / "table");
  model.config.data.tokenizer = model.config.latents.path = "";
  write_model_dir(folder_ / "m", model, {.source = "a test"});
  EXPECT_THAT(refused("elf-sample --model m --num-samples 2"), HasSubstr("no tokenizer"));
  done("elf-convert export m --tokenizer " + golden("tokenizer/spiece.model").string() +
       " --table table --out whole");
  fs::remove_all(folder_ / "table");
  const std::string texts = done("elf-sample --model whole --num-samples 3 --seed 5");
  EXPECT_EQ(std::count(texts.begin(), texts.end(), '\n'), 3);
  EXPECT_EQ(done("elf-sample --model whole --num-samples 3 --seed 5"), texts);
  // What does not fit is told, and nothing is left.
  EXPECT_THAT(refused("elf-convert export m --tokenizer " + golden("tokenizer/spiece.model").string() +
                      " --encoder " + golden("t5/model_relu").string() + " --out bad"),
              HasSubstr("tokens"));
  EXPECT_FALSE(fs::exists(folder_ / "bad"));
}

TEST_F(Convert, EncodeEqualsGolden) {
  for (const std::string model : {"relu", "gated_gelu"}) {
    const TensorMap tensors = read_safetensors(golden("t5/" + model + ".safetensors"));
    for (const auto& [name, ids] : tensors) {
      if (!name.ends_with("/input_ids")) continue;
      const std::string stem = name.substr(0, name.size() - 10);
      const json about = test::golden_json("t5/t5.json").at("models").at(model).at("cases").at(stem);
      TensorMap inputs = {{"input_ids", ids}};
      if (tensors.contains(stem + "/mask")) {
        inputs["mask"] = tensors.at(stem + "/mask");
      } else if (about.at("mask") != "none") {
        continue;  // its mask is not stored; the library's test builds it
      }
      write_safetensors(folder_ / "in.safetensors", inputs);
      done("elf-inspect encode --encoder " + golden("t5/model_" + model).string() +
           " --inputs in.safetensors --output out.safetensors");
      EXPECT_TRUE(all_close(read_safetensors(folder_ / "out.safetensors").at("last_hidden_state"),
                            tensors.at(stem + "/last_hidden_state"), 1e-5, 1e-5))
          << model << " " << stem;
    }
  }
  write_safetensors(folder_ / "in.safetensors", {{"input_ids", at::full({1, 3}, 10'000, at::kLong)}});
  EXPECT_THAT(refused("elf-inspect encode --encoder " + golden("t5/model_relu").string() +
                      " --inputs in.safetensors --output out2.safetensors"),
              HasSubstr("10000"));
  EXPECT_FALSE(fs::exists(folder_ / "out2.safetensors"));
}

// A run folder, and each of its checkpoints: inspected, exported, damaged.
TEST_F(Convert, RunsAndCheckpoints) {
  test::write_tiny_table(folder_ / "table");
  const StoredModel model = test::tiny_model(folder_ / "table");
  write_model_parts(folder_ / "run", model.config);
  for (const int64_t step : {5, 12})
    save_checkpoint(folder_ / "run/checkpoints", step, {model.raw, model.ema, {}, {{"step", step}}});
  json object = inspected("run");
  EXPECT_EQ(object.at("kind"), "run");
  EXPECT_EQ(object.at("step"), 12);
  EXPECT_EQ(object.at("checkpoints"), json({"step-00000005", "step-00000012"}));
  EXPECT_EQ(object.at("config").at("model.depth"), "4");
  EXPECT_TRUE(object.at("tensors").contains("blocks.3.mlp.w3.bias"));
  object = inspected("run/checkpoints/step-00000005");
  EXPECT_EQ(object.at("kind"), "checkpoint");
  EXPECT_EQ(object.at("step"), 5);
  EXPECT_EQ(object.at("parameters"), inspected("run").at("parameters"));
  EXPECT_EQ(inspected("run/latents").at("kind"), "table");
  EXPECT_EQ(inspected("run/tokenizer").at("vocabulary"), 520);

  done("elf-convert export run --to model-dir --out m");
  done("elf-convert export run/checkpoints/step-00000005 --out older");
  EXPECT_EQ(inspected("m").at("step"), 12);
  EXPECT_EQ(inspected("older").at("step"), 5);
  EXPECT_EQ(done("elf-sample --model m --num-samples 2"), done("elf-sample --model run --num-samples 2"));
  // Neither what is read nor a folder above it is replaced, not even with --overwrite.
  for (const char* out : {"run", "run/../", "m/../run/"})
    EXPECT_THAT(refused(std::string("elf-convert export run --overwrite --out ") + out), HasSubstr("input"))
        << out;
  EXPECT_THAT(refused("elf-convert export m --precision int8 --out m"), HasSubstr("is an input as well"));
  EXPECT_THAT(refused("elf-convert export m --to elf-pytorch --out m/model.safetensors"),
              HasSubstr("is a part of an input"));
  EXPECT_THAT(refused("elf-sample --model m --num-samples 1 --output m/config.yaml"),
              HasSubstr("is a part of an input"));
  EXPECT_EQ(inspected("run").at("step"), 12);
  EXPECT_EQ(inspected("m").at("step"), 12);

  const std::string weights = test::slurp(folder_ / "run/checkpoints/step-00000012/model.safetensors");
  test::spill(folder_ / "run/checkpoints/step-00000012/model.safetensors", weights + "x");
  EXPECT_THAT(refused("elf-inspect run"), HasSubstr("model.safetensors"));
  EXPECT_THAT(refused("elf-convert export run --out again"), HasSubstr("model.safetensors"));
}

// One rule for command lines: the argument, the nearest known one, the right --help.
TEST_F(Convert, CommandLinesAreExplained) {
  EXPECT_THAT(refused("elf-convert imprt a.pt"),
              AllOf(HasSubstr("unknown command 'imprt'"), HasSubstr("'import'"),
                    HasSubstr("Try: elf-convert --help")));
  EXPECT_THAT(refused("elf-convert import a.pt --confg b --out c"),
              AllOf(HasSubstr("unknown option '--confg'"), HasSubstr("'--config'"),
                    HasSubstr("Try: elf-convert import --help")));
  EXPECT_THAT(refused("elf-convert"),
              AllOf(HasSubstr("import, export"), HasSubstr("Try: elf-convert --help")));
  EXPECT_THAT(refused("elf-convert import a.pt one two --config b --out c"),
              HasSubstr("not expected: 'one' 'two'"));
  EXPECT_THAT(refused("elf-convert import a.pt --config elf-b-owt"),
              AllOf(HasSubstr("--out"), HasSubstr("elf-convert import --help")));
  EXPECT_THAT(refused("elf-convert import a.pt --config elf-b-owt --out ''"),
              AllOf(HasSubstr("--out"), HasSubstr("empty")));
  test::spill(folder_ / "file", "x");
  import("params.safetensors", "good");
  EXPECT_THAT(refused("elf-convert export good --out file/model"), HasSubstr("file/model"));
  EXPECT_THAT(refused("elf-convert export good --to elf-pytorch --out nowhere/x.pt"),
              HasSubstr("nowhere does not exist"));
}

}  // namespace
}  // namespace elf

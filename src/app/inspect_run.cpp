// elf-inspect forward and encode: network and encoder on tensors of a file.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <memory>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "elf/model/model_dir.h"
#include "elf/model/t5.h"
#include "elf/model/token_table.h"
#include "elf/tensor/safetensors.h"
#include "elf/version.h"
#include "inspect.h"

namespace elf::app {
namespace {

namespace fs = std::filesystem;

struct RunOptions {
  std::string model, inputs, output, weights = "ema";
};

// The tensors of the file, each with a known name and the right number of dimensions.
class Inputs {
 public:
  Inputs(const std::string& file, std::vector<std::pair<std::string, int64_t>> known)
      : file_(file), tensors_(read_safetensors(file)) {
    std::string names;
    for (const auto& [name, dims] : known) names += (names.empty() ? "" : ", ") + name;
    for (const auto& [name, tensor] : tensors_) {
      const auto found = std::find_if(known.begin(), known.end(),
                                      [&name = name](const auto& each) { return each.first == name; });
      if (found == known.end()) usage_error(file, ": tensor '", name, "' is not known; expected ", names);
      if (found->second > 0 && tensor.dim() != found->second)
        usage_error(file, ": tensor '", name, "' has shape ", tensor.sizes(), ", expected ", found->second,
                    " dimensions");
    }
  }
  at::Tensor required(const std::string& name) const {
    const auto found = tensors_.find(name);
    if (found == tensors_.end()) usage_error(file_, ": tensor '", name, "' is missing");
    return found->second;
  }
  at::Tensor optional(const std::string& name) const {
    const auto found = tensors_.find(name);
    return found == tensors_.end() ? at::Tensor() : found->second;
  }

 private:
  const std::string& file_;
  TensorMap tensors_;
};

at::Tensor as_float(const at::Tensor& tensor, at::Device device) {
  return tensor.defined() ? tensor.to(device, at::kFloat) : tensor;
}

void write_outputs(const RunOptions& options, const TensorMap& outputs, const std::string& digest) {
  refuse_overwriting(options.output, {options.inputs, options.model});
  write_safetensors(options.output, outputs,
                    {{"model", options.model}, {"weights_hash", digest}, {"elf_version", ELF_VERSION}});
}

void run_forward(const RunOptions& options, const CommonOptions& common) {
  const Inputs inputs(options.inputs,
                      {{"z", 3}, {"self_cond", 3}, {"t", 1}, {"w", 1}, {"mode", 1}, {"key_mask", 2}});
  const at::Device device = common.device();
  const LoadedNetwork model =
      load_network(options.model, device, options.weights == "ema" ? Weights::kEma : Weights::kRaw);
  const at::NoGradGuard no_gradients;
  DenoiserInput input;
  input.z = as_float(inputs.required("z"), device);
  input.t = as_float(inputs.required("t"), device);
  input.self_cond = as_float(inputs.optional("self_cond"), device);
  input.w = as_float(inputs.optional("w"), device);
  input.mode = as_float(inputs.optional("mode"), device);
  if (const at::Tensor mask = inputs.optional("key_mask"); mask.defined())
    input.key_mask = mask.to(device).ne(0);
  if (input.mode.defined() && !model.config.latents.decoder.empty()) {
    usage_error(options.model, ": its decode branch was not trained; tokens are read off by ",
                model.config.latents.decoder, ": give that as --model, or leave `mode` out");
  }
  const at::Tensor features = model.network->features(input);
  TensorMap outputs = {{"x_hat", model.network->denoise_head(features)}};
  if (input.mode.defined()) outputs["logits"] = model.network->decode_head(features);
  write_outputs(options, outputs, model.weights_digest);
  log_info(cat(options.output, ": x_hat ", outputs.at("x_hat").sizes(),
               input.mode.defined() ? " and logits" : "", ", weights ", model.weights_kind));
}

// A table's rows do not depend on the mask.
at::Tensor encode_by_table(const fs::path& folder, const at::Tensor& ids) {
  const TokenTable table = load_token_table(folder);
  const bool good = ids.numel() == 0 ||
                    (ids.min().item<int64_t>() >= 0 && ids.max().item<int64_t>() < table.weight.size(0));
  if (!good)
    usage_error("input_ids: an id is outside the ", table.weight.size(0), " rows of ", folder.string());
  return table.weight.index_select(0, ids.reshape({-1}))
      .view({ids.size(0), ids.size(1), table.weight.size(1)});
}

void run_encode(const RunOptions& options, const CommonOptions& common) {
  const Inputs inputs(options.inputs, {{"input_ids", 2}, {"mask", 0}});
  const at::NoGradGuard no_gradients;
  const at::Tensor ids = inputs.required("input_ids");
  if (ids.scalar_type() != at::kLong && ids.scalar_type() != at::kInt)
    usage_error(options.inputs, ": input_ids is ", ids.scalar_type(), ", expected int64");
  at::Tensor mask = inputs.optional("mask"), hidden;
  const bool fits = !mask.defined() || mask.sizes() == ids.sizes() ||
                    mask.sizes() == at::IntArrayRef({ids.size(0), ids.size(1), ids.size(1)});
  if (!fits)
    usage_error(options.inputs, ": mask has shape ", mask.sizes(),
                ", expected [B, L] or [B, L, L] of input_ids ", ids.sizes());
  std::string digest;
  if (fs::exists(fs::path(options.model) / "table.safetensors")) {
    hidden = encode_by_table(options.model, ids.to(at::kLong));
    digest = digest_of_file(fs::path(options.model) / "table.safetensors");
  } else {
    T5Model model = load_t5(options.model);
    check_t5_ids(ids.to(at::kLong), model.config);
    to_device(model, common.device());
    const T5Encoder encoder(std::move(model));
    hidden =
        encoder.forward(ids.to(common.device(), at::kLong), mask.defined() ? mask.to(common.device()) : mask);
    digest = encoder.digest();
  }
  write_outputs(options, {{"last_hidden_state", hidden}}, digest);
  log_info(cat(options.output, ": last_hidden_state ", hidden.sizes()));
}

}  // namespace

void add_forward_command(Command& app, InspectCommands& commands) {
  auto options = std::make_shared<RunOptions>();
  Command& command = *app.add_subcommand("forward", "Run a network on given tensors");
  command.add_option("--model", options->model, "Run folder, checkpoint folder or model directory")
      ->required();
  command
      .add_option("--inputs", options->inputs,
                  ".safetensors with z [B, L, D], t [B]; if wanted self_cond [B, L, D], w [B], mode [B] (1 = "
                  "decode), "
                  "key_mask [B, L]")
      ->required();
  command
      .add_option("--output", options->output,
                  ".safetensors with x_hat [B, L, D]; logits [B, L, V] when a mode is given")
      ->required();
  command.add_option("--weights", options->weights, "ema or raw")
      ->one_of({"ema", "raw"})
      ->capture_default_str();
  with_examples(command,
                "  elf-inspect forward --model runs/verses --inputs z.safetensors --output x.safetensors\n");
  commands["forward"] = [options](const CommonOptions& common) { run_forward(*options, common); };
}

void add_encode_command(Command& app, InspectCommands& commands) {
  auto options = std::make_shared<RunOptions>();
  Command& command = *app.add_subcommand("encode", "Run an encoder on given ids");
  command.add_option("--encoder", options->model, "Hugging Face folder of a T5, or a token table")
      ->required();
  command
      .add_option("--inputs", options->inputs,
                  ".safetensors with input_ids [B, L]; if wanted mask [B, L] or [B, L, L]")
      ->required();
  command
      .add_option("--output", options->output,
                  ".safetensors with last_hidden_state [B, L, D], before mean and std")
      ->required();
  with_examples(command,
                "  elf-inspect encode --encoder t5-small --inputs ids.safetensors --output h.safetensors\n");
  commands["encode"] = [options](const CommonOptions& common) { run_encode(*options, common); };
}

}  // namespace elf::app

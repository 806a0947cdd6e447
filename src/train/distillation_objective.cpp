#include "elf/train/distillation_objective.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"
#include "elf/train/distillation_rounds.h"

namespace elf {
namespace {

template <class T>
void require_equal(const std::string& teacher, const char* what, const T& of_teacher, const T& here) {
  if (of_teacher == here) return;
  usage_error(
      "distillation.teacher ", teacher, ": ", what, " is ", of_teacher, " there, but ", here,
      " here; take it from the teacher's config.yaml (a configuration may name that file as its base)");
}

// The student takes over the teacher's weights and is compared with its predictions, so everything that gives
// these a meaning must be equal.
void require_fit(const Model& teacher, const RunConfig& config, const LatentCodec& codec) {
  const std::string& name = config.distillation.teacher;
  ModelConfig theirs = teacher.config.model, ours = config.model;
  const auto compare = [&](const char* key, int64_t a, int64_t b) { require_equal(name, key, a, b); };
  compare("model.depth", theirs.depth, ours.depth);
  compare("model.hidden_size", theirs.hidden_size, ours.hidden_size);
  compare("model.num_heads", theirs.num_heads, ours.num_heads);
  compare("model.latent_dim", theirs.latent_dim, ours.latent_dim);
  compare("model.vocab_size", theirs.vocab_size, ours.vocab_size);
  compare("model.max_length", theirs.max_length, ours.max_length);
  theirs.preset = ours.preset;
  theirs.dropout = ours.dropout;
  if (!(theirs == ours)) {
    usage_error("distillation.teacher ", name,
                ": its `model:` section is another one; take it from the teacher's config.yaml (a "
                "configuration may name that file as "
                "its base)");
  }
  require_equal(name, "the digest of the latent source", teacher.codec->digest(), codec.digest());
  require_equal(name, "latents.mean", teacher.config.latents.mean, config.latents.mean);
  require_equal(name, "latents.std", teacher.config.latents.std, config.latents.std);
  const FlowConfig &flow = teacher.config.flow, &own = config.flow;
  require_equal(name, "flow.denoiser_noise_scale", flow.denoiser_noise_scale, own.denoiser_noise_scale);
  require_equal(name, "flow.t_eps", flow.t_eps, own.t_eps);
  if ((flow.self_cond_prob > 0) != (own.self_cond_prob > 0))
    usage_error("distillation.teacher ", name, ": flow.self_cond_prob is ", flow.self_cond_prob,
                " there, but ", own.self_cond_prob, " here; one of them has no self-conditioning");
}

}  // namespace

DistillationObjective::DistillationObjective(ElfNet& network, LatentCodec& codec, const RunConfig& config)
    : network_(network),
      codec_(codec),
      config_(config),
      round_(distillation_round(config.distillation)),
      teacher_(load_model(config.distillation.teacher, network.parameters().front().tensor.device())) {
  require_fit(teacher_, config_, codec_);
  const SentencePieceTokenizer tokenizer = SentencePieceTokenizer::load(config_.data.tokenizer);
  require_equal(config_.distillation.teacher, "the tokenizer's hash", teacher_.tokenizer->hash(),
                tokenizer.hash());
  for (const ParamRef& parameter : teacher_.network->parameters()) parameter.tensor.requires_grad_(false);
  const bool cuda = network.parameters().front().tensor.is_cuda();  // as the trainer runs the student
  teacher_.network->set_bfloat16_blocks(cuda && config_.train.precision != Precision::kFloat32);
}

double DistillationObjective::weight(const Batch& batch) const {
  return static_cast<double>(batch.ids.size(0));
}

Loss DistillationObjective::loss(const Batch& host_batch, int64_t step, double whole) {
  const at::Device device = network_.parameters().front().tensor.device();
  if (config_.model.dropout > 0)
    network_.set_dropout(nn::DropoutKey{config_.train.seed, step, host_batch.samples});
  // Drawn before anything is copied, which waits for the device.
  const StepDraws host_draws =
      draw_distillation_step(config_.flow, round_, {host_batch.length(), config_.model.latent_dim},
                             config_.train.seed, step, host_batch.samples);
  const Batch batch = to(host_batch, device);
  const StepDraws draws = to(host_draws, device);
  const ObjectiveInput input{encode_batch(codec_, batch, draws.label_drop), batch.ids, batch.valid_mask,
                             batch.cond_mask};
  return distillation_objective(network_, *teacher_.network, Model::network_traits(config_), input, draws,
                                round_, config_.flow, whole);
}

}  // namespace elf

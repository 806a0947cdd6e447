#include "train_samples.h"

#include <algorithm>
#include <optional>

#include "elf/base/error.h"
#include "elf/metrics/bleu.h"
#include "elf/metrics/diversity.h"
#include "elf/model/model_dir.h"
#include "elf/sample/generate.h"
#include "elf/tensor/random.h"

namespace elf::app {
namespace {

// Decodes by latents.decoder, where there is one.
class Network {
 public:
  Network(const RunConfig& run, ElfNet& network, const LatentCodec& codec) : network_(network) {
    if (run.latents.decoder.empty()) return;
    const at::Device device = network.parameters().front().tensor.device();
    decoder_ = load_decoder(run, codec, device);
    two_stage_.emplace(network, *decoder_.network, Model::network_traits(decoder_.config).self_cond);
  }
  Denoiser& denoiser() {
    if (two_stage_) return *two_stage_;
    return network_;
  }

 private:
  ElfNet& network_;
  LoadedNetwork decoder_;
  std::optional<TwoStageDenoiser> two_stage_;
};

Generator generator_of(const RunConfig& run, Denoiser& network, LatentCodec& codec,
                       const SentencePieceTokenizer& tokenizer, at::Device device) {
  const GeneratorShape shape{run.data.max_length, run.model.latent_dim, run.data.max_input_length,
                             std::max<int64_t>(0, tokenizer.pad_id()), tokenizer.eos_id()};
  const SamplerModel model{network, Model::network_traits(run), run.flow.denoiser_noise_scale,
                           run.flow.t_eps};
  return Generator(model, &codec, shape, run.sampling, device);
}

SampleFigures figures_of(std::vector<std::string> texts, const std::vector<std::string>& references) {
  const Diversity found = diversity(texts);
  SampleFigures result{{{"sample_entropy", found.entropy},
                        {"sample_distinct_2", found.distinct[1]},
                        {"sample_rep4", found.rep4},
                        {"sample_mean_length", found.mean_length},
                        {"sample_blank", found.blank}},
                       {}};
  if (!references.empty()) {
    int64_t exact = 0;
    for (size_t i = 0; i < texts.size(); ++i) exact += texts[i] == references[i];
    result.figures["sample_exact"] = static_cast<double>(exact) / static_cast<double>(texts.size());
    result.figures["sample_bleu"] =
        corpus_bleu(texts, {ReferenceStream(references.begin(), references.end())}).score;
  }
  result.texts = std::move(texts);
  return result;
}

}  // namespace

SampleHook make_sample_hook(const RunPlan& plan) {
  const TrainConfig& train = plan.config.train;
  if (train.sample_every == 0) return nullptr;
  const bool pairs = plan.train->info().is_pairs();
  if (pairs && !plan.valid)
    usage_error("train.sample_every is ", train.sample_every,
                ", but data.valid is not set: samples of a model of pairs need held-out inputs");
  return [plan, pairs](const RunConfig& run, ElfNet& averaged, LatentCodec& codec, int64_t) {
    const int64_t wanted = run.train.sample_count;
    const int64_t count = pairs ? std::min(wanted, plan.valid->info().rows) : wanted;
    Network network(run, averaged, codec);
    Generator generator = generator_of(run, network.denoiser(), codec, *plan.tokenizer,
                                       averaged.parameters().front().tensor.device());
    std::vector<std::string> texts, references;
    for (int64_t first = 0; first < count; first += run.sampling.batch_size) {
      const int64_t rows = std::min(run.sampling.batch_size, count - first);
      std::vector<TokenIds> conditions;
      for (int64_t row = first; pairs && row < first + rows; ++row) {
        const std::vector<int32_t> ids = plan.valid->tokens(row);
        conditions.emplace_back(ids.begin(), ids.begin() + plan.valid->cond_length(row));
        references.push_back(plan.valid->target_text(row));
      }
      for (const TokenIds& ids : generator.generate(sample_range(first, rows), conditions))
        texts.push_back(plan.tokenizer->decode(ids));
    }
    return figures_of(std::move(texts), references);
  };
}

}  // namespace elf::app

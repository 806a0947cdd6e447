// generate MODEL [N]: prints N samples of an unconditional model, the same lines as elf-sample --model MODEL
// --num-samples N.
#include <elf/base/error.h>
#include <elf/model/model_dir.h>
#include <elf/sample/decode.h>
#include <elf/sample/sampler.h>

#include <cstdlib>
#include <iostream>
#include <numeric>

int main(int argc, char** argv) {
  if (argc < 2) return std::cerr << "usage: generate MODEL [N]\n", 2;
  try {
    const elf::Model model = elf::load_model(argv[1], at::kCPU);
    const elf::RunConfig& config = model.config;
    const elf::SamplerModel sampler{*model.network, model.traits(), config.flow.denoiser_noise_scale,
                                    config.flow.t_eps};

    // A sample depends on its index and the seed only: any split into batches gives the same texts.
    std::vector<int64_t> samples(argc > 2 ? std::atoi(argv[2]) : 5);
    std::iota(samples.begin(), samples.end(), 0);
    const elf::SamplerDraws draws =
        elf::draw_sampler(config.sampling, samples, config.data.max_length, config.model.latent_dim);
    const at::Tensor latents = elf::sample_latents(sampler, config.sampling, draws).latents;

    const at::Tensor ids = elf::decode_ids(sampler, latents, config.sampling.self_cond_cfg);
    for (const auto& row : elf::cut_at_eos(ids, model.tokenizer->eos_id()))
      std::cout << model.tokenizer->decode(row) << "\n";
  } catch (const elf::Error& error) {
    std::cerr << "generate: " << error.what() << "\n";
    return error.exit_code();
  }
}

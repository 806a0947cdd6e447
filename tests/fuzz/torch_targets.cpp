// Readers of the half with torch: files of tensors, datasets, folders of models.
#include <ATen/ATen.h>

#include <string>

#include "elf/base/error.h"
#include "elf/data/dataset.h"
#include "elf/data/latent_cache.h"
#include "elf/model/gpt2.h"
#include "elf/model/latent_statistics.h"
#include "elf/model/published_weights.h"
#include "elf/model/t5_config.h"
#include "elf/tensor/safetensors.h"
#include "elf/tensor/safetensors_shapes.h"
#include "elf/tensor/torch_pickle.h"
#include "support/temporary_folder.h"
#include "target.h"

namespace elf::fuzz {
namespace {

std::string file_of(const char* name, std::string_view bytes) {
  static const test::TemporaryFolder folder;
  return folder.write(name, std::string(bytes));
}

// Every element is looked at.
void touch(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) at::sum(tensor.to(at::kDouble)).item<double>();
}

void safetensors(std::string_view bytes) {
  const std::string file = file_of("x.safetensors", bytes);
  const TensorMap tensors = read_safetensors(file);
  touch(tensors);
  Metadata metadata;
  if (read_safetensors_shapes(file, metadata).size() != tensors.size())
    broken_promise("shapes of other tensors");
}

void torch_file(std::string_view bytes) {
  const std::string file = file_of("x.pt", bytes);
  touch(all_tensors(TorchFile::read(file).root()));
  read_published_weights(file);
}

void dataset(std::string_view bytes) {
  const std::string file = file_of("x.h5", bytes);
  for (const int64_t limit : {Dataset::kMemoryLimit, int64_t{0}})
    DatasetWriter::content_hash(Dataset::open(file, limit));
}

void latent_cache(std::string_view bytes) {
  const std::string file = file_of("latents.h5", bytes);
  is_latent_cache(file);
  LatentCache::open(file).verify();
}

void statistics(std::string_view bytes) {
  read_statistics(file_of("statistics.json", bytes));
}

void t5_config(std::string_view bytes) {
  read_t5_config(file_of("t5.json", bytes));
}

void gpt2_config(std::string_view bytes) {
  read_gpt2_config(file_of("gpt2.json", bytes));
}

}  // namespace

const std::vector<Target>& targets() {
  static const std::vector<Target> all = {{"safetensors", safetensors}, {"torch_file", torch_file},
                                          {"dataset", dataset},         {"latent_cache", latent_cache},
                                          {"statistics", statistics},   {"t5_config", t5_config},
                                          {"gpt2_config", gpt2_config}};
  return all;
}

}  // namespace elf::fuzz

#include "hugging_face.h"

#include <map>
#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#if __has_include("elf/tensor/torch_pickle.h")
#include "elf/tensor/torch_pickle.h"
#define ELF_READS_TORCH_FILES
#endif

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

// In the order of preference; the published folders often hold several.
constexpr const char* kWeightFiles[] = {"model.safetensors", "model.safetensors.index.json",
                                        "pytorch_model.bin", "pytorch_model.bin.index.json"};

// One file of weights, by its ending: safetensors, or a state dict of torch.save.
TensorMap read_weight_file(const fs::path& path) {
  if (path.extension() != ".bin") return read_safetensors(path);
#ifdef ELF_READS_TORCH_FILES
  return read_torch_state_dict(path);
#else
  usage_error(path.string(), ": files of torch.save are not read yet; expected model.safetensors");
#endif
}

// The files that an index names: weight_map is tensor name -> file of the same folder.
std::map<std::string, std::set<std::string>> read_index(const fs::path& index_file) {
  const json index = json::parse(read_file(index_file), nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object()) {
    usage_error(index_file.string(), ": expected a JSON object with weight_map: tensor name -> file");
  }
  std::map<std::string, std::set<std::string>> names_of_file;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path()) {
      usage_error(index_file.string(), ": weight_map.", name,
                  ": expected the name of a file beside it, found ", file.dump());
    }
    names_of_file[file.get<std::string>()].insert(name);
  }
  return names_of_file;
}

HuggingFaceWeights read_shards(const fs::path& index_file) {
  HuggingFaceWeights weights;
  for (const auto& [file, names] : read_index(index_file)) {
    const fs::path path = index_file.parent_path() / file;
    const TensorMap shard = read_weight_file(path);
    for (const std::string& name : names) {
      const auto found = shard.find(name);
      if (found == shard.end())
        usage_error(path.string(), ": has no tensor '", name, "', which ", index_file.string(),
                    " says it has");
      weights.tensors[name] = found->second;
    }
    weights.files.push_back(path);
  }
  return weights;
}

}  // namespace

HuggingFaceWeights read_hugging_face_weights(const fs::path& folder, const std::string& what) {
  if (!fs::is_directory(folder))
    usage_error(folder.string(), ": no such folder; expected a Hugging Face folder of ", what);
  for (const char* name : kWeightFiles) {
    const fs::path path = folder / name;
    if (!fs::exists(path)) continue;
    return path.extension() == ".json" ? read_shards(path)
                                       : HuggingFaceWeights{{path}, read_weight_file(path)};
  }
  usage_error(folder.string(), ": holds none of model.safetensors, pytorch_model.bin and their ",
              ".index.json; expected a Hugging Face folder of ", what);
}

}  // namespace elf

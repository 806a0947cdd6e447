#include "hugging_face.h"

#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/tensor/torch_pickle.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

// In the order of preference; published folders often hold several.
constexpr const char* kEntries[] = {"model.safetensors", "model.safetensors.index.json", "pytorch_model.bin",
                                    "pytorch_model.bin.index.json"};

std::vector<fs::path> shards(const fs::path& index_file) {
  const json index = parse_json(read_file(index_file));
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    usage_error(index_file.string(), ": expected a JSON object with weight_map: tensor name -> file");
  std::set<fs::path> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string() || fs::path(file.get<std::string>()).has_parent_path()) {
      usage_error(index_file.string(), ": weight_map.", name,
                  ": expected the name of a file beside it, found ", file.dump());
    }
    files.insert(index_file.parent_path() / file.get<std::string>());
  }
  return {files.begin(), files.end()};
}

}  // namespace

std::string hugging_face_weight_entry(const fs::path& folder, const std::string& what) {
  if (!fs::is_directory(folder))
    usage_error(folder.string(), ": no such folder; expected a Hugging Face folder of ", what);
  for (const char* name : kEntries) {
    if (fs::exists(folder / name)) return name;
  }
  usage_error(folder.string(), ": holds none of model.safetensors, pytorch_model.bin and their .index.json; ",
              "expected a Hugging Face folder of ", what);
}

std::vector<fs::path> hugging_face_weight_files(const fs::path& folder, const std::string& what) {
  const fs::path entry = folder / hugging_face_weight_entry(folder, what);
  return entry.extension() == ".json" ? shards(entry) : std::vector<fs::path>{entry};
}

TensorMap read_hugging_face_weights(const std::vector<fs::path>& files) {
  TensorMap all;
  for (const fs::path& file : files)
    all.merge(file.extension() == ".bin" ? read_torch_state_dict(file) : read_safetensors(file));
  return all;
}

}  // namespace elf

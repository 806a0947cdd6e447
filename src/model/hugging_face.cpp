#include "hugging_face.h"

#include <nlohmann/json.hpp>
#include <set>

#include "elf/base/error.h"
#include "elf/base/files.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

std::vector<fs::path> shards(const fs::path& index_file) {
  const json index = json::parse(read_file(index_file), nullptr, /*allow_exceptions=*/false);
  if (!index.is_object() || !index.contains("weight_map") || !index["weight_map"].is_object())
    usage_error(index_file.string(), ": expected a JSON object with weight_map: tensor name -> file");
  std::set<fs::path> files;
  for (const auto& [name, file] : index["weight_map"].items()) {
    if (!file.is_string())
      usage_error(index_file.string(), ": weight_map.", name, ": expected a file name, found ", file.dump());
    files.insert(index_file.parent_path() / file.get<std::string>());
  }
  return {files.begin(), files.end()};
}

}  // namespace

std::vector<fs::path> hugging_face_weight_files(const fs::path& folder, const std::string& what) {
  if (!fs::is_directory(folder))
    usage_error(folder.string(), ": no such folder; expected a Hugging Face folder of ", what);
  if (fs::exists(folder / "model.safetensors")) return {folder / "model.safetensors"};
  if (fs::exists(folder / "model.safetensors.index.json"))
    return shards(folder / "model.safetensors.index.json");
  if (fs::exists(folder / "pytorch_model.bin")) return {folder / "pytorch_model.bin"};
  usage_error(folder.string(),
              ": holds no model.safetensors and no pytorch_model.bin; expected a Hugging Face "
              "folder of ",
              what);
}

TensorMap read_hugging_face_weights(const std::vector<fs::path>& files) {
  TensorMap all;
  for (const fs::path& file : files) {
    if (file.extension() == ".bin")
      usage_error(file.string(),
                  ": weights as a pickled state dict are not read yet; expected model.safetensors");
    all.merge(read_safetensors(file));
  }
  return all;
}

}  // namespace elf

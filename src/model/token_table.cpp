#include "elf/model/token_table.h"

#include <ATen/ATen.h>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/tensor/safetensors.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;

TokenTable load_token_table(const fs::path& folder) {
  const fs::path weights = folder / "table.safetensors", description = folder / "table.json";
  if (!fs::is_directory(folder))
    usage_error(folder.string(), ": no such folder; expected what `elf-prepare table` wrote");
  TensorMap tensors = read_safetensors(weights);
  const auto found = tensors.find("weight");
  if (found == tensors.end() || found->second.dim() != 2 || found->second.numel() == 0) {
    usage_error(weights.string(), ": expected a tensor 'weight' of shape [vocabulary, width]");
  }
  TokenTable table{found->second.to(at::kFloat),
                   json::parse(read_file(description), nullptr, /*allow_exceptions=*/false)};
  if (!table.made.is_object()) usage_error(description.string(), ": is no JSON object");
  if (!at::isfinite(table.weight).all().item<bool>())
    usage_error(weights.string(), ": 'weight' holds numbers that are not finite");
  return table;
}

void save_token_table(const fs::path& folder, const TokenTable& table) {
  write_safetensors(folder / "table.safetensors", {{"weight", table.weight}}, {{"format", "pt"}});
  write_file(folder / "table.json", table.made.dump(2) + "\n");
}

}  // namespace elf

#include "elf/model/token_table.h"

#include <ATen/ATen.h>

#include <cmath>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/tensor/random.h"
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
  TokenTable table{found->second.to(at::kFloat), parse_json(read_file(description))};
  if (!table.made.is_object()) usage_error(description.string(), ": is no JSON object");
  if (!at::isfinite(table.weight).all().item<bool>())
    usage_error(weights.string(), ": 'weight' holds numbers that are not finite");
  return table;
}

void save_token_table(const fs::path& folder, const TokenTable& table) {
  write_safetensors(folder / "table.safetensors", {{"weight", table.weight}}, {{"format", "pt"}});
  write_file(folder / "table.json", table.made.dump(2) + "\n");
}

at::Tensor gaussian_table(int64_t vocabulary, int64_t width, uint64_t seed) {
  if (width < 2) usage_error("gaussian table: width ", width, ", expected at least 2");
  const at::Tensor rows = normal({seed, Purpose::kTable}, sample_range(0, vocabulary), {width});
  const at::Tensor centred = rows - rows.mean(1, /*keepdim=*/true);
  return centred / centred.square().mean(1, /*keepdim=*/true).sqrt();
}

at::Tensor complete_table(const at::Tensor& rows, uint64_t seed) {
  const at::Tensor seen = rows.abs().amax(1, /*keepdim=*/true) > 0;
  const at::Tensor count = seen.sum().clamp_min(1);
  const at::Tensor centred = rows - rows.sum(0, /*keepdim=*/true) / count;
  const double target = std::sqrt(static_cast<double>(rows.size(1)));
  const at::Tensor scaled = centred * (target / centred.norm(2, {1}, /*keepdim=*/true).clamp_min(1e-12));
  return at::where(seen, scaled, gaussian_table(rows.size(0), rows.size(1), seed));
}

}  // namespace elf

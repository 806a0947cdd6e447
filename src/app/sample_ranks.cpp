#include "sample_ranks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "elf/base/json.h"

namespace elf::app {

// Lines of text travel, on the host: no process group for devices is needed.
SampleRanks::SampleRanks(const Launch& launch, const std::string& job)
    : ranks_(launch, at::kCPU, job, RankTimeouts{.collective = 3600}) {}

std::vector<MadeSamples> SampleRanks::gather(MadeSamples mine) {
  std::vector<MadeSamples> all;
  if (size() == 1) {
    all.push_back(std::move(mine));
    return all;
  }
  const std::string text = mine.to_json().dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto length = static_cast<int64_t>(text.size());
  const at::Tensor lengths = ranks_.gather(at::full({1}, length, at::kLong)).cpu();
  at::Tensor bytes = at::zeros({1, lengths.max().item<int64_t>()}, at::kByte);
  std::memcpy(bytes.data_ptr(), text.data(), text.size());
  bytes = ranks_.gather(bytes).cpu().contiguous();
  for (int64_t r = 0; r < size(); ++r) {
    const char* row = static_cast<const char*>(bytes.data_ptr()) + r * bytes.size(1);
    const std::string received(row, static_cast<size_t>(lengths[r].item<int64_t>()));
    all.push_back(MadeSamples::from_json(parse_json_or_throw<nlohmann::ordered_json>(received)));
  }
  return all;
}

}  // namespace elf::app

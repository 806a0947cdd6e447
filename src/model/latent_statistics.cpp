#include "elf/model/latent_statistics.h"

#include <ATen/ATen.h>

#include <cmath>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"

namespace elf {
namespace fs = std::filesystem;
using json = nlohmann::json;
namespace {

std::vector<double> numbers(const at::Tensor& vector) {
  const at::Tensor values = vector.to(at::kCPU, at::kDouble).contiguous();
  return {values.data_ptr<double>(), values.data_ptr<double>() + values.numel()};
}

}  // namespace

void StatisticsAccumulator::add(const at::Tensor& rows) {
  if (rows.size(0) == 0) return;
  const at::Tensor values = rows.to(at::kDouble);
  StatisticsAccumulator part;
  part.count_ = rows.size(0);
  part.mean_ = values.mean(0);
  part.squares_ = (values - part.mean_).square().sum(0);
  merge(part);
}

void StatisticsAccumulator::merge(const StatisticsAccumulator& other) {
  if (other.count_ == 0) return;
  if (count_ == 0) {
    *this = other;
    return;
  }
  const auto n = static_cast<double>(other.count_), before = static_cast<double>(count_);
  const at::Tensor delta = other.mean_ - mean_;
  mean_ = mean_ + delta * (n / (before + n));
  squares_ = squares_ + other.squares_ + delta.square() * (before * n / (before + n));
  count_ += other.count_;
}

LatentStatistics StatisticsAccumulator::result() const {
  if (count_ == 0) usage_error("latent statistics: the data hold no position to measure");
  LatentStatistics result;
  const at::Tensor variance = squares_ / static_cast<double>(count_);
  result.channel_mean = mean_.cpu();
  result.channel_std = variance.sqrt().cpu();
  result.mean = mean_.mean().item<double>();
  // Variance over everything = mean of the variances within the channels + variance between their means.
  result.std = std::sqrt((variance.mean() + (mean_ - result.mean).square().mean()).item<double>());
  result.positions = count_;
  return result;
}

json to_json(const LatentStatistics& statistics) {
  return {{"mean", statistics.mean},
          {"std", statistics.std},
          {"channel_mean", numbers(statistics.channel_mean)},
          {"channel_std", numbers(statistics.channel_std)},
          {"dim", statistics.channel_mean.numel()},
          {"positions", statistics.positions},
          {"source", statistics.source}};
}

LatentStatistics read_statistics(const fs::path& path) {
  const std::string file = path.string();
  const json content = parse_json(read_file(path));
  if (!content.is_object())
    usage_error(file, ": is no JSON object; expected what `elf-prepare statistics` wrote");
  try {
    LatentStatistics result;
    result.mean = content.at("mean").get<double>();
    result.std = content.at("std").get<double>();
    const auto mean = content.at("channel_mean").get<std::vector<double>>();
    const auto std = content.at("channel_std").get<std::vector<double>>();
    if (mean.empty() || mean.size() != std.size()) {
      usage_error(file, ": channel_mean has ", mean.size(), " numbers, channel_std ", std.size(),
                  "; expected as many, at least one");
    }
    result.channel_mean = at::tensor(mean, at::kDouble);
    result.channel_std = at::tensor(std, at::kDouble);
    const json positions = content.value("positions", json());
    if (positions.is_number_integer()) result.positions = positions.get<int64_t>();
    result.source = text_in(content, "source");
    return result;
  } catch (const json::exception& error) {
    usage_error(file, ": ", error.what(), "; expected what `elf-prepare statistics` wrote");
  }
}

}  // namespace elf

#include "elf/bench/speed.h"

#include <ATen/ATen.h>
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "elf/base/phases.h"
#include "elf/tensor/device.h"

namespace elf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// To so many decimals.
double rounded(double value, int decimals) {
  const double scale = std::pow(10.0, decimals);
  return std::round(value * scale) / scale;
}

// Seconds of the phases that do the counted work; of the whole round when none is named.
double working_seconds(const RoundWork& work, const std::map<std::string, double>& phases, double whole) {
  if (work.phases.empty()) return whole;
  double sum = 0;
  for (const std::string& name : work.phases) {
    const auto found = phases.find(name);
    if (found != phases.end()) sum += found->second;
  }
  return sum;
}

// The new round's phases; one that a round lacks took it no time.
void append(std::map<std::string, std::vector<double>>& all, const std::map<std::string, double>& round,
            size_t rounds_before) {
  for (const auto& [name, seconds] : round) all[name].resize(rounds_before, 0.0);
  for (auto& [name, list] : all) {
    const auto found = round.find(name);
    list.push_back(found == round.end() ? 0.0 : found->second);
  }
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

double gemm_rate(at::Device device, at::ScalarType precision) {
  const int64_t n = device.is_cpu() ? 2048 : 8192, repeats = device.is_cpu() ? 1 : 10;
  const at::Tensor a = at::full({n, n}, 0.5, at::TensorOptions(device).dtype(precision));
  at::Tensor product = at::mm(a, a);
  synchronize(device);
  const auto start = Clock::now();
  for (int64_t i = 0; i < repeats; ++i) at::mm_out(product, a, a);
  synchronize(device);
  return static_cast<double>(repeats) * 2.0 * static_cast<double>(n * n * n) / seconds_since(start) / 1e9;
}

double peak_rss_mib() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) / 1024;
}

SpeedReport measure_rounds(int64_t rounds, at::Device device, at::ScalarType precision,
                           const std::function<RoundWork(int64_t)>& round) {
  const bool on_cpu = device.is_cpu();
  PhaseClock clock([=] { synchronize(device); });
  round(0);
  SpeedReport report;
  std::vector<double> rates;
  for (int64_t i = 1; i <= rounds; ++i) {
    rates.push_back(gemm_rate(device, precision));
    clock.reset();
    synchronize(device);
    const auto start = Clock::now();
    const RoundWork work = round(i);
    synchronize(device);
    const double whole = seconds_since(start);
    append(report.phases, clock.seconds(), report.seconds.size());
    report.seconds.push_back(whole);
    report.gflop.push_back(work.flops / 1e9);
    report.utilisation.push_back(work.flops / 1e9 / working_seconds(work, clock.seconds(), whole));
  }
  report.gemm_gflops = median(rates);
  for (double& rate : report.utilisation) rate /= report.gemm_gflops;
  report.peak_memory_mib = on_cpu ? peak_rss_mib() : peak_device_memory_mib(device);
  return report;
}

nlohmann::ordered_json to_json(const SpeedReport& report, double tokens) {
  using Json = nlohmann::ordered_json;
  const double seconds = median(report.seconds), gflop = median(report.gflop);
  Json phases = Json::object(), all = Json::array();
  for (const auto& [name, list] : report.phases) phases[name] = rounded(median(list), 4);
  for (const double value : report.seconds) all.push_back(rounded(value, 4));
  return {{"seconds_median", rounded(seconds, 4)},
          {"seconds", all},
          {"tokens_per_second", rounded(tokens / seconds, 1)},
          {"phases_median", phases},
          {"gemm_gflops", rounded(report.gemm_gflops, 1)},
          {"model_gflop", rounded(gflop, 1)},
          {"utilisation", rounded(median(report.utilisation), 4)},
          {"utilisation_whole", rounded(gflop / seconds / report.gemm_gflops, 4)},
          {"peak_rss_mib", rounded(report.peak_memory_mib, 0)}};
}

}  // namespace elf

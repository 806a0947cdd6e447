// elf-prepare benchmark: how fast a dataset gives batches, and how long its rows are.
#include <algorithm>
#include <chrono>
#include <iostream>
#include <memory>
#include <nlohmann/json.hpp>

#include "elf/base/error.h"
#include "elf/data/dataset.h"
#include "elf/data/loader.h"
#include "prepare.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

struct BenchmarkOptions {
  std::string data;
  int64_t batch = 64, memory_mib = Dataset::kMemoryLimit >> 20;
  double seconds = 2;
  bool as_json = false;
};

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Lengths that 50, 90 and 99 % of the rows do not exceed.
Json length_statistics(const Dataset& dataset) {
  std::vector<int64_t> rows_of(static_cast<size_t>(dataset.info().longest_row) + 1);
  for (int64_t row = 0; row < dataset.info().rows; ++row) ++rows_of[static_cast<size_t>(dataset.length(row))];
  const auto quantile = [&](double share) {
    const double wanted = share * static_cast<double>(dataset.info().rows);
    int64_t seen = 0;
    size_t length = 0;
    while (length + 1 < rows_of.size() && static_cast<double>(seen += rows_of[length]) < wanted) ++length;
    return length;
  };
  return {{"mean", static_cast<double>(dataset.info().tokens) / static_cast<double>(dataset.info().rows)},
          {"median", quantile(0.5)},
          {"p90", quantile(0.9)},
          {"p99", quantile(0.99)},
          {"longest", dataset.info().longest_row}};
}

void run_benchmark(const BenchmarkOptions& o) {
  const auto opening = Clock::now();
  const auto dataset = std::make_shared<const Dataset>(Dataset::open(o.data, o.memory_mib << 20));
  const double open_seconds = seconds_since(opening);
  const DatasetInfo& info = dataset->info();
  const Loader loader(dataset, {.global_batch = std::min(o.batch, info.rows), .seed = 1});
  const int64_t batch = loader.config().global_batch;
  int64_t steps = 0, tokens = 0;
  const auto start = Clock::now();
  for (; steps == 0 || seconds_since(start) < o.seconds; ++steps) {
    for (const int64_t row : loader.batch(steps, 0, batch).rows) tokens += dataset->length(row);
  }
  const double seconds = seconds_since(start);
  const double rows_per_second = static_cast<double>(steps * batch) / seconds;
  const Json lengths = length_statistics(*dataset);
  const Json result = {{"data", o.data},
                       {"rows", info.rows},
                       {"tokens", info.tokens},
                       {"length", lengths},
                       {"batch", batch},
                       {"batch_length", loader.config().length},
                       {"open_seconds", open_seconds},
                       {"rows_per_second", rows_per_second},
                       {"tokens_per_second", static_cast<double>(tokens) / seconds},
                       {"ms_per_batch", 1000 * seconds / static_cast<double>(steps)}};
  if (o.as_json) {
    std::cout << result.dump() << '\n';
    return;
  }
  std::cout << o.data << ": " << info.rows << " rows, length " << lengths["mean"] << " on average, median "
            << lengths["median"] << ", 90 % up to " << lengths["p90"] << ", 99 % up to " << lengths["p99"]
            << ", longest " << lengths["longest"] << "\nbatches of " << batch << " x "
            << loader.config().length << ": " << static_cast<int64_t>(rows_per_second) << " rows/s, "
            << result["ms_per_batch"] << " ms a batch (opened in " << open_seconds << " s)\n";
}

}  // namespace

void add_benchmark_command(Command& app, Commands& commands) {
  const auto options = std::make_shared<BenchmarkOptions>();
  Command& sub = *app.add_subcommand("benchmark",
                                     "How fast a dataset gives shuffled batches, and how long its rows are");
  sub.add_option("--data", options->data, "Dataset of `elf-prepare corpus` or `pairs`")->required();
  sub.add_option("--batch", options->batch, "Rows of a batch")->positive()->capture_default_str();
  sub.add_option("--seconds", options->seconds, "How long to read")->positive()->capture_default_str();
  sub.add_option("--memory", options->memory_mib,
                 "MiB of tokens kept in memory; larger data are read row by row")
      ->not_negative()
      ->capture_default_str();
  sub.add_flag("--json", options->as_json, "One JSON object to stdout");
  with_examples(sub,
                "  elf-prepare benchmark --data train.h5 --batch 512\n"
                "  elf-prepare benchmark --data train.h5 --memory 0 --json");
  commands["benchmark"] = [options](const CommonOptions&) { run_benchmark(*options); };
}

}  // namespace elf::app

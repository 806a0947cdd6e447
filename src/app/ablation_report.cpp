#include "ablation_report.h"

#include <algorithm>
#include <cstdlib>
#include <sstream>

#include "ablation.h"
#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/config/run_config.h"
#include "elf/model/model_dir.h"
#include "elf/model/weight_map.h"

namespace elf::app {
namespace fs = std::filesystem;
namespace {

using Json = OrderedJson;

ReportPublished published_row(const Json& json) {
  return {json.at("train"),
          json.at("sample"),
          json.at("name"),
          json.at("at"),
          json.at("figures"),
          json.at("errors"),
          false};
}

// "1.0" and "1" are the same.
bool same_value(const std::string& a, const std::string& b) {
  char *end_a = nullptr, *end_b = nullptr;
  const double x = std::strtod(a.c_str(), &end_a), y = std::strtod(b.c_str(), &end_b);
  const bool numbers = !a.empty() && !b.empty() && *end_a == 0 && *end_b == 0;
  return numbers ? x == y : a == b;
}

// The row that says as much of the point as any does.
ReportPublished* row_of(std::vector<ReportPublished>& rows, const ReportPoint& point) {
  for (ReportPublished& row : rows) {
    if (row.train != point.train || (!row.sample.empty() && row.sample != point.sample)) continue;
    const bool fits = std::ranges::all_of(row.at, [&](const auto& at) {
      return at.first == point.axis ? same_value(at.second, point.value)
                                    : point.sample.find(at.first + "=" + at.second) != std::string::npos;
    });
    if (fits && (point.axis.empty() || row.at.contains(point.axis))) return &row;
  }
  return nullptr;
}

// Means over runs of the same arm; the spread between runs is what a reader wants to know.
std::map<std::string, RecordFigure> over_seeds(const std::vector<EvalRecord>& records) {
  if (records.size() == 1) return records.front().figures;
  std::map<std::string, RecordFigure> figures;
  if (records.empty()) return figures;
  for (const auto& [name, first] : records.front().figures) {
    std::vector<double> values;
    for (const EvalRecord& record : records) {
      if (record.figures.contains(name)) values.push_back(record.figures.at(name).mean);
    }
    if (values.size() == records.size()) figures[name] = {mean_of(values), standard_error(values)};
  }
  return figures;
}

bool is_red(const SweepReport& report, const ReportPoint& point) {
  const RecordFigure* figure = report.of(point, report.figure);
  if (figure == nullptr) return !point.figures.empty();  // nothing to score: all blank
  if (report.score.at("red_above").is_number() && figure->mean > report.score.at("red_above").get<double>())
    return true;
  const RecordFigure* variety = report.of(point, report.variety);
  return variety != nullptr && report.score.at("red_below").is_number() &&
         variety->mean < report.score.at("red_below").get<double>();
}

void add_points(SweepReport& report, const fs::path& folder, const Json& sweep) {
  std::vector<std::vector<EvalRecord>> records;
  for (const Json& job : sweep.at("jobs")) {
    for (const Json& setting : job.at("settings")) {
      const std::string train = job.at("train"), label = setting.at("label");
      auto found = std::ranges::find_if(
          report.points, [&](const ReportPoint& p) { return p.train == train && p.label == label; });
      if (found == report.points.end()) {
        report.points.push_back(
            {train, setting.at("sample"), setting.at("axis"), setting.at("value"), label, {}, 0, false, {}});
        records.emplace_back();
        found = report.points.end() - 1;
      }
      const fs::path file = folder / setting.at("record").get<std::string>();
      if (!fs::exists(file)) continue;
      for (EvalRecord& record : read_eval_records(file.string()))
        records[static_cast<size_t>(found - report.points.begin())].push_back(std::move(record));
    }
  }
  for (size_t i = 0; i < records.size(); ++i) {
    ReportPoint& point = report.points[i];
    point.figures = over_seeds(records[i]);
    point.seeds = static_cast<int64_t>(records[i].size());
    point.red = is_red(report, point);
    if (ReportPublished* row = row_of(report.published, point)) {
      row->of_a_point = true;
      point.published = *row;
    }
  }
}

void read_metrics(ReportRun& run, const fs::path& file) {
  std::istringstream lines(read_file(file));
  for (std::string line; std::getline(lines, line);) {
    const Json json = parse_json<Json>(line);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number()) continue;
    const auto step = json["step"].get<double>();
    if (json.contains("loss") && json["loss"].is_number()) run.loss.emplace_back(step, json["loss"]);
    if (json.contains("valid_loss") && json["valid_loss"].is_number())
      run.valid_loss.emplace_back(step, json["valid_loss"]);
  }
}

ReportRun read_run_of(const fs::path& folder, const Json& job) {
  ReportRun run;
  run.name = job.at("name");
  run.train = job.at("train");
  run.about = job.at("about");
  run.seed = job.at("seed");
  const fs::path path = folder / job.at("run").get<std::string>();
  if (fs::exists(path / "metrics.jsonl")) read_metrics(run, path / "metrics.jsonl");
  if (!fs::exists(path / "config.yaml") || latest_checkpoint(path).empty()) return run;
  const RunConfig config = load_run_config(path / "config.yaml");
  run.parameters = parameter_count(config.model);
  run.data = config.data.train;
  const RunProgress progress = progress_of(path);
  run.steps = progress.steps;
  run.seconds = progress.seconds;
  run.tokens = static_cast<double>(run.steps * config.train.global_batch_size * config.data.max_length);
  return run;
}

}  // namespace

const RecordFigure* SweepReport::of(const ReportPoint& point, const std::string& name) const {
  const auto found = point.figures.find(name);
  return found == point.figures.end() ? nullptr : &found->second;
}

SweepReport read_sweep_report(const fs::path& folder) {
  const fs::path file = folder / "sweep.json";
  const Json sweep = parse_json<Json>(read_file(file));
  if (!sweep.is_object() || sweep.value("sweep", "") != "elf-bench 1")
    usage_error(file.string(), ": no sweep of elf-bench ablation, or one of another version");
  SweepReport report;
  try {
    report.name = sweep.at("name");
    report.title = sweep.at("title");
    report.score = sweep.at("score");
    report.about = sweep.at("published");
    report.figure = report.score.at("figure");
    report.variety = report.score.at("variety");
    report.lower_is_better = report.score.at("lower_is_better");
    for (const Json& row : report.about.at("rows")) report.published.push_back(published_row(row));
    add_points(report, folder, sweep);
    for (const Json& job : sweep.at("jobs")) report.runs.push_back(read_run_of(folder, job));
    for (const Json& verdict : sweep.at("expect"))
      report.verdicts.push_back(judge(report, verdict.at("better"), verdict.at("than")));
  } catch (const Json::exception& error) {
    usage_error(file.string(), ": ", error.what());
  }
  report.differences = differences_of(report);
  return report;
}

}  // namespace elf::app

// What sweeps have found: their records and runs read back (ablation.h says where these lie), as Markdown,
// CSV and one page of HTML.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "eval_figures.h"

namespace elf::app {

// What the paper prints for a point, or (named) for another system.
struct ReportPublished {
  std::string train, sample, name;
  std::map<std::string, std::string> at;
  std::map<std::string, double> figures, errors;
  bool of_a_point = false;  // a point of ours stands beside it
};

// An arm in a setting. Figures are means over the seeds of training, with their standard error; of one seed,
// the record's own over the seeds of sampling.
struct ReportPoint {
  std::string train, sample, axis, value, label;  // label: of the setting, "ode sc-cfg=1.5"
  std::map<std::string, RecordFigure> figures;    // empty: not there yet
  int64_t seeds = 0;                              // of training, that have a record
  bool red = false;
  std::optional<ReportPublished> published;
};

struct ReportRun {
  std::string name, train, about;  // about: the arm in words, from the sweep's file
  uint64_t seed = 0;
  int64_t parameters = 0, steps = 0;  // steps: made so far
  double tokens = 0, seconds = 0;     // that it saw; that it trained for
  std::string data;
  std::vector<std::pair<double, double>> loss, valid_loss;  // by step
};

// A verdict of the paper, put to the test.
struct ReportVerdict {
  std::string better, than, outcome, words;  // outcome: confirmed | not confirmed | undecided | not known yet
};

struct SweepReport {
  std::string name, title;
  nlohmann::ordered_json score,
      about;  // `about`: source, verdict, data, scorer, tokens, samples of the paper
  std::string figure, variety;
  bool lower_is_better = true;
  std::vector<ReportPublished> published;
  std::vector<ReportPoint> points;
  std::vector<ReportRun> runs;
  std::vector<ReportVerdict> verdicts;
  std::string differences;  // what of ours is not as published, in words

  const RecordFigure* of(const ReportPoint& point, const std::string& figure) const;
};

// The sweep of a folder. Throws Error (usage): no sweep there, or a record that is none.
SweepReport read_sweep_report(const std::filesystem::path& folder);

struct ReportPicture {
  std::string name, title, svg;  // name: "frontier", "steps-ppl", "loss"
};
std::vector<ReportPicture> report_pictures(const SweepReport& report);

// With `pictures` the text shows NAME-PICTURE.svg, which lie beside it.
std::string report_markdown(const std::vector<SweepReport>& reports, bool pictures);
std::string report_csv(const std::vector<SweepReport>& reports);  // a line for each point and figure
std::string report_html(const std::vector<SweepReport>& reports);

// The table of a sweep: a header, then a row for each point. Marks of red points are words of their own
// column.
std::vector<std::vector<std::string>> report_table(const SweepReport& report);
std::vector<std::vector<std::string>> runs_table(const SweepReport& report);

// src/app/ablation_verdict.cpp
ReportVerdict judge(const SweepReport& report, const std::string& better, const std::string& than);
std::string differences_of(const SweepReport& report);

}  // namespace elf::app

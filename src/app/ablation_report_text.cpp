// The report as tables: Markdown and CSV.
#include <algorithm>
#include <set>

#include "ablation.h"
#include "ablation_report.h"
#include "elf/base/error.h"
#include "text_tables.h"

namespace elf::app {
namespace {

// "104.29 / 5.51", of the figures that the paper prints.
std::string published_text(const SweepReport& report, const ReportPublished& row) {
  std::string text;
  for (const std::string& name : {report.figure, report.variety}) {
    // Another scorer's figure is no less what the paper prints.
    std::string key = name;
    if (!row.figures.contains(key) && key == "perplexity") key = "ppl";
    if (!row.figures.contains(key) && key == "corpus_entropy") key = "entropy";
    const auto found = row.figures.find(key);
    if (found == row.figures.end()) continue;
    RecordFigure figure{found->second, {}};
    if (const auto error = row.errors.find(key); error != row.errors.end())
      figure.standard_error = error->second;
    text += (text.empty() ? "" : " / ") + figure_text(key, figure);
  }
  if (!text.empty()) return text;
  for (const auto& [name, value] : row.figures)
    text += cat(text.empty() ? "" : ", ", figure_title(name), " ", figure_text(name, {value, {}}));
  return text;
}

std::string row_name(const ReportPublished& row) {
  std::string name = row.name.empty() ? row.train : row.name;
  if (!row.sample.empty()) name += " " + row.sample;
  for (const auto& [key, value] : row.at) name += " " + key + "=" + value;
  return name;
}

std::string csv_line(const std::vector<std::string>& cells) {
  return csv_table({cells});
}

void add_csv(std::string& csv, const SweepReport& report, const ReportPoint& point) {
  for (const auto& [name, value] : point.figures) {
    const auto number = [](double each) { return cat(each); };
    std::string published;
    if (point.published && point.published->figures.contains(name))
      published = number(point.published->figures.at(name));
    csv += csv_line({report.name, point.train, point.sample, point.axis, point.value, name,
                     number(value.mean), value.standard_error ? number(*value.standard_error) : "",
                     std::to_string(point.seeds), point.red ? "red" : "", published});
  }
}

}  // namespace

std::vector<std::vector<std::string>> report_table(const SweepReport& report) {
  std::vector<std::string> shown = {report.figure};
  if (!report.variety.empty()) shown.push_back(report.variety);
  for (const char* more :
       {"bleu", "bleu_published", "rouge1", "rouge2", "rougeL", "exact_match", "character_error_rate"}) {
    const bool there =
        std::ranges::any_of(report.points, [&](const ReportPoint& p) { return p.figures.contains(more); });
    if (there && std::ranges::find(shown, more) == shown.end()) shown.emplace_back(more);
  }
  std::vector<std::vector<std::string>> rows(1);
  rows[0] = {"arm", "setting"};
  for (const std::string& figure : shown) rows[0].push_back(figure_title(figure));
  rows[0].insert(rows[0].end(), {"published", "mark"});
  for (const ReportPoint& point : report.points) {
    std::vector<std::string> row = {point.train, point.label};
    for (const std::string& figure : shown) {
      const RecordFigure* value = report.of(point, figure);
      row.push_back(value == nullptr ? "" : figure_text(figure, *value));
    }
    row.push_back(point.published ? published_text(report, *point.published) : "");
    row.emplace_back(point.figures.empty() ? "not there yet" : point.red ? "RED" : "");
    rows.push_back(std::move(row));
  }
  for (const ReportPublished& published : report.published) {
    if (published.of_a_point) continue;
    std::vector<std::string> row = {row_name(published), "published"};
    row.resize(shown.size() + 2);
    row.push_back(published_text(report, published));
    row.emplace_back("");
    rows.push_back(std::move(row));
  }
  return rows;
}

std::vector<std::vector<std::string>> runs_table(const SweepReport& report) {
  std::vector<std::vector<std::string>> rows = {{"run", "seed", "parameters", "steps", "tokens seen",
                                                 "last loss", "held-out loss", "training", "about"}};
  for (const ReportRun& run : report.runs) {
    const auto amount = [](double value) { return value > 0 ? short_number(value) : ""; };
    const auto last = [](const auto& curve) { return curve.empty() ? "" : fixed(curve.back().second, 4); };
    rows.push_back({run.name, std::to_string(run.seed), amount(static_cast<double>(run.parameters)),
                    run.steps > 0 ? std::to_string(run.steps) : "", amount(run.tokens), last(run.loss),
                    last(run.valid_loss), run.seconds > 0 ? long_time(run.seconds) : "", run.about});
  }
  return rows;
}

std::string report_markdown(const std::vector<SweepReport>& reports, bool pictures) {
  std::string text = "# Ablations\n";
  for (const SweepReport& report : reports) {
    text += cat("\n## ", report.title.empty() ? report.name : report.title, "\n\n");
    const std::string source = report.about.at("source"), verdict = report.about.at("verdict");
    if (!source.empty()) text += cat("Published: ", source, ". ");
    if (!verdict.empty()) text += cat("The paper's verdict: ", verdict, ".");
    if (!source.empty() || !verdict.empty()) text += "\n\n";
    if (!report.differences.empty()) text += cat("What differs here: ", report.differences, ".\n\n");
    for (const ReportVerdict& one : report.verdicts)
      text += cat("- ", one.better, " better than ", one.than, ": **", one.outcome, "** (", one.words, ")\n");
    if (!report.verdicts.empty()) text += "\n";
    text += markdown_table(report_table(report)) + "\n";
    for (const ReportPicture& picture : report_pictures(report)) {
      if (pictures) text += cat("![", picture.title, "](", report.name, "-", picture.name, ".svg)\n\n");
    }
    text += markdown_table(runs_table(report));
  }
  return text;
}

std::string report_csv(const std::vector<SweepReport>& reports) {
  std::string csv =
      "sweep,train,sample,axis,value,figure,mean,standard_error,training_seeds,mark,published\n";
  for (const SweepReport& report : reports) {
    for (const ReportPoint& point : report.points) add_csv(csv, report, point);
  }
  return csv;
}

}  // namespace elf::app

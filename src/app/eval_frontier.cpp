// elf-eval frontier: Gen. PPL against entropy, as a picture of its own (SVG, or HTML with it inside). One
// number alone can be bought with the other: what counts is which records no other record beats in both.
#include <algorithm>
#include <filesystem>
#include <memory>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "eval_records.h"
#include "svg_plot.h"

namespace elf::app {
namespace {

struct Options {
  std::vector<std::string> records;
  std::string output;
};

struct Point {
  std::string label;
  double entropy, ppl;
  double entropy_error, ppl_error;
  bool degenerate, best;  // best: none has both a higher entropy and a lower perplexity
};

std::vector<Point> points_of(const std::vector<EvalRecord>& records) {
  std::vector<Point> points;
  for (const EvalRecord& record : records) {
    const auto ppl = record.figures.find("ppl"), entropy = record.figures.find("entropy");
    if (ppl == record.figures.end() || entropy == record.figures.end()) {
      log_warning(cat(record.place, ": has no Gen. PPL with its entropy; left out"));
      continue;
    }
    points.push_back({record.label, entropy->second.mean, ppl->second.mean,
                      entropy->second.standard_error.value_or(0), ppl->second.standard_error.value_or(0),
                      record.degenerate, true});
  }
  for (Point& point : points) {
    point.best = std::none_of(points.begin(), points.end(), [&](const Point& other) {
      return !other.degenerate && other.entropy >= point.entropy && other.ppl <= point.ppl &&
             (other.entropy > point.entropy || other.ppl < point.ppl);
    });
  }
  return points;
}

PlotPoint mark_of(const Point& point) {
  PlotPoint mark{point.entropy, point.ppl, point.entropy_error, point.ppl_error, point.label, "", "other"};
  mark.tip = cat(point.label, ": Gen. PPL ", fixed(point.ppl, 2), ", entropy ", fixed(point.entropy, 3),
                 point.degenerate ? ", DEGENERATE" : "");
  if (point.degenerate) mark.label += " (DEGENERATE)";
  mark.kind = point.degenerate ? "degenerate" : point.best ? "best" : "other";
  return mark;
}

// The front is a line, the records are marks.
std::string svg_of(std::vector<Point> points) {
  std::ranges::stable_sort(points, {}, &Point::entropy);
  Plot plot{
      .title = "",
      .x_title = "unigram entropy (nats; higher is more varied)",
      .y_title = "Gen. PPL (lower is likelier)",
      .style = ".best{fill:#1769aa}.other{fill:#9aa5ae}.degenerate{fill:none;stroke:#c62828;stroke-width:2}",
      .series = std::vector<PlotSeries>(2)};
  plot.series[0].marks = plot.series[1].line = false;
  for (const Point& point : points) {
    if (point.best && !point.degenerate) plot.series[0].points.push_back(mark_of(point));
    plot.series[1].points.push_back(mark_of(point));
  }
  return svg_of(std::move(plot));
}

std::string html_of(const std::string& svg) {
  return cat(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Gen. PPL against "
      "entropy</title>"
      "</head>\n<body style=\"font-family:sans-serif;margin:2em\">\n<h1 style=\"font-size:1.2em\">Gen. PPL "
      "against "
      "entropy</h1>\n",
      svg,
      "<p>Blue: no other record has both a higher entropy and a lower perplexity. Red ring: DEGENERATE. "
      "Bars: "
      "standard errors over seeds.</p>\n</body></html>\n");
}

void run_frontier(const Options& o) {
  refuse_overwriting(o.output, o.records);
  const std::string extension = std::filesystem::path(o.output).extension().string();
  if (!o.output.empty() && extension != ".svg" && extension != ".html")
    usage_error("--output ", o.output, ": expected a name that ends in .svg or .html");
  std::vector<EvalRecord> records;
  for (const std::string& file : o.records) {
    for (EvalRecord& record : read_eval_records(file)) records.push_back(std::move(record));
  }
  const std::vector<Point> points = points_of(records);
  if (points.empty())
    usage_error(
        "no record has a Gen. PPL; make them with elf-eval genppl --json, or elf-eval run --scorer DIR");
  const std::string svg = svg_of(points);
  write_result(o.output, extension == ".html" ? html_of(svg) : svg);
}

}  // namespace

EvalCommand add_frontier_command(Command& eval) {
  const auto options = std::make_shared<Options>();
  Command* command = eval.add_subcommand("frontier", "Draws the Gen. PPL of records against their entropy");
  command->add_option("RECORD", options->records, "Files with a record each, or one a line")->required();
  command->add_option("--output", options->output,
                      "FILE.svg or FILE.html; without it the SVG goes to stdout");
  with_examples(*command, "  elf-eval frontier scores/*.json --output frontier.html");
  return {command, [options] { run_frontier(*options); }};
}

}  // namespace elf::app

// elf-eval frontier: Gen. PPL against entropy, as a picture of its own (SVG, or HTML with it inside). One
// number alone can be bought with the other: what counts is which records no other record beats in both.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

#include "cli_core.h"
#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/outputs.h"
#include "eval_records.h"

namespace elf::app {
namespace {

constexpr double kWidth = 760, kHeight = 480, kLeft = 70, kRight = 20, kTop = 40, kBottom = 60;

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

std::string xml(const std::string& text) {
  std::string out;
  for (const char c : text) {
    out += c == '&'   ? "&amp;"
           : c == '<' ? "&lt;"
           : c == '>' ? "&gt;"
           : c == '"' ? "&quot;"
                      : std::string(1, c);
  }
  return out;
}

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

// A linear scale with round marks.
struct Axis {
  double low, high, step, from, to;  // values; pixels of low and high

  static Axis over(double low, double high, double from, double to) {
    const double span = std::max(high - low, std::max(1e-3, 0.02 * std::abs(high)));
    const double raw = 1.2 * span / 6, power = std::pow(10, std::floor(std::log10(raw)));
    const double step = (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10) * power;
    return {step * std::floor((low - 0.1 * span) / step), step * std::ceil((high + 0.1 * span) / step), step,
            from, to};
  }
  double place(double value) const { return from + (value - low) / (high - low) * (to - from); }
  std::string mark(double value) const {
    return fixed(value, step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step))));
  }
};

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return cat("<line class=\"", kind, "\" x1=\"", fixed(x1, 1), "\" y1=\"", fixed(y1, 1), "\" x2=\"",
             fixed(x2, 1), "\" y2=\"", fixed(y2, 1), "\"/>\n");
}

std::string text(double x, double y, const char* kind, const std::string& content) {
  return cat("<text class=\"", kind, "\" x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\">", xml(content),
             "</text>\n");
}

std::string grid(const Axis& x, const Axis& y) {
  std::string svg;
  for (double value = x.low; value <= x.high + x.step / 2; value += x.step) {
    svg += line(x.place(value), y.from, x.place(value), y.to, "grid");
    svg += text(x.place(value), y.from + 18, "mark middle", x.mark(value));
  }
  for (double value = y.low; value <= y.high + y.step / 2; value += y.step) {
    svg += line(x.from, y.place(value), x.to, y.place(value), "grid");
    svg += text(x.from - 8, y.place(value) + 4, "mark end", y.mark(value));
  }
  svg +=
      text((x.from + x.to) / 2, y.from + 44, "title middle", "unigram entropy (nats; higher is more varied)");
  return svg + text(kLeft - 50, kTop - 16, "title", "Gen. PPL (lower is likelier)");
}

std::string drawing(const Point& point, const Axis& x, const Axis& y) {
  const double px = x.place(point.entropy), py = y.place(point.ppl);
  std::string svg;
  if (point.entropy_error > 0)
    svg += line(x.place(point.entropy - point.entropy_error), py,
                x.place(point.entropy + point.entropy_error), py, "error");
  if (point.ppl_error > 0)
    svg += line(px, y.place(point.ppl - point.ppl_error), px, y.place(point.ppl + point.ppl_error), "error");
  const char* kind = point.degenerate ? "degenerate" : point.best ? "best" : "other";
  svg += cat("<circle class=\"", kind, "\" cx=\"", fixed(px, 1), "\" cy=\"", fixed(py, 1),
             "\" r=\"5\"><title>", xml(point.label), ": Gen. PPL ", fixed(point.ppl, 2), ", entropy ",
             fixed(point.entropy, 3), point.degenerate ? ", DEGENERATE" : "", "</title></circle>\n");
  const bool right = px < (x.from + x.to) / 2;
  return svg + text(px + (right ? 9 : -9), py - 7, right ? "label" : "label end",
                    point.label + (point.degenerate ? " (DEGENERATE)" : ""));
}

std::string svg_of(std::vector<Point> points) {
  const auto by_entropy = [](const Point& a, const Point& b) { return a.entropy < b.entropy; };
  std::stable_sort(points.begin(), points.end(), by_entropy);
  const auto [low, high] = std::minmax_element(points.begin(), points.end(),
                                               [](const Point& a, const Point& b) { return a.ppl < b.ppl; });
  const Axis x = Axis::over(points.front().entropy, points.back().entropy, kLeft, kWidth - kRight);
  const Axis y = Axis::over(low->ppl, high->ppl, kHeight - kBottom, kTop);
  std::string svg = cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", kWidth, " ", kHeight, "\" width=\"", kWidth,
      "\" height=\"", kHeight,
      "\" role=\"img\" aria-label=\"Gen. PPL against entropy\">\n<style>"
      "text{font-family:sans-serif;font-size:12px;fill:#333}.title{font-size:13px}.middle{text-anchor:middle}"
      ".end{text-anchor:end}.grid{stroke:#ddd}.error{stroke:#888}.label{font-size:11px}"
      ".front{fill:none;stroke:#1769aa;stroke-width:1.5}.best{fill:#1769aa}.other{fill:#9aa5ae}"
      ".degenerate{fill:none;stroke:#c62828;stroke-width:2}</style>\n<rect width=\"100%\" height=\"100%\" "
      "fill=\"#fff\"/>\n");
  svg += grid(x, y);
  std::string front;
  for (const Point& point : points) {
    if (point.best && !point.degenerate)
      front += cat(fixed(x.place(point.entropy), 1), ",", fixed(y.place(point.ppl), 1), " ");
  }
  svg += cat("<polyline class=\"front\" points=\"", front, "\"/>\n");
  for (const Point& point : points) svg += drawing(point, x, y);
  return svg + "</svg>\n";
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

EvalCommand add_frontier_command(CLI::App& eval) {
  const auto options = std::make_shared<Options>();
  CLI::App* command = eval.add_subcommand("frontier", "Draws the Gen. PPL of records against their entropy");
  command->add_option("RECORD", options->records, "Files with a record each, or one a line")->required();
  command->add_option("--output", options->output,
                      "FILE.svg or FILE.html; without it the SVG goes to stdout");
  with_examples(*command, "  elf-eval frontier scores/*.json --output frontier.html");
  return {command, [options] { run_frontier(*options); }};
}

}  // namespace elf::app

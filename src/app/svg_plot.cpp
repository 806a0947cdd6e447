#include "svg_plot.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "eval_common.h"

namespace elf::app {
namespace {

constexpr double kLeft = 70, kRight = 20, kTop = 40, kBottom = 60, kLegend = 190;

// A scale with round marks: linear, or logarithmic with marks at 1, 2 and 5 of each decade.
struct Axis {
  double low, high, from, to;  // values; pixels of low and high
  bool log;
  std::vector<double> marks;

  static Axis over(double low, double high, bool log, double from, double to) {
    return log ? logarithmic(low, high, from, to) : linear(low, high, from, to);
  }

  static Axis linear(double low, double high, double from, double to) {
    const double span = std::max(high - low, std::max(1e-3, 0.02 * std::abs(high)));
    const double raw = 1.2 * span / 6, power = std::pow(10, std::floor(std::log10(raw)));
    const double step = (raw / power < 1.5 ? 1 : raw / power < 3.5 ? 2 : raw / power < 7.5 ? 5 : 10) * power;
    Axis axis{step * std::floor((low - 0.1 * span) / step),
              step * std::ceil((high + 0.1 * span) / step),
              from,
              to,
              false,
              {}};
    if (low >= 0) axis.low = std::max(axis.low, 0.0);
    for (double value = axis.low; value <= axis.high + step / 2; value += step) axis.marks.push_back(value);
    return axis;
  }

  static Axis logarithmic(double low, double high, double from, double to) {
    const double room = std::max(0.05, 0.08 * std::log10(high / low));
    Axis axis{low * std::pow(10, -room), high * std::pow(10, room), from, to, true, {}};
    const bool wide = high / low > 200;
    for (double power = std::pow(10, std::floor(std::log10(axis.low))); power <= axis.high; power *= 10) {
      for (const double digit : {1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0}) {
        const bool rare = digit == 1.5 || digit == 3 || digit == 4 || digit == 7;
        if (rare && (wide || high / low > 8)) continue;
        if (power * digit >= axis.low && power * digit <= axis.high) axis.marks.push_back(power * digit);
      }
    }
    return axis;
  }

  double place(double value) const {
    const double share = log ? std::log(value / low) / std::log(high / low) : (value - low) / (high - low);
    return from + share * (to - from);
  }
  std::string mark(double value) const {
    const double step = log ? value / 2 : marks.size() > 1 ? marks[1] - marks[0] : 1;
    return fixed(value, step >= 1 ? 0 : static_cast<int>(std::ceil(-std::log10(step) - 1e-9)));
  }
};

std::string line(double x1, double y1, double x2, double y2, const char* kind) {
  return cat("<line class=\"", kind, "\" x1=\"", fixed(x1, 1), "\" y1=\"", fixed(y1, 1), "\" x2=\"",
             fixed(x2, 1), "\" y2=\"", fixed(y2, 1), "\"/>\n");
}

std::string text(double x, double y, const char* kind, const std::string& content) {
  return cat("<text class=\"", kind, "\" x=\"", fixed(x, 1), "\" y=\"", fixed(y, 1), "\">", xml_text(content),
             "</text>\n");
}

std::string grid(const Plot& plot, const Axis& x, const Axis& y) {
  std::string svg;
  for (const double value : x.marks) {
    svg += line(x.place(value), y.from, x.place(value), y.to, "grid");
    svg += text(x.place(value), y.from + 18, "mark middle", x.mark(value));
  }
  for (const double value : y.marks) {
    svg += line(x.from, y.place(value), x.to, y.place(value), "grid");
    svg += text(x.from - 8, y.place(value) + 4, "mark end", y.mark(value));
  }
  svg += text((x.from + x.to) / 2, y.from + 44, "title middle", plot.x_title);
  svg += text(kLeft - 50, kTop - 16, "title", plot.y_title);
  return svg + text(x.to, kTop - 16, "title end strong", plot.title);
}

std::string mark_of(const PlotPoint& point, double px, double py) {
  const std::string tip = point.tip.empty() ? "" : "<title>" + xml_text(point.tip) + "</title>";
  if (point.kind == "published")
    return cat("<rect class=\"published\" x=\"", fixed(px - 4.5, 1), "\" y=\"", fixed(py - 4.5, 1),
               "\" width=\"9\" height=\"9\">", tip, "</rect>\n");
  return cat("<circle class=\"", point.kind, "\" cx=\"", fixed(px, 1), "\" cy=\"", fixed(py, 1), "\" r=\"",
             point.kind == "dot" ? "4" : "5", "\">", tip, "</circle>\n");
}

std::string drawing(const PlotPoint& point, const Axis& x, const Axis& y) {
  const double px = x.place(point.x), py = y.place(point.y);
  const auto shown = [](const Axis& axis, double value) {
    return axis.place(std::clamp(value, axis.low, axis.high));
  };
  std::string svg;
  if (point.x_error > 0)
    svg += line(shown(x, point.x - point.x_error), py, shown(x, point.x + point.x_error), py, "error");
  if (point.y_error > 0)
    svg += line(px, shown(y, point.y - point.y_error), px, shown(y, point.y + point.y_error), "error");
  svg += mark_of(point, px, py);
  if (point.label.empty()) return svg;
  const bool right = px < (x.from + x.to) / 2;
  return svg + text(px + (right ? 9 : -9), py - 7, right ? "label" : "label end", point.label);
}

std::string drawing(const PlotSeries& series, const Axis& x, const Axis& y) {
  std::string svg = cat("<g color=\"", series.color, "\">\n");
  if (series.line && series.points.size() > 1) {
    svg += cat("<polyline class=\"curve", series.dashed ? " dashed" : "", "\" points=\"");
    for (const PlotPoint& point : series.points)
      svg += cat(fixed(x.place(point.x), 1), ",", fixed(y.place(point.y), 1), " ");
    svg += "\"/>\n";
  }
  for (const PlotPoint& point : series.points) {
    if (series.marks) svg += drawing(point, x, y);
  }
  return svg + "</g>\n";
}

std::string legend(const Plot& plot, double left) {
  std::string svg;
  double y = kTop + 8;
  for (const PlotSeries& series : plot.series) {
    if (series.name.empty()) continue;
    svg += cat("<g color=\"", series.color, "\">");
    if (series.line)
      svg += cat("<line class=\"curve", series.dashed ? " dashed" : "", "\" x1=\"", left, "\" y1=\"", y,
                 "\" x2=\"", left + 22, "\" y2=\"", y, "\"/>");
    if (series.marks && !series.points.empty()) {
      PlotPoint sample;
      sample.kind = series.points.front().kind == "published" ? "published" : "dot";
      svg += mark_of(sample, left + 11, y);
    }
    svg += "</g>\n" + text(left + 28, y + 4, "label", series.name);
    y += 18;
  }
  return svg;
}

constexpr const char* kStyle =
    "text{font-family:sans-serif;font-size:12px;fill:#333}.title{font-size:13px}.strong{font-weight:bold}"
    ".middle{text-anchor:middle}.end{text-anchor:end}.grid{stroke:#ddd}.error{stroke:currentColor;opacity:."
    "55}"
    ".label{font-size:11px}.curve{fill:none;stroke:currentColor;stroke-width:1.6}.dashed{stroke-dasharray:5 "
    "4}"
    ".dot{fill:currentColor}.published{fill:#fff;stroke:currentColor;stroke-width:1.6}"
    ".red{fill:#fff;stroke:#c62828;stroke-width:2.2}";

}  // namespace

std::string xml_text(const std::string& text) {
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

const std::string& series_color(size_t index) {
  static const std::string colors[] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                       "#e69f00", "#56b4e9", "#555555", "#8b6914"};
  return colors[index % std::size(colors)];
}

std::string svg_of(Plot plot) {
  std::vector<double> xs, ys;
  bool named = false;
  for (PlotSeries& series : plot.series) {
    std::erase_if(series.points, [&](const PlotPoint& p) {
      return !std::isfinite(p.x) || !std::isfinite(p.y) || (plot.log_x && p.x <= 0) ||
             (plot.log_y && p.y <= 0);
    });
    for (const PlotPoint& point : series.points) {
      xs.push_back(point.x);
      ys.push_back(point.y);
    }
    named = named || !series.name.empty();
  }
  if (xs.empty()) return "";
  const auto [x_low, x_high] = std::ranges::minmax(xs);
  const auto [y_low, y_high] = std::ranges::minmax(ys);
  const double right = plot.width - (named ? kLegend : kRight);
  const Axis x = Axis::over(x_low, x_high, plot.log_x, kLeft, right);
  const Axis y = Axis::over(y_low, y_high, plot.log_y, plot.height - kBottom, kTop);
  std::string svg =
      cat("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", plot.width, " ", plot.height,
          "\" width=\"", plot.width, "\" height=\"", plot.height, "\" role=\"img\" aria-label=\"",
          xml_text(plot.y_title), " against ", xml_text(plot.x_title), "\">\n<style>", kStyle, plot.style,
          "</style>\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n");
  svg += grid(plot, x, y);
  for (const PlotSeries& series : plot.series) svg += drawing(series, x, y);
  if (named) svg += legend(plot, right + 14);
  return svg + "</svg>\n";
}

}  // namespace elf::app

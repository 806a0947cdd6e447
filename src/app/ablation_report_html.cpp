// The report's pictures, and the one page of HTML that holds all.
#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdlib>
#include <map>
#include <set>

#include "ablation_report.h"
#include "elf/base/error.h"
#include "svg_plot.h"

namespace elf::app {
namespace {

// A curve: an arm in the settings of one list.
struct CurveName {
  std::string train, sample;
  auto operator<=>(const CurveName&) const = default;
};

std::vector<CurveName> curves_of(const SweepReport& report) {
  std::vector<CurveName> names;
  for (const ReportPoint& point : report.points) {
    const CurveName name{point.train, point.sample};
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  }
  return names;
}

// As short as it can be and still tell the curves of this report apart.
std::string short_name(const CurveName& name, const std::vector<CurveName>& all) {
  const auto several = [&](auto member) {
    return std::ranges::any_of(all, [&](const CurveName& other) { return other.*member != name.*member; });
  };
  if (!several(&CurveName::sample)) return name.train;
  if (!several(&CurveName::train)) return name.sample;
  return name.train + ", " + name.sample;
}

double number_of(const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  return text.empty() || *end != 0 ? std::nan("") : value;
}

std::string tip_of(const SweepReport& report, const ReportPoint& point) {
  std::string tip = point.train + ", " + point.label;
  for (const std::string& name : {report.figure, report.variety}) {
    if (const RecordFigure* value = report.of(point, name))
      tip += cat(": ", figure_title(name), " ", figure_text(name, *value));
  }
  return tip + (point.red ? ", RED" : "");
}

// A point at (x, y), where these are figures of it or its place on the axis.
std::optional<PlotPoint> plot_point(const SweepReport& report, const ReportPoint& point, const std::string& x,
                                    const std::string& y) {
  PlotPoint plotted;
  const RecordFigure* up = report.of(point, y);
  if (up == nullptr) return std::nullopt;
  const double factor = figure_factor(y);
  plotted.y = factor * up->mean;
  plotted.y_error = factor * up->standard_error.value_or(0);
  if (x.empty()) {
    plotted.x = number_of(point.value);
  } else {
    const RecordFigure* along = report.of(point, x);
    if (along == nullptr) return std::nullopt;
    plotted.x = along->mean;
    plotted.x_error = along->standard_error.value_or(0);
    plotted.label = point.value;
  }
  plotted.tip = tip_of(report, point);
  plotted.kind = point.red ? "red" : "dot";
  return plotted;
}

PlotPoint published_point(const SweepReport& report, const ReportPublished& row, double x) {
  const double factor = figure_factor(report.figure), y = factor * row.figures.at(report.figure);
  PlotPoint point{x, y, 0, 0, "", "", "published"};
  std::string at;
  for (const auto& [key, value] : row.at) at += " " + key + "=" + value;
  point.tip = cat("published: ", row.name.empty() ? row.train : row.name,
                  row.sample.empty() ? "" : " " + row.sample, at, ": ", figure_title(report.figure), " ", y);
  if (const auto error = row.errors.find(report.figure); error != row.errors.end())
    point.y_error = factor * error->second;
  if (!row.name.empty()) point.label = row.name;
  return point;
}

// Published rows with the very figures of ours: those of an arm as a dashed curve in its colour. They lie at
// their variety or, with an axis, at their value of it.
void add_published(const SweepReport& report, const std::string& axis, Plot& plot,
                   const std::vector<CurveName>& names) {
  std::map<CurveName, PlotSeries> series;
  for (const ReportPublished& row : report.published) {
    if (!row.figures.contains(report.figure)) continue;
    if (axis.empty() ? !row.figures.contains(report.variety) : !row.at.contains(axis)) continue;
    const double along = axis.empty() ? row.figures.at(report.variety) : number_of(row.at.at(axis));
    const CurveName name{row.name.empty() ? row.train : "others", row.name.empty() ? row.sample : ""};
    PlotPoint point = published_point(report, row, along);
    const auto error = row.errors.find(report.variety);
    if (axis.empty() && error != row.errors.end()) point.x_error = error->second;
    series[name].points.push_back(point);
  }
  for (auto& [name, one] : series) {
    const auto place = std::ranges::find(names, name);
    one.color = place == names.end() ? "#555555" : series_color(static_cast<size_t>(place - names.begin()));
    one.name = name.train == "others" ? "published" : short_name(name, names) + ", published";
    one.dashed = true;
    one.line = name.train != "others";
    plot.series.push_back(std::move(one));
  }
}

std::string axis_title(const std::string& figure, bool lower_is_better) {
  return figure_title(figure) + (lower_is_better ? " (lower is better)" : " (higher is better)");
}

// Perplexity against entropy, a curve for each arm: lower and further to the right is better.
std::string frontier(const SweepReport& report) {
  const std::vector<CurveName> names = curves_of(report);
  Plot plot{.title = "",
            .x_title = figure_title(report.variety) + " (nats; higher is more varied)",
            .y_title = axis_title(report.figure, report.lower_is_better),
            .log_y = true,
            .width = 900};
  for (size_t i = 0; i < names.size(); ++i) {
    PlotSeries series{.name = short_name(names[i], names), .color = series_color(i)};
    for (const ReportPoint& point : report.points) {
      if (CurveName{point.train, point.sample} != names[i]) continue;
      if (auto plotted = plot_point(report, point, report.variety, report.figure))
        series.points.push_back(std::move(*plotted));
    }
    plot.series.push_back(std::move(series));
  }
  add_published(report, "", plot, names);
  return svg_of(std::move(plot));
}

// A figure along the list of values that the settings have.
std::string along_axis(const SweepReport& report, const std::string& axis, const std::string& figure,
                       bool lower) {
  const std::vector<CurveName> names = curves_of(report);
  Plot plot{.title = "",
            .x_title = axis,
            .y_title = axis_title(figure, lower),
            .log_x = axis == "steps",
            .log_y = figure == "ppl" || figure == "perplexity",
            .width = 900,
            .height = 400};
  for (size_t i = 0; i < names.size(); ++i) {
    PlotSeries series{.name = short_name(names[i], names), .color = series_color(i)};
    for (const ReportPoint& point : report.points) {
      if (CurveName{point.train, point.sample} != names[i] || point.axis != axis) continue;
      if (auto plotted = plot_point(report, point, "", figure)) series.points.push_back(std::move(*plotted));
    }
    std::ranges::sort(series.points, {}, &PlotPoint::x);
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  if (figure == report.figure) add_published(report, axis, plot, names);
  return svg_of(std::move(plot));
}

std::string losses(const SweepReport& report) {
  Plot plot{.title = "",
            .x_title = "optimiser steps",
            .y_title = "loss: training (thin, dashed), held out (full)",
            .width = 900,
            .height = 400};
  std::vector<std::string> arms;
  for (const ReportRun& run : report.runs) {
    if (std::ranges::find(arms, run.train) == arms.end()) arms.push_back(run.train);
    const size_t arm = static_cast<size_t>(std::ranges::find(arms, run.train) - arms.begin());
    const auto add = [&](const auto& curve, bool held_out) {
      PlotSeries series{.name = held_out ? run.name : "",
                        .color = series_color(arm),
                        .dashed = !held_out,
                        .marks = held_out};
      for (const auto& [step, loss] : curve)
        series.points.push_back(
            {.x = step, .y = loss, .tip = cat(run.name, ", step ", step, ": ", fixed(loss, 4))});
      if (!series.points.empty()) plot.series.push_back(std::move(series));
    };
    add(run.loss, false);
    add(run.valid_loss, true);
  }
  return svg_of(std::move(plot));
}

std::string html_table(const std::vector<std::vector<std::string>>& rows) {
  std::string html = "<table>\n";
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool red = rows[i].back() == "RED";
    html += red ? "<tr class=\"red-row\">" : "<tr>";
    for (const std::string& cell : rows[i])
      html += cat(i == 0 ? "<th>" : "<td>", xml_text(cell), i == 0 ? "</th>" : "</td>");
    html += "</tr>\n";
  }
  return html + "</table>\n";
}

std::string bounds_text(const SweepReport& report) {
  const auto &above = report.score.at("red_above"), &below = report.score.at("red_below");
  std::string text;
  if (above.is_number()) text += cat(figure_title(report.figure), " above ", above.get<double>());
  if (below.is_number())
    text += cat(text.empty() ? "" : " or ", figure_title(report.variety), " below ", below.get<double>());
  return text.empty() ? "" : "Red: " + text + ". ";
}

std::string section(const SweepReport& report) {
  const std::string source = report.about.at("source"), verdict = report.about.at("verdict");
  std::string html = cat("<section id=\"", xml_text(report.name), "\">\n<h2>",
                         xml_text(report.title.empty() ? report.name : report.title), "</h2>\n");
  if (!source.empty() || !verdict.empty())
    html += cat("<p>", source.empty() ? "" : "Published: " + xml_text(source) + ". ",
                verdict.empty() ? "" : "The paper's verdict: " + xml_text(verdict) + ".", "</p>\n");
  if (!report.differences.empty())
    html += cat("<p class=\"differs\">What differs here: ", xml_text(report.differences), ".</p>\n");
  if (!report.verdicts.empty()) {
    html += "<ul class=\"verdicts\">\n";
    for (const ReportVerdict& one : report.verdicts)
      html += cat("<li>", xml_text(one.better), " better than ", xml_text(one.than), ": <b class=\"",
                  one.outcome == "confirmed"       ? "yes"
                  : one.outcome == "not confirmed" ? "no"
                                                   : "open",
                  "\">", one.outcome, "</b> (", xml_text(one.words), ")</li>\n");
    html += "</ul>\n";
  }
  for (const ReportPicture& picture : report_pictures(report))
    html += cat("<figure>", picture.svg, "<figcaption>", xml_text(picture.title), "</figcaption></figure>\n");
  html += html_table(report_table(report));
  html += cat("<p class=\"note\">", xml_text(bounds_text(report)),
              "± is a standard error: over seeds of training "
              "where there are several, else over seeds of sampling.</p>\n");
  return html + html_table(runs_table(report)) + "</section>\n";
}

constexpr const char* kPageStyle =
    "body{font-family:sans-serif;margin:2em auto;max-width:72em;padding:0 1em;color:#222;line-height:1.4}"
    "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2.5em;border-top:1px solid #ccc;padding-top:1em}"
    "table{border-collapse:collapse;margin:1em 0;font-size:.9em}th,td{padding:.25em .7em;text-align:right;"
    "border-bottom:1px solid "
    "#e4e4e4}th:first-child,td:first-child,th:nth-child(2),td:nth-child(2){text-align:left}"
    ".red-row td{color:#c62828}figure{margin:1em "
    "0}figcaption{font-size:.85em;color:#555}svg{max-width:100%;height:auto}"
    ".differs,.note{font-size:.9em;color:#555}.yes{color:#00705a}.no{color:#c62828}.open{color:#8a5a00}"
    "nav{font-size:.9em;columns:2}";

}  // namespace

std::vector<ReportPicture> report_pictures(const SweepReport& report) {
  std::vector<ReportPicture> pictures;
  const auto add = [&](const std::string& name, const std::string& title, std::string svg) {
    if (!svg.empty()) pictures.push_back({name, title, std::move(svg)});
  };
  if (!report.variety.empty())
    add("frontier",
        cat(figure_title(report.figure), " against ", figure_title(report.variety),
            "; hollow squares: published; red rings: red points"),
        frontier(report));
  std::map<std::string, std::set<std::string>> axes;
  for (const ReportPoint& point : report.points) {
    if (!std::isnan(number_of(point.value))) axes[point.axis].insert(point.value);
  }
  for (const auto& [axis, values] : axes) {
    // Of the guidance scale the frontier says it all, where there is one.
    if (values.size() < 2 || (axis == "sc-cfg" && !report.variety.empty())) continue;
    add(axis + "-" + report.figure, cat(figure_title(report.figure), " over ", axis),
        along_axis(report, axis, report.figure, report.lower_is_better));
    if (!report.variety.empty())
      add(axis + "-" + report.variety, cat(figure_title(report.variety), " over ", axis),
          along_axis(report, axis, report.variety, false));
  }
  add("loss", "Loss while training", losses(report));
  return pictures;
}

std::string report_html(const std::vector<SweepReport>& reports) {
  std::string html =
      cat("<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
          "<meta name=\"viewport\" content=\"width=device-width\"><title>Ablations</title><style>",
          kPageStyle, "</style></head>\n<body>\n<h1>Ablations</h1>\n<nav><ul>\n");
  for (const SweepReport& report : reports)
    html += cat("<li><a href=\"#", xml_text(report.name), "\">",
                xml_text(report.title.empty() ? report.name : report.title), "</a></li>\n");
  html += "</ul></nav>\n";
  for (const SweepReport& report : reports) html += section(report);
  return html + "</body></html>\n";
}

}  // namespace elf::app

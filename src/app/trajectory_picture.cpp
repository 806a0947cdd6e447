#include "trajectory_picture.h"

#include <algorithm>
#include <map>

#include "elf/base/error.h"
#include "elf/base/json.h"
#include "eval_common.h"
#include "svg_plot.h"

namespace elf::app {
namespace {

using Json = nlohmann::ordered_json;
using Steps = std::vector<const Json*>;

constexpr size_t kMostSamples = 3, kMostLines = 12;
constexpr int kLine = 24, kLeft = 70, kMargin = 20;  // pixels
constexpr double kLetter = 9.2;                      // of 17-pixel serifs, widely reckoned

// Text as XML; bytes that are no UTF-8 are replaced.
std::string clean(const Json& text) {
  const std::string quoted = text.dump(-1, ' ', false, Json::error_handler_t::replace);
  return xml_text(parse_json_or_throw(quoted).get<std::string>());
}

// Evenly taken, the first and the last among them.
Steps some_of(const Steps& steps) {
  if (steps.size() <= kMostLines) return steps;
  Steps chosen;
  for (size_t i = 0; i < kMostLines; ++i) chosen.push_back(steps[i * (steps.size() - 1) / (kMostLines - 1)]);
  return chosen;
}

std::string line_of(const Json& step, int y) {
  std::string svg =
      cat("<text class=\"t\" x=\"", kLeft - 14, "\" y=\"", y, "\">", fixed(step.at("t").get<double>(), 2),
          "</text><text xml:space=\"preserve\" x=\"", kLeft, "\" y=\"", y, "\">");
  for (const Json& token : step.at("tokens")) {
    // Never quite invisible.
    const double shade = 0.12 + 0.88 * std::clamp(token.at("confidence").get<double>(), 0.0, 1.0);
    svg += cat("<tspan fill-opacity=\"", fixed(shade, 2), "\">", clean(token.at("text")), "</tspan>");
  }
  return svg + "</text>\n";
}

size_t letters_of(const Json& step) {
  size_t letters = 0;
  for (const Json& token : step.at("tokens"))
    letters += token.at("text").get_ref<const std::string&>().size();
  return letters;
}

}  // namespace

std::string trajectory_picture(const std::vector<Json>& steps, const std::string& caption) {
  std::map<int64_t, Steps> samples;
  for (const Json& step : steps) samples[step.at("index").get<int64_t>()].push_back(&step);
  std::string lines;
  int y = kMargin;
  size_t letters = caption.size() * 2 / 3, shown = 0;
  for (const auto& [index, all] : samples) {
    if (++shown > kMostSamples) break;
    for (const Json* step : some_of(all)) {
      lines += line_of(*step, y += kLine);
      letters = std::max(letters, letters_of(*step));
    }
    y += kLine;
  }
  const int width = kLeft + 2 * kMargin + static_cast<int>(kLetter * static_cast<double>(letters));
  const int height = y + 2 * kMargin;
  return cat(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 ", width, " ", height, "\" width=\"", width,
      "\" height=\"", height,
      "\" role=\"img\" aria-label=\"From noise to text\">\n<style>"
      "text { font: 17px Georgia, 'DejaVu Serif', serif; fill: #1c1c1e } "
      ".t, .caption { font: 13px system-ui, sans-serif; fill: #77726a } .t { text-anchor: end }</style>\n"
      "<rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"#fbfaf7\"/>\n",
      lines, "<text class=\"caption\" x=\"", kLeft, "\" y=\"", y + kMargin / 2, "\">", clean(Json(caption)),
      "</text>\n</svg>\n");
}

}  // namespace elf::app

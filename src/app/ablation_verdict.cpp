// What a sweep says about a verdict of the paper, and in what its setting is not the paper's.
#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <sstream>

#include "ablation_report.h"
#include "elf/base/error.h"

namespace elf::app {
namespace {

// An arm's curve in one family of settings: figure by variety, red points left out.
using Curve = std::map<double, double>;

Curve curve_of(const SweepReport& report, const std::string& train, const std::string& sample) {
  Curve curve;
  for (const ReportPoint& point : report.points) {
    const RecordFigure* figure = report.of(point, report.figure);
    const RecordFigure* variety = report.of(point, report.variety);
    if (point.train == train && point.sample == sample && !point.red && figure != nullptr &&
        variety != nullptr && figure->mean > 0)
      curve[variety->mean] = figure->mean;
  }
  return curve;
}

// Logarithm of the figure at a variety inside the curve, by straight lines.
double log_at(const Curve& curve, double variety) {
  auto above = curve.lower_bound(variety);
  if (above == curve.end()) --above;
  if (above == curve.begin()) return std::log(above->second);
  const auto below = std::prev(above);
  const double share = (variety - below->first) / (above->first - below->first);
  return (1 - share) * std::log(below->second) + share * std::log(above->second);
}

// The figure of `a` in terms of that of `b` at equal variety: the geometric mean over the varieties that both
// curves reach. NaN where they have none in common.
double ratio_at_equal_variety(const Curve& a, const Curve& b) {
  if (a.size() < 2 || b.size() < 2) return std::nan("");
  const double low = std::max(a.begin()->first, b.begin()->first),
               high = std::min(a.rbegin()->first, b.rbegin()->first);
  if (!(high > low)) return std::nan("");
  constexpr int kPoints = 21;
  double sum = 0;
  for (int i = 0; i < kPoints; ++i) {
    const double variety = low + (high - low) * i / (kPoints - 1);
    sum += log_at(a, variety) - log_at(b, variety);
  }
  return std::exp(sum / kPoints);
}

struct Wins {
  int64_t better = 0, all = 0;
  int64_t red_better = 0, red_than = 0;  // red points of either arm
};

// At how many of the settings that both arms have is `better` the better one? A red point is worse than any
// other, whatever its figure; two red ones say nothing.
Wins count_wins(const SweepReport& report, const std::string& better, const std::string& than) {
  Wins wins;
  for (const ReportPoint& a : report.points) {
    if (a.train != better) continue;
    for (const ReportPoint& b : report.points) {
      if (b.train != than || b.label != a.label || a.figures.empty() || b.figures.empty()) continue;
      wins.red_better += a.red;
      wins.red_than += b.red;
      if (a.red && b.red) continue;
      const RecordFigure *x = report.of(a, report.figure), *y = report.of(b, report.figure);
      ++wins.all;
      if (a.red != b.red) {
        wins.better += b.red;
      } else {
        wins.better += report.lower_is_better ? x->mean < y->mean : x->mean > y->mean;
      }
    }
  }
  return wins;
}

std::string plain(const std::string& text) {
  std::string out;
  for (const unsigned char c : text) {
    if (std::isalnum(c) != 0) out += static_cast<char>(std::tolower(c));
  }
  return out;
}

std::string count_text(double value) {
  std::ostringstream text;
  text.precision(3);
  if (value >= 1e9) {
    text << value / 1e9 << " billion";
  } else if (value >= 1e6) {
    text << value / 1e6 << " million";
  } else {
    text << std::llround(value);
  }
  return text.str();
}

std::string our_scorer(const SweepReport& report) {
  const auto& s = report.score;
  const std::filesystem::path text = s.at("text").get<std::string>(),
                              scorer = s.at("scorer").get<std::string>(),
                              data = s.at("data").get<std::string>();
  if (s.at("by") == "ngram")
    return cat("a ", s.at("order").dump(), "-gram model of ", text.filename().string());
  if (s.at("by") == "gpt2") return scorer.filename().string();
  return "references of " + data.filename().string();
}

}  // namespace

ReportVerdict judge(const SweepReport& report, const std::string& better, const std::string& than) {
  ReportVerdict verdict{better, than, "not known yet", "records are missing"};
  const Wins wins = count_wins(report, better, than);
  if (wins.all == 0 && wins.red_than == 0) return verdict;
  verdict.words = cat(report.lower_is_better ? "lower " : "higher ", figure_title(report.figure), " in ",
                      wins.better, " of ", wins.all, " settings");
  for (const auto& [arm, red] : {std::pair(better, wins.red_better), std::pair(than, wins.red_than)})
    if (red > 0) verdict.words += cat("; ", red, " points of ", arm, " are red");
  verdict.outcome = "undecided";
  if (wins.all == 0) return verdict;
  std::set<std::string> families;
  for (const ReportPoint& point : report.points) families.insert(point.sample);
  double sum = 0;
  int64_t compared = 0;
  for (const std::string& family : families) {
    if (report.variety.empty()) break;
    const double ratio =
        ratio_at_equal_variety(curve_of(report, better, family), curve_of(report, than, family));
    if (std::isnan(ratio)) continue;
    verdict.words += cat("; at equal ", figure_title(report.variety), " ", fixed(ratio, 2), " times that of ",
                         than, " (", family, ")");
    sum += std::log(ratio);
    ++compared;
  }
  // Perplexity is bought with entropy: where curves can be compared at equal entropy, they decide.
  const double share = static_cast<double>(wins.better) / static_cast<double>(wins.all);
  const double score = compared > 0 ? -sum / static_cast<double>(compared) / 0.02 : (share - 0.5) / 0.17;
  verdict.outcome = score > 1 ? "confirmed" : score < -1 ? "not confirmed" : "undecided";
  return verdict;
}

std::string differences_of(const SweepReport& report) {
  std::vector<std::string> parts;
  const auto& paper = report.about;
  std::set<std::string> data;
  double least = 0, most = 0;
  for (const ReportRun& run : report.runs) {
    if (run.steps == 0) continue;
    const std::filesystem::path file = run.data;  // the reader's machine has other folders
    data.insert((file.parent_path().filename() / file.filename()).string());
    least = least == 0 ? run.tokens : std::min(least, run.tokens);
    most = std::max(most, run.tokens);
  }
  if (!data.empty() && !paper.at("data").get<std::string>().empty()) {
    std::string files;
    for (const std::string& file : data) files += (files.empty() ? "" : ", ") + file;
    parts.push_back(cat("trained on ", files, " (published: ", paper.at("data").get<std::string>(), ")"));
  }
  const auto tokens = paper.at("tokens").get<double>();
  if (most > 0 && tokens > 0 && (least < 0.98 * tokens || most > 1.02 * tokens)) {
    parts.push_back(cat(count_text(least), least < most ? cat(" to ", count_text(most)) : "",
                        " tokens seen (published: ", count_text(tokens), ")"));
  }
  const std::string scorer = paper.at("scorer").get<std::string>(), ours = our_scorer(report);
  if (!scorer.empty() && plain(scorer) != plain(ours))
    parts.push_back(cat("scored by ", ours, " (published: ", scorer, ")"));
  const auto samples = paper.at("samples").get<int64_t>();
  if (samples > 0 && samples != report.score.at("samples").get<int64_t>())
    parts.push_back(cat(report.score.at("samples").dump(), " samples a point (published: ", samples, ")"));
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : "; ") + part;
  return text;
}

}  // namespace elf::app

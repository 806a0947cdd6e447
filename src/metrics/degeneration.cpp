#include "elf/metrics/degeneration.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "elf/base/error.h"

namespace elf {
namespace {

std::string rounded(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.2f", value);
  return buffer;
}

// What the entropies could at most be, in the mean over texts that are not blank.
double mean_ceiling(const std::vector<std::vector<int32_t>>& texts) {
  double sum = 0, spoken = 0;
  for (const std::vector<int32_t>& text : texts) {
    if (text.empty()) continue;
    sum += std::log(static_cast<double>(text.size()));
    ++spoken;
  }
  return spoken > 0 ? sum / spoken : 0.0;
}

}  // namespace

std::vector<std::string> degeneration(const Diversity& figures,
                                      const std::vector<std::vector<int32_t>>& texts,
                                      const DegenerationBounds& bounds) {
  std::vector<std::string> reasons;
  if (figures.samples > 0 && figures.samples == figures.blank) return {"every text is blank"};
  const double floor = std::min(bounds.entropy_floor, bounds.entropy_share * mean_ceiling(texts));
  if (figures.entropy < floor)
    reasons.push_back(cat("entropy ", rounded(figures.entropy), " is below ", rounded(floor)));
  if (figures.rep4 > bounds.rep4)
    reasons.push_back(cat("rep-4 ", rounded(figures.rep4), " is above ", rounded(bounds.rep4)));
  return reasons;
}

}  // namespace elf

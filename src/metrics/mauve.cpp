#include "elf/metrics/mauve.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr int kPoints = 25;     // of the curve, its two ends aside
constexpr double kEdge = 1e-6;  // the mixtures nearest to the two sides
constexpr double kFrontierScale = 2;

using Shares = std::vector<double>;
using Curve = std::vector<std::pair<double, double>>;

Shares normalized(Shares counts, double added) {
  for (double& count : counts) count += added;
  const double sum = std::accumulate(counts.begin(), counts.end(), 0.0);
  for (double& count : counts) count /= sum;
  return counts;
}

// r is positive wherever p is.
double divergence(const Shares& p, const Shares& r) {
  double sum = 0;
  for (size_t i = 0; i < p.size(); ++i) sum += p[i] > 0 ? p[i] * std::log(p[i] / r[i]) : 0.0;
  return sum;
}

double area_under(Curve curve) {
  // Of equal x the higher y first: the curve goes down, and ends on the axis.
  std::sort(curve.begin(), curve.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  double area = 0;
  for (size_t i = 1; i < curve.size(); ++i)
    area += 0.5 * (curve[i].second + curve[i - 1].second) * (curve[i].first - curve[i - 1].first);
  return area;
}

double mauve(const Shares& p, const Shares& q, double scaling) {
  Curve curve = {{1, 0}};
  for (int i = 0; i < kPoints; ++i) {
    const double w = kEdge + (1 - 2 * kEdge) * i / (kPoints - 1);
    Shares mixture(p.size());
    for (size_t k = 0; k < p.size(); ++k) mixture[k] = w * p[k] + (1 - w) * q[k];
    curve.emplace_back(std::exp(-scaling * divergence(q, mixture)),
                       std::exp(-scaling * divergence(p, mixture)));
  }
  curve.emplace_back(0, 1);
  Curve turned;
  for (const auto& [x, y] : curve) turned.emplace_back(y, x);
  return 0.5 * (area_under(curve) + area_under(turned));
}

double frontier_integral(const Shares& p, const Shares& q) {
  double total = 0;
  for (size_t i = 0; i < p.size(); ++i) {
    if (p[i] == 0 || q[i] == 0) {
      total += (p[i] + q[i]) / 4;
    } else if (std::abs(p[i] - q[i]) > 1e-8) {
      total += (p[i] + q[i]) / 4 - 0.5 * p[i] * q[i] * std::log(p[i] / q[i]) / (p[i] - q[i]);
    }
  }
  return kFrontierScale * total;
}

}  // namespace

MauveScore mauve_of_counts(const std::vector<double>& p_counts, const std::vector<double>& q_counts,
                           double scaling) {
  const auto has_any = [](const Shares& counts) {
    return std::any_of(counts.begin(), counts.end(), [](double count) { return count > 0; });
  };
  if (p_counts.size() != q_counts.size() || !has_any(p_counts) || !has_any(q_counts))
    usage_error("MAUVE: expected two histograms over the same bins, neither empty; found ", p_counts.size(),
                " and ", q_counts.size(), " bins");
  const Shares p = normalized(p_counts, 0), q = normalized(q_counts, 0);
  return {mauve(p, q, scaling), mauve(normalized(p_counts, 0.5), normalized(q_counts, 0.5), scaling),
          frontier_integral(p, q)};
}

}  // namespace elf

// MAUVE (Pillutla et al. 2021) of two histograms over the same bins: how far two sets of texts are apart, in
// both directions at once. 1: equal; towards 0: nothing in common.
//
// The curve {(exp(-c KL(q | r)), exp(-c KL(p | r))) : r = w p + (1 - w) q, 0 < w < 1} and the area under it.
#pragma once

#include <vector>

namespace elf {

constexpr double kMauveScaling = 5;  // c of the package mauve-text

struct MauveScore {
  double mauve = 0;              // of the histograms as they are
  double mauve_star = 0;         // with half a count added to every bin (Pillutla et al. 2023)
  double frontier_integral = 0;  // 0: equal, 1: nothing in common
};

// Counts of the bins, of each set; both as long, neither all zero. Throws Error (usage).
MauveScore mauve_of_counts(const std::vector<double>& p_counts, const std::vector<double>& q_counts,
                           double scaling = kMauveScaling);

}  // namespace elf

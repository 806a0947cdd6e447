// chrF and chrF++ as sacreBLEU 2.6.0 computes them (Popović 2015, 2017): the F score of character n-grams
// (orders 1 to char_order, white space left out) and word n-grams (orders 1 to word_order), figures 0 to 100.
//
//   chrF = (1 + beta^2) P R / (beta^2 P + R),  P and R: means over the orders that both sides have
//
// Of several references each segment takes the one of the highest score. chrF2 is the default; chrF2++ has
// word_order = 2.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "elf/metrics/references.h"
#include "elf/metrics/resampling.h"

namespace elf {

struct ChrfOptions {
  int char_order = 6;  // 1 to 6
  int word_order = 0;  // 0 to 4
  int beta = 2;        // recall counts beta times as much as precision; from 0
  bool lowercase = false;
  bool whitespace = false;     // white space is part of the character n-grams
  bool eps_smoothing = false;  // a mean of the orders' F scores over all orders, as chrF++.py
};

struct ChrfScore {
  double score = 0;
  std::string name;       // "chrF2", "chrF2++"
  std::string signature;  // sacreBLEU's, but for the version field
};

// Throws Error (usage): options out of range; unequal counts, or a segment without any reference.
ChrfScore corpus_chrf(const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references, const ChrfOptions& options = {});

std::string chrf_name(const ChrfOptions& options);
std::string chrf_signature(const std::vector<ReferenceStream>& references, const ChrfOptions& options);

// For resampling, and for scores of single segments.
CorpusStatistics chrf_statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<ReferenceStream>& references,
                                 const ChrfOptions& options = {});

}  // namespace elf

// What BLEU, chrF and TER share: walking over hypotheses with their references, and the end of a signature.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "elf/metrics/references.h"

namespace elf {

struct Segment {
  std::string_view hypothesis;
  std::vector<std::string_view> references;  // those present, at least one
};

// Throws Error (usage): no hypothesis, no stream, a stream of another length, a segment without any
// reference.
void for_each_segment(const char* metric, const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references,
                      const std::function<void(const Segment&)>& f);

// "|version:...": the field in which a signature differs from sacreBLEU's.
std::string signature_version();

}  // namespace elf

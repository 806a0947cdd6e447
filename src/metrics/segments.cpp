#include "segments.h"

#include <set>

#include "elf/base/error.h"
#include "elf/version.h"

namespace elf {

std::string reference_count(const std::vector<ReferenceStream>& references) {
  std::set<size_t> counts;
  for (size_t i = 0; !references.empty() && i < references.front().size(); ++i) {
    size_t count = 0;
    for (const ReferenceStream& stream : references) count += stream.at(i).has_value();
    counts.insert(count);
  }
  return counts.size() == 1 ? std::to_string(*counts.begin()) : "var";
}

void for_each_segment(const char* metric, const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references,
                      const std::function<void(const Segment&)>& f) {
  if (hypotheses.empty()) usage_error(metric, ": there is no hypothesis");
  if (references.empty()) usage_error(metric, ": there is no reference");
  for (size_t stream = 0; stream < references.size(); ++stream) {
    if (references[stream].size() != hypotheses.size()) {
      usage_error(metric, ": ", hypotheses.size(), " hypotheses, but ", references[stream].size(),
                  " references in stream ", stream + 1);
    }
  }
  for (size_t i = 0; i < hypotheses.size(); ++i) {
    Segment segment{hypotheses[i], {}};
    for (const ReferenceStream& stream : references) {
      if (stream[i]) segment.references.push_back(*stream[i]);
    }
    if (segment.references.empty()) usage_error(metric, ": segment ", i + 1, " has no reference");
    f(segment);
  }
}

std::string signature_version() {
  return cat("|version:elf-", ELF_VERSION, "-as-sacrebleu-2.6.0");
}

}  // namespace elf

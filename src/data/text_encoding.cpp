#include "text_encoding.h"

#include <algorithm>
#include <sstream>

#include "elf/text/unicode.h"

namespace elf {
namespace {

constexpr size_t kMostUncovered = 200'000;  // distinct stretches that are counted: memory stays flat
constexpr size_t kShownUncovered = 5;

EncodedText encode_text(const std::string& text, const SentencePieceTokenizer& tokenizer) {
  EncodedText result;
  result.line_breaks = text.find('\n') != std::string::npos || text.find('\r') != std::string::npos;
  if (result.line_breaks) {
    std::string line = text;
    for (char& c : line) c = c == '\n' || c == '\r' ? ' ' : c;
    result.ids = tokenizer.encode(line, /*add_eos=*/false, &result.unknown);
  } else {
    result.ids = tokenizer.encode(text, /*add_eos=*/false, &result.unknown);
  }
  result.comes_back = tokenizer.decodes_to(result.ids, text);
  return result;
}

}  // namespace

void encode_record(EncodedRecord& record, const SentencePieceTokenizer& tokenizer) {
  for (const std::string& text : record.texts) record.encoded.push_back(encode_text(text, tokenizer));
}

ColumnCounter::ColumnCounter(std::string name, const SentencePieceTokenizer& tokenizer)
    : unk_id_(tokenizer.unk_id()), words_(tokenizer.model_type() == "word") {
  counts_.name = std::move(name);
}

void ColumnCounter::add(const EncodedText& text) {
  const auto count = static_cast<int64_t>(text.ids.size());
  ++counts_.texts;
  counts_.tokens += count;
  counts_.longest = std::max(counts_.longest, count);
  counts_.round_trips += text.comes_back;
  counts_.unknown += std::count(text.ids.begin(), text.ids.end(), unk_id_);
  const auto note = [&](std::string thing) {
    if (const auto found = uncovered_.find(thing); found != uncovered_.end()) {
      ++found->second;
    } else if (uncovered_.size() < kMostUncovered) {
      uncovered_.emplace(std::move(thing), 1);
    }
  };
  for (const std::string& stretch : text.unknown) {
    if (!words_) {
      for (const std::string_view character : characters(stretch)) note(std::string(character));
      continue;
    }
    std::istringstream words(stretch);
    for (std::string word; words >> word;) note(word);
  }
}

ColumnReport ColumnCounter::report() const {
  ColumnReport report = counts_;
  report.uncovered.assign(uncovered_.begin(), uncovered_.end());
  std::stable_sort(report.uncovered.begin(), report.uncovered.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  if (report.uncovered.size() > kShownUncovered) report.uncovered.resize(kShownUncovered);
  return report;
}

}  // namespace elf

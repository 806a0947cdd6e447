#include "text_encoding.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <sstream>
#include <thread>

#include "elf/text/unicode.h"

namespace elf {
namespace {

constexpr size_t kMostUncovered = 200'000;  // distinct stretches that are counted: memory stays flat
constexpr size_t kShownUncovered = 5;

EncodedText encode_text(const std::string& text, const SentencePieceTokenizer& tokenizer) {
  EncodedText result;
  std::string line = text;
  for (char& c : line) {
    if (c != '\n' && c != '\r') continue;
    c = ' ';
    result.line_breaks = true;
  }
  result.ids = tokenizer.encode(line);
  result.comes_back = tokenizer.decode(result.ids) == text;
  if (std::find(result.ids.begin(), result.ids.end(), tokenizer.unk_id()) != result.ids.end()) {
    result.unknown = tokenizer.unknown_stretches(line);
  }
  return result;
}

}  // namespace

void encode_records(std::vector<EncodedRecord>& records, const SentencePieceTokenizer& tokenizer,
                    int threads) {
  const size_t wanted =
      threads > 0 ? static_cast<size_t>(threads) : std::max(1u, std::thread::hardware_concurrency());
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(std::min(wanted, std::max<size_t>(1, records.size())));
  const auto work = [&](std::exception_ptr& failure) {
    try {
      for (size_t i; (i = next++) < records.size();) {
        for (const std::string& text : records[i].texts)
          records[i].encoded.push_back(encode_text(text, tokenizer));
      }
    } catch (...) {
      failure = std::current_exception();
    }
  };
  std::vector<std::thread> others;
  for (size_t t = 1; t < failures.size(); ++t) others.emplace_back(work, std::ref(failures[t]));
  work(failures[0]);
  for (std::thread& thread : others) thread.join();
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
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

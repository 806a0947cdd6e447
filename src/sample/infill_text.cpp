#include "elf/sample/infill_text.h"

#include <charconv>

#include "elf/base/error.h"

namespace elf {
namespace {

constexpr std::string_view kMark = "<gap";
constexpr std::string_view kWordStart = "\u2581";

// "3" or "2-5" of <gap:...>.
Gap parse_lengths(std::string_view text, std::string_view mark, std::string_view place) {
  const auto number = [&](std::string_view digits) {
    int64_t value = 0;
    const auto [stop, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (code != std::errc{} || stop != digits.data() + digits.size() || value < 1 || value > 1 << 20)
      usage_error(place, ": found the mark '", mark, "', expected <gap>, <gap:3> or <gap:2-5>");
    return value;
  };
  const size_t dash = text.find('-');
  if (dash == std::string_view::npos) return {number(text), number(text)};
  const Gap gap{number(text.substr(0, dash)), number(text.substr(dash + 1))};
  if (gap.least > gap.most) usage_error(place, ": the mark '", mark, "' has its larger length first");
  return gap;
}

// Ids of a known stretch. Behind a gap and without a blank its first piece must not start a word.
std::vector<int64_t> stretch_ids(const std::string& text, bool goes_on,
                                 const SentencePieceTokenizer& tokenizer) {
  const std::vector<int32_t> found = tokenizer.encode_plain(text);
  std::vector<int64_t> ids(found.begin(), found.end());
  if (!goes_on || ids.empty() || text.front() == ' ') return ids;
  const std::string first = tokenizer.piece(ids.front());
  if (!first.starts_with(kWordStart)) return ids;
  const std::string rest = first.substr(kWordStart.size());
  if (rest.empty()) {
    ids.erase(ids.begin());
  } else if (const int32_t id = tokenizer.id_of(rest); id != tokenizer.unk_id()) {
    ids.front() = id;
  }
  return ids;
}

bool ends_in_blank(const std::string& text) {
  return text.empty() || text.back() == ' ' || text.back() == '\t';
}

}  // namespace

InfillText parse_infill(std::string_view text, const SentencePieceTokenizer& tokenizer, int64_t free_most,
                        std::string_view place) {
  InfillText result;
  bool last_is_free = false;
  const auto add_stretch = [&](std::string_view stretch) {
    result.text.emplace_back(stretch);
    result.known.push_back(stretch_ids(result.text.back(), !result.gaps.empty(), tokenizer));
  };
  size_t begin = 0;
  for (size_t at; (at = text.find(kMark, begin)) != std::string_view::npos;) {
    const size_t end = text.find('>', at);
    const std::string_view mark = text.substr(at, end == std::string_view::npos ? end : end + 1 - at);
    const std::string_view inside = mark.substr(kMark.size(), mark.size() - kMark.size() - 1);
    if (mark.back() != '>' || (!inside.empty() && inside.front() != ':'))
      usage_error(place, ": found the mark '", mark.substr(0, 40), "', expected <gap>, <gap:3> or <gap:2-5>");
    add_stretch(text.substr(begin, at - begin));
    last_is_free = inside.empty();
    result.gaps.push_back(last_is_free ? Gap{1, free_most} : parse_lengths(inside.substr(1), mark, place));
    begin = end + 1;
  }
  add_stretch(text.substr(begin));
  result.open_end = last_is_free && result.known.back().empty();
  return result;
}

std::string render_infill(const InfillText& text, const std::vector<std::vector<int64_t>>& fills,
                          const SentencePieceTokenizer& tokenizer) {
  std::string result = text.text.front();
  for (size_t i = 0; i < text.gaps.size(); ++i) {
    const std::string fill = tokenizer.decode(fills[i]);
    const bool starts_word = !fills[i].empty() && tokenizer.piece(fills[i].front()).starts_with(kWordStart);
    if (starts_word && !ends_in_blank(result)) result += ' ';
    result += fill;
    const std::string& next = text.text[i + 1];
    const bool two_blanks = result.ends_with(' ') && next.starts_with(' ');
    result += two_blanks ? next.substr(1) : next;
  }
  while (text.open_end && result.ends_with(' ')) result.pop_back();
  return result;
}

}  // namespace elf

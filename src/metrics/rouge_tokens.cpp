#include "rouge_tokens.h"

#include <unicode/brkiter.h>
#include <unicode/utext.h>
#include <unicode/uversion.h>

#include <algorithm>
#include <memory>

#include "elf/base/error.h"
#include "elf/text/porter_stemmer.h"
#include "elf/text/words.h"

namespace elf {
namespace {

bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

void for_each_plain_word(std::string_view text, const std::function<void(std::string_view)>& f) {
  for (size_t begin = 0; begin < text.size();) {
    if (!is_plain(text[begin])) {
      ++begin;
      continue;
    }
    size_t end = begin + 1;
    while (end < text.size() && is_plain(text[end])) ++end;
    f(text.substr(begin, end - begin));
    begin = end;
  }
}

// Calls f(piece, status) for the pieces between the boundaries that ICU finds in UTF-8 text.
void for_each_piece(icu::BreakIterator& iterator, std::string_view text,
                    const std::function<void(std::string_view, int32_t)>& f) {
  UErrorCode status = U_ZERO_ERROR;
  UText* opened = utext_openUTF8(nullptr, text.data(), static_cast<int64_t>(text.size()), &status);
  const std::unique_ptr<UText, UText* (*)(UText*)> view(opened, utext_close);
  iterator.setText(view.get(), status);
  if (U_FAILURE(status)) environment_error("ICU cannot read a text: ", u_errorName(status));
  for (int32_t begin = iterator.first(), end = iterator.next(); end != icu::BreakIterator::DONE;
       begin = end, end = iterator.next()) {
    f(text.substr(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), iterator.getRuleStatus());
  }
}

using MakeIterator = icu::BreakIterator* (*)(const icu::Locale&, UErrorCode&);

std::unique_ptr<icu::BreakIterator> make_iterator(MakeIterator make) {
  UErrorCode status = U_ZERO_ERROR;
  std::unique_ptr<icu::BreakIterator> iterator(make(icu::Locale::getRoot(), status));
  if (U_FAILURE(status)) environment_error("ICU has no rules for boundaries: ", u_errorName(status));
  return iterator;
}

void for_each_unicode_word(std::string_view text, const std::function<void(std::string_view)>& f) {
  thread_local const std::unique_ptr<icu::BreakIterator> words =
      make_iterator(icu::BreakIterator::createWordInstance);
  for_each_piece(*words, text, [&](std::string_view piece, int32_t status) {
    if (status >= UBRK_WORD_NONE_LIMIT) f(piece);  // the rest: blanks and punctuation
  });
}

}  // namespace

void for_each_rouge_word(std::string_view text, RougeTokenizer tokenizer,
                         const std::function<void(std::string_view)>& f) {
  const std::string lower = lowercase(text);
  if (tokenizer == RougeTokenizer::kUnicode) {
    for_each_unicode_word(lower, f);
  } else {
    for_each_plain_word(lower, f);
  }
}

std::string rouge_form(std::string_view word, const RougeOptions& options) {
  const bool stem = options.stemmer && word.size() > 3 && std::all_of(word.begin(), word.end(), is_plain);
  return stem ? porter_stem(std::string(word)) : std::string(word);
}

std::vector<std::string_view> split_sentences(std::string_view line) {
  thread_local const std::unique_ptr<icu::BreakIterator> sentences =
      make_iterator(icu::BreakIterator::createSentenceInstance);
  std::vector<std::string_view> pieces;
  for_each_piece(*sentences, line, [&](std::string_view piece, int32_t) { pieces.push_back(piece); });
  return pieces;
}

RougeTokenizer parse_rouge_tokenizer(std::string_view name) {
  if (name == "default") return RougeTokenizer::kDefault;
  if (name == "unicode") return RougeTokenizer::kUnicode;
  usage_error("ROUGE tokenizer: \"", name, "\" is not one of default, unicode");
}

std::string rouge_tokenizer_name(RougeTokenizer tokenizer) {
  return tokenizer == RougeTokenizer::kUnicode ? "unicode (ICU " U_ICU_VERSION " words)" : "default";
}

std::vector<std::string> rouge_tokens(std::string_view text, const RougeOptions& options) {
  std::vector<std::string> tokens;
  for_each_rouge_word(text, options.tokenizer,
                      [&](std::string_view word) { tokens.push_back(rouge_form(word, options)); });
  return tokens;
}

}  // namespace elf

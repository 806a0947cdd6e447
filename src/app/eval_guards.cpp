#include "eval_guards.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/metrics/text_checks.h"

namespace elf::app {
namespace {

constexpr int64_t kManyTokenizedPeriods = 100;  // as sacreBLEU
constexpr double kMuchCjk = 0.3;

void warn_about_cjk(const Texts& hypotheses, const std::vector<Texts>& references) {
  double share = cjk_share(hypotheses.records);
  for (const Texts& texts : references) share = std::max(share, cjk_share(texts.records));
  if (share <= kMuchCjk) return;
  log_warning(
      cat(percent(share),
          " of the characters are Chinese, Japanese or Korean, which the tokenizer 13a does not split; "
          "use --tokenize zh or char"));
}

void warn_about_tabs(const Texts& references) {
  const auto& records = references.records;
  const auto with_tab = std::find_if(records.begin(), records.end(), [](const std::string& text) {
    return text.find('\t') != std::string::npos;
  });
  if (with_tab == records.end()) return;
  log_warning(cat(references.file, ":", with_tab - records.begin() + 1,
                  ": holds a tab, but is read as one reference a line; several references go into one "
                  "file each: --ref A --ref B"));
}

}  // namespace

void warn_about_translations(const Texts& hypotheses, const std::vector<Texts>& references,
                             const std::string& tokenizer) {
  const int64_t tokenized = count_tokenized_periods(hypotheses.records);
  if (tokenized >= kManyTokenizedPeriods) {
    log_warning(
        cat(hypotheses.file, ": ", tokenized,
            " texts end in a blank and a full stop; they look tokenized already, which changes the score. "
            "Score detokenized text (--force silences this)"));
  }
  if (tokenizer == "13a") warn_about_cjk(hypotheses, references);
  if (references.size() == 1) warn_about_tabs(references[0]);
  for (const Texts& texts : references) warn_about_references(texts);
}

void warn_about_references(const Texts& references) {
  if (const int64_t unknown = count_unknown_marks(references.records); unknown > 0) {
    log_warning(
        cat(references.file, ": ", unknown,
            " references hold U+2047, SentencePiece's mark of an unknown token: they were decoded from "
            "token ids. References must be the raw text"));
  }
  if (const CutTexts cut = cut_texts(references.records); cut.suspicious) {
    log_warning(
        cat(references.file, ": ", cut.count, " of ", references.records.size(), " references have exactly ",
            cut.words,
            " words, and none has more: they look cut at a maximal length. References must be the whole "
            "text"));
  }
}

void warn_about_trailing_space(const Texts& texts, const std::string& effect) {
  const int64_t count = count_trailing_space(texts.records);
  if (count > 0) log_warning(cat(texts.file, ": ", count, " texts end in white space; ", effect));
}

}  // namespace elf::app

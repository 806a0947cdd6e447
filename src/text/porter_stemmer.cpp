#include "elf/text/porter_stemmer.h"

#include <algorithm>
#include <array>
#include <functional>
#include <initializer_list>
#include <utility>

#include "elf/text/words.h"

namespace elf {
namespace {

// A stem is what is left of the word when the suffix is off; conditions look at it only.
using Condition = bool (*)(std::string_view stem);

struct Rule {
  std::string_view suffix, replacement;
  Condition condition;
};

bool is_vowel_letter(char c) {
  return c == 'a' || c == 'e' || c == 'i' || c == 'o' || c == 'u';
}

// y is a consonant at the start and after a vowel: in a run of y the two alternate.
bool is_consonant(std::string_view word, size_t i) {
  bool flip = false;
  while (i > 0 && word[i] == 'y') {
    flip = !flip;
    --i;
  }
  return is_vowel_letter(word[i]) == flip;
}

// The m of [C](VC){m}[V]: how often a vowel is followed by a consonant.
int measure(std::string_view stem) {
  int changes = 0;
  bool after_vowel = false, consonant = false;
  for (size_t i = 0; i < stem.size(); ++i) {
    consonant = stem[i] == 'y' ? (i == 0 || !consonant) : !is_vowel_letter(stem[i]);
    changes += after_vowel && consonant;
    after_vowel = !consonant;
  }
  return changes;
}

bool positive_measure(std::string_view stem) {
  return measure(stem) > 0;
}
bool measure_above_one(std::string_view stem) {
  return measure(stem) > 1;
}
bool always(std::string_view) {
  return true;
}

bool has_vowel(std::string_view stem) {
  for (size_t i = 0; i < stem.size(); ++i) {
    if (!is_consonant(stem, i)) return true;
  }
  return false;
}

bool ends_with_double_consonant(std::string_view word) {
  const size_t n = word.size();
  return n >= 2 && word[n - 1] == word[n - 2] && is_consonant(word, n - 1);
}

// *o: consonant, vowel, consonant other than w, x, y at the end; or a word that is just vowel and consonant.
bool ends_cvc(std::string_view word) {
  const size_t n = word.size();
  if (n == 2) return !is_consonant(word, 0) && is_consonant(word, 1);
  if (n < 3) return false;
  const char last = word[n - 1];
  return is_consonant(word, n - 3) && !is_consonant(word, n - 2) && is_consonant(word, n - 1) &&
         last != 'w' && last != 'x' && last != 'y';
}

bool ends_with(std::string_view word, std::string_view suffix) {
  return word.size() >= suffix.size() && word.substr(word.size() - suffix.size()) == suffix;
}

std::string_view without(std::string_view word, std::string_view suffix) {
  return word.substr(0, word.size() - suffix.size());
}

std::string join(std::string_view stem, std::string_view ending) {
  return std::string(stem).append(ending);
}

// The first rule whose suffix fits decides, also when its condition then fails.
std::string apply_first(const std::string& word, std::initializer_list<Rule> rules) {
  for (const Rule& rule : rules) {
    if (!ends_with(word, rule.suffix)) continue;
    const std::string_view stem = without(word, rule.suffix);
    return rule.condition(stem) ? join(stem, rule.replacement) : word;
  }
  return word;
}

std::string strip_plural(const std::string& word) {
  if (word.size() == 4 && ends_with(word, "ies")) return join(without(word, "ies"), "ie");
  return apply_first(word,
                     {{"sses", "ss", always}, {"ies", "i", always}, {"ss", "ss", always}, {"s", "", always}});
}

// What follows once -ed or -ing is off: an e comes back, or a doubled consonant loses one.
std::string repair(const std::string& stem) {
  for (const std::string_view ending : {"at", "bl", "iz"}) {
    if (ends_with(stem, ending)) return stem + "e";
  }
  if (ends_with_double_consonant(stem)) {
    const char last = stem.back();
    return last == 'l' || last == 's' || last == 'z' ? stem : stem.substr(0, stem.size() - 1);
  }
  return measure(stem) == 1 && ends_cvc(stem) ? stem + "e" : stem;
}

std::string strip_past_and_gerund(const std::string& word) {
  if (ends_with(word, "ied")) return join(without(word, "ied"), word.size() == 4 ? "ie" : "i");
  if (ends_with(word, "eed"))
    return positive_measure(without(word, "eed")) ? join(without(word, "d"), "") : word;
  for (const std::string_view suffix : {"ed", "ing"}) {
    if (ends_with(word, suffix) && has_vowel(without(word, suffix)))
      return repair(std::string(without(word, suffix)));
  }
  return word;
}

std::string y_to_i(const std::string& word) {
  return apply_first(word, {{"y", "i", [](std::string_view stem) {
                               return stem.size() > 1 && is_consonant(stem, stem.size() - 1);
                             }}});
}

std::string shorten_double_suffix(const std::string& word) {
  if (ends_with(word, "alli") && positive_measure(without(word, "alli")))
    return shorten_double_suffix(join(without(word, "li"), ""));
  constexpr Condition m = positive_measure;
  return apply_first(word,
                     {{"ational", "ate", m},
                      {"tional", "tion", m},
                      {"enci", "ence", m},
                      {"anci", "ance", m},
                      {"izer", "ize", m},
                      {"bli", "ble", m},
                      {"alli", "al", m},
                      {"entli", "ent", m},
                      {"eli", "e", m},
                      {"ousli", "ous", m},
                      {"ization", "ize", m},
                      {"ation", "ate", m},
                      {"ator", "ate", m},
                      {"alism", "al", m},
                      {"iveness", "ive", m},
                      {"fulness", "ful", m},
                      {"ousness", "ous", m},
                      {"aliti", "al", m},
                      {"iviti", "ive", m},
                      {"biliti", "ble", m},
                      {"fulli", "ful", m},
                      // The l of -logi belongs to the stem, so that "geologi" has a measure.
                      {"logi", "log", [](std::string_view stem) { return measure(join(stem, "l")) > 0; }}});
}

std::string strip_ic_ful_ness(const std::string& word) {
  constexpr Condition m = positive_measure;
  return apply_first(word, {{"icate", "ic", m},
                            {"ative", "", m},
                            {"alize", "al", m},
                            {"iciti", "ic", m},
                            {"ical", "ic", m},
                            {"ful", "", m},
                            {"ness", "", m}});
}

std::string strip_last_suffix(const std::string& word) {
  constexpr Condition m = measure_above_one;
  const Condition ion = [](std::string_view stem) {
    return measure(stem) > 1 && (stem.back() == 's' || stem.back() == 't');
  };
  return apply_first(word, {{"al", "", m},
                            {"ance", "", m},
                            {"ence", "", m},
                            {"er", "", m},
                            {"ic", "", m},
                            {"able", "", m},
                            {"ible", "", m},
                            {"ant", "", m},
                            {"ement", "", m},
                            {"ment", "", m},
                            {"ent", "", m},
                            {"ion", "", ion},
                            {"ou", "", m},
                            {"ism", "", m},
                            {"ate", "", m},
                            {"iti", "", m},
                            {"ous", "", m},
                            {"ive", "", m},
                            {"ize", "", m}});
}

std::string strip_final_e(const std::string& word) {
  return apply_first(word, {{"e", "", [](std::string_view stem) {
                               return measure(stem) > 1 || (measure(stem) == 1 && !ends_cvc(stem));
                             }}});
}

std::string single_final_l(const std::string& word) {
  return apply_first(word, {{"ll", "l", [](std::string_view stem) { return measure(join(stem, "l")) > 1; }}});
}

// Words that the rules get wrong, with their stems.
constexpr std::array<std::pair<std::string_view, std::string_view>, 16> kIrregular = {{
    {"sky", "sky"},
    {"skies", "sky"},
    {"dying", "die"},
    {"lying", "lie"},
    {"tying", "tie"},
    {"news", "news"},
    {"innings", "inning"},
    {"inning", "inning"},
    {"outings", "outing"},
    {"outing", "outing"},
    {"cannings", "canning"},
    {"canning", "canning"},
    {"howe", "howe"},
    {"proceed", "proceed"},
    {"exceed", "exceed"},
    {"succeed", "succeed"},
}};

}  // namespace

std::string porter_stem(std::string_view word) {
  std::string stem = lowercase(word);
  for (const auto& [form, irregular_stem] : kIrregular) {
    if (stem == form) return std::string(irregular_stem);
  }
  if (stem.size() <= 2) return stem;
  for (const auto step : {strip_plural, strip_past_and_gerund, y_to_i, shorten_double_suffix,
                          strip_ic_ful_ness, strip_last_suffix, strip_final_e, single_final_l}) {
    stem = step(stem);
  }
  return stem;
}

}  // namespace elf

#include "elf/metrics/chrf.h"

#include <algorithm>

#include "elf/base/error.h"
#include "elf/text/unicode.h"
#include "elf/text/words.h"
#include "ngrams.h"
#include "segments.h"

namespace elf {
namespace {

constexpr double kEpsilon = 1e-16;  // sacreBLEU's
constexpr int kMaxCharOrder = 6;    // six code points of 21 bits fill the 128 bits of an Ngram

// A segment's text ready for counting.
struct Prepared {
  std::u32string characters;
  std::vector<int32_t> words;
};

Ngram pack(const char32_t* characters, int n) {
  std::array<uint64_t, 2> halves = {};
  for (int i = 0; i < n; ++i) halves[i / 3] = halves[i / 3] << 21 | (characters[i] + 1);
  Ngram ngram;
  for (int i = 0; i < 4; ++i) ngram[i] = static_cast<int32_t>(halves[i / 2] >> 32 * (i % 2));
  return ngram;
}

bool is_punctuation_mark(std::string_view character) {
  constexpr std::string_view kMarks = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
  return character.size() == 1 && kMarks.find(character) != std::string_view::npos;
}

// A mark at the end of a word is a word of its own, else one at its start.
void append_words(std::string_view word, std::vector<std::string_view>& words) {
  const std::vector<std::string_view> letters = characters(word);
  if (letters.size() > 1 && is_punctuation_mark(letters.back())) {
    words.push_back(word.substr(0, word.size() - 1));
    words.push_back(letters.back());
  } else if (letters.size() > 1 && is_punctuation_mark(letters.front())) {
    words.push_back(letters.front());
    words.push_back(word.substr(1));
  } else {
    words.push_back(word);
  }
}

// F score of [hypothesis, reference, matched] of each order.
double f_score(const std::vector<double>& numbers, const ChrfOptions& options) {
  const int orders = options.char_order + options.word_order;
  const double factor = static_cast<double>(options.beta) * options.beta;
  double precision = 0, recall = 0, smoothed = 0;
  int effective = 0;
  for (int i = 0; i < orders; ++i) {
    const double in_hypothesis = numbers[3 * i], in_reference = numbers[3 * i + 1],
                 matched = numbers[3 * i + 2];
    const double p = in_hypothesis > 0 ? matched / in_hypothesis : kEpsilon;
    const double r = in_reference > 0 ? matched / in_reference : kEpsilon;
    const double denominator = factor * p + r;
    smoothed += denominator > 0 ? (1 + factor) * p * r / denominator : kEpsilon;
    if (in_hypothesis > 0 && in_reference > 0) {
      precision += p;
      recall += r;
      ++effective;
    }
  }
  if (options.eps_smoothing) return 100 * smoothed / orders;
  if (effective == 0 || precision + recall == 0) return 0;
  precision /= effective;
  recall /= effective;
  return 100 * (1 + factor) * precision * recall / (factor * precision + recall);
}

class SegmentCounter {
 public:
  explicit SegmentCounter(const ChrfOptions& options) : options_(options) {}

  std::vector<double> count(const Segment& segment) {
    const Prepared hypothesis = prepare(segment.hypothesis);
    std::vector<double> best;
    double best_score = -1;
    for (const std::string_view reference : segment.references) {
      std::vector<double> numbers = compare(hypothesis, prepare(reference));
      const double score = f_score(numbers, options_);
      if (score > best_score) {
        best_score = score;
        best = std::move(numbers);
      }
    }
    return best;
  }

 private:
  Prepared prepare(std::string_view segment) {
    const std::string text = options_.lowercase ? lowercase(segment) : std::string(segment);
    const std::vector<std::string_view> found = split_words(text);
    Prepared prepared;
    if (options_.whitespace) {
      prepared.characters = decode_utf8(text);
    } else {
      for (const std::string_view word : found) prepared.characters += decode_utf8(word);
    }
    if (options_.word_order > 0) {
      std::vector<std::string_view> words;
      for (const std::string_view word : found) append_words(word, words);
      prepared.words = numbers_.number(words);
    }
    return prepared;
  }

  std::vector<double> compare(const Prepared& hypothesis, const Prepared& reference) {
    std::vector<double> numbers;
    for (int n = 1; n <= options_.char_order; ++n) {
      add(numbers, hypothesis.characters.size(), reference.characters.size(), n,
          [&](bool of_reference, auto f) {
            const std::u32string& text = of_reference ? reference.characters : hypothesis.characters;
            for (size_t i = 0; i + n <= text.size(); ++i) f(pack(text.data() + i, n));
          });
    }
    for (int n = 1; n <= options_.word_order; ++n) {
      add(numbers, hypothesis.words.size(), reference.words.size(), n, [&](bool of_reference, auto f) {
        for_each_ngram(of_reference ? reference.words : hypothesis.words, n, f);
      });
    }
    return numbers;
  }

  // An order's three numbers. for_each(of_reference, f) calls f for each n-gram of one side.
  template <class ForEach>
  void add(std::vector<double>& numbers, size_t hypothesis_length, size_t reference_length, int n,
           ForEach for_each) {
    const auto ngrams = [n](size_t length) {
      return std::max<double>(0, static_cast<double>(length) - n + 1);
    };
    table_.clear();
    for_each(true, [&](const Ngram& ngram) { ++table_[ngram]; });
    double matched = 0;
    for_each(false, [&](const Ngram& ngram) {
      int64_t* left = table_.find(ngram);
      if (left == nullptr || *left == 0) return;
      --*left;
      ++matched;
    });
    const double in_reference = ngrams(reference_length);
    numbers.insert(numbers.end(),
                   {in_reference > 0 ? ngrams(hypothesis_length) : 0.0, in_reference, matched});
  }

  const ChrfOptions& options_;
  WordNumbers numbers_;
  NgramTable table_;
};

void check(const ChrfOptions& options) {
  const auto within = [](const char* name, int value, int low, int high) {
    if (value < low || value > high)
      usage_error("chrF: ", name, ": found ", value, ", expected ", low, " to ", high);
  };
  within("character order", options.char_order, 1, kMaxCharOrder);
  within("word order", options.word_order, 0, kMaxNgram);
  within("beta", options.beta, 0, 1000);
}

}  // namespace

CorpusStatistics chrf_statistics(const std::vector<std::string>& hypotheses,
                                 const std::vector<ReferenceStream>& references, const ChrfOptions& options) {
  check(options);
  SegmentCounter counter(options);
  CorpusStatistics statistics;
  statistics.score = [options](const std::vector<double>& sums) { return f_score(sums, options); };
  for_each_segment("chrF", hypotheses, references,
                   [&](const Segment& segment) { statistics.segments.push_back(counter.count(segment)); });
  return statistics;
}

std::string chrf_name(const ChrfOptions& options) {
  return cat("chrF", options.beta, std::string(static_cast<size_t>(options.word_order), '+'));
}

std::string chrf_signature(const std::vector<ReferenceStream>& references, const ChrfOptions& options) {
  return cat("nrefs:", reference_count(references), "|case:", options.lowercase ? "lc" : "mixed",
             "|eff:", options.eps_smoothing ? "no" : "yes", "|nc:", options.char_order,
             "|nw:", options.word_order, "|space:", options.whitespace ? "yes" : "no", signature_version());
}

ChrfScore corpus_chrf(const std::vector<std::string>& hypotheses,
                      const std::vector<ReferenceStream>& references, const ChrfOptions& options) {
  return {chrf_statistics(hypotheses, references, options).corpus_score(), chrf_name(options),
          chrf_signature(references, options)};
}

}  // namespace elf

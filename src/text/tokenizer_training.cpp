#include "elf/text/tokenizer_training.h"

#include <sentencepiece_trainer.h>

#include <algorithm>
#include <optional>
#include <queue>
#include <unordered_map>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/progress.h"
#include "elf/text/unicode.h"

namespace elf {
namespace {

struct Sampled {
  std::string key;  // pseudo-random, of the record's number: the smallest keys are kept
  int64_t number;
  std::string text;
  bool operator<(const Sampled& other) const { return key < other.key; }
};

// An even sample of at most `limit` (0 = all) non-empty records, in their order.
std::vector<std::string> sample_records(const TokenizerTraining& training, TrainingCounts& counts) {
  RecordReader reader(training.source);
  std::optional<Progress> progress;
  if (reader.bytes_total() > (int64_t{64} << 20)) progress.emplace("read", reader.bytes_total() >> 20, "MiB");
  std::priority_queue<Sampled> kept;  // the largest key on top
  std::vector<std::string> texts;
  for (Record record; reader.next(record);) {
    ++counts.records_read;
    if (record.bad || is_blank(record.columns.at(0))) {
      ++counts.skipped;
      continue;
    }
    if (training.max_records == 0) {
      texts.push_back(std::move(record.columns[0]));
    } else {
      const auto limit = static_cast<size_t>(training.max_records);
      std::string key = digest(cat("record ", counts.records_read));
      if (kept.size() == limit && key >= kept.top().key) continue;
      if (kept.size() == limit) kept.pop();
      kept.push({std::move(key), counts.records_read, std::move(record.columns[0])});
    }
    if (progress && counts.records_read % 1024 == 0) progress->update(reader.bytes_read() >> 20);
  }
  progress.reset();
  if (training.max_records != 0) {
    std::vector<Sampled> sorted;
    for (; !kept.empty(); kept.pop()) sorted.push_back(kept.top());
    std::sort(sorted.begin(), sorted.end(),
              [](const Sampled& a, const Sampled& b) { return a.number < b.number; });
    for (Sampled& sampled : sorted) texts.push_back(std::move(sampled.text));
  }
  return texts;
}

class Sentences : public sentencepiece::SentenceIterator {
 public:
  explicit Sentences(const std::vector<std::string>& texts) : texts_(texts) {}
  bool done() const override { return at_ == texts_.size(); }
  void Next() override { ++at_; }
  const std::string& value() const override { return texts_[at_]; }
  sentencepiece::util::Status status() const override { return {}; }

 private:
  const std::vector<std::string>& texts_;
  size_t at_ = 0;
};

std::unordered_map<std::string, std::string> trainer_arguments(const TokenizerTraining& t) {
  const auto flag = [](bool value) { return std::string(value ? "true" : "false"); };
  const bool character = t.model_type == "char", whole = character || t.model_type == "word";
  const double coverage = t.character_coverage > 0 ? t.character_coverage : whole ? 1.0 : 0.9995;
  const std::string normalization = !t.normalization.empty() ? t.normalization
                                    : whole                  ? "identity"
                                                             : "nmt_nfkc";
  return {
      {"model_type", t.model_type},
      {"vocab_size", std::to_string(t.vocab_size)},
      {"pad_id", "0"},
      {"eos_id", "1"},
      {"unk_id", "2"},
      {"bos_id", "-1"},
      {"character_coverage", std::to_string(coverage)},
      {"hard_vocab_limit", flag(!t.soft_vocab_limit && !whole)},
      {"byte_fallback", flag(t.byte_fallback)},
      {"normalization_rule_name", normalization},
      {"add_dummy_prefix", flag(t.add_dummy_prefix.value_or(!character))},
      {"remove_extra_whitespaces", flag(!t.keep_extra_spaces.value_or(character))},
      {"max_sentence_length", "1000000000"},  // no line is silently left out
      {"num_threads", "16"},                  // part of the result: sums are made thread by thread
      {"minloglevel", "2"},
  };
}

void check(const TokenizerTraining& t) {
  const auto one_of = [](const std::string& value, std::initializer_list<const char*> names) {
    return std::any_of(names.begin(), names.end(), [&](const char* name) { return value == name; });
  };
  if (!one_of(t.model_type, {"unigram", "bpe", "word", "char"})) {
    usage_error("model type '", t.model_type, "' is not one of unigram, bpe, word, char");
  }
  if (!one_of(t.normalization, {"", "nmt_nfkc", "nfkc", "nmt_nfkc_cf", "nfkc_cf", "identity"})) {
    usage_error("normalization '", t.normalization,
                "' is not one of nmt_nfkc, nfkc, nmt_nfkc_cf, nfkc_cf, identity");
  }
  if (t.vocab_size < 4 || t.vocab_size > 10'000'000)
    usage_error("vocabulary size ", t.vocab_size, " is not in [4, 10000000]");
  if (t.extra_ids < 0 || t.extra_ids > 100'000)
    usage_error("extra ids ", t.extra_ids, " are not in [0, 100000]");
  if (!(t.character_coverage >= 0 && t.character_coverage <= 1)) {
    usage_error("character coverage ", t.character_coverage, " is not in (0, 1]");
  }
}

}  // namespace

TrainedTokenizer train_tokenizer(const TokenizerTraining& training) {
  check(training);
  TrainingCounts counts;
  const std::vector<std::string> texts = sample_records(training, counts);
  if (texts.empty())
    usage_error("no text to train a tokenizer on: ", counts.records_read, " records read, all blank");
  counts.records_used = static_cast<int64_t>(texts.size());
  Sentences sentences(texts);
  std::string model;
  const auto status =
      sentencepiece::SentencePieceTrainer::Train(trainer_arguments(training), &sentences, &model);
  if (!status.ok()) {
    // SentencePiece puts its source line and the failed condition before the message.
    const std::string message = status.error_message();
    const size_t end = message.rfind("] ");
    usage_error("a ", training.model_type, " tokenizer cannot be trained with ", training.vocab_size,
                " pieces on ", texts.size(),
                " records: ", end == std::string::npos ? message : message.substr(end + 2),
                message.find("too high") == std::string::npos
                    ? ""
                    : " Or give --soft-vocab-limit, which takes as many as there are.");
  }
  return {SentencePieceTokenizer::from_bytes(model, training.extra_ids, "the trained model"), counts};
}

}  // namespace elf

#include "elf/metrics/ngram_lm.h"

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/text/words.h"

namespace elf {
namespace {

constexpr int kMaxOrder = 6;
// For an order whose counts of counts do not tell (a tiny text, or one that repeats itself).
constexpr std::array<double, 3> kFallbackDiscounts = {0.5, 1.0, 1.5};

uint64_t key(uint32_t node, NgramModel::Word word) {
  return (static_cast<uint64_t>(node) << 32) | word;
}

// D_k = k - (k + 1) Y n_{k+1} / n_k,  Y = n1 / (n1 + 2 n2);  n_k: n-grams of this order with count k.
std::array<double, 3> discounts_from(const std::array<int64_t, 4>& counts_of_counts) {
  std::array<double, 4> n;
  std::copy(counts_of_counts.begin(), counts_of_counts.end(), n.begin());
  if (n[0] == 0 || n[1] == 0 || n[2] == 0) return kFallbackDiscounts;
  const double y = n[0] / (n[0] + 2 * n[1]);
  std::array<double, 3> discounts;
  for (int k = 1; k <= 3; ++k) {
    discounts[k - 1] = k - (k + 1) * y * n[k] / n[k - 1];
    if (discounts[k - 1] <= 0 || discounts[k - 1] > k) return kFallbackDiscounts;
  }
  return discounts;
}

}  // namespace

NgramModel::NgramModel(const std::vector<std::string>& texts, int order) : order_(order) {
  if (order < 1 || order > kMaxOrder)
    usage_error("n-gram model: order ", order, " is not between 1 and ", kMaxOrder);
  nodes_.emplace_back();
  for (const std::string& text : texts) {
    std::vector<Word> ids = {kBegin};
    for (const std::string_view part : split_words(text)) {
      ids.push_back(words_.try_emplace(std::string(part), static_cast<Word>(words_.size()) + kUnknown + 1)
                        .first->second);
    }
    if (ids.size() == 1) continue;
    ids.push_back(kEnd);
    count_text(ids);
  }
  if (words_.empty()) usage_error("n-gram model: no training text holds a word");
  estimate_discounts();
}

NgramModel::Word NgramModel::word(std::string_view text) const {
  const auto found = words_.find(std::string(text));
  return found == words_.end() ? kUnknown : found->second;
}

uint32_t NgramModel::child(uint32_t node, Word word) const {
  const auto found = children_.find(key(node, word));
  return found == children_.end() ? 0 : found->second;
}

uint32_t NgramModel::child_or_new(uint32_t node, Word word, uint32_t suffix) {
  const auto [entry, is_new] = children_.try_emplace(key(node, word), static_cast<uint32_t>(nodes_.size()));
  if (is_new) {
    Node created;
    created.parent = node;
    created.suffix = suffix;
    created.length = static_cast<uint8_t>(nodes_[node].length + 1);
    created.at_begin = node == 0 ? word == kBegin : nodes_[node].at_begin;
    // A new n-gram is a new word in front of its suffix.
    if (suffix != 0 && !nodes_[suffix].at_begin) ++nodes_[suffix].count;
    nodes_.push_back(created);
  }
  return entry->second;
}

// Every n-gram that ends at each place, shortest first: the suffix of the next longer one exists then.
// ends[k] is the n-gram of length k that ended at the place before.
void NgramModel::count_text(const std::vector<Word>& text) {
  std::vector<uint32_t> ends = {0, child_or_new(0, kBegin, 0)};
  for (size_t i = 1; i < text.size(); ++i) {
    std::vector<uint32_t> next = {0};
    for (size_t length = 1; length <= std::min<size_t>(ends.size(), order_); ++length) {
      const uint32_t node = child_or_new(ends[length - 1], text[i], next[length - 1]);
      // Continuations are counted where longer n-grams are made; those that nothing can stand in front of
      // count occurrences.
      if (static_cast<int>(length) == order_ || nodes_[node].at_begin) ++nodes_[node].count;
      next.push_back(node);
    }
    ends = std::move(next);
  }
}

void NgramModel::estimate_discounts() {
  std::vector<std::array<int64_t, 4>> counts_of_counts(order_);
  for (size_t i = 1; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (node.count == 0) continue;  // the begin of text, which is no prediction
    if (node.count <= 4) ++counts_of_counts[node.length - 1][node.count - 1];
    Node& history = nodes_[node.parent];
    history.total += node.count;
    ++history.followers[std::min<int64_t>(node.count, 3) - 1];
  }
  for (const auto& counts : counts_of_counts) discounts_.push_back(discounts_from(counts));
}

double NgramModel::probability(const std::vector<Word>& history, Word next) const {
  // The longest end of the history that training has seen followed by something.
  const size_t longest = std::min<size_t>(history.size(), order_ - 1);
  uint32_t node = 0;
  for (size_t start = history.size() - longest; start < history.size(); ++start) {
    for (size_t i = start; i < history.size() && (i == start || node != 0); ++i)
      node = child(i == start ? 0 : node, history[i]);
    if (node != 0 && nodes_[node].total > 0) break;
    node = 0;
  }
  double result = 0, weight = 1;  // weight: what the longer histories leave to this one
  while (true) {
    const Node& h = nodes_[node];
    const int length = h.length + 1;
    if (const uint32_t seen = child(node, next); seen != 0 && nodes_[seen].count > 0) {
      result += weight * (static_cast<double>(nodes_[seen].count) - discount(length, nodes_[seen].count)) /
                static_cast<double>(h.total);
    }
    double left = 0;
    for (int k = 1; k <= 3; ++k) left += discount(length, k) * static_cast<double>(h.followers[k - 1]);
    weight *= left / static_cast<double>(h.total);
    if (node == 0) return result + weight / static_cast<double>(vocabulary_size());
    node = h.suffix;
  }
}

Perplexity perplexity(const NgramModel& model, const std::vector<std::string>& texts) {
  Perplexity result;
  double log_sum = 0;
  int64_t unknown = 0;
  for (const std::string& text : texts) {
    const std::vector<std::string_view> words = split_words(text);
    if (words.empty()) {
      ++result.blank;
      continue;
    }
    ++result.texts;
    std::vector<NgramModel::Word> history = {NgramModel::kBegin};
    const auto add = [&](NgramModel::Word word) {
      log_sum += std::log(model.probability(history, word));
      history.push_back(word);
      ++result.tokens;
    };
    for (const std::string_view word : words) {
      add(model.word(word));
      unknown += history.back() == NgramModel::kUnknown;
    }
    add(NgramModel::kEnd);
  }
  if (result.tokens == 0) usage_error("n-gram perplexity: no text holds a word");
  result.perplexity = std::exp(-log_sum / static_cast<double>(result.tokens));
  result.oov_rate = static_cast<double>(unknown) / static_cast<double>(result.tokens - result.texts);
  return result;
}

}  // namespace elf

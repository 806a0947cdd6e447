#include "elf/eval/gen_ppl.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "elf/base/error.h"
#include "elf/text/unicode.h"

namespace elf {
namespace {

// One prediction: the features at row `place` of the text's input give `target`, which counts `weight` times.
struct Prediction {
  int64_t place, target;
  double weight;
};

// What the network reads for a text, and what of its predictions counts.
struct Plan {
  std::vector<int64_t> input;
  std::vector<Prediction> predictions;
};

double entropy_of(const std::vector<int32_t>& ids) {
  std::map<int32_t, double> counts;
  for (const int32_t id : ids) ++counts[id];
  double entropy = 0;
  for (const auto& [id, count] : counts) {
    const double share = count / static_cast<double>(ids.size());
    entropy -= share * std::log(share + 1e-10);
  }
  return entropy;
}

// `padded`: the set has longer texts.
Plan plan_published(const std::vector<int32_t>& ids, int32_t end, bool padded) {
  Plan plan;
  plan.input.assign(ids.begin(), ids.end());
  std::vector<int64_t> all = plan.input;
  if (padded) all.push_back(end);
  int64_t ends = 0;  // up to and including this token
  for (size_t i = 0; i < all.size(); ++i) {
    ends += all[i] == end;
    const double weight = (all[i] != end) + (ends == 1);
    if (i > 0 && weight > 0) plan.predictions.push_back({static_cast<int64_t>(i) - 1, all[i], weight});
  }
  return plan;
}

Plan plan_clean(const ScoredText& text, int32_t end, bool bos) {
  Plan plan;
  if (bos) plan.input.push_back(end);
  plan.input.insert(plan.input.end(), text.ids.begin(), text.ids.end());
  for (size_t i = 1; i < plan.input.size(); ++i)
    plan.predictions.push_back({static_cast<int64_t>(i) - 1, plan.input[i], 1.0});
  if (!text.cut) plan.predictions.push_back({static_cast<int64_t>(plan.input.size()) - 1, end, 1.0});
  return plan;
}

// Sums of the batch's predictions into the texts. Rows are padded at the right, where nothing looks.
void score_batch(const Gpt2& scorer, const std::vector<Plan>& plans, const std::vector<size_t>& batch,
                 int32_t pad, std::vector<ScoredText>& texts) {
  size_t length = 0, predictions = 0;
  for (const size_t text : batch) {
    length = std::max(length, plans[text].input.size());
    predictions += plans[text].predictions.size();
  }
  if (predictions == 0) return;
  at::Tensor ids =
      at::full({static_cast<int64_t>(batch.size()), static_cast<int64_t>(length)}, int64_t{pad}, at::kLong);
  at::Tensor places = at::empty({static_cast<int64_t>(predictions)}, at::kLong),
             targets = at::empty_like(places);
  int64_t next = 0;
  for (size_t row = 0; row < batch.size(); ++row) {
    const Plan& plan = plans[batch[row]];
    std::copy(plan.input.begin(), plan.input.end(), ids.data_ptr<int64_t>() + row * length);
    for (const Prediction& prediction : plan.predictions) {
      places.data_ptr<int64_t>()[next] = static_cast<int64_t>(row * length) + prediction.place;
      targets.data_ptr<int64_t>()[next++] = prediction.target;
    }
  }
  const at::Tensor features = scorer.forward(ids).flatten(0, 1).index_select(0, places.to(scorer.device()));
  const at::Tensor nll =
      scorer.nll(features, targets.to(scorer.device())).to(at::kCPU, at::kDouble).contiguous();
  const double* value = nll.data_ptr<double>();
  for (const size_t text : batch) {
    for (const Prediction& prediction : plans[text].predictions) {
      texts[text].nll += prediction.weight * *value++;
      texts[text].tokens += prediction.weight;
    }
  }
}

void check(const Gpt2& scorer, const Gpt2Tokenizer& tokenizer, const GenPplOptions& options) {
  if (options.max_tokens < 2 || options.max_tokens > scorer.config().positions) {
    usage_error("Gen. PPL: found ", options.max_tokens, " tokens of a text at most, expected 2 to ",
                scorer.config().positions, ", the scorer's positions");
  }
  if (tokenizer.size() > scorer.config().vocab_size) {
    usage_error("Gen. PPL: the tokenizer has ", tokenizer.size(), " tokens, the scorer only ",
                scorer.config().vocab_size);
  }
  if (options.bos && options.protocol == GenPplProtocol::kPublished)
    usage_error(
        "Gen. PPL: the published protocol puts nothing before a text; a first token needs the clean one");
  if (options.batch_size < 1)
    usage_error("Gen. PPL: found a batch of ", options.batch_size, ", expected 1 or more");
}

}  // namespace

GenPplProtocol parse_gen_ppl_protocol(const std::string& name) {
  if (name == "published") return GenPplProtocol::kPublished;
  if (name == "clean") return GenPplProtocol::kClean;
  usage_error("protocol '", name, "' is not one of published, clean");
}

std::string gen_ppl_protocol_name(GenPplProtocol protocol) {
  return protocol == GenPplProtocol::kPublished ? "published" : "clean";
}

double GenPpl::perplexity() const {
  return tokens > 0 ? std::exp(nll / tokens) : std::numeric_limits<double>::quiet_NaN();
}

double GenPpl::mean_entropy() const {
  double sum = 0;
  for (const ScoredText& text : texts) sum += text.entropy;
  return texts.empty() ? 0.0 : sum / static_cast<double>(texts.size());
}

GenPpl gen_ppl(const Gpt2& scorer, const Gpt2Tokenizer& tokenizer, const std::vector<std::string>& texts,
               const GenPplOptions& options) {
  check(scorer, tokenizer, options);
  GenPpl result;
  result.samples = static_cast<int64_t>(texts.size());
  const auto room = static_cast<size_t>(options.max_tokens - (options.bos ? 1 : 0));
  size_t longest = 0;
  for (size_t i = 0; i < texts.size(); ++i) {
    if (is_blank(texts[i])) {
      ++result.blank;
      continue;
    }
    ScoredText text{i, tokenizer.encode(texts[i])};
    text.cut = text.ids.size() > room;
    if (text.cut) text.ids.resize(room);
    text.entropy = entropy_of(text.ids);
    result.cut += text.cut;
    longest = std::max(longest, text.ids.size());
    result.texts.push_back(std::move(text));
  }

  const int32_t end = tokenizer.end_of_text();
  std::vector<Plan> plans;
  for (const ScoredText& text : result.texts) {
    plans.push_back(options.protocol == GenPplProtocol::kPublished
                        ? plan_published(text.ids, end, text.ids.size() < longest)
                        : plan_clean(text, end, options.bos));
  }
  std::vector<size_t> order(plans.size());  // texts of like length together: little padding
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return plans[a].input.size() > plans[b].input.size(); });
  const auto batch = static_cast<size_t>(options.batch_size);
  for (size_t first = 0; first < order.size(); first += batch) {
    const size_t last = std::min(order.size(), first + batch);
    score_batch(scorer, plans,
                {order.begin() + static_cast<int64_t>(first), order.begin() + static_cast<int64_t>(last)},
                end, result.texts);
    if (options.progress) options.progress(static_cast<int64_t>(last));
  }
  for (const ScoredText& text : result.texts) {
    result.nll += text.nll;
    result.tokens += text.tokens;
  }
  return result;
}

}  // namespace elf

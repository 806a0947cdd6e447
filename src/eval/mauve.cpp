#include "mauve.h"

#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <cmath>

#include "elf/base/error.h"
#include "elf/text/unicode.h"

#ifdef ELF_WITH_FAISS
#include <faiss/Clustering.h>
#include <faiss/IndexFlat.h>
#endif

namespace elf {
namespace {

// [N, K]: the principal components up to `share` of the variance.
at::Tensor principal_components(const at::Tensor& features, double share) {
  const at::Tensor centred = features.to(at::kDouble) - features.to(at::kDouble).mean(0, true);
  const auto [u, s, v] = at::linalg_svd(centred, /*full_matrices=*/false);
  const at::Tensor variance = s.square();
  const at::Tensor kept = variance.cumsum(0) / variance.sum();
  const int64_t count = 1 + kept.lt(share).sum().item<int64_t>();
  return (u * s.unsqueeze(0)).narrow(1, 0, std::min(count, s.size(0))).to(at::kFloat).contiguous();
}

#ifdef ELF_WITH_FAISS
std::vector<int64_t> cluster(const at::Tensor& points, int64_t clusters, const MauveOptions& options) {
  faiss::ClusteringParameters parameters;
  parameters.niter = options.iterations;
  parameters.nredo = options.starts;
  parameters.update_index = true;
  parameters.seed = static_cast<int>(options.seed + 2);
  parameters.min_points_per_centroid = 1;  // says nothing of few points; changes no cluster
  const auto width = static_cast<int>(points.size(1));
  faiss::Clustering clustering(width, static_cast<int>(clusters), parameters);
  faiss::IndexFlatL2 index(width);
  clustering.train(points.size(0), points.data_ptr<float>(), index);
  std::vector<float> distances(static_cast<size_t>(points.size(0)));
  std::vector<int64_t> labels(distances.size());
  index.search(points.size(0), points.data_ptr<float>(), 1, distances.data(), labels.data());
  return labels;
}
#else
std::vector<int64_t> cluster(const at::Tensor&, int64_t, const MauveOptions&) {
  usage_error(
      "MAUVE: this program was built without faiss; install libfaiss-dev (scripts/setup.sh does) and build "
      "again");
}
#endif

}  // namespace

bool mauve_is_built_in() {
#ifdef ELF_WITH_FAISS
  return true;
#else
  return false;
#endif
}

Mauve mauve(const at::Tensor& p, const at::Tensor& q, const MauveOptions& options) {
  const at::NoGradGuard no_gradients;
  const int64_t smaller = std::min(p.size(0), q.size(0));
  if (smaller < 2)
    usage_error("MAUVE: ", p.size(0), " and ", q.size(0), " texts, expected two or more of each set");
  Mauve result;
  result.clusters =
      options.clusters > 0
          ? options.clusters
          : std::max<int64_t>(2, std::llrint(static_cast<double>(smaller) / 10.0));  // half to even
  if (result.clusters > p.size(0) + q.size(0))
    usage_error("MAUVE: ", result.clusters, " clusters of ", p.size(0) + q.size(0), " texts");
  const at::Tensor features = at::cat({q, p}).to(at::kCPU, at::kDouble);
  const at::Tensor points = principal_components(
      features / features.square().sum(1, true).sqrt().clamp_min(1e-12), options.variance);
  result.components = points.size(1);
  const std::vector<int64_t> labels = cluster(points, result.clusters, options);
  std::vector<double> p_counts(static_cast<size_t>(result.clusters)), q_counts(p_counts.size());
  for (size_t i = 0; i < labels.size(); ++i)
    ++(static_cast<int64_t>(i) < q.size(0) ? q_counts : p_counts)[static_cast<size_t>(labels[i])];
  result.score = mauve_of_counts(p_counts, q_counts, options.scaling);
  return result;
}

at::Tensor mauve_features(const Gpt2& scorer, const Gpt2Tokenizer& tokenizer,
                          const std::vector<std::string>& texts, int64_t max_tokens, int64_t batch_size) {
  std::vector<std::vector<int32_t>> tokens;
  for (const std::string& text : texts) {
    if (is_blank(text)) continue;
    tokens.push_back(tokenizer.encode(text));
    if (static_cast<int64_t>(tokens.back().size()) > max_tokens)
      tokens.back().resize(static_cast<size_t>(max_tokens));
  }
  at::Tensor features = at::empty({static_cast<int64_t>(tokens.size()), scorer.config().width}, at::kFloat);
  std::vector<size_t> order(tokens.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return tokens[a].size() > tokens[b].size(); });
  for (size_t first = 0; first < order.size(); first += static_cast<size_t>(batch_size)) {
    const size_t last = std::min(order.size(), first + static_cast<size_t>(batch_size));
    const auto rows = static_cast<int64_t>(last - first),
               length = static_cast<int64_t>(tokens[order[first]].size());
    at::Tensor ids = at::full({rows, length}, static_cast<int64_t>(tokenizer.end_of_text()), at::kLong);
    for (int64_t row = 0; row < rows; ++row) {
      const std::vector<int32_t>& text = tokens[order[first + static_cast<size_t>(row)]];
      std::copy(text.begin(), text.end(), ids.data_ptr<int64_t>() + row * length);
    }
    const at::Tensor hidden = scorer.forward(ids).to(at::kCPU, at::kFloat);
    for (int64_t row = 0; row < rows; ++row) {
      const size_t text = order[first + static_cast<size_t>(row)];
      features[static_cast<int64_t>(text)].copy_(hidden[row][static_cast<int64_t>(tokens[text].size()) - 1]);
    }
  }
  return features;
}

}  // namespace elf

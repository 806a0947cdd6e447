// MAUVE of two sets of texts, as the package mauve-text 0.4 computes it: GPT-2's last hidden state at the
// last token of each text, scaled to length 1; principal components up to 90 % of the variance; k-means of
// both sets together (faiss, as there: best of 5 starts); MAUVE of the two histograms over the clusters
// (metrics/mauve.h).
//
// Deviations: blank texts (not only empty ones) are left out; the components come from LAPACK by way of ATen,
// not scikit-learn; another version of faiss may draw other starts. The score moves with the number of texts,
// of clusters and with the scorer: compare scores of equal settings only.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "elf/metrics/mauve.h"
#include "elf/model/gpt2.h"
#include "elf/text/gpt2_tokenizer.h"

namespace elf {

struct MauveOptions {
  int64_t clusters = 0;   // 0: a tenth of the smaller set, at least 2
  double variance = 0.9;  // share that the principal components keep
  int starts = 5;         // of k-means; the best one counts
  int iterations = 500;
  double scaling = kMauveScaling;
  uint64_t seed = 25;
};

struct Mauve {
  MauveScore score;
  int64_t clusters = 0, components = 0;
};

// False: built without faiss, and mauve() throws.
bool mauve_is_built_in();

// p, q [N, D] float: features of the texts, two or more each. Throws Error (usage): too few texts; more
// clusters than texts.
Mauve mauve(const at::Tensor& p, const at::Tensor& q, const MauveOptions& options = {});

// [N, D] f32 on the CPU, of the texts that are not blank.
at::Tensor mauve_features(const Gpt2& scorer, const Gpt2Tokenizer& tokenizer,
                          const std::vector<std::string>& texts, int64_t max_tokens, int64_t batch_size);

}  // namespace elf

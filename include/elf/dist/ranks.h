// The processes that train together. One process is the case of size 1: then nothing here communicates and
// no port is opened.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "elf/dist/launch.h"

namespace elf {

struct RankTimeouts {
  double collective = 600;   // seconds that ranks wait for each other
  double first_rank = 3600;  // seconds that they wait for work of the first rank alone
};

// Every function that communicates must be called by all ranks in the same order. When one fails because of
// another rank, it throws Error (environment) naming what was waited for.
class Ranks {
 public:
  Ranks();  // alone
  // Meets the other ranks: Gloo, and NCCL as well when `device` is a CUDA device. `job` must be the same text
  // on all ranks (a digest of the configuration, say): ranks of another job are refused.
  // Throws Error (environment) naming host, port and the variable to change.
  Ranks(const Launch& launch, at::Device device, const std::string& job, const RankTimeouts& timeouts);
  ~Ranks();
  Ranks(const Ranks&) = delete;
  Ranks& operator=(const Ranks&) = delete;

  int64_t rank() const;
  int64_t size() const;
  bool first() const { return rank() == 0; }

  // Element by element over the ranks, in the order of the ranks: the same numbers everywhere.
  std::vector<double> sum(const std::vector<double>& values);
  // The first rank's value.
  double of_first(double value);
  std::string of_first(const std::string& text);
  void of_first(const at::Tensor& tensor);  // in place
  // mine [n, ...] of every rank, the same shape on all -> [size n, ...], by rank.
  at::Tensor gather(const at::Tensor& mine);

  // Runs `work` on the first rank; the others wait for it, at most timeouts.first_rank seconds, and fail when
  // it does. `what` is its name in messages: "save".
  void first_does(const std::string& what, const std::function<void()>& work);

  // Tells the other ranks that this one cannot go on: they end with exit code 1 instead of waiting.
  void give_up(const std::string& message) noexcept;

  struct Impl;
  Impl* impl() { return impl_.get(); }  // null when alone

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace elf

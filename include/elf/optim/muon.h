// Muon for matrices: momentum, Nesterov look-ahead with bias correction, then the nearest semi-orthogonal
// matrix by Newton-Schulz (as optax.contrib.muon). No weight decay.
//   m <- b m + (1 - b) g,   u = b m / (1 - b^(k+1)) + (1 - b) g / (1 - b^k)
//   W <- W - lr sqrt(max(1, fan_out / fan_in)) NewtonSchulz(u)
#pragma once

#include <vector>

#include "elf/dist/ranks.h"
#include "elf/optim/optimizer.h"

namespace elf {

// x [..., R, C] f32 -> the same shape: quintic Newton-Schulz iterations with (3.4445, -4.7750, 2.0315) on x /
// (|x|_F + 1e-8), taken over the shorter side. Singular values end near 1 (in about [0.7, 1.2]), zero stays
// zero.
at::Tensor newton_schulz(const at::Tensor& x, int64_t iterations = 5);

class Muon final : public Optimizer {
 public:
  // Every parameter must be a matrix (ParamRef::is_matrix). `momentum` b in [0, 1). Several `ranks` divide
  // the matrices of each group among them, so that each is orthogonalised once, and exchange the results; the
  // momentum, cheap to update, is whole on every rank. Null: alone.
  Muon(const ParamList& matrices, double momentum, Ranks* ranks = nullptr);
  TensorMap state() const override;
  void apply(double lr, int64_t k) override;

 private:
  // Matrices of one shape and one pair of fans, worked on as one batch: far fewer and larger products.
  struct Group {
    ParamList params;
    std::vector<at::Tensor> tensors;
    at::Tensor momentum;  // [n, R, C]
    double scale;         // sqrt(max(1, fan_out / fan_in))
  };
  // NewtonSchulz of look_ahead [n, R, C], each matrix on one rank. `turn` says where the first part goes, so
  // that groups of few matrices do not all fall to the first rank.
  at::Tensor orthogonalised(const at::Tensor& look_ahead, int64_t turn) const;

  std::vector<Group> groups_;
  double momentum_;
  Ranks* ranks_;
};

}  // namespace elf

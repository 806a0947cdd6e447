// Muon for matrices: momentum, Nesterov look-ahead with bias correction, then the nearest semi-orthogonal
// matrix by Newton-Schulz (as optax.contrib.muon). No weight decay.
//   m <- b m + (1 - b) g,   u = b m / (1 - b^(k+1)) + (1 - b) g / (1 - b^k)
//   W <- W - lr sqrt(max(1, fan_out / fan_in)) NewtonSchulz(u)
#pragma once

#include <vector>

#include "elf/dist/ranks.h"
#include "elf/optim/newton_schulz.h"
#include "elf/optim/optimizer.h"

namespace elf {

class Muon final : public Optimizer {
 public:
  // Every parameter must be a matrix (ParamRef::is_matrix). `momentum` b in [0, 1). Several `ranks` divide
  // the matrices of each group among them, so that each is orthogonalised once, and exchange the results; the
  // momentum, cheap to update, is whole on every rank. Null: alone.
  Muon(const ParamList& matrices, double momentum, Ranks* ranks = nullptr);
  TensorMap state() const override;
  void apply(double lr, int64_t k) override;

 private:
  // Matrices of one shape and one pair of fans. Their momenta are one tensor, so that small ones can be
  // worked on as one batch.
  struct Group {
    ParamList params;
    std::vector<at::Tensor> tensors;
    at::Tensor momentum;  // [n, R, C]
    double scale;         // sqrt(max(1, fan_out / fan_in))
  };
  // One matrix of a group.
  struct Item {
    const Group* group;
    int64_t index;
    double cost;
  };
  // The factors of momentum and gradient in u, and the learning rate.
  struct Rates {
    double of_momentum, of_gradient, lr;
  };

  // NewtonSchulz of look_ahead [n, R, C], each matrix on one rank. `turn` says where the first part goes, so
  // that groups of few matrices do not all fall to the first rank.
  at::Tensor orthogonalised(const at::Tensor& look_ahead, int64_t turn) const;
  void update_batch(const Group& group, const Rates& rates, int64_t turn) const;
  void update_one(const Item& item, const Rates& rates) const;

  std::vector<Group> groups_;
  std::vector<const Group*>
      batches_;              // on a GPU, of small matrices, or divided among ranks: a group at a time
  std::vector<Item> items_;  // the others, a matrix a thread, the dearest first
  double momentum_;
  Ranks* ranks_;
};

}  // namespace elf

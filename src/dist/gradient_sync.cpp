#include "elf/dist/gradient_sync.h"

#include "ranks_impl.h"

#ifdef ELF_HAVE_C10D

#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <torch/csrc/distributed/c10d/reducer.hpp>

namespace elf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kFirstBucketBytes = size_t{1} << 20, kBucketBytes = size_t{25} << 20;

// Sums a bucket over the ranks; without a hook the Reducer would average.
class SumHook : public c10d::CppCommHookInterface<c10::intrusive_ptr<c10d::ProcessGroup>> {
 public:
  using CppCommHookInterface::CppCommHookInterface;
  c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
    std::vector<at::Tensor> tensors{bucket.getBufferRef()};
    return state_->allreduce(tensors)->getFuture();
  }
};

// The loss itself, with every parameter in its graph: the Reducer waits for all of them, and each rank's last
// micro-batch may leave out others (a branch that no row took).
struct WithAllParameters : public torch::autograd::Function<WithAllParameters> {
  static at::Tensor forward(AutogradContext* ctx, const at::Tensor& loss, at::TensorList parameters) {
    ctx->saved_data["count"] = static_cast<int64_t>(parameters.size());
    return loss.clone();
  }
  static variable_list backward(AutogradContext* ctx, const variable_list& grads) {
    variable_list result(static_cast<size_t>(1 + ctx->saved_data["count"].toInt()));
    result[0] = grads[0];
    return result;  // undefined for the parameters: their hooks run, nothing is added
  }
};

}  // namespace

struct GradientSync::Impl {
  Ranks::Impl& ranks;
  std::vector<at::Tensor> parameters;
  std::unique_ptr<c10d::Reducer> reducer;
};

GradientSync::GradientSync(Ranks& ranks, const std::vector<at::Tensor>& parameters) {
  if (ranks.size() == 1) return;
  impl_ = std::make_unique<Impl>(Impl{*ranks.impl(), parameters, nullptr});
  auto [buckets, limits] =
      c10d::compute_bucket_assignment_by_size(parameters, {kFirstBucketBytes, kBucketBytes});
  std::reverse(buckets.begin(), buckets.end());  // gradients come in from the last layer on
  // The buckets are never rebuilt by the order of arrival: the sums of a resumed run would then differ from
  // those of one that was not.
  impl_->reducer = std::make_unique<c10d::Reducer>(
      parameters, buckets, ranks.impl()->group, std::vector<bool>(parameters.size(), false),
      static_cast<int64_t>(kBucketBytes), /*find_unused_parameters=*/false, /*gradient_as_bucket_view=*/true,
      std::unordered_map<size_t, std::string>{}, static_cast<int64_t>(kFirstBucketBytes),
      /*skip_all_reduce_unused_params=*/false, /*use_python_reducer=*/false, std::vector<int64_t>{});
  impl_->reducer->register_comm_hook(std::make_unique<SumHook>(ranks.impl()->group));
}

GradientSync::~GradientSync() = default;

at::Tensor GradientSync::last_of_step(const at::Tensor& loss) {
  if (!impl_) return loss;
  const at::Tensor whole = WithAllParameters::apply(loss, at::TensorList(impl_->parameters));
  impl_->reducer->prepare_for_backward({whole});
  return whole;
}

}  // namespace elf

#else

namespace elf {
struct GradientSync::Impl {};
GradientSync::GradientSync(Ranks&, const std::vector<at::Tensor>&) {}
GradientSync::~GradientSync() = default;
at::Tensor GradientSync::last_of_step(const at::Tensor& loss) {
  return loss;
}
}  // namespace elf

#endif

#include "elf/dist/gradient_sync.h"

#include <ATen/ATen.h>

#include "ranks_impl.h"

#ifdef ELF_HAVE_C10D
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <optional>
#include <torch/csrc/distributed/c10d/reducer.hpp>
#include <unordered_map>

#include "elf/base/phases.h"

namespace elf {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

constexpr size_t kFirstBucketBytes = size_t{1} << 20, kBucketBytes = size_t{25} << 20;

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

struct GradientSync::Reduction {
  // Sums a bucket over the ranks; without a hook the Reducer would average it.
  class Hook : public c10d::CommHookInterface {
   public:
    Hook(GradientSync& sync, c10::intrusive_ptr<c10d::ProcessGroup> group)
        : sync_(sync), group_(std::move(group)) {
      for (size_t i = 0; i < sync.parameters_.size(); ++i)
        index_[sync.parameters_[i].unsafeGetTensorImpl()] = i;
    }

    c10::intrusive_ptr<c10::ivalue::Future> runHook(c10d::GradBucket& bucket) override {
      const at::NoGradGuard no_grad;
      if (bucket.isLast()) waiting.emplace("gradient_exchange");
      const at::Tensor buffer = bucket.getBufferRef();
      const at::Tensor kept = kept_of(bucket);
      const bool exact = buffer.is_cpu();  // float64 over the ranks as well
      at::Tensor sum = buffer;
      if (kept.defined() || exact) sum = buffer.to(at::kDouble);
      if (kept.defined()) sum.add_(kept);
      if (!exact && kept.defined()) sum = at::Tensor(buffer).copy_(sum);
      std::vector<at::Tensor> tensors{sum};
      return group_->allreduce(tensors)->getFuture()->then(
          [buffer, sum, exact](c10::ivalue::Future& done) {
            done.value();  // throws what the all-reduce threw
            if (exact) at::Tensor(buffer).copy_(sum);
            return c10::IValue(buffer);
          },
          c10::TensorType::get());
    }
    at::Tensor parseHookResult(const c10::IValue& result) override { return result.toTensor(); }

    // What of the exchange the backward pass does not hide: from the last bucket on. (On CUDA hooks run on another
    // thread, which no clock listens to.)
    std::optional<Phase> waiting;

   private:
    // What the passes before kept of the bucket's parameters, laid out as the bucket; undefined: nothing.
    at::Tensor kept_of(c10d::GradBucket& bucket) const {
      std::vector<at::Tensor> parts;
      bool any = false;
      for (const at::Tensor& parameter : bucket.getParameters()) {
        const at::Tensor& kept = sync_.kept_[index_.at(parameter.unsafeGetTensorImpl())];
        any = any || kept.defined();
        parts.push_back(kept.defined()
                            ? kept.flatten()
                            : at::zeros({parameter.numel()}, parameter.options().dtype(at::kDouble)));
      }
      return any ? at::cat(parts) : at::Tensor();
    }

    GradientSync& sync_;
    c10::intrusive_ptr<c10d::ProcessGroup> group_;
    std::unordered_map<const c10::TensorImpl*, size_t> index_;
  };

  explicit Reduction(GradientSync& sync, const c10::intrusive_ptr<c10d::ProcessGroup>& group) {
    const std::vector<at::Tensor>& parameters = sync.parameters_;
    auto [buckets, limits] =
        c10d::compute_bucket_assignment_by_size(parameters, {kFirstBucketBytes, kBucketBytes});
    std::reverse(buckets.begin(), buckets.end());  // gradients come in from the last layer on
    // The buckets are never rebuilt by the order of arrival: the sums of a resumed run would then differ from
    // those of one that was not.
    reducer = std::make_unique<c10d::Reducer>(
        parameters, buckets, group, std::vector<bool>(parameters.size(), false),
        static_cast<int64_t>(kBucketBytes), /*find_unused_parameters=*/false,
        /*gradient_as_bucket_view=*/true, std::unordered_map<size_t, std::string>{},
        static_cast<int64_t>(kFirstBucketBytes), /*skip_all_reduce_unused_params=*/false,
        /*use_python_reducer=*/false, std::vector<int64_t>{});
    auto owned = std::make_unique<Hook>(sync, group);
    hook = owned.get();
    reducer->register_comm_hook(std::move(owned));
  }

  void backward(const at::Tensor& loss, const std::vector<at::Tensor>& parameters) {
    const at::Tensor whole = WithAllParameters::apply(loss, at::TensorList(parameters));
    reducer->prepare_for_backward({whole});
    whole.backward();
    hook->waiting.reset();
  }

  Hook* hook = nullptr;  // the reducer's
  std::unique_ptr<c10d::Reducer> reducer;
};

GradientSync::GradientSync(Ranks& ranks, const std::vector<at::Tensor>& parameters)
    : parameters_(parameters), kept_(parameters.size()) {
  if (ranks.size() > 1) reduction_ = std::make_unique<Reduction>(*this, ranks.impl()->group);
}

#else

namespace elf {

struct GradientSync::Reduction {
  void backward(const at::Tensor&, const std::vector<at::Tensor>&) {}
};

GradientSync::GradientSync(Ranks&, const std::vector<at::Tensor>& parameters)
    : parameters_(parameters), kept_(parameters.size()) {}

#endif

GradientSync::~GradientSync() = default;

void GradientSync::backward(const at::Tensor& loss, bool last) {
  if (!last) {
    loss.backward();
    return keep();
  }
  if (reduction_) {
    reduction_->backward(loss, parameters_);
    for (at::Tensor& sum : kept_) sum.reset();
  } else {
    loss.backward();
    give_back();
  }
}

void GradientSync::keep() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (!gradient.defined()) continue;
    if (kept_[i].defined()) {
      kept_[i].add_(gradient);
    } else {
      kept_[i] = gradient.to(at::kDouble);
    }
    gradient.reset();
  }
}

// The sums so far and the gradients of the last pass, rounded, become the gradients.
void GradientSync::give_back() {
  const at::NoGradGuard no_grad;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!kept_[i].defined()) continue;
    at::Tensor& gradient = parameters_[i].mutable_grad();
    if (gradient.defined()) kept_[i].add_(gradient);
    gradient = kept_[i].to(parameters_[i].scalar_type());
    kept_[i].reset();
  }
}

}  // namespace elf

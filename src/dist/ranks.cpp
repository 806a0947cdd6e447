#include "elf/dist/ranks.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "ranks_impl.h"

namespace elf {

Ranks::Ranks() = default;
Ranks::~Ranks() = default;

int64_t Ranks::rank() const {
  return impl_ ? impl_->launch.rank : 0;
}
int64_t Ranks::size() const {
  return impl_ ? impl_->launch.size : 1;
}

#ifdef ELF_HAVE_C10D

namespace {
constexpr std::chrono::milliseconds kAnswerTimeout{2000};  // of the store
}

Ranks::Ranks(const Launch& launch, at::Device device, const std::string& job, const RankTimeouts& timeouts) {
  if (!launch.alone()) impl_ = std::make_unique<Impl>(launch, device, job, timeouts);
}

std::vector<double> Ranks::sum(const std::vector<double>& values) {
  if (!impl_) return values;
  const auto count = static_cast<int64_t>(values.size());
  at::Tensor mine = at::empty({1, count}, at::kDouble);
  std::copy(values.begin(), values.end(), mine.data_ptr<double>());
  const at::Tensor all = impl_->gather(mine);
  std::vector<double> total(values.size(), 0);
  const double* value = all.data_ptr<double>();
  for (int64_t rank = 0; rank < size(); ++rank) {
    for (double& number : total) number += *value++;
  }
  return total;
}

void Ranks::of_first(const at::Tensor& tensor) {
  if (!impl_) return;
  impl_->waiting_for("receiving from rank 0", [&] {
    const at::NoGradGuard no_grad;
    at::Tensor whole = tensor.detach().contiguous();
    std::vector<at::Tensor> tensors{whole};
    impl_->group->broadcast(tensors)->wait();
    if (!whole.is_same(tensor) && !tensor.is_alias_of(whole)) at::Tensor(tensor).copy_(whole);
    return 0;
  });
}

double Ranks::of_first(double value) {
  const at::Tensor one = at::full({1}, value, at::kDouble);
  if (!impl_) return value;
  const at::Tensor all = impl_->gather(one);
  return all.data_ptr<double>()[0];
}

std::string Ranks::of_first(const std::string& text) {
  if (!impl_) return text;
  const auto length = static_cast<int64_t>(of_first(static_cast<double>(text.size())));
  at::Tensor bytes = at::zeros({length}, at::kByte);
  if (first() && length > 0) std::memcpy(bytes.data_ptr(), text.data(), text.size());
  impl_->waiting_for("receiving from rank 0", [&] {
    std::vector<at::Tensor> tensors{bytes};
    if (length > 0) impl_->control->broadcast(tensors)->wait();
    return 0;
  });
  return {reinterpret_cast<const char*>(bytes.data_ptr()), static_cast<size_t>(length)};
}

at::Tensor Ranks::gather(const at::Tensor& mine) {
  return impl_ ? impl_->gather(mine) : mine;
}

void Ranks::first_does(const std::string& what, const std::function<void()>& work) {
  if (!impl_) return work();
  const std::string key = cat("first/", impl_->works_of_first++);
  if (first()) {
    const auto start = std::chrono::steady_clock::now();
    work();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    if (took.count() > 1) log_info(cat(what, " on rank 0 took ", static_cast<int64_t>(took.count()), " s"));
    impl_->store->set(key, std::string("done"));
  } else {
    const auto limit = std::chrono::milliseconds(static_cast<int64_t>(impl_->timeouts.first_rank * 1000));
    impl_->waiting_for(
        cat("'", what, " on rank 0', at most ", impl_->timeouts.first_rank, " s (train.first_rank_timeout)"),
        [&] {
          const bool answered = done_within(
              limit + kAnswerTimeout, [store = impl_->store, key, limit] { store->wait({key}, limit); });
          if (!answered) throw std::runtime_error("no answer");
          return 0;
        });
  }
  sum({0});  // the first rank, which may hold the store, leaves after all have read it
}

void Ranks::give_up(const std::string& message) noexcept {
  if (!impl_ || std::exchange(impl_->gave_up, true)) return;
  try {
    impl_->watch->close();
    if (impl_->watch->seen() != FailureWatch::Seen::kNothing) return;
    const auto tell = [store = impl_->store, text = cat("rank ", rank(), ": ", message)] {
      if (!store->check({kFailedKey})) store->set(kFailedKey, text);
    };
    // The first rank may be the one that answers: let the others read before it goes.
    if (done_within(kAnswerTimeout, tell) && first()) std::this_thread::sleep_for(std::chrono::seconds(2));
  } catch (...) {  // the others find out by the broken connection
  }
}

#else

Ranks::Ranks(const Launch& launch, at::Device, const std::string&, const RankTimeouts&) {
  if (!launch.alone()) {
    environment_error("this elf was built without c10d: ", launch.size,
                      " processes cannot train together; install libgloo-dev (scripts/setup.sh does), "
                      "configure and build again");
  }
}
std::vector<double> Ranks::sum(const std::vector<double>& values) {
  return values;
}
double Ranks::of_first(double value) {
  return value;
}
std::string Ranks::of_first(const std::string& text) {
  return text;
}
void Ranks::of_first(const at::Tensor&) {}
at::Tensor Ranks::gather(const at::Tensor& mine) {
  return mine;
}
void Ranks::first_does(const std::string&, const std::function<void()>& work) {
  work();
}
void Ranks::give_up(const std::string&) noexcept {}

#endif

}  // namespace elf

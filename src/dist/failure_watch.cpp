#ifdef ELF_HAVE_C10D

#include "failure_watch.h"

#include <unistd.h>

#include <atomic>
#include <utility>

#include "elf/base/error.h"
#include "elf/base/log.h"

namespace elf {

using std::chrono::milliseconds;

bool done_within(milliseconds limit, std::function<void()> work) {
  std::packaged_task<void()> task(std::move(work));
  std::future<void> done = task.get_future();
  std::thread(std::move(task)).detach();
  if (done.wait_for(limit) != std::future_status::ready) return false;
  done.get();
  return true;
}

struct FailureWatch::State {
  std::atomic<Seen> seen{Seen::kNothing};
  std::atomic<bool> closing{false};
};

FailureWatch::FailureWatch(c10::intrusive_ptr<c10d::Store> store, std::string place)
    : state_(std::make_shared<State>()) {
  std::packaged_task<void()> task(
      [state = state_, store = std::move(store), place = std::move(place)] { watch(*state, *store, place); });
  ended_ = task.get_future();
  thread_ = std::thread(std::move(task));
}

FailureWatch::~FailureWatch() {
  close();
  if (ended_.wait_for(std::chrono::seconds(1)) == std::future_status::ready) {
    thread_.join();
  } else {
    thread_.detach();  // the store does not answer
  }
}

FailureWatch::Seen FailureWatch::seen() const {
  return state_->seen;
}

void FailureWatch::close() {
  state_->closing = true;
}

void FailureWatch::watch(State& state, c10d::Store& store, const std::string& place) {
  while (!state.closing) {
    std::this_thread::sleep_for(milliseconds(200));
    try {
      if (state.closing || !store.check({kFailedKey})) continue;
    } catch (const std::exception&) {
      state.seen = Seen::kNoStore;
      return;  // the collectives fail by themselves
    }
    state.seen = Seen::kFailure;
    for (int i = 0; i < 50 && !state.closing; ++i) std::this_thread::sleep_for(milliseconds(100));
    if (!state.closing) {
      log_error(cat(place, " ends: another rank failed"));
      ::_exit(1);
    }
  }
}

}  // namespace elf

#endif

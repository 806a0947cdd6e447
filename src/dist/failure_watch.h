// Questions to the store of the ranks, which may never be answered: the machine or process that holds it can
// stand still, and c10d then waits without a limit, holding the connection's lock.
#pragma once

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace elf {

constexpr const char* kFailedKey = "failed";  // set by a rank that cannot go on

// Does `work` on a thread of its own, at most `limit` long; throws what it throws. False: it goes on alone,
// so it must own all that it uses.
bool done_within(std::chrono::milliseconds limit, std::function<void()> work);

// A rank that waits in a collective cannot see that another one gave up; the thread of this one can. It gives
// its own rank some seconds to notice, then ends the process with exit code 1.
class FailureWatch {
 public:
  enum class Seen { kNothing, kFailure, kNoStore };

  // `store`: a connection that no one else uses. `place`: this rank's name in messages.
  FailureWatch(c10::intrusive_ptr<c10d::Store> store, std::string place);
  ~FailureWatch();  // takes no longer than a second
  FailureWatch(const FailureWatch&) = delete;
  FailureWatch& operator=(const FailureWatch&) = delete;

  Seen seen() const;
  void close();  // this rank has noticed by itself

 private:
  struct State;
  static void watch(State& state, c10d::Store& store, const std::string& place);

  std::shared_ptr<State> state_;  // the thread's as well, which may outlive this
  std::future<void> ended_;
  std::thread thread_;
};

}  // namespace elf

// A stream of items through several threads, in and out in order: what comes out does not depend on their
// number.
#pragma once

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <map>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace elf {

// Each of `threads` threads (the caller's is one) reads an item, works on it, and hands it on:
//   read(item) -> bool   one thread at a time, in order; false at the end
//   work(item)           all at once
//   use(item)            one thread at a time, in the order of reading
// No thread does nothing but read or write, and at most about two items a thread are in memory. The failure
// of the earliest item is thrown again once all threads have stopped.
template <class Item, class Read, class Work, class Use>
class InOrder {
 public:
  InOrder(int threads, Read read, Work work, Use use)
      : most_ahead_(2 * static_cast<uint64_t>(threads) + 2), read_(read), work_(work), use_(use) {
    std::vector<std::thread> others;
    others.reserve(static_cast<size_t>(std::max(threads, 1)));
    try {
      for (int t = 1; t < threads; ++t) others.emplace_back([this] { run(); });
    } catch (const std::system_error&) {  // a limit on processes: those that are there do it all
    }
    run();
    for (std::thread& thread : others) thread.join();
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  void run() {
    for (bool more = true; more;) {
      uint64_t number = ~uint64_t{0};
      try {
        more = next(number);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (number <= failed_) {
          failed_ = number;
          failure_ = std::current_exception();
        }
        more = false;
      }
      if (!more) {
        const std::lock_guard lock(mutex_);
        room_.notify_all();
      }
    }
  }

  // One item all the way; false when there are no more.
  bool next(uint64_t& number) {
    Item item;
    {
      const std::lock_guard reading(reading_);
      {
        std::unique_lock lock(mutex_);
        room_.wait(lock, [&] { return failure_ || ended_ || read_count_ - used_count_ < most_ahead_; });
        if (failure_ || ended_) return false;
        number = read_count_;
      }
      if (!read_(item)) {
        const std::lock_guard lock(mutex_);
        ended_ = true;
        return false;
      }
      const std::lock_guard lock(mutex_);
      ++read_count_;
    }
    work_(item);
    std::unique_lock lock(mutex_);
    done_.emplace(number, std::move(item));
    if (using_) return true;  // whoever is at it takes this item along
    using_ = true;
    while (!failure_ && !done_.empty() && done_.begin()->first == used_count_) {
      number = used_count_;
      Item next = std::move(done_.begin()->second);
      done_.erase(done_.begin());
      lock.unlock();
      use_(next);
      lock.lock();
      ++used_count_;
      room_.notify_all();
    }
    using_ = false;
    return true;
  }

  const uint64_t most_ahead_;
  Read read_;
  Work work_;
  Use use_;
  std::mutex reading_, mutex_;    // mutex_ guards what follows
  std::condition_variable room_;  // an item was used, or it is over
  uint64_t read_count_ = 0, used_count_ = 0, failed_ = ~uint64_t{0};
  std::map<uint64_t, Item> done_;  // worked on, waiting for their turn
  bool using_ = false, ended_ = false;
  std::exception_ptr failure_;  // of item failed_
};

template <class Item, class Read, class Work, class Use>
void in_order(int threads, Read read, Work work, Use use) {
  InOrder<Item, Read, Work, Use>(threads, read, work, use);
}

}  // namespace elf

// Several ranks in one test.
#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "elf/dist/ranks.h"
#include "support/free_port.h"

namespace elf::test {

// The ranks of a job of `count` that meets at `port`.
inline Launch launch_of(int64_t rank, int64_t count, int port) {
  Launch launch{.launcher = "test", .rank = rank, .size = count, .local_rank = rank, .local_size = count};
  launch.address = "127.0.0.1";
  launch.port = port;
  launch.address_variable = "MASTER_ADDR";
  launch.port_variable = "MASTER_PORT";
  return launch;
}

// Runs body(ranks) on one of them; returns what it throws.
inline std::string failure_on(const Launch& launch, const std::function<void(Ranks&)>& body,
                              const RankTimeouts& timeouts) {
  try {
    Ranks ranks(launch, at::kCPU, "test", timeouts);
    body(ranks);
    ranks.sum({1});  // none leaves before all are done
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

// Runs body(ranks) on `count` ranks at once, over Gloo on the loopback: as threads, which may share what the
// test looks at afterwards. An exception of any fails the test.
inline void on_ranks(int64_t count, const std::function<void(Ranks&)>& body,
                     const RankTimeouts& timeouts = {.collective = 120, .first_rank = 120}) {
  const int port = free_port();
  std::vector<std::thread> threads;
  std::vector<std::string> failures(static_cast<size_t>(count));
  for (int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      failures[static_cast<size_t>(rank)] = failure_on(launch_of(rank, count, port), body, timeouts);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

// As processes, for what c10d keeps once a process (its Reducer). The program that calls this must not have
// computed anything before.
inline void on_forked_ranks(int64_t count, const std::function<void(Ranks&)>& body) {
  const int port = free_port();
  std::vector<pid_t> children;
  for (int64_t rank = 0; rank < count; ++rank) {
    children.push_back(::fork());
    if (children.back() != 0) continue;
    EXPECT_EQ(failure_on(launch_of(rank, count, port), body, {.collective = 120, .first_rank = 120}), "");
    std::fflush(nullptr);
    ::_exit(::testing::Test::HasFailure() ? 1 : 0);
  }
  for (const pid_t child : children) {
    int status = 0;
    ::waitpid(child, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "a rank failed, see above";
  }
}

}  // namespace elf::test

// Several ranks as threads of one test.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

#include "elf/dist/ranks.h"
#include "support/free_port.h"

namespace elf::test {

// Runs body(ranks) on `count` ranks at once, over Gloo on the loopback. An exception of any fails the test.
inline void on_ranks(int64_t count, const std::function<void(Ranks&)>& body,
                     const RankTimeouts& timeouts = {.collective = 120, .first_rank = 120}) {
  const int64_t port = free_port();
  // c10d's recorder of collectives is one a process, and breaks when several ranks of one write into it.
  ::setenv("TORCH_FR_BUFFER_SIZE", "0", 1);
  std::vector<std::thread> threads;
  std::vector<std::string> failures(static_cast<size_t>(count));
  for (int64_t rank = 0; rank < count; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        Launch launch{
            .launcher = "threads", .rank = rank, .size = count, .local_rank = rank, .local_size = count};
        launch.address = "127.0.0.1";
        launch.port = port;
        launch.address_variable = "MASTER_ADDR";
        launch.port_variable = "MASTER_PORT";
        Ranks ranks(launch, at::kCPU, "test", timeouts);
        body(ranks);
        ranks.sum({1});  // none leaves before all are done
      } catch (const std::exception& error) {
        failures[static_cast<size_t>(rank)] = error.what();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const std::string& failure : failures) EXPECT_EQ(failure, "");
}

}  // namespace elf::test

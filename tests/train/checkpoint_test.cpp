#include "elf/train/checkpoint.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/manifest.h"
#include "elf/train/saver.h"
#include "support/c_library.h"
#include "support/errors.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;

class Checkpoints : public ::testing::Test {
 protected:
  void save(int64_t step) {
    const TensorMap some{{"a", at::full({3}, static_cast<double>(step), at::kFloat)}};
    save_checkpoint(folder_, step, {some, some, some, {{"step", step}}});
  }
  static std::string name(int64_t step) { return cat("step-0000000", step); }
  std::string newest() {
    const auto found = newest_checkpoint(folder_);
    return found ? found->filename().string() : "none";
  }
  void cut_a_byte(const fs::path& path) { fs::resize_file(path, fs::file_size(path) - 1); }

  const test::TemporaryFolder scratch_;
  const fs::path folder_ = scratch_.path();
};

TEST_F(Checkpoints, RoundTrip) {
  save(3);
  const Checkpoint read = load_checkpoint(folder_ / name(3));
  EXPECT_TRUE(at::equal(read.ema.at("a"), at::full({3}, 3.0)));
  EXPECT_EQ(read.state.at("step"), 3);
  EXPECT_EQ(read_file(folder_ / "latest"), name(3) + "\n");
}

// Field case 19: the newest complete one is taken, whatever is wrong with those after it.
TEST_F(Checkpoints, BrokenOnesAreSkipped) {
  for (const int64_t step : {1, 2, 3}) save(step);
  fs::remove(folder_ / name(2) / kManifestName);
  cut_a_byte(folder_ / name(3) / "optimizer.safetensors");
  fs::create_directory(folder_ / name(4));
  EXPECT_EQ(newest(), name(1));
}

TEST_F(Checkpoints, ADamagedByteIsSeen) {
  save(1);
  std::string bytes = read_file(folder_ / name(1) / "model.safetensors");
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  write_file(folder_ / name(1) / "model.safetensors", bytes);
  EXPECT_THAT(manifest_problem(folder_ / name(1)), ::testing::HasSubstr("digest"));
  EXPECT_THROW(load_checkpoint(folder_ / name(1)), Error);
}

TEST_F(Checkpoints, NoneWholeIsAnErrorNotAFreshStart) {
  save(1);
  cut_a_byte(folder_ / name(1) / "model.safetensors");
  try {
    newest_checkpoint(folder_);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.exit_code(), 2);
  }
}

TEST_F(Checkpoints, EmptyFolderHasNone) {
  EXPECT_EQ(newest(), "none");
  fs::create_directories(folder_ / "step-00000007.tmp");  // a save that was killed
  EXPECT_EQ(newest(), "none");
  EXPECT_TRUE(fs::exists(folder_ / "step-00000007.tmp")) << "or one that another trainer is writing";
  remove_unfinished_checkpoints(folder_);
  EXPECT_FALSE(fs::exists(folder_ / "step-00000007.tmp"));
}

// Where the file system cannot exchange names, a save over one of the same step has it aside for a moment.
TEST_F(Checkpoints, OneThatWasReplacedGoesOneWithoutSuccessorStays) {
  save(3);
  for (const char* aside : {".step-00000003.17.old", ".step-00000004.17.old"})
    fs::create_directories(folder_ / aside);
  remove_unfinished_checkpoints(folder_);
  EXPECT_FALSE(fs::exists(folder_ / ".step-00000003.17.old"));
  EXPECT_TRUE(fs::exists(folder_ / ".step-00000004.17.old"));
  EXPECT_EQ(newest(), name(3));
}

TEST_F(Checkpoints, OldOnesGoBestStays) {
  for (const int64_t step : {1, 2, 3, 4, 5}) save(step);
  mark_best(folder_, 2);
  remove_old_checkpoints(folder_, 2);
  EXPECT_FALSE(fs::exists(folder_ / name(1)));
  EXPECT_TRUE(fs::exists(folder_ / name(2)));
  EXPECT_FALSE(fs::exists(folder_ / name(3)));
  EXPECT_EQ(newest(), name(5));
}

// Saved again, as a run does that is told to stop where it is: killed at any moment it has the step.
TEST_F(Checkpoints, TheSameStepIsReplacedInOneStep) {
  save(3);
  const TensorMap other{{"a", at::zeros({3}, at::kFloat)}};
  {
    const test::WhileCallsAsk watching([&](const std::string& call, const std::string& path) {
      if (call.starts_with("rename")) EXPECT_EQ(manifest_problem(folder_ / name(3)), "") << path;
      return 0;
    });
    save_checkpoint(folder_, 3, {other, other, other, {{"step", 3}}});
  }
  EXPECT_TRUE(at::equal(load_checkpoint(folder_ / name(3)).ema.at("a"), other.at("a")));
  EXPECT_FALSE(fs::exists(folder_ / (name(3) + ".tmp")));
}

// The first rank tells the others whether it will be long, so what it has said must hold: free memory is
// not looked at again.
TEST_F(Checkpoints, ASaverDoesWhatWasDecided) {
  const TensorMap some{{"a", at::ones({3}, at::kFloat)}};
  std::atomic<bool> go{false};
  Saver saver(folder_, {.background = false});
  EXPECT_FALSE(saver.in_background(1));
  const test::WhileCallsAsk waiting([&](const std::string&, const std::string& path) {
    while (path.find(name(2)) != std::string::npos && !go) std::this_thread::yield();
    return 0;
  });
  saver.save(1, {some, some, some, {{"step", 1}}}, false, false);
  EXPECT_FALSE(saver.busy());
  EXPECT_EQ(newest(), name(1));
  saver.save(2, {some, some, some, {{"step", 2}}}, false, true);
  EXPECT_TRUE(saver.busy());
  go = true;
  saver.wait();
  EXPECT_FALSE(saver.busy());
  EXPECT_EQ(newest(), name(2));
}

TEST_F(Checkpoints, APointerThatCannotMoveIsNamed) {
  save(1);
  const test::WhileCallsAsk failing([](const std::string& call, const std::string& path) {
    return call == "rename" && path.ends_with("/latest") ? ENOSPC : 0;
  });
  const std::string message = test::error_message(ErrorKind::kEnvironment, [&] { save(2); });
  EXPECT_THAT(message,
              ::testing::HasSubstr("checkpoint of step 2 is written, but `latest` does not name it"));
  EXPECT_EQ(newest(), name(2));
}

TEST_F(Checkpoints, AFailedSaveLeavesTheOldOne) {
  save(1);
  const TensorMap unstorable{{"a", at::ones({1}, at::kComplexFloat)}};
  EXPECT_THROW(save_checkpoint(folder_, 2, {unstorable, {}, {}, {}}), Error);
  EXPECT_EQ(newest(), name(1));
  EXPECT_FALSE(fs::exists(folder_ / "step-00000002.tmp"));
}

}  // namespace
}  // namespace elf

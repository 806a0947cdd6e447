// Damaged files: a thousand each of .pt, safetensors and model directories. Every one is either refused with
// exit code 2 or loads; no crash, no hang, no allocation much larger than the file (the address space is
// limited; with the address sanitizer the size of one allocation is, by max_allocation_size_mb of
// CMakeLists.txt).
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/log.h"
#include "elf/base/manifest.h"
#include "elf/model/model_dir.h"
#include "elf/model/published_weights.h"
#include "elf/model/t5.h"
#include "elf/tensor/torch_pickle.h"
#include "support/model_folders.h"
#include "support/mutate.h"
#include "support/temporary_folder.h"

namespace elf {
namespace {

namespace fs = std::filesystem;
using test::golden;
using test::mutated;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kSanitized = true;
#elif defined(__has_feature)
constexpr bool kSanitized = __has_feature(address_sanitizer);
#else
constexpr bool kSanitized = false;
#endif

constexpr rlim_t kHeadroom = rlim_t{512} << 20;

// Limits the address space to what is used now and some room.
class MemoryLimit {
 public:
  MemoryLimit() {
    ::getrlimit(RLIMIT_AS, &before_);
    if (kSanitized) return;
    long pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit limited = before_;
    limited.rlim_cur = static_cast<rlim_t>(pages) * 4096 + kHeadroom;
    ::setrlimit(RLIMIT_AS, &limited);
  }
  ~MemoryLimit() { ::setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

class Mutation : public ::testing::Test {
 protected:
  Mutation() { set_log_level(LogLevel::kOff); }
  ~Mutation() override { set_log_level(LogLevel::kInfo); }

  // True when `load` gives something, false when it refuses; anything else fails the test.
  template <class Load>
  bool loads(uint64_t seed, Load load) {
    try {
      load();
      return true;
    } catch (const Error& error) {
      EXPECT_EQ(error.exit_code(), 2) << "seed " << seed << ": " << error.what();
    } catch (const std::exception& error) {
      ADD_FAILURE() << "seed " << seed << ": " << error.what();
    }
    return false;
  }
  void spill(const fs::path& path, const std::string& bytes) {
    std::ofstream(path, std::ios::binary) << bytes;
  }
  test::TemporaryFolder folder_;
};

void touch(const TensorMap& tensors) {
  for (const auto& [name, tensor] : tensors) at::sum(tensor.to(at::kDouble)).item<double>();
}

TEST_F(Mutation, TorchFiles) {
  std::vector<std::string> originals;
  for (const char* name :
       {"torch/legacy.pt", "torch/nested.pt", "torch/offset_and_strides.pt", "torch/namespace.pt",
        "torch/parameter.pt", "elf_tiny/checkpoint_prefixed_names.pt"})
    originals.push_back(read_file(golden(name)));
  touch(
      all_tensors(TorchFile::read(golden("torch/dtypes.pt")).root()));  // threads and caches before the limit
  const MemoryLimit limit;
  int loaded = 0;
  for (uint64_t seed = 0; seed < 1200; ++seed) {
    // The older format has no checksum: half of the changes reach the interpreter there.
    const size_t which = seed % 2 == 0 ? 0 : seed / 2 % originals.size();
    spill(folder_ / "x.pt", mutated(originals[which], seed));
    loaded += loads(seed, [&] {
      const TorchFile file = TorchFile::read(folder_ / "x.pt");
      touch(all_tensors(file.root()));
      read_published_weights(folder_ / "x.pt");
    });
  }
  EXPECT_GT(loaded, 10);
  EXPECT_LT(loaded, 1190);
}

TEST_F(Mutation, SafetensorsFiles) {
  std::vector<std::string> originals;
  for (const char* name : {"torch/dtypes.safetensors", "torch/nested.safetensors", "torch/dict.safetensors",
                           "torch/shared.safetensors"})
    originals.push_back(read_file(golden(name)));
  const MemoryLimit limit;
  int loaded = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    spill(folder_ / "x.safetensors", mutated(originals[seed % originals.size()], seed));
    loaded += loads(seed, [&] { touch(read_safetensors(folder_ / "x.safetensors")); });
  }
  EXPECT_GT(loaded, 10);
  EXPECT_LT(loaded, 990);
}

TEST_F(Mutation, ModelDirectories) {
  test::write_tiny_table(folder_ / "table");
  const fs::path folder = folder_ / "m";
  fs::create_directories(folder);
  write_model_dir(folder, test::tiny_model(folder_ / "table"),
                  {.precision = WeightPrecision::kInt8, .source = "a test"});
  const std::vector<std::string> files = {"config.yaml",
                                          "model.json",
                                          "model.safetensors",
                                          "manifest.json",
                                          "tokenizer/tokenizer_config.json",
                                          "tokenizer/spiece.model",
                                          "latents/table.json",
                                          "latents/table.safetensors"};
  std::vector<std::string> listed = {"config.yaml",
                                     "model.json",
                                     "model.safetensors",
                                     "tokenizer/tokenizer_config.json",
                                     "tokenizer/spiece.model",
                                     "latents/table.json",
                                     "latents/table.safetensors"};
  std::map<std::string, std::string> good;
  for (const std::string& file : files) good[file] = read_file(folder / file);
  load_model(folder, at::kCPU);
  const MemoryLimit limit;
  int loaded = 0;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const std::string& file = files[seed % files.size()];
    spill(folder / file, mutated(good.at(file), seed));
    // Every other time the manifest agrees, so that the readers behind it meet the damage.
    if (seed / files.size() % 2 == 0 && file != "manifest.json") write_manifest(folder, listed);
    loaded +=
        loads(seed, [&] { load_model(folder, at::kCPU, seed % 3 == 0 ? Weights::kRaw : Weights::kEma); });
    spill(folder / file, good.at(file));
    spill(folder / "manifest.json", good.at("manifest.json"));
  }
  EXPECT_GT(loaded, 10);
  EXPECT_LT(loaded, 990);
}

}  // namespace
}  // namespace elf

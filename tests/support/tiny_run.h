// A corpus, tokenizer, table and configuration on which elf-train makes a step in milliseconds.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "support/command.h"

namespace elf::test {

class TinyRun : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder_ = std::filesystem::temp_directory_path() / ("elf_tiny_run_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
    write_docs("docs.txt", 300);
    must(
        "elf-prepare tokenizer --input docs.txt --vocab-size 64 --model-type word --extra-ids 0 --out words");
    must(
        "elf-prepare corpus --input docs.txt --tokenizer words --max-length 8 --valid-fraction 0.1 "
        "--valid-out valid.h5 --out docs.h5");
    must("elf-prepare table --data docs.h5 --kind svd --width 8 --out table");
    spill(folder_ / "run.yaml", kConfig);
  }
  static void TearDownTestSuite() { std::filesystem::remove_all(folder_); }

  static void write_docs(const std::string& name, int count) {
    const std::string words[] = {"the", "king", "said", "unto", "his", "men",
                                 "go",  "up",   "and",  "see",  "land"};
    std::string docs;
    for (int i = 0; i < count; ++i) {
      for (int k = 0; k < 3 + i % 4; ++k) docs += (k ? " " : "") + words[(i * 7 + k * k * 3 + k * i) % 11];
      docs += "\n";
    }
    spill(folder_ / name, docs);
  }

  // One thread: bitwise comparisons need it.
  static Outcome tool(const std::string& command) {
    return run(folder_, "export OMP_NUM_THREADS=1; " + command);
  }
  static Outcome must(const std::string& command) {
    const Outcome outcome = tool(command);
    EXPECT_EQ(outcome.code, 0) << command << "\n" << outcome.err;
    return outcome;
  }
  static std::vector<nlohmann::json> metrics(const std::string& run_name) {
    std::vector<nlohmann::json> lines;
    std::istringstream text(slurp(folder_ / run_name / "metrics.jsonl"));
    for (std::string line; std::getline(text, line);) lines.push_back(nlohmann::json::parse(line));
    return lines;
  }
  // The last line of training figures.
  static nlohmann::json last_metrics(const std::string& run_name) {
    nlohmann::json last;
    for (const nlohmann::json& line : metrics(run_name)) {
      if (line.contains("loss")) last = line;
    }
    return last;
  }
  static std::string latest(const std::string& run_name) {
    std::string name = slurp(folder_ / run_name / "checkpoints/latest");
    while (!name.empty() && name.back() == '\n') name.pop_back();
    return name;
  }
  static std::filesystem::path checkpoint(const std::string& run_name, int step) {
    char name[32];
    std::snprintf(name, sizeof name, "step-%08d", step);
    return folder_ / run_name / "checkpoints" / name;
  }
  // Weights, averages and optimiser, byte by byte.
  static void expect_equal_checkpoints(const std::filesystem::path& a, const std::filesystem::path& b) {
    for (const char* file : {"model.safetensors", "ema.safetensors", "optimizer.safetensors"}) {
      const std::string bytes = slurp(a / file);
      ASSERT_FALSE(bytes.empty()) << a;
      EXPECT_TRUE(bytes == slurp(b / file)) << file << " of " << a << " and " << b;
    }
  }

  static constexpr const char* kConfig = R"(
model: {depth: 4, hidden_size: 16, num_heads: 2, latent_dim: 8, bottleneck_dim: 8,
        num_time_tokens: 1, num_self_cond_cfg_tokens: 1, num_model_mode_tokens: 1, dropout: 0.1}
latents: {source: table, path: table, mean: 0.0, std: 1.0}
data: {train: docs.h5, valid: valid.h5, tokenizer: words}
flow: {pad_token: pad, denoiser_noise_scale: 0.5, decoder_noise_scale: 0.5}
optimizer: {kind: muon, lr: 2e-3, warmup_steps: 2, schedule: linear, ema_decay: 0.9}
train: {global_batch_size: 16, steps: 20, log_every: 1, valid_every: 0, save_every: 0}
sampling: {steps: 2}
)";
  static inline std::filesystem::path folder_;
};

}  // namespace elf::test

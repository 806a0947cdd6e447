// A corpus, tokenizer, table and configuration on which elf-train makes a step in milliseconds.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "support/tool_test.h"

namespace elf::test {

class TinyRun : public ToolTest {
 protected:
  static void SetUpTestSuite() {
    make_folder("tiny_run");
    make_small_data();
    spill(folder_ / "run.yaml", kConfig);
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
};

}  // namespace elf::test

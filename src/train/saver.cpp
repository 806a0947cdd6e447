#include "elf/train/saver.h"

#include <ATen/ATen.h>

#include <chrono>
#include <fstream>
#include <limits>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "faults.h"

namespace elf {
namespace {

// What the kernel says it could give without swapping; unlimited where it does not say.
int64_t available_bytes() {
  std::ifstream info("/proc/meminfo");
  for (std::string key, unit; info >> key;) {
    int64_t kib = 0;
    if (!(info >> kib)) break;
    if (key == "MemAvailable:") return kib * 1024;
    std::getline(info, unit);
  }
  return std::numeric_limits<int64_t>::max();
}

TensorMap copy_of(const TensorMap& tensors) {
  TensorMap copies;
  for (const auto& [name, tensor] : tensors)
    copies[name] = tensor.detach().to(at::kCPU, tensor.scalar_type(), false, true);
  return copies;
}

int64_t size_of(const TensorMap& tensors) {
  int64_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += static_cast<int64_t>(tensor.nbytes());
  return bytes;
}

}  // namespace

int64_t size_of(const Checkpoint& checkpoint) {
  return size_of(checkpoint.model) + size_of(checkpoint.ema) + size_of(checkpoint.optimizer);
}

Saver::Saver(std::filesystem::path folder, const SavePolicy& policy)
    : folder_(std::move(folder)), policy_(policy) {}

Saver::~Saver() {
  try {
    wait();
  } catch (const std::exception& error) {
    log_error(error.what());
  }
}

bool Saver::in_background(int64_t bytes) const {
  return policy_.background && available_bytes() / 2 > bytes;  // the copy, and room for what training needs
}

bool Saver::busy() const {
  return writing_.valid() && writing_.wait_for(std::chrono::seconds(0)) != std::future_status::ready;
}

void Saver::save(int64_t step, const Checkpoint& checkpoint, bool is_best, bool background) {
  wait();
  if (!background) return write(step, checkpoint, is_best);
  Checkpoint copy{copy_of(checkpoint.model), copy_of(checkpoint.ema), copy_of(checkpoint.optimizer),
                  checkpoint.state};
  writing_ = std::async(std::launch::async,
                        [this, step, is_best, copy = std::move(copy)] { write(step, copy, is_best); });
}

void Saver::wait() {
  if (writing_.valid()) writing_.get();
}

void Saver::write(int64_t step, const Checkpoint& checkpoint, bool is_best) const {
  fault_point("save", step);
  save_checkpoint(folder_, step, checkpoint);
  if (is_best) mark_best(folder_, step);
  remove_old_checkpoints(folder_, policy_.keep_last, policy_.keep_every);
}

}  // namespace elf

#include "elf/tensor/replay.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "elf/base/error.h"
#include "elf/base/log.h"
#include "elf/base/plugin.h"

namespace elf {
namespace {

bool alike(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

std::string first_line(const std::exception& error) {
  const auto* of_torch = dynamic_cast<const c10::Error*>(&error);
  const std::string text = of_torch ? of_torch->what_without_backtrace() : error.what();
  return text.substr(0, text.find('\n'));
}

void log_plain(const std::string& why) {
  log_info(cat("no CUDA graphs, network calls are launched kernel by kernel: ", why));
}

}  // namespace

std::unique_ptr<Recorder> make_recorder(at::Device device) {
  if (!device.is_cuda()) return nullptr;
  const PluginFunction make = plugin_function("libelf_cuda_graph.so", "elf_make_cuda_recorder");
  std::unique_ptr<Recorder> recorder;
  if (make.address == nullptr) {
    log_plain(make.failure);
  } else {
    reinterpret_cast<void (*)(at::Device, std::unique_ptr<Recorder>&)>(make.address)(device, recorder);
  }
  return recorder;
}

Replayed::Replayed(Function function, std::unique_ptr<Recorder> recorder)
    : function_(std::move(function)), recorder_(std::move(recorder)) {}

Replayed::Shape* Replayed::find(const std::vector<at::Tensor>& inputs) {
  const auto found = std::ranges::find_if(
      shapes_, [&](const auto& shape) { return std::ranges::equal(shape->inputs, inputs, alike); });
  return found == shapes_.end() ? nullptr : found->get();
}

void Replayed::remember(const std::vector<at::Tensor>& inputs) {
  if (shapes_.size() == kMostShapes) shapes_.erase(shapes_.begin());
  auto shape = std::make_unique<Shape>();
  for (const at::Tensor& input : inputs)
    shape->inputs.push_back(input.defined() ? at::empty(input.sizes(), input.options()) : input);
  shapes_.push_back(std::move(shape));
}

at::Tensor Replayed::operator()(const std::vector<at::Tensor>& inputs) {
  if (!recorder_ || at::GradMode::is_enabled()) return function_(inputs);
  Shape* shape = find(inputs);
  if (shape == nullptr) {
    remember(inputs);
    return function_(inputs);
  }
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].defined()) shape->inputs[i].copy_(inputs[i]);
  }
  try {
    if (!shape->recording)
      shape->recording = recorder_->record([this, shape] { return function_(shape->inputs); });
    shape->recording->replay();
    return shape->recording->output().clone();
  } catch (const std::exception& error) {
    log_plain(first_line(error));
    shapes_.clear();
    recorder_.reset();
    return function_(inputs);
  }
}

}  // namespace elf

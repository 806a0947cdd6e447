// The weights of a T5 by their Hugging Face names: the one list that loading, saving, drawing and training go
// through.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <vector>

#include "elf/model/t5.h"

namespace elf {

struct T5Weight {
  std::string name;
  at::Tensor* tensor;
  std::vector<int64_t> shape;
  double init_std;  // 0: ones
  bool linear;      // a linear map (out, in); else a norm, an embedding or a bias table
};

// Weights of the stack `which` ("encoder" or "decoder"); makes the blocks when there are none.
std::vector<T5Weight> stack_weights(T5Stack& stack, const T5Config& config, const std::string& which);

// Embedding, encoder and, as asked, decoder and untied head.
std::vector<T5Weight> all_weights(T5Model& model, bool with_decoder);

}  // namespace elf

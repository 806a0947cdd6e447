// The few facts that SentencePiece's own interface does not tell, read from the serialised model (protocol
// buffers wire format).
#pragma once

#include <string>
#include <string_view>

namespace elf::text {

struct ModelFacts {
  bool whole =
      false;  // the bytes are well-formed to their end and hold pieces, trainer and normaliser settings
  int64_t pieces = 0;
  std::string model_type = "unigram";
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
};

// Never throws: bytes that are no model give whole = false.
ModelFacts read_model_facts(std::string_view model);

}  // namespace elf::text

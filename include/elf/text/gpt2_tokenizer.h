// GPT-2's tokenizer: byte-level BPE (Radford et al. 2019). Any text comes back from its ids. Immutable after
// loading: every method may be called from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

class Gpt2Tokenizer {
 public:
  static constexpr const char* kVocabularyFile = "vocab.json";
  static constexpr const char* kMergesFile = "merges.txt";

  // A folder with vocab.json (token to id) and merges.txt (pairs, likeliest first), as GPT-2's publishers and
  // Hugging Face have them. Throws Error (usage) naming file and line: missing, Git LFS pointer, no JSON, a
  // byte without token, a merge whose parts or result are no tokens.
  static Gpt2Tokenizer load(const std::filesystem::path& folder);

  int64_t size() const;             // 50257
  int32_t end_of_text() const;      // id of <|endoftext|>: 50256
  const std::string& hash() const;  // identity: digest of both files

  // The ids of valid UTF-8 text. "<|endoftext|>" in the text becomes end_of_text(). Time grows with
  // n log n, for words without end too.
  std::vector<int32_t> encode(std::string_view text) const;

  // The bytes of the ids, malformed UTF-8 as U+FFFD. Ids outside [0, size()) are left out.
  std::string decode(const std::vector<int32_t>& ids) const;

 private:
  struct Impl;
  explicit Gpt2Tokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// The pieces that byte pairs are merged within: contractions ('s 't 're 've 'm 'll 'd), then letters, digits
// or other marks with at most one blank before them, then white space (all but the last of a run that a word
// follows). Concatenated they are the text.
std::vector<std::string_view> gpt2_pieces(std::string_view text);

}  // namespace elf

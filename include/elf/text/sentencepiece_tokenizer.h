// SentencePiece with T5's conventions: pad 0, eos 1, unk 2, no bos, and `extra_ids` sentinels after the
// pieces, <extra_id_0> being the last id of all. Encoding and decoding give what the T5 tokenizer of the
// published environment gives (tests/golden/tokenizer). Immutable after loading: every method may be called
// from several threads at once.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace elf {

// How ids become text.
struct DecodeOptions {
  bool skip_special =
      true;  // pad, eos, unk and extra ids are left out; false: written as <pad>, </s>, <unk>, <extra_id_N>
  bool clean_up = false;  // then clean_up_spaces()
};

class SentencePieceTokenizer {
 public:
  // Extra ids of a bare spiece.model: what the published T5 models have.
  static constexpr int kPublishedExtraIds = 100;

  // A folder (spiece.model, and tokenizer_config.json whose `extra_ids` counts) or a .model file; a
  // tokenizer_config.json beside the file counts too, and without one there are kPublishedExtraIds. Throws
  // Error (usage) naming the file: missing, Git LFS pointer, HTML, cut short, no SentencePiece model, without
  // an unknown piece.
  static SentencePieceTokenizer load(const std::filesystem::path& path);
  // From the bytes of a model; `name` stands in messages.
  static SentencePieceTokenizer from_bytes(const std::string& model, int extra_ids, const std::string& name);

  // spiece.model and tokenizer_config.json in `folder` (made when missing): load(folder) gives an equal
  // tokenizer.
  void save(const std::filesystem::path& folder) const;

  // Pieces and extra ids: ids are [0, size()). T5: 32000 + 100.
  int64_t size() const;
  int64_t pieces() const;
  int extra_ids() const;
  int32_t pad_id() const;  // 0 in T5 models; -1 when the model has none
  int32_t eos_id() const;  // 1
  int32_t unk_id() const;  // 2
  // "unigram", "bpe", "word" or "char".
  const std::string& model_type() const;
  // Identity of the tokenizer: digest of the model's bytes and the number of extra ids. Stored in datasets
  // and checkpoints.
  const std::string& hash() const;
  // The model's bytes, as read.
  const std::string& model_bytes() const;

  // Special tokens written out in the text (<pad>, </s>, <unk>, <extra_id_N>) become their ids and take the
  // white space around them along, as in the T5 tokenizer. With add_eos an EOS is added at the end.
  // `unknown`, if given, receives the stretches of (normalised) text that became unknown, in order. Texts of
  // more than 256 KiB are encoded in parts, cut at blanks, so that memory stays flat.
  std::vector<int32_t> encode(std::string_view text, bool add_eos = false,
                              std::vector<std::string>* unknown = nullptr) const;
  // What SentencePiece alone gives: special tokens in the text are ordinary characters.
  std::vector<int32_t> encode_plain(std::string_view text) const;
  // Its pieces as SentencePiece writes them, unknown stretches as they stand in the text.
  std::vector<std::string> encode_as_pieces(std::string_view text) const;

  // Ids outside [0, size()) are skipped.
  std::string decode(const std::vector<int32_t>& ids, DecodeOptions options = {}) const;
  std::string decode(const std::vector<int64_t>& ids, DecodeOptions options = {}) const;
  // decode(ids) == text, faster: it ends at the first difference.
  bool decodes_to(const std::vector<int32_t>& ids, std::string_view text) const;
  // SentencePiece's own decoding (unknown pieces as " \u2047 "); extra ids, control pieces and ids outside
  // the range are left out.
  std::string decode_plain(const std::vector<int32_t>& ids) const;

  // The piece of an id ("\u2581the", "</s>", "<extra_id_3>"); "" outside the range.
  std::string piece(int64_t id) const;
  // The id of a piece or special token; unk_id() when there is none.
  int32_t id_of(std::string_view piece) const;
  // pad, eos, unk, other control pieces and extra ids.
  bool is_special(int64_t id) const;

 private:
  struct Impl;
  explicit SentencePieceTokenizer(std::shared_ptr<const Impl> impl);
  std::shared_ptr<const Impl> impl_;
};

// The clean-up of blanks that the published environment applies after decoding: before . ? ! , and around '
// and before n't 'm 's 've 're.
std::string clean_up_spaces(std::string text);

}  // namespace elf

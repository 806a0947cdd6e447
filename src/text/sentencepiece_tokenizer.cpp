#include "elf/text/sentencepiece_tokenizer.h"

#include <sentencepiece_processor.h>

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/text/unicode.h"
#include "model_proto.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kBlankMark = "\xE2\x96\x81";  // U+2581, SentencePiece's blank
constexpr std::string_view kExtraPrefix = "<extra_id_";
constexpr size_t kLongestSpecial =
    64;  // bytes looked at for a special token: a text of nothing but "<" stays cheap
constexpr size_t kLongText = size_t{1} << 18;  // bytes; longer texts are encoded in parts of about this size
constexpr const char* kModelName = "spiece.model";
constexpr const char* kConfigName = "tokenizer_config.json";

// `extra_ids` of a tokenizer_config.json; the published number when there is no such file or key.
int extra_ids_of(const fs::path& config) {
  if (!fs::exists(config)) return SentencePieceTokenizer::kPublishedExtraIds;
  const auto json = parse_json(read_file(config));
  if (!json.is_object()) usage_error(config.string(), ": no JSON object");
  if (!json.contains("extra_ids")) return SentencePieceTokenizer::kPublishedExtraIds;
  if (!json["extra_ids"].is_number_unsigned() || json["extra_ids"] > 1'000'000) {
    usage_error(config.string(), ": extra_ids is ", json["extra_ids"].dump(), ", expected a count");
  }
  return json["extra_ids"].get<int>();
}

// The piece with `blank` for each of its blank marks.
std::string with_blanks(std::string_view piece, std::string_view blank) {
  std::string text;
  for (size_t at; (at = piece.find(kBlankMark)) != std::string_view::npos;
       piece.remove_prefix(at + kBlankMark.size())) {
    text.append(piece.substr(0, at)).append(blank);
  }
  return text.append(piece);
}

// What decoding needs to know of an id.
struct Piece {
  std::string written;   // as the model has it: "\u2581the"
  std::string inside;    // in the middle of a text: " the"
  std::string at_start;  // at its start, where the model puts a blank of its own: "the"
  bool special = false;  // pad, eos, unk, control
  int byte = -1;         // of a byte piece
};

}  // namespace

struct SentencePieceTokenizer::Impl {
  std::string model, hash;
  text::ModelFacts facts;
  int extra_ids = 0;
  sentencepiece::SentencePieceProcessor processor;
  std::vector<Piece> pieces;
  std::unordered_map<std::string, int32_t> specials;  // written form of pad, eos, unk
  bool words_apart = false;  // no piece reaches over a blank: words are encoded independently

  int64_t size() const { return static_cast<int64_t>(pieces.size()); }

  // The special token at the start of `rest`: its id and its length in bytes; -1 when there is none.
  int32_t special_at(std::string_view rest, size_t& length) const {
    const size_t end = rest.substr(0, kLongestSpecial).find('>');
    if (end == std::string_view::npos) return -1;
    const std::string_view token = rest.substr(0, end + 1);
    length = token.size();
    if (const auto found = specials.find(std::string(token)); found != specials.end()) return found->second;
    if (!token.starts_with(kExtraPrefix)) return -1;
    const char* first = token.data() + kExtraPrefix.size();
    const char* last = token.data() + token.size() - 1;
    int number = -1;
    const auto [stop, code] = std::from_chars(first, last, number);
    const bool plain =
        code == std::errc() && stop == last && *first != '-' && (*first != '0' || last - first == 1);
    return plain && number < extra_ids ? static_cast<int32_t>(size() - 1 - number) : -1;
  }

  // SentencePiece's memory grows by a hundred bytes a piece: a text of many megabytes is encoded in parts,
  // cut at blanks, which no piece reaches over.
  void append_plain(std::string_view text, std::vector<int32_t>& ids,
                    std::vector<std::string>* unknown = nullptr) const {
    while (words_apart && text.size() > kLongText) {
      const size_t blank = text.find(' ', kLongText);
      if (blank == std::string_view::npos) break;
      append_part(text.substr(0, blank), ids, unknown);
      text.remove_prefix(blank + 1);
    }
    append_part(text, ids, unknown);
  }

  void append_part(std::string_view text, std::vector<int32_t>& ids,
                   std::vector<std::string>* unknown) const {
    if (text.empty()) return;
    const auto encoded = processor.EncodeAsImmutableProto(text);
    const size_t count = encoded.pieces_size();
    const auto unk = static_cast<uint32_t>(processor.unk_id());
    ids.reserve(ids.size() + count);
    for (size_t i = 0; i < count; ++i) {
      const auto piece = encoded.pieces(static_cast<int>(i));
      ids.push_back(static_cast<int32_t>(piece.id()));
      if (unknown && piece.id() == unk) unknown->push_back(piece.surface());
    }
  }

  // Of the model's pieces and, after them, the extra ids.
  void fill_pieces() {
    const int known = processor.GetPieceSize();
    for (int id = 0; id < known; ++id) {
      Piece piece{processor.IdToPiece(id), "", "", processor.IsControl(id) || processor.IsUnknown(id), -1};
      piece.inside = with_blanks(piece.written, " ");
      piece.at_start = with_blanks(piece.written, facts.add_dummy_prefix ? "" : " ");
      if (processor.IsByte(id)) piece.byte = std::stoi(piece.written.substr(3, 2), nullptr, 16);  // <0xE4>
      pieces.push_back(std::move(piece));
    }
    for (int number = extra_ids - 1; number >= 0; --number) {
      const std::string written = cat(kExtraPrefix, number, ">");
      pieces.push_back({written, written, written, true, -1});
    }
    const auto reaches_over_a_blank = [](const Piece& piece) {
      return piece.written.find(kBlankMark, 1) != std::string::npos;
    };
    words_apart = facts.add_dummy_prefix && facts.remove_extra_whitespaces &&
                  std::none_of(pieces.begin(), pieces.end(), reaches_over_a_blank);
    for (const int id : {processor.pad_id(), processor.eos_id(), processor.unk_id()}) {
      if (id >= 0) specials[pieces[static_cast<size_t>(id)].written] = id;
    }
  }
};

SentencePieceTokenizer::SentencePieceTokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

SentencePieceTokenizer SentencePieceTokenizer::load(const fs::path& path) {
  const bool folder = fs::is_directory(path);
  const fs::path model = folder ? path / kModelName : path;
  return from_bytes(read_file(model), extra_ids_of(model.parent_path() / kConfigName), model.string());
}

SentencePieceTokenizer SentencePieceTokenizer::from_bytes(const std::string& model, int extra_ids,
                                                          const std::string& name) {
  if (const std::string look = what_bytes_look_like(std::string_view(model).substr(0, 256)); !look.empty()) {
    usage_error(name, ": expected a SentencePiece model, found ", look);
  }
  auto impl = std::make_shared<Impl>();
  impl->facts = text::read_model_facts(model);
  if (!impl->facts.whole)
    usage_error(name, ": no SentencePiece model, or one that is cut short (", model.size(), " bytes)");
  std::string fault;
  try {
    const auto status = impl->processor.LoadFromSerializedProto(model);
    if (!status.ok()) fault = status.ToString();
  } catch (const std::exception& error) {  // of the library that it keeps its pieces in
    fault = error.what();
  }
  if (!fault.empty()) usage_error(name, ": SentencePiece cannot load it: ", fault);
  impl->model = model;
  impl->extra_ids = extra_ids;
  impl->hash = digest(cat(model, "\nextra_ids ", extra_ids));
  impl->fill_pieces();
  return SentencePieceTokenizer(std::move(impl));
}

void SentencePieceTokenizer::save(const fs::path& folder) const {
  make_folder(folder);
  const nlohmann::ordered_json config = {
      {"tokenizer_class", "T5Tokenizer"}, {"extra_ids", extra_ids()},
      {"model_type", model_type()},       {"vocab_size", size()},
      {"pad_token", piece(pad_id())},     {"eos_token", piece(eos_id())},
      {"unk_token", piece(unk_id())},     {"hash", hash()},
  };
  write_file(folder / kConfigName, config.dump(2) + "\n");
  write_file(folder / kModelName, model_bytes());
}

int64_t SentencePieceTokenizer::size() const {
  return impl_->size();
}
int64_t SentencePieceTokenizer::pieces() const {
  return size() - extra_ids();
}
int SentencePieceTokenizer::extra_ids() const {
  return impl_->extra_ids;
}
int32_t SentencePieceTokenizer::pad_id() const {
  return impl_->processor.pad_id();
}
int32_t SentencePieceTokenizer::eos_id() const {
  return impl_->processor.eos_id();
}
int32_t SentencePieceTokenizer::unk_id() const {
  return impl_->processor.unk_id();
}
const std::string& SentencePieceTokenizer::model_type() const {
  return impl_->facts.model_type;
}
const std::string& SentencePieceTokenizer::hash() const {
  return impl_->hash;
}
const std::string& SentencePieceTokenizer::model_bytes() const {
  return impl_->model;
}

std::vector<int32_t> SentencePieceTokenizer::encode(std::string_view text, bool add_eos,
                                                    std::vector<std::string>* unknown) const {
  std::vector<int32_t> ids;
  size_t begin = 0;            // of the stretch that holds no special token
  bool after_special = false;  // then its leading white space belongs to the token
  for (size_t at = text.find('<'); at != std::string_view::npos; at = text.find('<', at)) {
    size_t length = 0;
    const int32_t id = impl_->special_at(text.substr(at), length);
    if (id < 0) {
      ++at;
      continue;
    }
    impl_->append_plain(strip_space(text.substr(begin, at - begin), after_special, true), ids, unknown);
    ids.push_back(id);
    at = begin = at + length;
    after_special = true;
  }
  impl_->append_plain(strip_space(text.substr(begin), after_special, false), ids, unknown);
  if (add_eos && eos_id() >= 0) ids.push_back(eos_id());
  return ids;
}

std::vector<int32_t> SentencePieceTokenizer::encode_plain(std::string_view text) const {
  std::vector<int32_t> ids;
  impl_->append_plain(text, ids);
  return ids;
}

std::vector<std::string> SentencePieceTokenizer::encode_as_pieces(std::string_view text) const {
  std::vector<std::string> pieces;
  const auto status = impl_->processor.Encode(text, &pieces);
  if (!status.ok()) environment_error("SentencePiece cannot encode a text: ", status.ToString());
  return pieces;
}

std::string SentencePieceTokenizer::decode(const std::vector<int32_t>& ids, DecodeOptions options) const {
  std::string text;
  bool start = true, bytes = false;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) continue;
    const Piece& piece = impl_->pieces[static_cast<size_t>(id)];
    if (options.skip_special && piece.special) continue;
    if (piece.byte >= 0) {
      text += static_cast<char>(piece.byte);
      bytes = true;
    } else {
      text += start ? piece.at_start : piece.inside;
    }
    start = false;
  }
  if (bytes) text = replace_bad_text(text);
  return options.clean_up ? clean_up_spaces(std::move(text)) : text;
}

bool SentencePieceTokenizer::decodes_to(const std::vector<int32_t>& ids, std::string_view text) const {
  size_t at = 0;
  bool start = true;
  for (const int32_t id : ids) {
    if (id < 0 || id >= size()) continue;
    const Piece& piece = impl_->pieces[static_cast<size_t>(id)];
    if (piece.special) continue;
    if (piece.byte >= 0) return decode(ids) == text;
    const std::string& written = start ? piece.at_start : piece.inside;
    if (text.substr(at, written.size()) != written) return false;
    at += written.size();
    start = false;
  }
  return at == text.size();
}

std::string SentencePieceTokenizer::decode(const std::vector<int64_t>& ids, DecodeOptions options) const {
  std::vector<int32_t> narrow;
  for (const int64_t id : ids) {
    if (id >= 0 && id < size()) narrow.push_back(static_cast<int32_t>(id));
  }
  return decode(narrow, options);
}

std::string SentencePieceTokenizer::decode_plain(const std::vector<int32_t>& ids) const {
  std::vector<int> known;
  for (const int32_t id : ids) {
    if (id >= 0 && id < pieces() && !impl_->processor.IsControl(id)) known.push_back(id);
  }
  return impl_->processor.DecodeIds(known);
}

std::string SentencePieceTokenizer::piece(int64_t id) const {
  return id < 0 || id >= size() ? "" : impl_->pieces[static_cast<size_t>(id)].written;
}

int32_t SentencePieceTokenizer::id_of(std::string_view piece) const {
  size_t length = 0;
  const int32_t special = impl_->special_at(piece, length);
  if (special >= 0 && length == piece.size()) return special;
  return impl_->processor.PieceToId(piece);
}

bool SentencePieceTokenizer::is_special(int64_t id) const {
  return id >= 0 && id < size() && impl_->pieces[static_cast<size_t>(id)].special;
}

std::string clean_up_spaces(std::string text) {
  static constexpr std::pair<std::string_view, std::string_view> kRules[] = {
      {" .", "."},     {" ?", "?"},   {" !", "!"},   {" ,", ","},     {" ' ", "'"},
      {" n't", "n't"}, {" 'm", "'m"}, {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  for (const auto& [from, to] : kRules) {
    std::string result;
    size_t begin = 0, at;
    while ((at = text.find(from, begin)) != std::string::npos) {
      result.append(text, begin, at - begin).append(to);
      begin = at + from.size();
    }
    text = result.append(text, begin, std::string::npos);
  }
  return text;
}

}  // namespace elf

#include "elf/text/gpt2_tokenizer.h"

#include <array>
#include <nlohmann/json.hpp>
#include <queue>
#include <unordered_map>

#include "elf/base/error.h"
#include "elf/base/files.h"
#include "elf/base/json.h"
#include "elf/text/words.h"

namespace elf {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>";

// Tokens are written with one printable character for each byte: itself where it is printable, else the next
// one free from U+0100 on.
std::array<char32_t, 256> byte_characters() {
  std::array<char32_t, 256> characters = {};
  char32_t next = 0x100;
  for (char32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte >= '!' && byte <= '~') || (byte >= 0xA1 && byte <= 0xAC) || (byte >= 0xAE && byte <= 0xFF);
    characters[byte] = printable ? byte : next++;
  }
  return characters;
}

// The bytes that a written token stands for; false when a character stands for none.
bool bytes_of_token(const std::string& token, std::string& bytes) {
  static const std::unordered_map<char32_t, char> byte_of = [] {
    std::unordered_map<char32_t, char> map;
    const std::array<char32_t, 256> characters = byte_characters();
    for (int byte = 0; byte < 256; ++byte) map[characters[byte]] = static_cast<char>(byte);
    return map;
  }();
  bytes.clear();
  for (const char32_t c : decode_utf8(token)) {
    const auto found = byte_of.find(c);
    if (found == byte_of.end()) return false;
    bytes.push_back(found->second);
  }
  return true;
}

uint64_t pair_key(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

std::string read_part(const fs::path& path) {
  const std::string content = read_file(path);
  if (const std::string look = what_bytes_look_like(std::string_view(content).substr(0, 256)); !look.empty())
    usage_error(path.string(), ": expected GPT-2's ", path.filename().string(), ", found ", look);
  return content;
}

}  // namespace

struct Gpt2Tokenizer::Impl {
  struct Merge {
    int32_t rank, result;
  };

  std::string hash{};
  std::vector<std::string> bytes{};  // of each token
  std::array<int32_t, 256> byte_ids{};
  std::unordered_map<uint64_t, Merge> merges{};
  int32_t end_of_text = -1;

  void read_vocabulary(const std::string& content, const std::string& file,
                       std::unordered_map<std::string, int32_t>& ids) {
    const auto json = parse_json(content);
    if (!json.is_object() || json.empty()) usage_error(file, ": no JSON object of tokens and ids");
    bytes.resize(json.size());
    for (const auto& [token, value] : json.items()) {
      if (!value.is_number_integer() || value < 0 || value >= json.size())
        usage_error(file, ": token '", token, "' has the id ", value.dump(), ", expected 0 to ",
                    json.size() - 1);
      const auto id = value.get<int32_t>();
      if (token == kEndOfText) {
        end_of_text = id;
        bytes[static_cast<size_t>(id)] = token;
      } else if (!bytes_of_token(token, bytes[static_cast<size_t>(id)])) {
        usage_error(file, ": token '", token, "' holds a character that stands for no byte");
      }
      ids[bytes[static_cast<size_t>(id)]] = id;
    }
    if (end_of_text < 0) usage_error(file, ": no token ", kEndOfText);
    for (int byte = 0; byte < 256; ++byte) {
      const auto found = ids.find(std::string(1, static_cast<char>(byte)));
      if (found == ids.end()) usage_error(file, ": no token for the byte ", byte);
      byte_ids[static_cast<size_t>(byte)] = found->second;
    }
  }

  void read_merges(const std::string& content, const std::string& file,
                   const std::unordered_map<std::string, int32_t>& ids) {
    const auto id_of = [&](const std::string& token, int64_t line) {
      std::string text;
      const auto found = bytes_of_token(token, text) ? ids.find(text) : ids.end();
      if (found == ids.end())
        usage_error(file, ":", line, ": '", token, "' is no token of ", kVocabularyFile);
      return found->second;
    };
    int64_t line = 0;
    int32_t rank = 0;
    for (size_t begin = 0; begin < content.size();) {
      const size_t end = std::min(content.find('\n', begin), content.size());
      std::string_view text(content.data() + begin, end - begin);
      begin = end + 1;
      ++line;
      if (!text.empty() && text.back() == '\r') text.remove_suffix(1);
      if (text.empty() || text.starts_with("#version")) continue;
      const size_t blank = text.find(' ');
      if (blank == std::string_view::npos)
        usage_error(file, ":", line, ": expected two tokens with a blank between");
      const std::string left(text.substr(0, blank)), right(text.substr(blank + 1));
      const Merge merge{rank++, id_of(left + right, line)};
      merges.emplace(pair_key(id_of(left, line), id_of(right, line)), merge);
    }
  }

  // Merges the pair of lowest rank, the leftmost first, until none is left.
  void append_piece(std::string_view piece, std::vector<int32_t>& ids) const {
    struct Part {
      int32_t id, previous, next;
    };
    std::vector<Part> parts;
    const auto count = static_cast<int32_t>(piece.size());
    for (int32_t i = 0; i < count; ++i)
      parts.push_back({byte_ids[static_cast<unsigned char>(piece[i])], i - 1, i + 1 < count ? i + 1 : -1});

    struct Candidate {
      int32_t rank, place, left, right, result;
      bool operator>(const Candidate& other) const {
        return rank != other.rank ? rank > other.rank : place > other.place;
      }
    };
    std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> queue;
    const auto offer = [&](int32_t place) {
      if (place < 0 || parts[place].next < 0) return;
      const int32_t left = parts[place].id, right = parts[parts[place].next].id;
      const auto found = merges.find(pair_key(left, right));
      if (found != merges.end()) queue.push({found->second.rank, place, left, right, found->second.result});
    };
    for (int32_t i = 0; i < count; ++i) offer(i);
    while (!queue.empty()) {
      const Candidate best = queue.top();
      queue.pop();
      Part& left = parts[best.place];
      // Stale: one of the two has become part of another token since.
      if (left.id != best.left || left.next < 0 || parts[left.next].id != best.right) continue;
      Part& right = parts[left.next];
      left.id = best.result;
      right.id = -1;
      left.next = right.next;
      if (left.next >= 0) parts[left.next].previous = best.place;
      offer(left.previous);
      offer(best.place);
    }
    for (int32_t i = 0; i >= 0 && i < count; i = parts[i].next) ids.push_back(parts[i].id);
  }

  void append_text(std::string_view text, std::vector<int32_t>& ids,
                   std::unordered_map<std::string_view, std::vector<int32_t>>& known) const {
    for (const std::string_view piece : gpt2_pieces(text)) {
      const auto [found, is_new] = known.try_emplace(piece);
      if (is_new) append_piece(piece, found->second);
      ids.insert(ids.end(), found->second.begin(), found->second.end());
    }
  }
};

Gpt2Tokenizer::Gpt2Tokenizer(std::shared_ptr<const Impl> impl) : impl_(std::move(impl)) {}

Gpt2Tokenizer Gpt2Tokenizer::load(const fs::path& folder) {
  const fs::path vocabulary = folder / kVocabularyFile, merges = folder / kMergesFile;
  const std::string vocabulary_content = read_part(vocabulary), merges_content = read_part(merges);
  auto impl = std::make_shared<Impl>();
  std::unordered_map<std::string, int32_t> ids;
  impl->read_vocabulary(vocabulary_content, vocabulary.string(), ids);
  impl->read_merges(merges_content, merges.string(), ids);
  impl->hash = digest(cat(digest(vocabulary_content), digest(merges_content)));
  return Gpt2Tokenizer(std::move(impl));
}

int64_t Gpt2Tokenizer::size() const {
  return static_cast<int64_t>(impl_->bytes.size());
}
int32_t Gpt2Tokenizer::end_of_text() const {
  return impl_->end_of_text;
}
const std::string& Gpt2Tokenizer::hash() const {
  return impl_->hash;
}

std::vector<int32_t> Gpt2Tokenizer::encode(std::string_view text) const {
  std::vector<int32_t> ids;
  std::unordered_map<std::string_view, std::vector<int32_t>> known;
  for (size_t at; (at = text.find(kEndOfText)) != std::string_view::npos;) {
    impl_->append_text(text.substr(0, at), ids, known);
    ids.push_back(impl_->end_of_text);
    text.remove_prefix(at + kEndOfText.size());
  }
  impl_->append_text(text, ids, known);
  return ids;
}

std::string Gpt2Tokenizer::decode(const std::vector<int32_t>& ids) const {
  std::string text;
  for (const int32_t id : ids) {
    if (id >= 0 && id < size()) text += impl_->bytes[static_cast<size_t>(id)];
  }
  return encode_utf8(decode_utf8(text));
}

}  // namespace elf

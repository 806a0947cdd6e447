#include "elf/base/json.h"

namespace elf {

bool json_nests_too_deep(std::string_view text) {
  int64_t depth = 0;
  bool in_text = false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_text) {
      if (c == '\\') {
        ++i;
      } else if (c == '"') {
        in_text = false;
      }
    } else if (c == '"') {
      in_text = true;
    } else if (c == '[' || c == '{') {
      if (++depth > kDeepestJson) return true;
    } else if (c == ']' || c == '}') {
      --depth;
    }
  }
  return false;
}

template <class Json>
Json parse_json(std::string_view text) {
  if (json_nests_too_deep(text)) return Json(nlohmann::json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

template <class Json>
Json parse_json_or_throw(std::string_view text) {
  return Json::parse(text);
}

template nlohmann::json parse_json(std::string_view);
template nlohmann::ordered_json parse_json(std::string_view);
template nlohmann::json parse_json_or_throw(std::string_view);
template nlohmann::ordered_json parse_json_or_throw(std::string_view);

}  // namespace elf

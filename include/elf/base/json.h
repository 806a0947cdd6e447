// JSON from text: our own, or to a limited depth what others wrote.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace elf {

// Deeper than any file that is read here. Copying, comparing and dump() of a value recurse: a file of nothing
// but brackets would end the program.
inline constexpr int64_t kDeepestJson = 200;

// Whether arrays and objects stand more than kDeepestJson deep in one another.
bool json_nests_too_deep(std::string_view text);

// The value of `text`; a discarded one (is_discarded(), and of no type) where it is no JSON or nests too
// deep. Json: nlohmann::json or nlohmann::ordered_json; the parser is compiled once, in json.cpp.
template <class Json = nlohmann::json>
Json parse_json(std::string_view text);

// The value of a text that this program wrote, or whose depth was looked at. Throws Json::parse_error: it is
// no JSON.
template <class Json = nlohmann::json>
Json parse_json_or_throw(std::string_view text);

// The text under `key`; `fallback` where there is none, or what is there is no text.
template <class Json>
std::string text_in(const Json& object, const char* key, const std::string& fallback = "") {
  if (!object.is_object()) return fallback;
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->template get<std::string>() : fallback;
}

}  // namespace elf

#include "scalars.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <string_view>

#include "elf/base/error.h"

namespace elf::config {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

size_t skip_digits(std::string_view text, size_t at) {
  while (at < text.size() && is_digit(text[at])) ++at;
  return at;
}

// A leading zero makes an octal number in one dialect and a decimal one in the next.
bool has_leading_zero(std::string_view digits) {
  return digits.size() > 1 && digits[0] == '0' && is_digit(digits[1]);
}

std::string_view without_sign(std::string_view text) {
  return !text.empty() && (text[0] == '+' || text[0] == '-') ? text.substr(1) : text;
}

bool is_integer(std::string_view text) {
  const std::string_view digits = without_sign(text);
  return !digits.empty() && skip_digits(digits, 0) == digits.size() && !has_leading_zero(digits);
}

// [sign] digits [. digits] [e [sign] digits], with digits on at least one side of the point.
bool is_number(std::string_view text) {
  const std::string_view body = without_sign(text);
  if (has_leading_zero(body)) return false;
  size_t at = skip_digits(body, 0);
  size_t digits = at;
  if (at < body.size() && body[at] == '.') {
    const size_t end = skip_digits(body, at + 1);
    digits += end - at - 1;
    at = end;
  }
  if (digits == 0) return false;
  if (at < body.size() && (body[at] == 'e' || body[at] == 'E')) {
    ++at;
    if (at < body.size() && (body[at] == '+' || body[at] == '-')) ++at;
    const size_t end = skip_digits(body, at);
    if (end == at) return false;
    at = end;
  }
  return at == body.size();
}

std::string with_range(const std::string& what, const Rule& rule) {
  const std::string range = range_text(rule);
  return range.empty() ? what : what + " " + range;
}

template <class T>
void assign_integer(const Entry& entry, const Rule& rule, T& value) {
  const std::string expected = with_range("an integer", rule);
  if (entry.style != ScalarStyle::kPlain) refuse(entry, expected);
  if (!is_integer(entry.text)) {
    // What is a number, or nearly one, is told how to write it.
    const std::string_view digits = without_sign(entry.text);
    const bool numeric = !digits.empty() && is_digit(digits[0]);
    refuse(entry,
           expected + (numeric ? ", in plain digits (no exponent, point, underscore or leading zero)" : ""));
  }
  std::string_view text = entry.text;
  if (text[0] == '+') text.remove_prefix(1);
  T parsed{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) {
    refuse(entry, expected + " that fits 64 bits");
  }
  if (!within(rule, static_cast<double>(parsed))) refuse(entry, expected);
  value = parsed;
}

// Words that some YAML dialect reads as a boolean or as nothing.
bool is_reserved(std::string text) {
  for (char& c : text) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const char* word : {"true", "false", "yes", "no", "on", "off", "y", "n", "null", "nan", "inf"}) {
    if (text == word) return true;
  }
  return false;
}

bool is_safe_plain(const std::string& text) {
  if (text.empty() || is_reserved(text)) return false;
  if (!std::isalpha(static_cast<unsigned char>(text[0])) && text[0] != '/') return false;
  for (const char c : text) {
    if (!std::isalnum(static_cast<unsigned char>(c)) &&
        std::string_view("_./-+").find(c) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

}  // namespace

void refuse(const Entry& entry, const std::string& expected) {
  std::string found = "'" + entry.text + "'";
  if (entry.style == ScalarStyle::kQuoted) found = "the quoted text \"" + entry.text + "\"";
  if (entry.style == ScalarStyle::kNull) found = "nothing (null)";
  if (entry.style == ScalarStyle::kNotScalar || entry.style == ScalarStyle::kList) found = entry.text;
  usage_error(entry.place, ": ", entry.dotted(), ": found ", found, ", expected ", expected);
}

namespace {

// A bound without exponent or trailing zeros: 65536, 0.5.
std::string bound_text(double bound) {
  const bool whole = bound == std::floor(bound) && std::abs(bound) < 1e15;
  return whole ? std::to_string(static_cast<int64_t>(bound)) : cat(bound);
}

}  // namespace

std::string range_text(const Rule& rule) {
  const bool low = std::isfinite(rule.min), high = std::isfinite(rule.max);
  if (low && high) {
    return cat("in ", rule.open_min ? "(" : "[", bound_text(rule.min), ", ", bound_text(rule.max),
               rule.open_max ? ")" : "]");
  }
  if (low) return cat(rule.open_min ? "> " : ">= ", bound_text(rule.min));
  if (high) return cat(rule.open_max ? "< " : "<= ", bound_text(rule.max));
  return "";
}

bool within(const Rule& rule, double value) {
  const bool low = rule.open_min ? value > rule.min : value >= rule.min;
  const bool high = rule.open_max ? value < rule.max : value <= rule.max;
  return low && high;  // false for nan
}

void assign(const Entry& entry, const Rule&, bool& value) {
  if (entry.style != ScalarStyle::kPlain || (entry.text != "true" && entry.text != "false")) {
    refuse(entry, "a boolean: true or false");
  }
  value = entry.text == "true";
}

void assign(const Entry& entry, const Rule& rule, int64_t& value) {
  assign_integer(entry, rule, value);
}
void assign(const Entry& entry, const Rule& rule, uint64_t& value) {
  assign_integer(entry, rule, value);
}

void assign(const Entry& entry, const Rule& rule, double& value) {
  const std::string expected = with_range("a finite number", rule);
  if (entry.style != ScalarStyle::kPlain || !is_number(entry.text)) refuse(entry, expected);
  std::string_view text = entry.text;
  if (text[0] == '+') text.remove_prefix(1);
  double parsed = 0;
  const auto result = std::from_chars(text.data(), text.data() + text.size(), parsed);
  if (result.ec != std::errc{}) refuse(entry, expected + " that fits a double");
  if (!within(rule, parsed)) refuse(entry, expected);
  value = parsed;
}

void assign(const Entry& entry, const Rule& rule, std::string& value) {
  if (entry.style == ScalarStyle::kNull) refuse(entry, "text (write \"\" for none)");
  if (entry.style == ScalarStyle::kNotScalar || entry.style == ScalarStyle::kList) refuse(entry, "text");
  if (!rule.path || entry.text.empty()) {
    value = entry.text;
    return;
  }
  std::filesystem::path resolved =
      (std::filesystem::current_path() / entry.folder / entry.text).lexically_normal();
  if (!resolved.has_filename()) resolved = resolved.parent_path();  // "folder/" is "folder"
  value = resolved.string();
}

std::vector<Entry> items_of(const Entry& entry) {
  if (entry.style == ScalarStyle::kList) return entry.items;
  if (entry.style != ScalarStyle::kPlain) refuse(entry, "a list such as [4, 8]");
  std::string_view text = entry.text;
  if (text.starts_with('[') != text.ends_with(']')) refuse(entry, "a list such as [4, 8]");
  if (text.starts_with('[')) text = text.substr(1, text.size() - 2);
  std::vector<Entry> items;
  if (text.find_first_not_of(' ') == std::string_view::npos) return items;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(',', start), text.size());
    std::string_view part = text.substr(start, end - start);
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    items.push_back(entry);
    items.back().text = part;
    start = end + 1;
  }
  return items;
}

std::string value_text(bool value) {
  return value ? "true" : "false";
}
std::string value_text(int64_t value) {
  return std::to_string(value);
}
std::string value_text(uint64_t value) {
  return std::to_string(value);
}
std::string value_text(const std::string& value) {
  return value;
}

std::string value_text(double value) {
  std::array<char, 32> buffer;
  const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  std::string text(buffer.data(), result.ptr);
  if (text.find('.') != std::string::npos) return text;
  const size_t exponent = text.find('e');
  return exponent == std::string::npos ? text + ".0" : text.insert(exponent, ".0");
}

std::string yaml_text(const std::string& value) {
  if (is_safe_plain(value)) return value;
  static constexpr char kHex[] = "0123456789abcdef";
  std::string quoted = "\"";
  for (const char c : value) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += c;
    } else if (byte < 0x20 || byte == 0x7f) {
      quoted += {'\\', 'x', kHex[byte >> 4], kHex[byte & 15]};
    } else {
      quoted += c;
    }
  }
  return quoted + "\"";
}

}  // namespace elf::config

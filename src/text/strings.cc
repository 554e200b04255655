// Strings in quotes, and dictionaries that are taken as they stand.
#include <algorithm>

#include "text/cursor.h"

namespace hloom::text {
namespace {

bool is_octal(char c) { return c >= '0' && c <= '7'; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

// The byte that an escape at `p` (the backslash) stands for; empty if it is none. Moves `p` past it.
std::string Cursor::escape(const char*& p) {
  constexpr std::string_view kNames = "ntrabfv\\\"'?";
  constexpr std::string_view kBytes = "\n\t\r\a\b\f\v\\\"'?";
  const char* at = p + 1;
  if (at >= end_) return {};
  if (const std::size_t n = kNames.find(*at); n != std::string_view::npos) {
    p = at + 1;
    return {kBytes[n]};
  }
  int value = 0, digits = 0;
  if (*at == 'x' || *at == 'X') {
    for (++at; at < end_ && hex_digit(*at) >= 0; ++at, ++digits) value = std::min(value * 16 + hex_digit(*at), 256);
  } else {
    for (; at < end_ && is_octal(*at) && digits < 3; ++at, ++digits) value = value * 8 + (*at - '0');
  }
  if (digits == 0 || value > 255) return {};
  p = at;
  return {static_cast<char>(value)};
}

std::string Cursor::string(std::string_view what) {
  if (!at_string()) {
    fail_expected(what);
    return {};
  }
  const char* const start = p_;
  const char quote = *start;
  std::string value;
  const char* p = start + 1;
  for (;;) {
    const char* stop = p;
    while (stop < end_ && *stop != quote && *stop != '\\') ++stop;
    value.append(p, stop);
    p = stop;
    if (p >= end_) {
      fail("H108", start, "this string has no end");
      return {};
    }
    if (*p == quote) break;
    const std::string byte = escape(p);
    if (byte.empty()) {
      const auto length = static_cast<std::size_t>(std::min<std::ptrdiff_t>(end_ - p, 2));
      fail("H107", p, words("'", std::string_view(p, length), "' is no escape"));
      return {};
    }
    value += byte;
  }
  set_position(p + 1);
  return value;
}

const char* dictionary_end(const char* p, const char* end) {
  std::int64_t depth = 0;
  bool quoted = false;
  for (; p < end; ++p) {
    if (quoted) {
      if (*p == '"') quoted = false;
      if (*p == '\\' && p + 1 < end) ++p;
      continue;
    }
    if (*p == '"') quoted = true;
    if (*p == '{') ++depth;
    if (*p == '}' && --depth == 0) return p + 1;
  }
  return nullptr;
}

bool is_dictionary(std::string_view text) {
  return text.starts_with('{') && dictionary_end(text.data(), text.data() + text.size()) == text.data() + text.size();
}

std::string_view Cursor::dictionary() {
  if (peek() != '{') {
    fail_expected("'{'");
    return {};
  }
  const char* stop = dictionary_end(p_, end_);
  if (stop == nullptr) {
    fail("H109", p_, "the braces of this dictionary do not balance");
    return {};
  }
  const std::string_view text(p_, static_cast<std::size_t>(stop - p_));
  p_ = stop;
  return text;
}

std::string Cursor::string_or_dictionary(std::string_view what) {
  return peek() == '{' ? std::string(dictionary()) : string(what);
}

}  // namespace hloom::text

// Words that printing and parsing of kernels share.
#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "hlo/attributes.h"

namespace hloom::kernels {

inline constexpr std::array<std::string_view, 6> kDirections = {"eq", "ne", "ge", "gt", "le", "lt"};
inline constexpr std::array<std::string_view, 4> kComparisons = {"float", "totalorder", "signed", "unsigned"};

inline std::string_view name(hlo::Direction d) { return kDirections[static_cast<std::size_t>(d)]; }
inline std::string_view name(hlo::Comparison c) { return kComparisons[static_cast<std::size_t>(c)]; }
template <typename E, std::size_t n>
std::optional<E> named(const std::array<std::string_view, n>& words, std::string_view word) {
  for (std::size_t i = 0; i < n; ++i)
    if (words[i] == word) return static_cast<E>(i);
  return {};
}

inline bool is_name_start(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
inline bool is_name_char(char c) { return is_name_start(c) || (c >= '0' && c <= '9'); }

/// Length of the name at the beginning of `text`; 0 if there is none. A '.' goes on with any name character, a '-' with
/// a letter.
inline std::size_t name_length(std::string_view text) {
  if (text.empty() || !is_name_start(text[0])) return 0;
  std::size_t n = 1;
  while (n < text.size()) {
    const bool more = n + 1 < text.size() && ((text[n] == '.' && is_name_char(text[n + 1])) ||
                                              (text[n] == '-' && is_name_start(text[n + 1])));
    if (!is_name_char(text[n]) && !more) break;
    ++n;
  }
  return n;
}
/// Whether a name needs no quotes.
inline bool is_plain_name(std::string_view name) { return !name.empty() && name_length(name) == name.size(); }

}  // namespace hloom::kernels

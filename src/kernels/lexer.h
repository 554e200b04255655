// The words of a kernel's text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "hloom/error.h"

namespace hloom::kernels {

/// Reads a text word by word. Spaces and comments lie between words.
class Lexer {
 public:
  explicit Lexer(std::string_view text) : text_(text) { skip(); }

  bool at_end() const { return at_ == text_.size(); }
  /// Whether the next word is `word`: a name, or punctuation.
  bool sees(std::string_view word) const;
  /// Takes `word` if it comes next.
  bool accept(std::string_view word);
  Expected<> expect(std::string_view word);
  /// A name, in quotes or without. Errors: InvalidArgument; `what` says what was looked for.
  Expected<std::string> name(std::string_view what);
  /// The next word if it is a name without quotes, not taken.
  std::string_view peek_name() const;
  Expected<std::int64_t> integer();
  /// A number as written: digits, sign, point, exponent, 0x.
  Expected<std::string_view> number();
  bool sees_number() const;

  /// The error of that message at the next word.
  template <typename... Parts>
  Error error(const Parts&... parts) const;

 private:
  void skip();
  std::string_view rest() const { return text_.substr(at_); }
  Error error_at(const std::string& message) const;

  std::string_view text_;
  std::size_t at_ = 0;
};

}  // namespace hloom::kernels

#include <sstream>

namespace hloom::kernels {

template <typename... Parts>
Error Lexer::error(const Parts&... parts) const {
  std::ostringstream message;
  (message << ... << parts);
  return error_at(message.str());
}

}  // namespace hloom::kernels

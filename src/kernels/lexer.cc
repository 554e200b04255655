#include "kernels/lexer.h"

#include <algorithm>
#include <charconv>

#include "base/fail.h"
#include "base/try.h"
#include "kernels/text_words.h"

namespace hloom::kernels {

void Lexer::skip() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      ++at_;
    } else if (rest().starts_with("//")) {
      at_ = std::min(text_.size(), text_.find('\n', at_));
    } else {
      return;
    }
  }
}

std::string_view Lexer::peek_name() const { return rest().substr(0, name_length(rest())); }

bool Lexer::sees(std::string_view word) const {
  if (is_name_start(word[0])) return peek_name() == word;
  return rest().starts_with(word);
}

bool Lexer::accept(std::string_view word) {
  if (!sees(word)) return false;
  at_ += word.size();
  skip();
  return true;
}

Expected<> Lexer::expect(std::string_view word) {
  if (!accept(word)) return error("expects '", word, "'");
  return {};
}

Expected<std::string> Lexer::name(std::string_view what) {
  const std::string_view plain = peek_name();
  if (!plain.empty()) {
    at_ += plain.size();
    skip();
    return std::string(plain);
  }
  if (!sees("\"")) return error("expects ", what);
  std::string result;
  std::size_t i = at_ + 1;
  for (; i < text_.size() && text_[i] != '"'; ++i) {
    if (text_[i] == '\\' && i + 1 < text_.size()) ++i;
    result += text_[i];
  }
  if (i == text_.size()) return error("a quote that does not end");
  at_ = i + 1;
  skip();
  return result;
}

bool Lexer::sees_number() const {
  const std::string_view r = rest();
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (r.empty()) return false;
  return digit(r[0]) || (r[0] == '-' && r.size() > 1 && digit(r[1]));
}

Expected<std::string_view> Lexer::number() {
  if (!sees_number()) return error("expects a number");
  const std::string_view r = rest();
  const bool hex = r.starts_with("0x");
  std::size_t n = 1;
  for (; n < r.size(); ++n) {
    const char c = r[n];
    const bool digit = c >= '0' && c <= '9';
    const bool point = c == '.' && !(n + 1 < r.size() && r[n + 1] == '.');
    const bool sign = (c == '-' || c == '+') && !hex && (r[n - 1] == 'e');
    const bool letter = hex ? (c == 'x' || (c >= 'a' && c <= 'f')) : c == 'e';
    if (!digit && !sign && !letter && !(point && !hex)) break;
  }
  at_ += n;
  skip();
  return r.substr(0, n);
}

Expected<std::int64_t> Lexer::integer() {
  const Lexer before = *this;
  const std::string_view digits = TRY(number());
  std::int64_t result = 0;
  const auto [end, code] = std::from_chars(digits.begin(), digits.end(), result);
  if (code != std::errc() || end != digits.end()) return before.error("expects an integer of 64 bits");
  return result;
}

Error Lexer::error_at(const std::string& message) const {
  const std::string_view before = text_.substr(0, at_);
  const auto line = 1 + std::ranges::count(before, '\n');
  const std::size_t column = at_ - (before.rfind('\n') + 1) + 1;
  return fail(Code::InvalidArgument, line, ":", column, ": ", message);
}

}  // namespace hloom::kernels

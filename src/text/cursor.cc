#include "text/cursor.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "text/number.h"

namespace hloom::text {

void Cursor::fail(std::string_view code, const char* at, std::string message, std::vector<Note> notes) {
  if (!ok()) return;
  errors_.add(code, at, std::move(message), std::move(notes));
  stop(at);
}

void Cursor::fail_depth() { fail("H110", p_, words("nested deeper than ", std::int64_t{options_.max_depth})); }

namespace {

bool begins_token(char c) { return chars::is(c, chars::kName) || std::strchr("\"'%=,:*#+~()[]{}<>?", c) != nullptr; }

std::string printable(char c) {
  if (c > ' ' && c < 127) return words("'", std::string_view(&c, 1), "'");
  constexpr char kHex[] = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(c);
  return words("byte 0x", std::string{kHex[byte >> 4], kHex[byte & 15]});
}

}  // namespace

std::string Cursor::found() {
  if (at_end()) return "the end of the text";
  if (*p_ == '"' || *p_ == '\'') return "a string";
  const std::string_view rest(p_, static_cast<std::size_t>(end_ - p_));
  for (const std::string_view token : {"->", "<=", "..."})
    if (rest.starts_with(token)) return words("'", token, "'");
  const char* stop = std::find_if_not(p_, end_, [](char c) { return chars::is(c, chars::kName); });
  if (stop == p_) return printable(*p_);
  return words("'", std::string_view(p_, static_cast<std::size_t>(std::min<std::ptrdiff_t>(stop - p_, 60))), "'");
}

void Cursor::fail_expected(std::string_view what) {
  if (!ok()) return;
  const bool stray = !at_end() && (*p_ == '\0' || !begins_token(*p_) || (*p_ == '<' && !looking_at("<=")));
  if (!ok()) return;  // a comment without end
  if (stray) return fail("H101", p_, words("stray ", printable(*p_), " where ", what, " was expected"));
  fail("H501", p_, words("expected ", what, ", found ", found()));
}

void Cursor::fail_expected_char(char c) { fail_expected(words("'", std::string_view(&c, 1), "'")); }

// Skips white space and comments.
char Cursor::peek_slow() {
  while (p_ < end_) {
    if (chars::is(*p_, chars::kSpace)) {
      ++p_;
    } else if (*p_ == '/' && p_ + 1 < end_ && p_[1] == '/') {
      p_ = std::find_if(p_, end_, [](char c) { return c == '\n' || c == '\r'; });
    } else if (*p_ == '/' && p_ + 1 < end_ && p_[1] == '*') {
      constexpr std::string_view kClose = "*/";
      const char* close = std::search(p_ + 2, end_, kClose.begin(), kClose.end());
      if (close == end_) {
        fail("H102", p_, "this comment has no end");
        return '\0';
      }
      p_ = close + 2;
    } else {
      return *p_;
    }
  }
  return '\0';
}

std::string_view Cursor::peek_word() {
  if (!chars::is(peek(), chars::kNameStart)) return {};
  const char* stop = p_ + 1;
  while (stop < end_ && chars::is(*stop, chars::kName)) ++stop;
  return {p_, static_cast<std::size_t>(stop - p_)};
}

bool Cursor::eat_word(std::string_view wanted) {
  if (peek() != wanted.front() || !looking_at(wanted)) return false;
  const char* stop = p_ + wanted.size();
  if (stop < end_ && chars::is(*stop, chars::kName)) return false;
  p_ = stop;
  return true;
}

std::string_view Cursor::take_word(std::string_view what) {
  const std::string_view found_word = peek_word();
  if (found_word.empty()) {
    fail_expected(what);
    return {};
  }
  p_ += found_word.size();
  return found_word;
}

std::string_view Cursor::take_name(std::string_view what, bool* percent) {
  const bool has_percent = eat('%');
  if (percent != nullptr) *percent = has_percent;
  // The name follows the % at once.
  if (has_percent && (p_ >= end_ || !chars::is(*p_, chars::kNameStart))) {
    fail_expected("a name after '%'");
    return {};
  }
  return take_word(what);
}

std::string_view Cursor::take_key(std::string_view what) {
  const std::string_view key = peek_word();
  if (key.empty()) {
    fail_expected(what);
    return {};
  }
  skip(key);
  expect('=');
  return ok() ? key : std::string_view();
}

std::int64_t Cursor::integer(std::string_view what) {
  peek();
  const char* start = p_;
  const WrittenInteger n = scan_integer(p_, end_);
  if (n.end == start) {
    fail_expected(what);
    return 0;
  }
  if (!n.fits()) {
    fail("H103", start,
         words("the integer ", std::string_view(start, static_cast<std::size_t>(n.end - start)),
               " does not fit in 64 bits"));
    return 0;
  }
  if (n.end < end_ && (*n.end == 'x' || *n.end == 'X') && n.magnitude == 0)
    fail("H105", start, "hexadecimal numbers are not part of the language");
  set_position(n.end);
  return static_cast<std::int64_t>(n.bits());
}

std::int64_t Cursor::integer_between(std::string_view what, std::int64_t least, std::int64_t most) {
  const char* start = at();
  const std::int64_t n = integer(what);
  if (n >= least && n <= most) return n;
  if (most == INT64_MAX)
    fail("H506", start, words(what, " must be at least ", least, ", not ", n));
  else
    fail("H506", start, words(what, " must be between ", least, " and ", most, ", not ", n));
  return least;
}

double Cursor::decimal(std::string_view what) {
  if (eat_word("inf")) return HUGE_VAL;
  if (looking_at("-inf")) {
    p_ += 4;
    return -HUGE_VAL;
  }
  peek();
  const auto n = scan_decimal<double>(p_, end_);
  if (n.end == p_) {
    fail_expected(what);
    return 0;
  }
  set_position(n.end);
  return n.value;
}

bool Cursor::boolean(std::string_view what) {
  if (eat_word("true")) return true;
  if (!eat_word("false")) fail_expected(what);
  return false;
}

std::vector<std::int64_t> Cursor::integers(char open, char close, std::string_view what) {
  std::vector<std::int64_t> values;
  list(open, close, [&] { values.push_back(integer(what)); });
  return values;
}

std::string_view Cursor::run(std::string_view allowed) {
  peek();
  const char* start = p_;
  while (p_ < end_ && allowed.find(*p_) != std::string_view::npos) ++p_;
  return {start, static_cast<std::size_t>(p_ - start)};
}

}  // namespace hloom::text

// Walks over HLO text: words, numbers, strings, punctuation.
//
// Errors are sticky. The first one is noted and the cursor then reads as the end of the text, so that every
// function that was on its way runs out by itself; who can go on says where with resume().
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/errors.h"

namespace hloom::text {

/// Which bytes may stand where.
namespace chars {
enum : std::uint8_t { kSpace = 1, kDigit = 2, kNameStart = 4, kName = 8 };

constexpr std::array<std::uint8_t, 256> make_classes() {
  std::array<std::uint8_t, 256> of{};
  for (const unsigned char c : {' ', '\t', '\n', '\r'}) of[c] = kSpace;
  for (std::size_t c = '0'; c <= '9'; ++c) of[c] = kDigit | kName;
  for (std::size_t c = 'a'; c <= 'z'; ++c) of[c] = of[c - 'a' + 'A'] = kNameStart | kName;
  of['_'] = kNameStart | kName;
  of['.'] = of['-'] = kName;
  return of;
}
inline constexpr std::array<std::uint8_t, 256> kClass = make_classes();

inline bool is(char c, std::uint8_t of) { return (kClass[static_cast<unsigned char>(c)] & of) != 0; }
}  // namespace chars

class Cursor {
 public:
  /// Reads `part` of the text that `errors` has.
  Cursor(std::string_view part, ErrorList& errors, const ParseOptions& options)
      : p_(part.data()), end_(part.data() + part.size()), errors_(errors), options_(options) {}

  const ParseOptions& options() const { return options_; }
  ErrorList& errors() { return errors_; }

  bool ok() const { return failed_at_ == nullptr; }
  /// Where the error was. Needs: !ok().
  const char* failed_at() const { return failed_at_; }
  /// Goes on at `at` after an error.
  void resume(const char* at) {
    failed_at_ = nullptr;
    p_ = at;
  }
  const char* end() const { return end_; }

  /// Notes an error at `at`, unless there is one already.
  void fail(std::string_view code, const char* at, std::string message, std::vector<Note> notes = {});
  /// Fails without a word: what is wrong has been said.
  void give_up() {
    if (ok()) stop(p_);
  }
  /// H501 (or what the stray byte found is) at the next token.
  void fail_expected(std::string_view what);
  /// What the next token is, for messages.
  std::string found();

  /// The next byte after white space and comments, or NUL at the end.
  char peek() {
    if (p_ < end_ && !chars::is(*p_, chars::kSpace) && *p_ != '/') return *p_;
    return peek_slow();
  }
  /// Where the next token begins.
  const char* at() {
    peek();
    return p_;
  }
  bool at_end() {
    peek();
    return p_ >= end_;
  }
  bool eat(char c) {
    if (peek() != c || c == '\0') return false;
    ++p_;
    return true;
  }
  void expect(char c) {
    if (!eat(c)) fail_expected_char(c);
  }
  /// Whether the next bytes are these.
  bool looking_at(std::string_view token) {
    peek();
    return std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(token);
  }
  bool eat(std::string_view token) {
    if (!looking_at(token)) return false;
    p_ += token.size();
    return true;
  }

  /// The word at the cursor, which stays; empty if there is none.
  std::string_view peek_word();
  /// The byte right after peek_word().
  char after(std::string_view peeked) const {
    const char* next = peeked.data() + peeked.size();
    return next < end_ ? *next : '\0';
  }
  void skip(std::string_view peeked) { p_ = peeked.data() + peeked.size(); }
  /// Takes the word if it is exactly this one.
  bool eat_word(std::string_view wanted);
  /// A word, or H501.
  std::string_view take_word(std::string_view what);
  /// `name` or `%name`; in `percent` whether there was one.
  std::string_view take_name(std::string_view what, bool* percent = nullptr);
  /// A word directly followed by `=`, both taken; or H501.
  std::string_view take_key(std::string_view what);

  /// An integer of 64 bits. Errors: H103, H105, H501.
  std::int64_t integer(std::string_view what);
  /// A number that must lie within [least, most], else H506.
  std::int64_t integer_between(std::string_view what, std::int64_t least, std::int64_t most);
  double decimal(std::string_view what);
  bool boolean(std::string_view what);
  /// A string in quotes, without them and with escapes resolved. Errors: H107, H108, H501.
  std::string string(std::string_view what);
  bool at_string() {
    const char c = peek();
    return c == '"' || c == '\'';
  }
  /// The text from `{` to its `}`, verbatim. Errors: H109, H501.
  std::string_view dictionary();
  /// A string, or a dictionary verbatim.
  std::string string_or_dictionary(std::string_view what);
  /// The bytes up to the first that is not in `allowed`; maybe none.
  std::string_view run(std::string_view allowed);

  /// open [item {, item}] close
  template <typename Item>
  void list(char open, char close, const Item& item) {
    expect(open);
    if (!ok() || eat(close)) return;
    do item();
    while (eat(','));
    expect(close);
  }
  std::vector<std::int64_t> integers(char open, char close, std::string_view what);

  /// Counts a level of nesting for as long as it lives; H110 past the limit.
  class Depth {
   public:
    explicit Depth(Cursor& cursor) : cursor_(cursor) {
      if (++cursor_.depth_ > cursor_.options_.max_depth) cursor_.fail_depth();
    }
    ~Depth() { --cursor_.depth_; }
    Depth(const Depth&) = delete;
    Depth& operator=(const Depth&) = delete;

   private:
    Cursor& cursor_;
  };

  // For scanners of numbers that work on the bytes themselves.
  const char* position() const { return p_; }
  void set_position(const char* p) {
    if (ok()) p_ = p;
  }

 private:
  char peek_slow();
  void fail_expected_char(char c);
  void fail_depth();
  std::string escape(const char*& p);
  void stop(const char* at) {
    failed_at_ = at;
    p_ = end_;
  }

  const char* p_;
  const char* end_;
  const char* failed_at_ = nullptr;
  int depth_ = 0;
  ErrorList& errors_;
  const ParseOptions& options_;
};

/// The end of the dictionary that begins at `p` with `{`, or null if its braces do not balance.
const char* dictionary_end(const char* p, const char* end);
/// Whether the whole string is one balanced dictionary.
bool is_dictionary(std::string_view text);

}  // namespace hloom::text

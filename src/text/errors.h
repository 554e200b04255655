// What is wrong with a text, and how a person is told.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hloom/error.h"
#include "text/parse.h"

namespace hloom::text {

inline std::string_view word(std::string_view part) { return part; }
template <std::integral Number>
std::string word(Number part) {
  return std::to_string(part);
}

/// The parts of a message, joined.
template <typename... Parts>
std::string words(const Parts&... parts) {
  std::string message;
  ((message += word(parts)), ...);
  return message;
}

/// A line and a column, both from 1; a column counts bytes.
struct Place {
  std::int32_t line = 1;
  std::int32_t column = 1;
};

/// Finds places of increasing offsets in linear time altogether.
class PlaceFinder {
 public:
  PlaceFinder(std::string_view text, std::int32_t first_line)
      : at_(text.data()), line_start_(text.data()), line_(first_line) {}
  /// Needs: `at` in the text, not before the last one asked for.
  Place find(const char* at);

 private:
  const char* at_;
  const char* line_start_;
  std::int32_t line_;
};

struct Note {
  const char* at;
  std::string message;
};

/// The errors of one text, at most kMost.
class ErrorList {
 public:
  static constexpr std::size_t kMost = 20;

  ErrorList(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}
  void add(std::string_view code, const char* at, std::string message, std::vector<Note> notes = {});
  /// An error whose place is known by line and column.
  void add(std::string_view code, Place place, std::string message);
  bool empty() const { return errors_.empty(); }
  std::size_t size() const { return errors_.size(); }
  bool full() const { return errors_.size() >= kMost; }
  /// All of them in one error, in the order of the text.
  Error to_error() const;
  Place place(const char* at) const { return places(text_.data()).find(at); }
  /// A finder for places from `from` on.
  PlaceFinder places(const char* from) const {
    PlaceFinder finder(text_, options_.first_line);
    finder.find(from);
    return finder;
  }

 private:
  struct Line {
    std::string code;
    Place place;
    std::string message;
    std::vector<std::pair<Place, std::string>> notes;
  };
  std::string source_line(std::int32_t line) const;

  std::string_view text_;
  const ParseOptions& options_;
  std::vector<Line> errors_;
};

/// The candidate nearest to `word` if it is near enough for a typing mistake, else empty.
std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates);
/// "; did you mean 'x'?" or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates);
/// "a, b, c".
std::string listed(const std::vector<std::string_view>& names);

}  // namespace hloom::text

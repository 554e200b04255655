#include "text/errors.h"

#include <algorithm>
#include <cstring>

namespace hloom::text {

Place PlaceFinder::find(const char* at) {
  while (at_ < at) {
    const void* newline = std::memchr(at_, '\n', static_cast<std::size_t>(at - at_));
    if (newline == nullptr) break;
    at_ = line_start_ = static_cast<const char*>(newline) + 1;
    ++line_;
  }
  at_ = at;
  return {line_, static_cast<std::int32_t>(at - line_start_) + 1};
}

void ErrorList::add(std::string_view code, const char* at, std::string message, std::vector<Note> notes) {
  if (full()) return;
  Line line{std::string(code), place(at), std::move(message), {}};
  for (Note& note : notes) line.notes.emplace_back(place(note.at), std::move(note.message));
  errors_.push_back(std::move(line));
}

void ErrorList::add(std::string_view code, Place place, std::string message) {
  if (!full()) errors_.push_back({std::string(code), place, std::move(message), {}});
}

// The text of a line, cut where it is too long to be of help on a screen.
std::string ErrorList::source_line(std::int32_t line) const {
  const char* at = text_.data();
  const char* end = at + text_.size();
  for (std::int32_t n = options_.first_line; n < line && at != nullptr; ++n) {
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(end - at)));
    if (at != nullptr) ++at;
  }
  if (at == nullptr) return {};
  const char* stop = std::find_if(at, end, [](char c) { return c == '\n' || c == '\r'; });
  return {at, stop};
}

namespace {

// The part of a line around a column, with the caret below. Control characters become spaces; tabs stay.
std::string excerpt(std::string line, std::int32_t column) {
  constexpr std::size_t kWidth = 160;
  auto caret = static_cast<std::size_t>(column - 1);
  std::string before;
  if (caret > kWidth / 2 && line.size() > kWidth) {
    const std::size_t cut = std::min(caret - kWidth / 2, line.size());
    line.erase(0, cut);
    caret -= cut;
    before = "…";
  }
  const bool shortened = line.size() > kWidth;
  if (shortened) line.resize(kWidth);
  std::string spaces;
  for (std::size_t i = 0; i < caret; ++i) spaces += i < line.size() && line[i] == '\t' ? '\t' : ' ';
  for (char& c : line)
    if (c >= 0 && c < ' ' && c != '\t') c = ' ';
  return "  " + before + line + (shortened ? "…" : "") + "\n  " + (before.empty() ? "" : " ") + spaces + "^";
}

}  // namespace

Error ErrorList::to_error() const {
  std::vector<const Line*> ordered;
  for (const Line& line : errors_) ordered.push_back(&line);
  std::ranges::stable_sort(ordered, {}, [](const Line* l) { return std::pair(l->place.line, l->place.column); });
  std::string message;
  const auto place = [&](const Place& p) { return words(options_.file_name, ":", p.line, ":", p.column); };
  for (const Line* line : ordered) {
    if (!message.empty()) message += '\n';
    message += words(place(line->place), ": error[", line->code, "]: ", line->message, "\n");
    message += excerpt(source_line(line->place.line), line->place.column);
    for (const auto& [where, what] : line->notes) message += words("\n", place(where), ": note: ", what);
  }
  if (full()) message += words("\n(only the first ", kMost, " errors are shown)");
  return Error(Code::InvalidArgument, std::move(message));
}

namespace {

// Edits (insert, delete, replace, swap of neighbours) between two words, or more than `most`.
std::size_t edits(std::string_view a, std::string_view b, std::size_t most) {
  if (a.size() > b.size() + most || b.size() > a.size() + most) return most + 1;
  std::vector<std::size_t> two_ago(b.size() + 1), last(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], two_ago[j - 2] + 1);
    }
    std::swap(two_ago, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string_view nearest(std::string_view word, const std::vector<std::string_view>& candidates) {
  if (word.size() > 200 || candidates.size() > 20000) return {};  // not worth the time
  std::size_t best = std::clamp<std::size_t>(word.size() / 3, 1, 3) + 1;
  std::string_view found;
  for (const std::string_view candidate : candidates) {
    const std::size_t distance = edits(word, candidate, best - 1);
    if (distance >= best) continue;
    best = distance;
    found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string_view>& candidates) {
  const std::string_view near = nearest(word, candidates);
  return near.empty() ? std::string() : words("; did you mean '", near, "'?");
}

std::string listed(const std::vector<std::string_view>& names) {
  std::string out;
  for (const std::string_view name : names) out += words(out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace hloom::text

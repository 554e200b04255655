#include "text/outline.h"

#include <algorithm>

#include "text/cursor.h"

namespace hloom::text {
namespace {

// The byte after white space and comments.
const char* skip_trivia(const char* p, const char* end) {
  for (;;) {
    while (p < end && chars::is(*p, chars::kSpace)) ++p;
    if (end - p < 2 || *p != '/') return p;
    if (p[1] == '/') {
      p = std::find(p, end, '\n');
    } else if (p[1] == '*') {
      constexpr std::string_view kClose = "*/";
      p = std::search(p + 2, end, kClose.begin(), kClose.end());
      if (p < end) p += 2;
    } else {
      return p;
    }
  }
}

const char* skip_name(const char* p, const char* end) {
  return std::find_if_not(p, end, [](char c) { return chars::is(c, chars::kName); });
}

const char* skip_string(const char* p, const char* end) {
  const char quote = *p;
  for (++p; p < end && *p != quote; ++p)
    if (*p == '\\' && p + 1 < end) ++p;
  return p < end ? p + 1 : end;
}

}  // namespace

const char* group_end(const char* p, const char* end) {
  int depth = 0;
  while (p < end) {
    switch (*p) {
      case '{':
      case '(':
      case '[': ++depth; break;
      case '}':
      case ')':
      case ']':
        if (--depth == 0) return p + 1;
        break;
      case '"':
      case '\'': p = skip_string(p, end); continue;
      case '/': {
        const char* after = skip_trivia(p, end);
        p = after == p ? p + 1 : after;
        continue;
      }
      default: break;
    }
    ++p;
  }
  return nullptr;
}

Outline::Outline(std::string_view text, PlaceFinder places) {
  const char* p = text.data();
  const char* const end = p + text.size();
  while ((p = skip_trivia(p, end)) < end) {
    const char* const start = p;
    const char* word = p + (*p == '%' ? 1 : 0);
    const char* stop = skip_name(word, end);
    if (std::string_view(word, stop) == "ENTRY" && word == p) {
      p = skip_trivia(stop, end);
      word = p + (p < end && *p == '%' ? 1 : 0);
      stop = skip_name(word, end);
    }
    if (stop == word) return;
    places.find(start);
    entries_.emplace(std::string_view(word, stop), Entry{start, places});
    // The signature, then the body: the last of the groups in braces, after perhaps a layout.
    p = stop;
    bool body = false;
    while ((p = skip_trivia(p, end)) < end && (!body || *p == '{')) {
      if (*p == '{' || *p == '(' || *p == '[') {
        body = *p == '{';
        p = group_end(p, end);
        if (p == nullptr) return;
      } else if (*p == '-' && p + 1 < end && p[1] == '>') {
        p += 2;
      } else {
        const char* next = skip_name(p, end);
        if (next == p) return;
        p = next;
      }
    }
    // , execution_thread="…"
    if (p < end && *p == ',') {
      p = std::find(p, end, '"');
      if (p == end) return;
      p = skip_string(p, end);
    }
  }
}

const Outline::Entry* Outline::find(std::string_view name) const {
  const auto found = entries_.find(name);
  return found == entries_.end() ? nullptr : &found->second;
}

}  // namespace hloom::text

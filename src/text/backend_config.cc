// backend_config: a string that is kept as it is, but for hloom's own part,
//
//   backend_config={"hloom":{"order":"blocked"},"other":1}
//
// which is read into decisions. What remains is written back as it was: members after hloom's if it is a dictionary,
// and as a member "backend_config" of hloom's own part if it is any other text.
#include <algorithm>

#include "text/annotations.h"
#include "text/print_words.h"

namespace hloom::text {
namespace {

constexpr std::string_view kOwn = "hloom";
constexpr std::string_view kRest = "backend_config";

// A member of a dictionary: `"key":value`, from the quote to the value's end.
struct Member {
  const char* begin;
  const char* end;
};

const char* skip_string(const char* p, const char* end) {
  for (++p; p < end && *p != '"'; ++p)
    if (*p == '\\') ++p;
  return p < end ? p + 1 : end;
}

// The text from `p` to the next comma or closing brace of its own level.
const char* member_end(const char* p, const char* end) {
  int depth = 0;
  while (p < end) {
    if (*p == '"') {
      p = skip_string(p, end);
      continue;
    }
    if (*p == '{' || *p == '[') ++depth;
    if ((*p == '}' || *p == ']') && --depth < 0) break;
    if (*p == ',' && depth == 0) break;
    ++p;
  }
  return p;
}

// hloom's member of a dictionary, if there is one.
std::optional<Member> own_member(std::string_view dictionary) {
  const char* end = dictionary.data() + dictionary.size() - 1;
  for (const char* p = dictionary.data() + 1; p < end;) {
    while (p < end && chars::is(*p, chars::kSpace)) ++p;
    const char* stop = member_end(p, end);
    if (std::string_view(p, static_cast<std::size_t>(stop - p)).starts_with("\"hloom\"")) return Member{p, stop};
    p = stop + 1;
  }
  return std::nullopt;
}

void append_code_point(std::string& out, unsigned code) {
  if (code < 0x80) {
    out += static_cast<char>(code);
  } else if (code < 0x800) {
    out += static_cast<char>(0xC0 | code >> 6);
    out += static_cast<char>(0x80 | (code & 63));
  } else {
    out += static_cast<char>(0xE0 | code >> 12);
    out += static_cast<char>(0x80 | (code >> 6 & 63));
    out += static_cast<char>(0x80 | (code & 63));
  }
}

// A string of JSON at the cursor. Its escapes are not HLO's.
std::string read_json_string(Cursor& c) {
  if (c.peek() != '"') {
    c.fail_expected("a string in double quotes");
    return {};
  }
  const char* p = c.position();
  const char* const stop = skip_string(p, c.end());
  std::string out;
  for (++p; p + 1 < stop; ++p) {
    if (*p != '\\') {
      out += *p;
      continue;
    }
    constexpr std::string_view kNames = "nrtbf", kBytes = "\n\r\t\b\f";
    const std::size_t known = kNames.find(*++p);
    if (known != std::string_view::npos) {
      out += kBytes[known];
    } else if (*p == 'u' && stop - p > 5) {
      unsigned code = 0;
      for (int i = 0; i < 4; ++i) {
        const char d = *++p;
        code = code * 16 + static_cast<unsigned>(d <= '9' ? d - '0' : (d | 0x20) - 'a' + 10) % 16;
      }
      append_code_point(out, code);
    } else {
      out += *p;
    }
  }
  c.set_position(stop);
  return out;
}

void write_json_string(std::string& out, std::string_view text) {
  constexpr char kHex[] = "0123456789abcdef";
  out += '"';
  for (const char ch : text) {
    if (ch == '"' || ch == '\\') {
      out += '\\';
      out += ch;
    } else if (ch == '\n') {
      out += "\\n";
    } else if (ch >= 0 && ch < ' ') {
      out += "\\u00";
      out += kHex[ch >> 4];
      out += kHex[ch & 15];
    } else {
      out += ch;
    }
  }
  out += '"';
}

// `"hloom":{"key":"value",…}`. Values that are no strings are kept as their text.
void read_own(Cursor& c, hlo::Annotations& a) {
  read_json_string(c);
  c.expect(':');
  c.list('{', '}', [&] {
    const char* at = c.at();
    const std::string key = read_json_string(c);
    c.expect(':');
    std::string value;
    if (c.peek() == '"') {
      value = read_json_string(c);
    } else {
      const char* start = c.at();
      const char* stop = member_end(start, c.end());
      value.assign(start, stop);
      while (!value.empty() && chars::is(value.back(), chars::kSpace)) value.pop_back();
      c.set_position(stop);
    }
    if (!c.ok()) return;
    if (key == kRest)
      a.backend_config = std::move(value);
    else if (!a.decisions.emplace(key, std::move(value)).second)
      c.fail("H502", at, words("'", key, "' comes twice"));
  });
}

bool is_spliced(std::string_view config) {
  return is_dictionary(config) && config.size() > 2 && !chars::is(config[1], chars::kSpace);
}

}  // namespace

void read_backend_config(Cursor& c, hlo::Annotations& a) {
  if (c.peek() != '{') {
    a.backend_config = c.string("a string or a dictionary");
    return;
  }
  const std::string_view text = c.dictionary();
  if (!c.ok()) return;
  const auto own = text.find("\"hloom\"") == std::string_view::npos ? std::nullopt : own_member(text);
  if (!own) {
    a.backend_config = text;
    return;
  }
  const char* const stop = c.position();
  c.set_position(own->begin);
  read_own(c, a);
  if (c.ok() && c.at() != own->end && c.peek() != ',' && c.peek() != '}')
    c.fail_expected("',' or '}' after hloom's part of the backend_config");
  c.set_position(stop);
  if (!c.ok()) return;
  // What is left without the member and one comma.
  std::string_view before(text.data(), static_cast<std::size_t>(own->begin - text.data()));
  std::string_view after(own->end, static_cast<std::size_t>(text.data() + text.size() - own->end));
  if (after.starts_with(',')) {
    after.remove_prefix(1);
  } else if (const std::size_t comma = before.rfind(','); comma != std::string_view::npos) {
    before = before.substr(0, comma);
  }
  std::string rest = words(before, after);
  const bool blank =
      std::ranges::all_of(rest.begin() + 1, rest.end() - 1, [](char ch) { return chars::is(ch, chars::kSpace); });
  if (!blank) a.backend_config = std::move(rest);
}

void write_backend_config(std::string& out, const hlo::Annotations& a) {
  // Without decisions the config stands alone, unless it has a part that would read as hloom's.
  const bool has_own = is_dictionary(a.backend_config) && own_member(a.backend_config);
  if (a.decisions.empty() && !has_own) return write_dictionary_or_quoted(out, a.backend_config);
  const bool spliced = is_spliced(a.backend_config);
  out += "{";
  write_json_string(out, kOwn);
  out += ":{";
  const char* comma = "";
  const auto member = [&](std::string_view key, std::string_view value) {
    out += comma;
    write_json_string(out, key);
    out += ':';
    write_json_string(out, value);
    comma = ",";
  };
  for (const auto& [key, value] : a.decisions) member(key, value);
  if (!spliced && !a.backend_config.empty()) member(kRest, a.backend_config);
  out += '}';
  if (spliced) out.append(",").append(a.backend_config, 1, a.backend_config.size() - 2);
  out += '}';
}

}  // namespace hloom::text

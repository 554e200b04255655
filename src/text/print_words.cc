#include "text/print_words.h"

#include <charconv>

#include "text/cursor.h"
#include "text/reserved.h"

namespace hloom::text {

void write_integer(std::string& out, std::int64_t value) {
  char buffer[24];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
}

void write_double(std::string& out, double value) {
  char buffer[32];
  char* end = nullptr;
  for (const int digits : {15, 17}) {
    end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr;
    double back = 0;
    std::from_chars(buffer, end, back);
    if (back == value) break;
  }
  out.append(buffer, end);
}

void write_quoted(std::string& out, std::string_view text) {
  out += '"';
  for (const char c : text) {
    switch (c) {
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      case '"': out += "\\\""; break;
      case '\'': out += "\\'"; break;
      case '\\': out += "\\\\"; break;
      default:
        if (c >= ' ' && c < 127) {
          out += c;
        } else {  // three octal digits, so that a digit may follow
          const auto byte = static_cast<unsigned char>(c);
          out += '\\';
          for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + (byte >> shift & 7));
        }
    }
  }
  out += '"';
}

void write_dictionary_or_quoted(std::string& out, std::string_view text) {
  if (is_dictionary(text))
    out += text;
  else
    write_quoted(out, text);
}

void write_name(std::string& out, std::string_view name, bool percent) {
  if (percent || is_reserved(name)) out += '%';
  out += name;
}

void write_braced(std::string& out, const std::vector<std::int64_t>& values) {
  out += '{';
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i != 0) out += ',';
    write_integer(out, values[i]);
  }
  out += '}';
}

void write_index_comment(std::string& out, std::size_t index) {
  if (index == 0 || index % 5 != 0) return;
  out += "/*index=";
  write_integer(out, static_cast<std::int64_t>(index));
  out += "*/";
}

}  // namespace hloom::text

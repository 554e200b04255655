// Small pieces of text: numbers, strings in quotes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hloom::text {

void write_integer(std::string& out, std::int64_t);
/// The shortest of 6 … digits that reads back to the same number: `%.15g`, else `%.17g`.
void write_double(std::string& out, double);
/// In double quotes, with escapes for quotes, backslashes and bytes that are not printable ASCII.
void write_quoted(std::string& out, std::string_view);
/// A balanced dictionary as it stands, anything else in quotes.
void write_dictionary_or_quoted(std::string& out, std::string_view);
/// A name, with or without `%`; with it in any case if the name would not read as one.
void write_name(std::string& out, std::string_view name, bool percent);
/// {a,b,c}
void write_braced(std::string& out, const std::vector<std::int64_t>&);
/// Before each fifth element of a list a comment: /*index=5*/
void write_index_comment(std::string& out, std::size_t index);

}  // namespace hloom::text

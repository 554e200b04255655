#include "text/parse.h"

#include <algorithm>
#include <cstring>

#include "text/literals.h"
#include "text/module_parser.h"
#include "text/shapes.h"

namespace hloom::text {
namespace {

std::unique_ptr<hlo::Module> parse_part(std::string_view part, ErrorList& errors, const ParseOptions& options) {
  return ModuleParser(part, errors, options).parse();
}

// Whether a text has a word besides comments.
bool has_words(std::string_view text, const ParseOptions& options) {
  ErrorList errors(text, options);
  return !Cursor(text, errors, options).at_end() || !errors.empty();
}

// Runs `read` on the whole of a short text.
template <typename T, typename Read>
Expected<T> read_all(std::string_view text, const ParseOptions& options, const Read& read) {
  ErrorList errors(text, options);
  Cursor cursor(text, errors, options);
  T value = read(cursor);
  if (cursor.ok() && !cursor.at_end()) cursor.fail_expected("the end of the text");
  if (!errors.empty()) return errors.to_error();
  return value;
}

}  // namespace

std::vector<ModuleText> split_modules(std::string_view text) {
  constexpr std::string_view kSeparator = "// -----";
  const ParseOptions options;
  std::vector<ModuleText> modules;
  std::int32_t line = 1;
  const auto add = [&](std::string_view part) {
    if (has_words(part, options)) {
      ErrorList errors(part, options);
      Cursor cursor(part, errors, options);
      const bool named = cursor.eat_word("HloModule");
      cursor.eat('%');
      modules.push_back({named ? cursor.peek_word() : std::string_view(), part, line});
    }
  };
  std::size_t begin = 0;
  for (std::size_t at = 0; (at = text.find(kSeparator, at)) != std::string_view::npos;) {
    const std::size_t stop = std::min(text.find('\n', at), text.size());
    const bool alone = (at == 0 || text[at - 1] == '\n') &&
                       text.substr(at + kSeparator.size(), stop - at - kSeparator.size()).find_first_not_of(" \t\r") ==
                           std::string_view::npos;
    at = stop;
    if (!alone) continue;
    add(text.substr(begin, at - begin));
    line += static_cast<std::int32_t>(std::ranges::count(text.substr(begin, at - begin), '\n'));
    begin = at;
  }
  add(text.substr(begin));
  return modules;
}

Expected<std::unique_ptr<hlo::Module>> parse_module(std::string_view text, const ParseOptions& options) {
  ErrorList errors(text, options);
  const std::vector<ModuleText> parts = split_modules(text);
  if (parts.size() > 1) {
    errors.add("H203", parts[1].text.data(),
               words("the text holds ", parts.size(), " modules, separated by '// -----'; choose one"));
    return errors.to_error();
  }
  auto module = parse_part(text, errors, options);
  if (!errors.empty()) return errors.to_error();
  return module;
}

Expected<std::vector<std::unique_ptr<hlo::Module>>> parse_modules(std::string_view text, const ParseOptions& options) {
  ErrorList errors(text, options);
  std::vector<std::unique_ptr<hlo::Module>> modules;
  for (const ModuleText& part : split_modules(text)) {
    if (errors.full()) break;
    // A list of its own, so that the errors of one module do not keep others from being read to the end.
    modules.push_back(parse_part(part.text, errors, options));
  }
  if (!errors.empty()) return errors.to_error();
  return modules;
}

Expected<hlo::Literal> parse_literal(std::string_view text, const Shape& shape, const ParseOptions& options) {
  return read_all<hlo::Literal>(text, options, [&](Cursor& c) { return read_literal(c, shape); });
}

Expected<Shape> parse_shape(std::string_view text, const ParseOptions& options) {
  return read_all<Shape>(text, options, [&](Cursor& c) {
    return read_shape(c, {.fill_layouts = options.fill_missing_layouts, .empty_layout = true});
  });
}

}  // namespace hloom::text

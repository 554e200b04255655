// metadata={…}
#include <iterator>

#include "text/annotations.h"
#include "text/print_words.h"

namespace hloom::text {

using hlo::Metadata;

namespace {

// A field of text or of a number; in the order in which they are written.
struct Field {
  std::string_view name;
  std::string Metadata::* text;
  std::int64_t Metadata::* number;
};
constexpr Field kFields[] = {{"op_type", &Metadata::op_type, nullptr},
                             {"op_name", &Metadata::op_name, nullptr},
                             {"source_file", &Metadata::source_file, nullptr},
                             {"source_line", nullptr, &Metadata::source_line},
                             {"source_end_line", nullptr, &Metadata::source_end_line},
                             {"source_column", nullptr, &Metadata::source_column},
                             {"source_end_column", nullptr, &Metadata::source_end_column},
                             {"profile_type", nullptr, nullptr},
                             {"deduplicated_name", &Metadata::deduplicated_name, nullptr},
                             {"scheduling_name", &Metadata::scheduling_name, nullptr},
                             {"stack_frame_id", nullptr, &Metadata::stack_frame_id},
                             {"metadata_payload", &Metadata::metadata_payload, nullptr}};

// A value of a field of another version, as written.
std::string_view raw_value(Cursor& c) {
  const char* start = c.at();
  if (c.at_string())
    c.string("a value");
  else if (c.peek() == '{')
    c.dictionary();
  else if (c.run("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-").empty())
    c.fail_expected("a value");
  return c.ok() ? std::string_view(start, static_cast<std::size_t>(c.position() - start)) : std::string_view();
}

void read_unknown(Cursor& c, const char* at, std::string_view key, Metadata& m) {
  if (!c.options().lenient_metadata) {
    std::vector<std::string_view> names;
    for (const Field& f : kFields) names.push_back(f.name);
    return c.fail(
        "H503", at,
        words("'", key, "' is no field of metadata", did_you_mean(key, names), "; accepted: ", listed(names)));
  }
  m.unknown += words(m.unknown.empty() ? "" : " ", key, "=", raw_value(c));
}

void read_field(Cursor& c, Metadata& m, std::uint32_t& seen) {
  const char* at = c.at();
  const std::string_view key = c.take_key("a field of metadata");
  if (!c.ok()) return;
  std::size_t i = 0;
  while (i < std::size(kFields) && kFields[i].name != key) ++i;
  if (i == std::size(kFields)) return read_unknown(c, at, key, m);
  if ((seen >> i & 1) != 0) return c.fail("H502", at, words("'", key, "' comes twice"));
  seen |= 1u << i;
  const Field& f = kFields[i];
  if (f.text != nullptr)
    m.*f.text = c.string("a string");
  else if (f.number != nullptr)
    m.*f.number = c.integer("an integer");
  else
    m.profile_types = c.integers('{', '}', "an integer");
}

}  // namespace

Metadata read_metadata(Cursor& c) {
  Metadata m;
  std::uint32_t seen = 0;
  c.expect('{');
  while (c.ok() && c.peek() != '}') {
    read_field(c, m, seen);
    c.eat(',');
  }
  c.expect('}');
  return m;
}

std::vector<std::string> read_metadata_list(Cursor& c) {
  std::vector<std::string> entries;
  const char* start = c.at();
  c.expect('{');
  if (c.peek() != '{') {
    c.set_position(start);
    entries.push_back(metadata_fields(read_metadata(c)));
    return entries;
  }
  do entries.push_back(metadata_fields(read_metadata(c)));
  while (c.eat(','));
  c.expect('}');
  return entries;
}

std::string metadata_fields(const Metadata& m) {
  std::string out;
  const auto begin_field = [&](std::string_view name) { out.append(out.empty() ? "" : " ").append(name).append("="); };
  for (const Field& f : kFields) {
    if (f.text != nullptr && !(m.*f.text).empty()) {
      begin_field(f.name);
      write_quoted(out, m.*f.text);
    } else if (f.number != nullptr && m.*f.number != 0) {
      begin_field(f.name);
      write_integer(out, m.*f.number);
    } else if (f.text == nullptr && f.number == nullptr && !m.profile_types.empty()) {
      begin_field(f.name);
      write_braced(out, m.profile_types);
    }
  }
  if (!m.unknown.empty()) out.append(out.empty() ? "" : " ").append(m.unknown);
  return out;
}

}  // namespace hloom::text

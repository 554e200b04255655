// FileNames, FunctionNames, FileLocations, StackFrames (hlo-text 4).
#include <algorithm>
#include <span>

#include "text/module_parser.h"

namespace hloom::text {

using hlo::SourceTables;

namespace {

// The number of the row, which must be the next one.
void read_row_number(Cursor& c, std::string_view table, std::size_t rows) {
  const char* at = c.at();
  const std::int64_t number = c.integer("the number of a row");
  if (c.ok() && number != static_cast<std::int64_t>(rows) + 1)
    c.fail("H207", at, words("row ", number, " of ", table, " where row ", rows + 1, " was expected"));
}

bool at_row(Cursor& c) { return c.ok() && (chars::is(c.peek(), chars::kDigit) || c.peek() == '-'); }

void read_names(Cursor& c, std::string_view table, std::vector<std::string>& names) {
  if (!c.eat_word(table)) return c.fail_expected(words("'", table, "'"));
  while (at_row(c)) {
    read_row_number(c, table, names.size());
    names.push_back(c.string("a name in quotes"));
  }
}

template <typename Row>
struct Field {
  std::string_view name;
  std::int64_t Row::* member;
};

// {name=1 name=2}, all of them.
template <typename Row>
Row read_fields(Cursor& c, std::span<const Field<Row>> fields) {
  Row row;
  unsigned seen = 0;
  const char* start = c.at();
  c.expect('{');
  while (c.ok() && c.peek() != '}') {
    const char* at = c.at();
    const std::string_view key = c.take_key("a field");
    const auto found = std::ranges::find(fields, key, &Field<Row>::name);
    if (!c.ok()) return row;
    if (found == fields.end()) {
      c.fail("H503", at, words("'", key, "' is no field of this table"));
      return row;
    }
    const auto n = found - fields.begin();
    if ((seen >> n & 1) != 0) c.fail("H502", at, words("'", key, "' comes twice"));
    seen |= 1u << n;
    row.*(found->member) = c.integer_between(key, 0, INT32_MAX);
    c.eat(',');
  }
  c.expect('}');
  for (std::size_t n = 0; n < fields.size() && c.ok(); ++n)
    if ((seen >> n & 1) == 0) c.fail("H504", start, words("the field '", fields[n].name, "' is missing"));
  return row;
}

void check_id(Cursor& c, const char* at, std::string_view what, std::int64_t id, std::size_t rows) {
  if (c.ok() && id > static_cast<std::int64_t>(rows))
    c.fail("H208", at, words(what, " ", id, " is out of range: the table has ", rows, " rows"));
}

}  // namespace

void ModuleParser::read_source_tables() {
  using Location = SourceTables::Location;
  using Frame = SourceTables::Frame;
  static constexpr Field<Location> kLocation[] = {{"file_name_id", &Location::file_name_id},
                                                  {"function_name_id", &Location::function_name_id},
                                                  {"line", &Location::line},
                                                  {"end_line", &Location::end_line},
                                                  {"column", &Location::column},
                                                  {"end_column", &Location::end_column}};
  static constexpr Field<Frame> kFrame[] = {{"file_location_id", &Frame::file_location_id},
                                            {"parent_frame_id", &Frame::parent}};
  SourceTables& tables = module_->config().tables;
  tables.present = true;
  read_names(c_, "FileNames", tables.files);
  read_names(c_, "FunctionNames", tables.functions);
  if (!c_.eat_word("FileLocations")) return c_.fail_expected("'FileLocations'");
  while (at_row(c_)) {
    const char* at = c_.at();
    read_row_number(c_, "FileLocations", tables.locations.size());
    tables.locations.push_back(read_fields<Location>(c_, kLocation));
    check_id(c_, at, "file_name_id", tables.locations.back().file_name_id, tables.files.size());
    check_id(c_, at, "function_name_id", tables.locations.back().function_name_id, tables.functions.size());
  }
  if (!c_.eat_word("StackFrames")) return c_.fail_expected("'StackFrames'");
  while (at_row(c_)) {
    const char* at = c_.at();
    read_row_number(c_, "StackFrames", tables.frames.size());
    Frame frame = read_fields<Frame>(c_, kFrame);
    check_id(c_, at, "file_location_id", frame.file_location_id, tables.locations.size());
    // In text 1 says that there is no parent, and row r is written r + 1.
    frame.parent = std::max<std::int64_t>(frame.parent - 1, 0);
    check_id(c_, at, "parent_frame_id", frame.parent, tables.frames.size() + 1);
    tables.frames.push_back(frame);
  }
}

}  // namespace hloom::text

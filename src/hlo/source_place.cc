#include "hlo/source_place.h"

#include "hlo/module.h"

namespace hloom::hlo {
namespace {

// Rows of the tables count from 1. Tables are foreign input: a row may not be there.
template <typename T>
const T* row(const std::vector<T>& rows, std::int64_t number) {
  return number >= 1 && number <= static_cast<std::int64_t>(rows.size()) ? &rows[static_cast<std::size_t>(number - 1)]
                                                                         : nullptr;
}

std::string place(const std::string& file, std::int64_t line) {
  return line > 0 ? file + ":" + std::to_string(line) : file;
}

}  // namespace

std::string source_place(const Instruction& i, const Module& module) {
  if (!i.has_annotations()) return "";
  const Metadata& m = i.annotations().metadata;
  if (!m.source_file.empty()) return place(m.source_file, m.source_line);
  const SourceTables& tables = module.config().tables;
  const auto* frame = row(tables.frames, m.stack_frame_id);
  const auto* location = frame == nullptr ? nullptr : row(tables.locations, frame->file_location_id);
  const auto* file = location == nullptr ? nullptr : row(tables.files, location->file_name_id);
  return file == nullptr ? "" : place(*file, location->line);
}

}  // namespace hloom::hlo

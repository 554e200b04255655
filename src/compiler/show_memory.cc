#include "compiler/show_memory.h"

#include <sstream>

namespace hloom::compiler {
namespace {

using Kind = buffers::Allocation::Kind;

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::Arena: return "arena";
    case Kind::Parameter: return "parameter";
    case Kind::Result: return "result";
    case Kind::Constant: return "constant";
  }
  return "?";
}

void print(std::ostream& out, const buffers::Allocation& a) {
  out << name_of(a.kind);
  if (a.kind == Kind::Constant) {
    out << " " << a.constant->name();
  } else if (a.kind != Kind::Arena) {
    out << " " << a.number;
  }
  out << ": " << a.bytes << " bytes";
  if (a.aliased_result >= 0) out << ", donated to result " << a.aliased_result;
}

void print(std::ostream& out, const buffers::ArenaBlock& block) {
  out << "  [" << block.offset << ", " << block.offset + block.bytes << ") live";
  for (const buffers::Interval& i : block.live.parts()) out << " " << i.begin << ".." << i.end;
  out << ":";
  for (const std::string& value : block.values) out << " " << value;
  out << "\n";
}

std::int64_t bytes_of(const buffers::Assignment& assignment, Kind kind) {
  std::int64_t bytes = 0;
  for (const buffers::Allocation& a : assignment.allocations())
    if (a.kind == kind) bytes += a.bytes;
  return bytes;
}

}  // namespace

std::string buffers_text(const buffers::Assignment& assignment) {
  std::ostringstream out;
  for (std::size_t i = 0; i < assignment.allocations().size(); ++i) {
    out << i << ": ";
    print(out, assignment.allocations()[i]);
    out << "\n";
    if (i == 0)
      for (const buffers::ArenaBlock& block : assignment.blocks()) print(out, block);
  }
  return std::move(out).str();
}

std::string memory_text(const buffers::Assignment& assignment) {
  std::ostringstream out;
  for (const Kind kind : {Kind::Parameter, Kind::Result, Kind::Constant, Kind::Arena})
    out << name_of(kind) << " bytes: " << bytes_of(assignment, kind) << "\n";
  out << "alive at once in the arena: " << assignment.lower_bound() << "\n";
  for (const buffers::InPlaceDecision& d : assignment.decisions()) {
    out << d.at << ": " << buffers::name(d.kind) << " of leaf " << d.leaf << ", " << d.bytes << " bytes: ";
    if (d.in_place)
      out << "in place\n";
    else
      out << "copied, because " << d.reason << "\n";
  }
  return std::move(out).str();
}

}  // namespace hloom::compiler

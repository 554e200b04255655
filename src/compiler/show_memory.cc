#include "compiler/show_memory.h"

#include <nlohmann/json.hpp>
#include <sstream>

#include "buffers/report.h"

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

// Names in HLO text may hold any bytes.
std::string to_text(const nlohmann::ordered_json& json) {
  return json.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
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
  const buffers::MemoryReport report = buffers::report(assignment);
  out << "most of the arena in use: " << report.peak_bytes;
  if (report.peak_at != nullptr) out << ", at " << report.peak_at->name();
  out << "\n";
  for (const buffers::ArenaBlock* owner : report.owners) {
    out << "  " << owner->bytes << ":";
    for (const std::string& value : owner->values) out << " " << value;
    out << "\n";
  }
  for (const buffers::InPlaceDecision& d : assignment.decisions()) {
    out << d.at << ": " << buffers::name(d.kind) << " of leaf " << d.leaf << ", " << d.bytes << " bytes: ";
    if (d.in_place)
      out << "in place\n";
    else
      out << "copied, because " << d.reason << "\n";
  }
  return std::move(out).str();
}

std::string buffers_json(const buffers::Assignment& assignment) {
  nlohmann::ordered_json json = {{"allocations", nlohmann::ordered_json::array()},
                                 {"arena", nlohmann::ordered_json::array()}};
  for (const buffers::Allocation& a : assignment.allocations()) {
    nlohmann::ordered_json row = {{"kind", name_of(a.kind)}, {"bytes", a.bytes}};
    if (a.kind == Kind::Constant) row["constant"] = a.constant->name();
    if (a.kind == Kind::Parameter || a.kind == Kind::Result) row["number"] = a.number;
    if (a.aliased_result >= 0) row["donated_to_result"] = a.aliased_result;
    json["allocations"].push_back(std::move(row));
  }
  for (const buffers::ArenaBlock& block : assignment.blocks()) {
    nlohmann::ordered_json live = nlohmann::ordered_json::array();
    for (const buffers::Interval& i : block.live.parts()) live.push_back({i.begin, i.end});
    json["arena"].push_back(
        {{"offset", block.offset}, {"bytes", block.bytes}, {"live", std::move(live)}, {"values", block.values}});
  }
  return to_text(json);
}

std::string memory_json(const buffers::Assignment& assignment) {
  nlohmann::ordered_json json;
  for (const Kind kind : {Kind::Parameter, Kind::Result, Kind::Constant, Kind::Arena})
    json[std::string(name_of(kind)) + "_bytes"] = bytes_of(assignment, kind);
  const buffers::MemoryReport report = buffers::report(assignment);
  json["peak"] = {{"arena_bytes", report.peak_bytes},
                  {"at", report.peak_at == nullptr ? "" : report.peak_at->name()},
                  {"owners", nlohmann::ordered_json::array()}};
  for (const buffers::ArenaBlock* owner : report.owners)
    json["peak"]["owners"].push_back({{"bytes", owner->bytes}, {"values", owner->values}});
  json["timeline"] = nlohmann::ordered_json::array();
  for (const buffers::TimelineEntry& e : report.timeline)
    json["timeline"].push_back({{"at", e.at->name()}, {"arena_bytes", e.bytes}});
  json["updates"] = nlohmann::ordered_json::array();
  for (const buffers::InPlaceDecision& d : assignment.decisions())
    json["updates"].push_back({{"at", d.at},
                               {"kind", buffers::name(d.kind)},
                               {"leaf", d.leaf},
                               {"bytes", d.bytes},
                               {"in_place", d.in_place},
                               {"reason", d.reason}});
  return to_text(json);
}

}  // namespace hloom::compiler

#include "compiler/show_memory.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>

#include "buffers/concurrency.h"
#include "buffers/report.h"
#include "compiler/lend_scratch.h"
#include "compiler/memory_page.h"
#include "hlo/source_place.h"

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
  if (a.space != 0) out << " in space " << a.space;
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

// Of values that lie in memory of results and donated parameters while it is free.
std::int64_t lent_bytes(const buffers::Assignment& assignment) {
  std::int64_t bytes = 0;
  for (const buffers::ArenaBlock& block : assignment.blocks())
    if (!assignment.is_in_arena(block)) bytes += block.bytes;
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
    for (const buffers::ArenaBlock& block : assignment.blocks())
      if (static_cast<std::size_t>(block.allocation) == i) print(out, block);
  }
  return std::move(out).str();
}

namespace {

std::string percent(std::int64_t part, std::int64_t whole) {
  std::ostringstream out;
  out.precision(1);
  out << std::fixed << (whole > 0 ? 100.0 * static_cast<double>(part) / static_cast<double>(whole) : 0.0) << " %";
  return std::move(out).str();
}

// Stretches of the schedule, each with the step of it that has most in use, and a bar.
void print_schedule(std::ostream& out, const buffers::MemoryReport& report) {
  constexpr std::size_t kMostRows = 24;
  constexpr std::int64_t kWidth = 40;
  if (report.peak_bytes == 0) return;
  out << "in use over the schedule, the most in each part of it:\n";
  const std::size_t count = report.timeline.size(), rows = std::min(kMostRows, count);
  for (std::size_t r = 0; r < rows; ++r) {
    const auto begin = report.timeline.begin() + static_cast<std::ptrdiff_t>(r * count / rows),
               end = report.timeline.begin() + static_cast<std::ptrdiff_t>((r + 1) * count / rows);
    const auto most = std::max_element(begin, end, [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
    const auto length = static_cast<std::size_t>(most->bytes * kWidth / report.peak_bytes);
    out << "  " << std::string(length, '#') << std::string(kWidth - length, ' ') << " " << most->bytes << " "
        << most->at->name() << "\n";
  }
}

// Where the user wrote it, by the names that reports have.
class Places {
 public:
  explicit Places(const hlo::Module& module) : module_(module) {
    for (const hlo::Computation& c : module.computations())
      for (const hlo::Instruction& i : c.instructions()) named_.emplace(i.name(), &i);
  }
  std::string of(const std::string& name) const {
    const auto found = named_.find(name);
    return found == named_.end() ? "" : hlo::source_place(*found->second, module_);
  }
  std::string of(const buffers::ArenaBlock& block) const {
    return block.definer == nullptr ? "" : hlo::source_place(*block.definer, module_);
  }

 private:
  const hlo::Module& module_;
  std::unordered_map<std::string_view, const hlo::Instruction*> named_;
};

std::string_view how_often(const buffers::InPlaceDecision& d) { return d.depth > 0 ? " bytes a step" : " bytes a run"; }

std::string_view in_place_words(buffers::InPlaceDecision::Kind kind) {
  switch (kind) {
    case buffers::InPlaceDecision::Kind::Concatenate: return "free: written at its place";
    case buffers::InPlaceDecision::Kind::Slice: return "free: read where it lies";
    default: return "in place";
  }
}

void print(std::ostream& out, const buffers::InPlaceDecision& d, const Places& places) {
  out << d.at << ": " << buffers::name(d.kind) << " of leaf " << d.leaf << ", " << d.bytes << " bytes: ";
  if (d.in_place)
    out << in_place_words(d.kind);
  else
    out << "copied, " << d.bytes << how_often(d) << ", because " << d.reason;
  const std::string source = places.of(d.at);
  if (!source.empty()) out << " (" << source << ")";
  out << "\n";
}

}  // namespace

std::string memory_text(const Compiled& compiled) {
  const buffers::Assignment& assignment = compiled.assignment;
  std::ostringstream out;
  for (const Kind kind : {Kind::Parameter, Kind::Result, Kind::Constant, Kind::Arena})
    out << name_of(kind) << " bytes: " << bytes_of(assignment, kind) << "\n";
  for (const buffers::Allocation& a : assignment.allocations())
    if (a.kind == Kind::Arena && a.space != 0) out << "  of the arena in space " << a.space << ": " << a.bytes << "\n";
  if (const std::int64_t scratch = worker_scratch_bytes(compiled.program); scratch > 0)
    out << "scratch of a worker beside it: " << scratch << "\n";
  if (const std::int64_t lent = lent_bytes(assignment); lent > 0)
    out << "  values beside it, in memory of results and donated parameters while that is free: " << lent << "\n";
  const buffers::MemoryReport report = buffers::report(assignment);
  out << "most of the arena in use: " << report.peak_bytes;
  if (report.peak_at != nullptr) out << ", at " << report.peak_at->name();
  out << "\nlost to gaps: " << report.unused_bytes << " (" << percent(report.unused_bytes, assignment.arena_bytes())
      << "); no packing of this schedule takes less than " << assignment.lower_bound() << "\n";
  if (const buffers::PairCounts pairs = buffers::count_pairs(assignment); pairs.all > 0)
    out << "pairs of independent large steps: " << pairs.all << ", kept apart by shared memory: " << pairs.kept_apart << "\n";
  for (const buffers::ArenaBlock* owner : report.owners) {
    out << "  " << owner->bytes << ":";
    for (const std::string& value : owner->values) out << " " << value;
    const std::string source = owner->definer == nullptr ? "" : hlo::source_place(*owner->definer, assignment.module());
    if (!source.empty()) out << " (" << source << ")";
    out << "\n";
  }
  print_schedule(out, report);
  const Places places(assignment.module());
  for (const buffers::InPlaceDecision& d : assignment.decisions()) print(out, d, places);
  return std::move(out).str();
}

namespace {

using nlohmann::ordered_json;

ordered_json to_json(const buffers::ArenaBlock& block) {
  ordered_json live = ordered_json::array();
  for (const buffers::Interval& i : block.live.parts()) live.push_back({i.begin, i.end});
  return {{"allocation", block.allocation},
          {"offset", block.offset},
          {"bytes", block.bytes},
          {"live", std::move(live)},
          {"values", block.values}};
}

ordered_json buffers_object(const buffers::Assignment& assignment) {
  ordered_json json = {{"allocations", ordered_json::array()}, {"arena", ordered_json::array()}};
  for (const buffers::Allocation& a : assignment.allocations()) {
    ordered_json row = {{"kind", name_of(a.kind)}, {"bytes", a.bytes}};
    if (a.kind == Kind::Constant) row["constant"] = a.constant->name();
    if (a.kind == Kind::Parameter || a.kind == Kind::Result) row["number"] = a.number;
    if (a.aliased_result >= 0) row["donated_to_result"] = a.aliased_result;
    if (a.space != 0) row["space"] = a.space;
    json["allocations"].push_back(std::move(row));
  }
  for (const buffers::ArenaBlock& block : assignment.blocks()) json["arena"].push_back(to_json(block));
  return json;
}

ordered_json to_json(const buffers::MemoryReport& report, const buffers::Assignment& assignment, const Places& places) {
  ordered_json peak = {{"arena_bytes", report.peak_bytes},
                       {"at", report.peak_at == nullptr ? "" : report.peak_at->name()},
                       {"owners", ordered_json::array()}};
  for (const buffers::ArenaBlock* owner : report.owners)
    peak["owners"].push_back({{"block", owner - assignment.blocks().data()},
                              {"bytes", owner->bytes},
                              {"values", owner->values},
                              {"source", places.of(*owner)}});
  return peak;
}

ordered_json memory_object(const Compiled& compiled) {
  const buffers::Assignment& assignment = compiled.assignment;
  const Places places(assignment.module());
  ordered_json json = {{"module", assignment.module().name()}};
  for (const Kind kind : {Kind::Parameter, Kind::Result, Kind::Constant, Kind::Arena})
    json[std::string(name_of(kind)) + "_bytes"] = bytes_of(assignment, kind);
  const buffers::MemoryReport report = buffers::report(assignment);
  json["scratch_bytes"] = worker_scratch_bytes(compiled.program);
  json["lower_bound_bytes"] = assignment.lower_bound();
  json["gap_bytes"] = report.unused_bytes;
  json["lent_bytes"] = lent_bytes(assignment);
  const buffers::PairCounts pairs = buffers::count_pairs(assignment);
  json["independent_pairs"] = pairs.all;
  json["pairs_kept_apart"] = pairs.kept_apart;
  json["peak"] = to_json(report, assignment, places);
  json["timeline"] = ordered_json::array();
  for (const buffers::TimelineEntry& e : report.timeline)
    json["timeline"].push_back({{"at", e.at->name()}, {"point", e.point}, {"arena_bytes", e.bytes}});
  json["updates"] = ordered_json::array();
  for (const buffers::InPlaceDecision& d : assignment.decisions())
    json["updates"].push_back({{"at", d.at},
                               {"kind", buffers::name(d.kind)},
                               {"leaf", d.leaf},
                               {"bytes", d.bytes},
                               {"loops_around", d.depth},
                               {"in_place", d.in_place},
                               {"reason", d.reason},
                               {"source", places.of(d.at)}});
  return json;
}

}  // namespace

std::string buffers_json(const buffers::Assignment& assignment) { return to_text(buffers_object(assignment)); }

std::string memory_json(const Compiled& compiled) { return to_text(memory_object(compiled)); }

namespace {

// Where each arena is drawn: one behind the other.
std::vector<std::int64_t> arena_starts(const buffers::Assignment& assignment) {
  std::vector<std::int64_t> starts;
  std::int64_t end = 0;
  for (const buffers::Allocation& a : assignment.allocations()) {
    starts.push_back(end);
    if (a.kind == Kind::Arena) end += a.bytes;
  }
  return starts;
}

}  // namespace

std::string memory_html(const Compiled& compiled) {
  const buffers::Assignment& assignment = compiled.assignment;
  ordered_json json = memory_object(compiled);
  json["arena"] = ordered_json::array();
  std::int32_t end = 0;
  const Places places(assignment.module());
  const std::vector<std::int64_t> starts = arena_starts(assignment);
  for (const buffers::ArenaBlock& block : assignment.blocks()) {
    if (!assignment.is_in_arena(block)) break;
    json["arena"].push_back(to_json(block));
    json["arena"].back()["offset"] = starts[static_cast<std::size_t>(block.allocation)] + block.offset;
    json["arena"].back()["source"] = places.of(block);
    if (!block.live.empty()) end = std::max(end, block.live.end());
  }
  json["end"] = end;
  return memory_page(json.dump(-1, ' ', false, ordered_json::error_handler_t::replace));
}

}  // namespace hloom::compiler

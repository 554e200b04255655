#include "compiler/memory_limits.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "buffers/report.h"
#include "hlo/source_place.h"

namespace hloom::compiler {
namespace {

constexpr std::size_t kMostNamed = 8;

Expected<> check_names(const buffers::Assignment& assignment, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    if (std::ranges::find(assignment.decisions(), name, &buffers::InPlaceDecision::at) == assignment.decisions().end())
      return fail(Code::InvalidArgument, assignment.module().name(),
                  ": must be in place, but there is no update of that ", "name: ", name,
                  "; the memory stage lists them");
  return {};
}

// Not a slice, which is an array of its own, nor a counter that is set before its loop: nobody could do without.
bool is_update(const buffers::InPlaceDecision& d) {
  using Kind = buffers::InPlaceDecision::Kind;
  constexpr std::int64_t kLargestScalar = 16;
  return d.kind != Kind::Slice && (d.kind != Kind::LoopEntry || d.bytes > kLargestScalar);
}

Expected<> check_in_place(const buffers::Assignment& assignment, const std::vector<std::string>& names) {
  TRY(check_names(assignment, names));
  std::string copied;
  for (const buffers::InPlaceDecision& d : assignment.decisions()) {
    const bool is_asked = names.empty() ? is_update(d) : std::ranges::find(names, d.at) != names.end();
    if (d.in_place || !is_asked) continue;
    copied.append("\n  ").append(d.at).append(": ").append(buffers::name(d.kind));
    copied.append(" of leaf ").append(std::to_string(d.leaf)).append(", ").append(std::to_string(d.bytes));
    copied.append(" bytes, because ").append(d.reason);
  }
  if (copied.empty()) return {};
  return fail(Code::FailedPrecondition, assignment.module().name(), ": must be in place, but is copied:", copied);
}

}  // namespace

std::string arena_owners(const buffers::Assignment& assignment) {
  const buffers::MemoryReport report = buffers::report(assignment);
  std::string owners;
  for (std::size_t n = 0; n < std::min(report.owners.size(), kMostNamed); ++n) {
    const buffers::ArenaBlock& owner = *report.owners[n];
    owners.append("\n  ").append(std::to_string(owner.bytes)).append(":");
    for (const std::string& value : owner.values) owners.append(" ").append(value);
    if (owner.definer == nullptr) continue;
    const std::string source = hlo::source_place(*owner.definer, assignment.module());
    if (!source.empty()) owners.append(" (").append(source).append(")");
  }
  return owners;
}

namespace {

Expected<> check_limit(const buffers::Assignment& assignment, std::int64_t limit_bytes) {
  const std::int64_t bytes = assignment.total_bytes();
  if (bytes <= limit_bytes) return {};
  return fail(Code::ResourceExhausted, assignment.module().name(), ": a run takes ", bytes, " bytes, the limit is ",
              limit_bytes, "; of these ", assignment.arena_bytes(), " are the arena, at its peak owned by", arena_owners(assignment));
}

Expected<> check_budget(const buffers::Assignment& assignment, const MemoryBudget& budget) {
  if (!budget.in_place.empty()) TRY(check_in_place(assignment, budget.in_place));
  if (budget.peak_bytes >= 0 && assignment.total_bytes() > budget.peak_bytes)
    return fail(Code::ResourceExhausted, assignment.module().name(), ": a run takes ", assignment.total_bytes(),
                " bytes, the budget has ", budget.peak_bytes, "; the arena's peak is owned by",
                arena_owners(assignment));
  if (budget.temp_bytes >= 0 && assignment.arena_bytes() > budget.temp_bytes)
    return fail(Code::ResourceExhausted, assignment.module().name(), ": the arena takes ", assignment.arena_bytes(),
                " bytes, the budget has ", budget.temp_bytes, "; its peak is owned by", arena_owners(assignment));
  return {};
}

}  // namespace

Expected<> check_demands(const buffers::Assignment& assignment, const MemoryDemands& demands) {
  if (demands.in_place) TRY(check_in_place(assignment, *demands.in_place));
  if (demands.limit_bytes > 0) TRY(check_limit(assignment, demands.limit_bytes));
  return check_budget(assignment, demands.budget);
}

}  // namespace hloom::compiler

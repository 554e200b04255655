#include "buffers/report.h"

#include <algorithm>
#include <functional>

#include "buffers/steps.h"
#include "buffers/timeline.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;

namespace {

/// Bytes in use from each point on at which they change.
std::vector<std::pair<Point, std::int64_t>> changes(const Assignment& assignment) {
  std::vector<std::pair<Point, std::int64_t>> events;
  for (const ArenaBlock& b : assignment.blocks()) {
    if (!assignment.is_in_arena(b)) continue;
    for (const Interval& i : b.live.parts()) {
      events.emplace_back(i.begin, b.bytes);
      events.emplace_back(i.end, -b.bytes);
    }
  }
  std::ranges::sort(events);
  std::vector<std::pair<Point, std::int64_t>> sums;
  std::int64_t now = 0;
  for (const auto& [point, bytes] : events) {
    now += bytes;
    if (sums.empty() || sums.back().first != point) sums.emplace_back(point, now);
    sums.back().second = now;
  }
  return sums;
}

std::int64_t bytes_at(const std::vector<std::pair<Point, std::int64_t>>& sums, Point point) {
  const auto after = std::ranges::upper_bound(sums, point, {}, &std::pair<Point, std::int64_t>::first);
  return after == sums.begin() ? 0 : std::prev(after)->second;
}

}  // namespace

MemoryReport report(const Assignment& assignment) {
  MemoryReport result;
  const Timeline timeline(assignment.module());
  const auto sums = changes(assignment);
  for (const Computation* c : step_computations(assignment.module()))
    for (const Instruction& i : c->instructions()) {
      const Timeline::Place& place = timeline.of(i);
      if (place.end > place.begin && step_computations(i).empty())
        result.timeline.push_back({&i, place.work(), bytes_at(sums, place.work())});
    }
  std::ranges::stable_sort(result.timeline, {}, [&](const TimelineEntry& e) { return timeline.of(*e.at).begin; });
  Point peak = 0;
  for (const auto& [point, bytes] : sums)
    if (bytes > result.peak_bytes) {
      result.peak_bytes = bytes;
      peak = point;
    }
  if (result.peak_bytes > 0) result.peak_at = timeline.at(peak);
  for (const ArenaBlock& b : assignment.blocks())
    if (result.peak_bytes > 0 && assignment.is_in_arena(b) && b.live.contains(peak)) result.owners.push_back(&b);
  std::ranges::stable_sort(result.owners, std::greater(), &ArenaBlock::bytes);
  result.unused_bytes = assignment.arena_bytes() - result.peak_bytes;
  return result;
}

}  // namespace hloom::buffers

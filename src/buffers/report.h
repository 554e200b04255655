// How the arena fills over the schedule, and who owns the peak.
#pragma once

#include <cstdint>
#include <vector>

#include "buffers/assignment.h"

namespace hloom::buffers {

/// Bytes of the arena that are in use while an instruction works.
struct TimelineEntry {
  const hlo::Instruction* at = nullptr;
  std::int32_t point = 0;  ///< in time, as blocks have it
  std::int64_t bytes = 0;
};

struct MemoryReport {
  /// In the order of execution, loops once, branches one after the other.
  std::vector<TimelineEntry> timeline;
  std::int64_t peak_bytes = 0;              ///< the most in use at a point
  const hlo::Instruction* peak_at = nullptr;  ///< what works there; null if the arena is empty
  /// Blocks that are in use at the peak, the largest first. Pointers into the assignment.
  std::vector<const ArenaBlock*> owners;
  /// Arena bytes that no value uses even at the peak.
  std::int64_t unused_bytes = 0;
};

/// Needs: the assignment's module unchanged. Cost: n log n in the blocks and instructions.
MemoryReport report(const Assignment&);

}  // namespace hloom::buffers

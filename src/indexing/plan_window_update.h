// How an array is updated in place: the one function that fusion, aliasing, copies, kernels and regions ask.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "hlo/module.h"

namespace hloom::indexing {

/// What to do, from best to worst.
enum class UpdateKind : std::uint8_t {
  Elide,            ///< the result is the base: nothing is written
  Direct,           ///< each element of the window is computed and written, in any order and by any number of tasks
  Staged,  ///< one task computes the whole update into its scratch, then writes it: all reads before all writes
  DirectionalMove,  ///< the update is a slice of the base: moved up or down by where it overlaps
  Split,  ///< not in one kernel: the update is written to a temporary first, then Direct
  OutOfPlace,  ///< the result needs its own buffer
};
std::string_view name(UpdateKind);

struct WindowUpdatePlan {
  UpdateKind kind = UpdateKind::OutOfPlace;
  std::int64_t base_operand = 0;  ///< of the instruction asked about; -1: the base is none of its operands
  std::int64_t update_bytes = 0;  ///< of the update, or of a scatter's updates
  std::string reason;  ///< for a person

  bool in_place() const { return kind != UpdateKind::OutOfPlace && kind != UpdateKind::Split; }
};

/// Largest update that is Staged.
inline constexpr std::int64_t kMaxStagedBytes = 32 << 10;

/// Whether element `leaf` of the result (depth first; 0 for an array) is a window update: a bare dynamic-update-slice
/// or scatter, or a fusion whose root has one there, under bitcasts.
bool is_window_update(const hlo::Instruction&, std::int64_t leaf = 0);
/// That dynamic-update-slice or scatter; null if there is none.
const hlo::Instruction* window_update(const hlo::Instruction&, std::int64_t leaf = 0);

/// Whether a slice, of any kind, of an array of the base's dimensions reads the window that a dynamic-update-slice writes.
bool stands_at(const hlo::Instruction& slice, const hlo::Instruction& update);

/// The first plan of UpdateKind that is right whatever the sizes of machine and input, provided that the base is not
/// read after the update: that buffers/ adds. A read of the base by another result of a fusion, or through another
/// operand that is the same array, counts as a read beside the update. Needs: is_window_update(instruction, leaf).
/// Cost: linear in the fused computation.
WindowUpdatePlan plan_window_update(const hlo::Instruction&, std::int64_t leaf = 0);

}  // namespace hloom::indexing

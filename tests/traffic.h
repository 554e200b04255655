// Bytes that a compiled program moves, counted from its kernels.
#pragma once

#include <cstdint>
#include <string>

#include "compiler/compile.h"

namespace hloom::traffic {

struct Bytes {
  std::int64_t kernels = 0;  ///< loaded and stored by kernels
  std::int64_t copies = 0;   ///< by copies of whole values, once each
  bool operator==(const Bytes&) const = default;
};

/// Bytes of one run of a computation's steps, of branches the one that moves most; branches that a loop takes at most
/// once are left out. Loops inside count once. Needs: compiled without regions.
Bytes of(const compiler::Compiled&, const hlo::Computation&);

/// Steps of the program's loop that one run of the loop's body does.
std::int64_t steps_a_round(const hlo::Instruction& loop);

}  // namespace hloom::traffic

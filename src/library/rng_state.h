// The random state of a program: 128 bits that each use moves on.
#pragma once

#include <cstdint>
#include <memory>

#include "library/routine.h"

namespace hloom::library {

/// Begins with 1. Lives as long as the program, so that runs after each other draw different numbers; runs at the same
/// time draw from it in turn.
struct RngState {
  std::int32_t lock = 0;
  std::uint64_t low = 1, high = 0;
};

/// Writes the state to result 0, two 64-bit words, the low one first, and adds `delta`, sign-extended. Keeps the state.
RoutinePlan plan_rng_state(std::shared_ptr<RngState> state, std::int64_t delta);

}  // namespace hloom::library

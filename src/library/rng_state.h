// The random state of a program: 128 bits that each use moves on.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "library/routine.h"

namespace hloom::library {

/// Begins with 1. Lives as long as the program, so that runs after each other draw different numbers; runs at the same
/// time draw from it in turn.
struct RngState {
  std::int32_t lock = 0;
  std::uint64_t low = 1, high = 0;
};

/// One for each device of the program: each draws from its own.
using RngStates = std::vector<RngState>;

/// Writes the device's state to result 0, two 64-bit words, the low one first, and adds `delta`, sign-extended. Keeps the states.
/// Needs: one for each device that runs it.
RoutinePlan plan_rng_state(std::shared_ptr<RngStates> states, std::int64_t delta);

}  // namespace hloom::library

// Loops that carry arrays and change little of them in each step, in the forms in which programs have them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace hloom::loops {

struct Loop {
  std::string name;
  std::string text;
  std::vector<std::string> parameters;  ///< types of the arrays, all donated to the result of the same number
  bool changes_all = false;             ///< each step computes whole arrays: its bytes grow with them
};

/// All of them, over arrays of `n` elements (a multiple of 8, at least 64) and for `steps` steps; the number of steps
/// is known to the compiler, or comes as the last parameter.
std::vector<Loop> loops(std::int64_t n, std::int64_t steps, bool known_steps);

}  // namespace hloom::loops

// The programs of families_bench.
#pragma once

#include <cstdint>
#include <span>

namespace hloom::bench {

/// A program; in its text, N is the number of elements, R and C of rows and columns, C = min(1024, √N), S the side of
/// a square of N; the other letters are what families_bench says.
struct Case {
  const char* name;
  const char* text;
  double (*operations)(double n) = nullptr;  ///< null: it moves data
  bool in_place = false;                     ///< the result is the first argument's memory
  std::int64_t moved_bytes = 0;              ///< 0: arguments and results
  std::int64_t row_bytes = 0;                ///< of the rows of the first argument that the second's indices pick; 0: others
  bool near = false;                         ///< indices are of a thousandth of the first argument
};

std::span<const Case> cases();

}  // namespace hloom::bench

// Which two loops of a nest go in squares, and how: for arrays whose fastest dimensions differ.
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "kernels/builder.h"

namespace hloom::kernels {

/// The stride of an access whose index a loop moves by what was loaded or computed: its elements lie anywhere.
inline constexpr std::int64_t kAnywhere = std::numeric_limits<std::int64_t>::max();

/// A loop of a nest: what it adds to the index of each access, in the order of Findings::accesses.
struct LoopStrides {
  std::int64_t extent = 1;
  std::vector<std::int64_t> strides;
};

/// Loops `rows` and `lanes` go in squares of `size` by `size`; size 0: no two do.
struct SquareChoice {
  std::size_t rows = 0, lanes = 0;
  std::int64_t size = 0;
  std::int64_t line = 0;  ///< squares side by side that fill a cache line or more, which are done one after the other
};

/// The pair with the fewest memory operations for each element, if that is less than `cost`, which the best single loop
/// by lanes has. Accesses dense along the lanes are rows as they are; those dense along the rows are turned over in
/// registers; others go one element at a time. Cost: pairs of loops times accesses.
SquareChoice choose_square(const std::vector<LoopStrides>& loops, const Findings&, double cost);

/// A loop over part of loop 0, the rows, or 1, the lanes: iterations from + step·v, v in [0, count).
struct Walk {
  std::size_t loop = 0;
  std::int64_t from = 0, count = 0, step = 1;
  int lanes = 0;
};

/// A part of the rectangle rows × lanes, in squares of `size`, or plain if that is 0; walks outermost first, the one by
/// lanes last.
struct SquarePart {
  std::int64_t size = 0;
  std::vector<Walk> walks;
};

/// Cuts the rectangle: whole squares, then what is beside and below in smaller ones.
std::vector<SquarePart> square_parts(const SquareChoice&, std::int64_t rows, std::int64_t lanes);

}  // namespace hloom::kernels

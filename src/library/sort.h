// Sorts by keys with a total order: least significant digit first.
#pragma once

#include <cstdint>
#include <vector>

#include "library/routine.h"

namespace hloom::library {

/// One number of each element that lines are ordered by.
struct SortKey {
  enum class Order : std::uint8_t {
    Unsigned,
    Signed,
    Float,  ///< IEEE 754's total order, of a format with sign, exponent and significand from the top
  };
  std::int64_t operand = 0;
  Order order = Order::Unsigned;
  bool descending = false;
  bool zeros_equal = false;    ///< floats: -0 counts as 0
  bool nans_equal = false;     ///< floats: every NaN counts as the greatest number
  std::uint64_t infinity = 0;  ///< floats: the bits of the positive one
};

struct SortArray {
  std::int64_t width_bytes = 1;             ///< of an element: 1, 2, 4, 8 or 16
  std::int64_t stride = 1;                  ///< elements from one to the next of a line
  std::vector<std::int64_t> outer_strides;  ///< the same for each of SortProblem::outer_dims
  std::int64_t start = 0;                   ///< of the first line's first element, in elements
  std::int64_t source = 0;                  ///< of a result: the operand that it is taken from; -1: positions, as s32
};

struct SortProblem {
  std::int64_t length = 0;               ///< of a line
  std::int64_t kept = 0;                 ///< how many of a sorted line are results
  std::vector<std::int64_t> outer_dims;  ///< their product is the number of lines
  std::vector<SortKey> keys;             ///< the first counts most
  std::vector<SortArray> operands;
  std::vector<SortArray> results;
};

/// Below this length, compared merges are as quick.
inline constexpr std::int64_t kShortestSort = 48;

/// Stable. Lines are sorted in blocks that may run at the same time; results must not overlap operands. The scratch holds two
/// copies of a line's keys and positions.
/// Needs: fewer than 2^32 elements in a line; a line; a key. Cost: linear in the elements, for each byte of the keys.
/// Source: Knuth, The Art of Computer Programming 3, 5.2.5, with counts for all digits taken in one pass.
RoutinePlan plan_sort(const SortProblem&);

}  // namespace hloom::library

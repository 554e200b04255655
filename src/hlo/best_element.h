// Reducers that give their operands' elements at the place where one of them is greatest or least: argmax, argmin and their
// like, in any spelling.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace hloom::hlo {

/// All results of the reduce are the elements of its operands at one place; only which of two equal zeros the key's is may be said
/// otherwise.
struct BestElement {
  std::int64_t key = 0;        ///< the operand that is compared
  bool least = false;          ///< else greatest
  bool last = false;           ///< the last place, in the order of the reduce, of those with equal keys; else the first
  bool last_zero = false;      ///< floats: the key's result is that of the last place instead, or the first
  bool nans_are_best = false;  ///< floats: a NaN comes before any number; else what a NaN does depends on the order
};

/// What a reduce gives, beside its initial values, which are combined with it by the reducer. The reducer may compare
/// operands, select, and use logic, minimum and maximum: each case of two elements is tried. Where places are chosen by the elements of a
/// second operand, those must be seen to ascend or descend in the order of the reduce, as an iota's do.
/// Nothing for any other reduce. Needs: a reduce.
std::optional<BestElement> best_element(const Instruction& reduce);

/// Whether elements of an integer array grow (+1) or fall (-1) strictly along `dimensions`, ascending, in row-major order; else 0.
int monotone(const Instruction& array, const Dims& dimensions);

}  // namespace hloom::hlo

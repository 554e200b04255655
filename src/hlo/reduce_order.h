// In which order a reduce takes its elements: the part of the numeric contract that passes, fusions and kernels have to agree on.
#pragma once

#include <cstdint>

#include "hlo/module.h"

namespace hloom::hlo {

/// Partial values of a fold: a sum has this many on every machine.
inline constexpr std::int64_t kFoldLanes = 64;

/// The combining opcode of a reducer that is one commutative binary op of its two parameters, if it is; else Tuple.
Opcode reducer_op(const Computation&);

/// The same for result `k` of a reducer of several values at once: of those of array `k` alone.
Opcode reducer_op(const Computation&, std::int64_t k);

/// The combining opcode of a reduce of one array, in the array's own type; Tuple for any other.
Opcode reduce_op(const Instruction& reduce);

/// The type that a reduce keeps its value in: sums of narrow floats are kept in f32 and rounded once.
DType accumulator(Opcode combine, DType);

/// How a reduce goes. It depends on the instruction alone, so a value is the same in whatever kernel it is made.
struct ReduceOrder {
  /// Folded by kFoldLanes over dimensions [first, rank) as one, what is reduced before them one by one. Otherwise all elements
  /// are taken one after the other in row-major order.
  bool by_lanes = false;
  std::int64_t first = 0;
  std::int64_t extent = 1;  ///< elements of those dimensions

  /// Lanes of the fold: kFoldLanes, or as many as hold the elements if those are fewer.
  int lanes() const;
};

/// Needs: a reduce.
ReduceOrder order_of(const Instruction& reduce);

/// The lanes that a reduce of any reducer may go by where its order is no matter: over its operand's last dimensions, if those are
/// reduced and have some elements. Needs: a reduce.
ReduceOrder minor_order(const Instruction& reduce);

}  // namespace hloom::hlo

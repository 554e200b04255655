// What the rules of shape inference share. Each family of opcodes has its file; infer_shape.cc sends each opcode to
// one. All need what infer_shape() has checked before: the number of operands and of called computations fits the
// opcode, called computations have roots, the attributes are of the opcode's family, and operands that are arrays
// have at most kMaxRank dimensions, none negative, and less than 2^63 elements.
#pragma once

#include <algorithm>
#include <optional>
#include <string_view>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/instruction.h"
#include "hloom/error.h"

namespace hloom::hlo {

/// The error that names the instruction.
template <typename... Parts>
Error wrong(const Instruction& i, const Parts&... parts) {
  return fail(Code::InvalidArgument, i.name(), ": ", parts...);
}

/// infer_shape() with a wrong signature of a called computation as FailedPrecondition, so that the verifier can tell.
Expected<Shape> infer_by_rules(const Instruction&);
/// What all rules rely on: counts of operands and computations, the attributes' family, sizes of operands.
Expected<> check_form(const Instruction&);

Expected<Shape> infer_elementwise(const Instruction&);
Expected<Shape> infer_movement(const Instruction&);
Expected<Shape> infer_slices(const Instruction&);
Expected<Shape> infer_gather(const Instruction&);
Expected<Shape> infer_scatter(const Instruction&);
Expected<Shape> infer_reduction(const Instruction&);
Expected<Shape> infer_dot(const Instruction&);
Expected<Shape> infer_convolution(const Instruction&);
Expected<Shape> infer_linear_algebra(const Instruction&);
Expected<Shape> infer_generator(const Instruction&);
Expected<Shape> infer_control(const Instruction&);
Expected<Shape> infer_transfer(const Instruction&);
Expected<Shape> infer_collective(const Instruction&);

/// Rank, sizes and number of elements of an array are in range; anything else is fine.
bool sizes_in_range(const Shape&);

/// Operand k is an array.
Expected<> want_array(const Instruction&, std::int64_t k);
/// All operands are arrays.
Expected<> want_arrays(const Instruction&);
/// Operand k is a scalar of any integer type.
Expected<> want_int_scalar(const Instruction&, std::int64_t k);
/// i.shape() is an array in range: for opcodes whose operands do not determine it.
Expected<> want_written_array(const Instruction&);
/// Each of `dims` lies in [0, rank), none twice. `what` names the list in the error.
Expected<> want_distinct(const Instruction&, const Dims& dims, std::int64_t rank, std::string_view what);
/// As want_distinct(), and ascending.
Expected<> want_sorted(const Instruction&, const Dims& dims, std::int64_t rank, std::string_view what);

/// A row-major array of dimensions and dynamic flags of `s`, of another element type.
Shape with_type(const Shape& s, DType type);
/// A row-major array of some dimensions of `s`, in that order.
Shape pick_dims(const Shape& s, const Dims& dims);
/// The dimensions of `s` that `removed` does not list.
Dims remaining_dims(const Shape& s, const Dims& removed);
bool contains(const Dims& dims, std::int64_t d);

/// The more precise of two types, if they are equal or both floats.
std::optional<DType> more_precise(DType a, DType b);
/// The element type of a product of `a` and `b`: the written one if it may widen theirs, else the more precise.
Expected<DType> product_type(const Instruction&, DType a, DType b);

/// One array, or the tuple of several.
Shape one_or_tuple(std::vector<Shape> shapes);
/// `v` in 64 bits, if it is from 0 on.
std::optional<std::int64_t> in_range(__int128 v);

/// Dimensions that a list of windows leaves (hlo-ops 7.2). Needs: as many windows as dims.
Expected<Dims> windowed_dims(const Instruction&, const Dims& dims, const Window& window);

/// Checks that `computation` takes `parameters` and gives `result` (not checked if invalid). Floats count as equal
/// where `ignore_precision`. Errors: FailedPrecondition, which names both signatures.
Expected<> want_signature(const Instruction&, const Computation& computation, const std::vector<Shape>& parameters,
                          const Shape& result, bool ignore_precision = false);
/// The results of a computation: the root, or its elements if it is a tuple.
std::vector<Shape> results_of(const Computation&);

}  // namespace hloom::hlo

// An array as an .npy file holds it, and its way to and from a value of HLO.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "hlo/literal.h"
#include "hloom/shape.h"

namespace hloom::arrays {

/// Elements in row-major order. `type` is one that numpy has: pred, s8 … s64, u8 … u64, f16, f32, f64, c64, c128.
struct Array {
  DType type = DType::Invalid;
  std::vector<std::int64_t> dims;
  std::vector<std::byte> bytes;
  bool operator==(const Array&) const = default;
};

/// The type of numpy's or ml_dtypes' name: "float32", "bool", "int4", "float8_e4m3fn" …
std::optional<DType> dtype_of_numpy_name(std::string_view name);
/// The other way. Needs: is_array_type(type), not s1 or u1.
std::string_view numpy_name(DType type);
/// The type in which a file holds elements of `type`: itself, or u8 or u16 for bit patterns.
DType stored_type(DType type);

/// The value of shape `want` that the array stands for; the layout is want's. Bit patterns of bf16, f8, f4 and the
/// sub-byte integers come as u16 or u8; the latter may be sign-extended, and s8 may stand for s4 and s2; u8 of 0 and 1
/// may stand for pred. `entry` is what messages call the array.
/// Errors: InvalidArgument if type or dimensions differ or a bit pattern has no meaning in the type.
Expected<hlo::Literal> to_literal(const Array&, const Shape& want, std::string_view entry);

/// The array that a file holds for the value; layouts are dropped. Needs: an array, not of type s1 or u1.
Array to_array(const hlo::Literal&);

}  // namespace hloom::arrays

#include "arrays/array.h"

#include <algorithm>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

constexpr std::pair<std::string_view, DType> kNames[] = {
    {"bool", DType::Pred},
    {"int2", DType::S2},
    {"int4", DType::S4},
    {"int8", DType::S8},
    {"int16", DType::S16},
    {"int32", DType::S32},
    {"int64", DType::S64},
    {"uint2", DType::U2},
    {"uint4", DType::U4},
    {"uint8", DType::U8},
    {"uint16", DType::U16},
    {"uint32", DType::U32},
    {"uint64", DType::U64},
    {"float16", DType::F16},
    {"float32", DType::F32},
    {"float64", DType::F64},
    {"bfloat16", DType::BF16},
    {"complex64", DType::C64},
    {"complex128", DType::C128},
    {"float8_e5m2", DType::F8E5M2},
    {"float8_e4m3", DType::F8E4M3},
    {"float8_e3m4", DType::F8E3M4},
    {"float8_e4m3fn", DType::F8E4M3FN},
    {"float8_e4m3b11fnuz", DType::F8E4M3B11FNUZ},
    {"float8_e5m2fnuz", DType::F8E5M2FNUZ},
    {"float8_e4m3fnuz", DType::F8E4M3FNUZ},
    {"float8_e8m0fnu", DType::F8E8M0FNU},
    {"float4_e2m1fn", DType::F4E2M1FN},
};

std::string dims_text(const std::vector<std::int64_t>& dims) {
  std::ostringstream out;
  out << '[';
  for (std::size_t i = 0; i < dims.size(); ++i) out << (i > 0 ? "," : "") << dims[i];
  out << ']';
  return std::move(out).str();
}

bool may_stand_for(DType stored, DType want) {
  if (stored == want || stored == stored_type(want)) return true;
  if (want == DType::Pred) return stored == DType::U8;
  return stored == DType::S8 && is_signed(want) && bit_width(want) < 8;
}

// The byte that a literal keeps for a sub-byte element: low bits, sign- or zero-extended; or nothing.
std::optional<std::uint8_t> unpacked(std::uint8_t byte, DType type) {
  const int unused = 8 - bit_width(type);
  const auto zero = static_cast<std::uint8_t>(static_cast<std::uint8_t>(byte << unused) >> unused);
  const auto sign = static_cast<std::uint8_t>(static_cast<std::int8_t>(byte << unused) >> unused);
  if (byte != zero && !(is_signed(type) && byte == sign)) return std::nullopt;
  return is_signed(type) ? sign : zero;
}

Expected<> unpack(std::vector<std::byte>& bytes, DType type, std::string_view entry) {
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto given = std::to_integer<std::uint8_t>(bytes[i]);
    const auto kept = unpacked(given, type);
    if (!kept)
      return fail(Code::InvalidArgument, entry, ": element ", i, " is the byte ", int{given}, ", which is no ", type);
    bytes[i] = std::byte{*kept};
  }
  return {};
}

}  // namespace

std::optional<DType> dtype_of_numpy_name(std::string_view name) {
  for (const auto& [text, type] : kNames)
    if (text == name) return type;
  return std::nullopt;
}

std::string_view numpy_name(DType type) {
  for (const auto& [text, named] : kNames)
    if (named == type) return text;
  HLOOM_CHECK(!"a type that files have a name for");
  return {};
}

DType stored_type(DType type) {
  const bool own = type == DType::Pred || type == DType::F16 || type == DType::F32 || type == DType::F64 ||
                   is_complex(type) || (is_integral(type) && bit_width(type) >= 8);
  if (own) return type;
  return byte_width(type) == 2 ? DType::U16 : DType::U8;
}

Expected<hlo::Literal> to_literal(const Array& array, const Shape& want, std::string_view entry) {
  if (!want.is_array())
    return fail(Code::InvalidArgument, entry, ": an array cannot stand for ", to_string(want, false));
  if (array.dims != want.dims())
    return fail(Code::InvalidArgument, entry, ": has dimensions ", dims_text(array.dims), ", expected ",
                dims_text(want.dims()));
  if (!may_stand_for(array.type, want.dtype()))
    return fail(Code::InvalidArgument, entry, ": holds ", array.type, ", expected ", stored_type(want.dtype()),
                stored_type(want.dtype()) == want.dtype() ? "" : " with the bits of ",
                stored_type(want.dtype()) == want.dtype() ? std::string_view() : name(want.dtype()));
  std::vector<std::byte> bytes = array.bytes;
  if (bit_width(want.dtype()) < 8) TRY(unpack(bytes, want.dtype(), entry));
  return hlo::Literal::from_bytes(want, std::move(bytes));
}

Array to_array(const hlo::Literal& literal) {
  HLOOM_CHECK(literal.shape().is_array());
  const auto bytes = literal.bytes();
  return {stored_type(literal.dtype()), literal.shape().dims(), {bytes.begin(), bytes.end()}};
}

}  // namespace hloom::arrays

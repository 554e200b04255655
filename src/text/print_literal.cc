#include "text/print_literal.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "hlo/narrow_float.h"
#include "text/print_words.h"

namespace hloom::text {
namespace {

using hlo::FloatFormat;
using hlo::Literal;

constexpr std::int64_t kMostElements = 10;

// At most `digits` significant digits, as %.Ng.
template <typename T>
void write_digits(std::string& out, T value, int digits) {
  char buffer[64];
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, digits).ptr);
}

// The shorter of two precisions if it reads back as the same number.
template <typename T>
void write_exact(std::string& out, T value, int few, int enough) {
  char buffer[64];
  char* end = std::to_chars(buffer, buffer + sizeof buffer, value, std::chars_format::general, few).ptr;
  T back = 0;
  const auto [stop, error] = std::from_chars(buffer, end, back);
  if (error != std::errc() || back != value) return write_digits(out, value, enough);
  out.append(buffer, end);
}

// The bits of a NaN: `nan`, `-nan`, and the mantissa if it is not the default.
void write_nan(std::string& out, const FloatFormat& f, std::uint64_t bits) {
  const bool fnuz = f.special == FloatFormat::Special::NanNegZero;
  const std::uint64_t mask = (1ull << f.mantissa_bits) - 1;
  const bool negative = f.special != FloatFormat::Special::PowerOfTwo && !fnuz && (bits >> (f.width() - 1) & 1) != 0;
  out += negative ? "-nan" : "nan";
  if ((bits & mask) == (hlo::default_nan(f) & mask)) return;
  char buffer[24];
  out += "(0x";
  out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, bits & mask, 16).ptr);
  out += ')';
}

void write_float(std::string& out, DType type, const std::byte* p) {
  const FloatFormat& f = hlo::float_format(type);
  std::uint64_t bits = 0;
  std::memcpy(&bits, p, static_cast<std::size_t>(byte_width(type)));
  if (hlo::is_nan_bits(f, bits)) return write_nan(out, f, bits);
  if (type == DType::F32) return write_exact(out, std::bit_cast<float>(static_cast<std::uint32_t>(bits)), 6, 9);
  if (type == DType::F64) return write_exact(out, std::bit_cast<double>(bits), 15, 17);
  const int digits = static_cast<int>(std::ceil(1 + (f.mantissa_bits + 1) * std::log10(2.0)));
  write_digits(out, hlo::decode_float(f, bits), digits);
}

void write_element(std::string& out, const Literal& literal, std::int64_t i) {
  const DType type = literal.dtype();
  const std::byte* p = literal.bytes().data() + i * byte_width(type);
  if (type == DType::Pred) {
    const bool value = *p != std::byte{0};
    out += literal.shape().rank() == 0 ? (value ? "true" : "false") : (value ? "1" : "0");
  } else if (is_complex(type)) {
    const DType part = real_type(type);
    out += '(';
    write_float(out, part, p);
    out += ", ";
    write_float(out, part, p + byte_width(part));
    out += ')';
  } else if (is_floating(type)) {
    write_float(out, type, p);
  } else if (type == DType::U64) {
    std::uint64_t value = 0;
    std::memcpy(&value, p, sizeof value);
    char buffer[24];
    out.append(buffer, std::to_chars(buffer, buffer + sizeof buffer, value).ptr);
  } else {
    write_integer(out, hlo::element_as_int64(literal, i));
  }
}

// Elements from `next` on, below `depth` dimensions; `index` is the level's own.
void write_level(std::string& out, const Literal& literal, std::int64_t depth, std::int64_t index, std::int64_t& next) {
  const Shape& shape = literal.shape();
  const std::int64_t size = shape.dim(depth), rank = shape.rank();
  const bool innermost = depth + 1 == rank;
  const bool spaced = innermost ? rank > 1 && size > 1 : size > 0;
  out += spaced ? "{ " : "{";
  // Of ranks above 3 each level but the outermost and the innermost says where it is.
  if (rank > 3 && depth > 0 && !innermost && spaced) {
    out += "/*i";
    write_integer(out, depth - 1);
    out += '=';
    write_integer(out, index);
    out += "*/ ";
  }
  for (std::int64_t i = 0; i < size; ++i) {
    if (i != 0) out += ", ";
    if (innermost)
      write_element(out, literal, next++);
    else
      write_level(out, literal, depth + 1, i, next);
  }
  out += spaced ? " }" : "}";
}

}  // namespace

void write_literal(std::string& out, const Literal& literal, bool large) {
  if (literal.is_released() || (!large && (literal.is_tuple() || literal.num_elements() > kMostElements))) {
    out += "{...}";
    return;
  }
  if (literal.is_tuple()) {
    out += "( ";
    for (const Literal& e : literal.elements()) {
      if (&e != &literal.elements().front()) out += ", ";
      write_literal(out, e, large);
    }
    out += literal.elements().empty() ? ")" : " )";
    return;
  }
  std::int64_t next = 0;
  if (literal.shape().rank() == 0)
    write_element(out, literal, 0);
  else
    write_level(out, literal, 0, 0, next);
}

}  // namespace hloom::text

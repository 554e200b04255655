#include "text/scalars.h"

#include <bit>
#include <cmath>
#include <limits>

#include "hlo/narrow_float.h"
#include "text/number.h"

namespace hloom::text {
namespace {

using hlo::FloatFormat;

void store(std::byte* out, std::uint64_t bits, std::size_t width) { std::memcpy(out, &bits, width); }

std::string_view token_text(const char* from, const char* to) {
  return {from, static_cast<std::size_t>(std::min<std::ptrdiff_t>(to - from, 60))};
}

void not_representable(Cursor& c, const char* from, const char* to, DType type) {
  c.fail("H410", from, words("'", token_text(from, to), "' is no value of ", name(type)));
}

// A number must not run into a word: `1x`, `0x10`, `1.5f`.
bool ends_number(Cursor& c, const char* start, const char* stop) {
  if (stop >= c.end() || !chars::is(*stop, chars::kNameStart)) return true;
  if (*stop == 'x' || *stop == 'X')
    c.fail("H105", start, "hexadecimal numbers are not part of the language");
  else
    c.fail("H501", stop, words("expected ',' or '}', found ", c.found()));
  return false;
}

bool in_range(const WrittenInteger& n, DType type) {
  if (n.overflow) return false;
  const int bits = bit_width(type);
  if (is_signed(type)) {
    const std::uint64_t most = (1ull << (bits - 1)) - 1;
    return n.magnitude <= most + (n.negative ? 1 : 0);
  }
  if (type == DType::U64) return !n.negative || n.magnitude <= 1ull << 63;  // negative ones are bit patterns
  return (!n.negative || n.magnitude == 0) && n.magnitude < 1ull << bits;
}

void not_an_integer(Cursor& c, DType type) {
  const char* at = c.at();
  if (c.peek() == '(') return c.fail("H405", at, words("a pair of parts for an element of ", name(type)));
  if (c.peek_word() == "true" || c.peek_word() == "false" || c.peek_word() == "inf" || c.peek_word() == "nan" ||
      c.looking_at("-inf") || c.looking_at("-nan") || c.looking_at("."))
    return c.fail("H411", at, words("expected an integer of ", name(type), ", found ", c.found()));
  c.fail_expected(words("an integer of ", name(type)));
}

void read_integer(Cursor& c, DType type, std::byte* out) {
  c.peek();
  const char* const start = c.position();
  const WrittenInteger n = scan_integer(start, c.end());
  if (n.end == start) return not_an_integer(c, type);
  const char next = n.end < c.end() ? *n.end : '\0';
  if (next == '.' || next == 'e' || next == 'E') {
    const auto decimal = scan_decimal<double>(start, c.end());
    return c.fail("H411", start,
                  words("'", token_text(start, decimal.end), "' is no integer, as ", name(type), " needs one"));
  }
  if (n.overflow && bit_width(type) == 64)
    return c.fail("H103", start, words("the integer ", token_text(start, n.end), " does not fit in 64 bits"));
  if (!in_range(n, type)) return not_representable(c, start, n.end, type);
  if (!ends_number(c, start, n.end)) return;
  c.set_position(n.end);
  store(out, n.bits(), static_cast<std::size_t>(byte_width(type)));
}

void read_pred(Cursor& c, DType type, std::byte* out) {
  if (c.eat_word("true")) return store(out, 1, 1);
  if (c.eat_word("false")) return store(out, 0, 1);
  read_integer(c, type, out);
}

// The mantissa field that a NaN with this payload has, or nothing if the type has no such NaN.
std::optional<std::uint64_t> nan_bits(const FloatFormat& f, std::uint64_t payload, bool has_payload) {
  if (!f.has_nan()) return std::nullopt;
  const std::uint64_t mask = (1ull << f.mantissa_bits) - 1;
  const std::uint64_t standard = hlo::default_nan(f);
  if (!has_payload) return standard;
  if (f.special != FloatFormat::Special::Ieee)
    return payload == (standard & mask) ? std::optional(standard) : std::nullopt;
  if (payload > mask) return std::nullopt;
  return (standard & ~mask) | payload;
}

std::uint64_t read_payload(Cursor& c) {
  c.expect('(');
  const char* at = c.at();
  const std::string_view digits = c.run("0123456789abcdefABCDEFxX");
  std::uint64_t payload = 0;
  bool good = digits.size() > 2 && digits.size() <= 15 && (digits.starts_with("0x") || digits.starts_with("0X"));
  for (const char d : digits.substr(std::min<std::size_t>(digits.size(), 2))) {
    good = good && d != 'x' && d != 'X';
    payload = payload * 16 + static_cast<std::uint64_t>(d <= '9' ? d - '0' : (d | 0x20) - 'a' + 10);
  }
  if (!good || payload == 0 || payload >= 1ull << 52)
    c.fail("H106", at, words("'", digits.substr(0, 60), "' is no payload of a NaN (0x1 … 0xfffffffffffff)"));
  c.expect(')');
  return payload;
}

void read_nan(Cursor& c, DType type, bool negative, const char* start, std::byte* out) {
  const FloatFormat& f = hlo::float_format(type);
  const bool has_payload = c.position() < c.end() && *c.position() == '(';
  const std::uint64_t payload = has_payload ? read_payload(c) : 0;
  if (!c.ok()) return;
  const auto bits = nan_bits(f, payload, has_payload);
  if (!bits) {
    if (!f.has_nan()) return not_representable(c, start, c.position(), type);
    return c.fail("H412", start,
                  words("the payload of '", token_text(start, c.position()), "' does not fit ", name(type)));
  }
  const bool sign =
      negative && f.special != FloatFormat::Special::NanNegZero && f.special != FloatFormat::Special::PowerOfTwo;
  store(out, *bits | (sign ? 1ull << (f.width() - 1) : 0), static_cast<std::size_t>(byte_width(type)));
}

// `inf`, `nan`, with or without a minus; anything else is an error.
void read_float_word(Cursor& c, DType type, std::byte* out) {
  const char* const start = c.at();
  const bool negative = c.peek() == '-';
  if (negative) c.set_position(start + 1);
  const std::string_view found =
      c.position() < c.end() && chars::is(*c.position(), chars::kNameStart) ? c.peek_word() : "";
  if (found == "nan" || found == "inf") c.skip(found);
  if (found == "nan") return read_nan(c, type, negative, start, out);
  if (found == "inf") {
    const FloatFormat& f = hlo::float_format(type);
    if (!f.has_infinity()) return not_representable(c, start, c.position(), type);
    return store(out, hlo::encode_float(f, negative ? -HUGE_VAL : HUGE_VAL),
                 static_cast<std::size_t>(byte_width(type)));
  }
  c.set_position(start);
  if (c.peek() == '(') return c.fail("H405", start, words("a pair of parts for an element of ", name(type)));
  c.fail_expected(words("a number of ", name(type)));
}

template <typename T>
void read_decimal(Cursor& c, DType type, std::byte* out) {
  c.peek();
  const char* const start = c.position();
  const auto n = scan_decimal<T>(start, c.end());
  if (n.end == start) return read_float_word(c, type, out);
  if (n.overflow) return not_representable(c, start, n.end, type);
  if (!ends_number(c, start, n.end)) return;
  c.set_position(n.end);
  std::memcpy(out, &n.value, sizeof n.value);
}

// Rounds twice, decimal to double to the type, as the reference does.
void read_narrow(Cursor& c, DType type, std::byte* out) {
  c.peek();
  const char* const start = c.position();
  const auto n = scan_decimal<double>(start, c.end());
  if (n.end == start) return read_float_word(c, type, out);
  const FloatFormat& f = hlo::float_format(type);
  const std::uint64_t bits = hlo::encode_float(f, n.value);
  const double rounded = hlo::decode_float(f, bits);
  // A type without infinity and NaN saturates: half a step past the largest value is too far.
  const bool saturated =
      !f.has_nan() && std::fabs(n.value) >= hlo::largest_finite(f) +
                                                std::ldexp(0.5, std::ilogb(hlo::largest_finite(f)) - f.mantissa_bits);
  if (n.overflow || !std::isfinite(rounded) || saturated) return not_representable(c, start, n.end, type);
  if (!ends_number(c, start, n.end)) return;
  c.set_position(n.end);
  store(out, bits, static_cast<std::size_t>(byte_width(type)));
}

// `(re, im)`, or a real number alone.
template <typename T>
void read_complex(Cursor& c, DType type, std::byte* out) {
  const DType part = real_type(type);
  std::memset(out, 0, 2 * sizeof(T));
  if (!c.eat('(')) return read_decimal<T>(c, part, out);
  read_decimal<T>(c, part, out);
  c.eat(',');
  read_decimal<T>(c, part, out + sizeof(T));
  c.expect(')');
}

}  // namespace

ReadScalar scalar_reader(DType type) {
  switch (type) {
    case DType::Pred: return read_pred;
    case DType::F32: return read_decimal<float>;
    case DType::F64: return read_decimal<double>;
    case DType::C64: return read_complex<float>;
    case DType::C128: return read_complex<double>;
    default: return is_floating(type) ? read_narrow : read_integer;
  }
}

}  // namespace hloom::text

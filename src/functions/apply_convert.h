// convert between every two types of elements, its relatives, compare and select.
#pragma once

#include <cmath>

#include "functions/convert.h"
#include "functions/element.h"
#include "functions/integers.h"
#include "hlo/attributes.h"

namespace hloom::functions {

/// A float of any width as a float. Needs: f32 or narrower. Exact.
template <class B>
Value<B, float> as_float(B& b, DType type, typename B::Any x) {
  if (type == DType::F32) return part<float>(b, x);
  return with_narrow(type, [&]<class U>() { return decode(hlo::float_format(type), part<U>(b, x)); });
}
/// A float rounded once to a type as wide or narrower.
template <class B>
Element<B> from_float(DType type, Value<B, float> x) {
  if (type == DType::F32) return element(x);
  return with_narrow(type, [&]<class U>() { return element(encode<U>(hlo::float_format(type), x)); });
}

/// A float, double, integer or bool rounded once to the float type `to`.
template <class B, class T>
Element<B> to_float_type(DType to, Value<B, T> x) {
  if (to == DType::F64) return element(to_real<double>(x));
  if (to == DType::F32) return element(to_real<float>(x));
  if constexpr (std::is_same_v<T, double>)
    return from_float(to, round_to_odd(x));
  else if constexpr (std::is_same_v<T, float> || sizeof(T) < 4)
    return from_float(to, to_real<float>(x));  // exact
  else if constexpr (sizeof(T) == 4)
    return from_float(to, round_to_odd(to_real<double>(x)));
  else
    return from_float(to, round_to_odd(round_to_odd(x)));
}

/// A float or double as an integer type: truncated, saturated, NaN gives 0.
template <class B, class T>
Element<B> to_integer_type(DType to, Value<B, T> x) {
  return with_integer(to, [&]<class I>() {
    Value<B, I> n = to_integer<I>(x);
    const int width = bit_width(to);
    if (width < 8) {  // the storage is wider
      const int low = std::is_signed_v<I> ? -(1 << (width - 1)) : 0;
      n = larger(static_cast<I>(low), smaller(static_cast<I>(low + (1 << width) - 1), n));
    }
    return element(n);
  });
}

template <class B, class T>
Element<B> convert_from(DType to, Value<B, T> x) {
  if (is_complex(to)) {
    Element<B> result = to_float_type(real_type(to), x);
    result.imag = to_float_type(real_type(to), constant<float>(x, 0.0f)).real;
    return result;
  }
  if (is_floating(to)) return to_float_type(to, x);
  if (to == DType::Pred) {
    if constexpr (std::is_same_v<T, bool>)
      return element(x);
    else
      return element(x != x(T{}));
  }
  if constexpr (is_real<T>)
    return to_integer_type(to, x);
  else
    return with_integer(to, [&]<class I>() { return element(wrap(resize<I>(x), bit_width(to))); });
}

/// HLO's convert. Needs: types of arrays.
template <class B>
Element<B> apply_convert(B& b, DType from, DType to, Element<B> x) {
  if (from == to) return x;
  if (is_complex(from)) {
    const DType source = real_type(from);
    if (!is_complex(to) && to != DType::Pred) return apply_convert(b, source, to, {x.real, {}});
    const Element<B> real = apply_convert(b, source, real_type(to), {x.real, {}});
    const Element<B> imag = apply_convert(b, source, real_type(to), {x.imag, {}});
    if (to == DType::Pred) return element(part<bool>(b, real.real) | part<bool>(b, imag.real));
    return {real.real, imag.real};
  }
  if (from == DType::Pred) return convert_from(to, part<bool>(b, x.real));
  if (from == DType::F64) return convert_from(to, part<double>(b, x.real));
  if (is_floating(from)) return convert_from(to, as_float(b, from, x.real));
  return with_integer(from, [&]<class I>() { return convert_from(to, part<I>(b, x.real)); });
}

/// A float's bits rounded to `exponent_bits` and `mantissa_bits`, held in the format `source` of the same bits: the
/// mantissa to nearest even; then too large becomes infinite, below the normal range 0. A NaN stays, or becomes
/// +infinity where no mantissa bits could tell it. Needs: an Ieee format.
template <class B, class U>
Value<B, U> reduce_bits(const FloatFormat& source, int exponent_bits, int mantissa_bits, Value<B, U> x) {
  const auto shifted = [](std::uint64_t n, int by) { return static_cast<U>(n << by); };
  const U infinity = shifted((1u << source.exponent_bits) - 1, source.mantissa_bits);
  const Value<B, U> sign = x & shifted(1, source.exponent_bits + source.mantissa_bits);
  const Value<B, U> magnitude = x ^ sign;
  Value<B, U> y = magnitude;
  const int cut = source.mantissa_bits - mantissa_bits;
  if (cut > 0) {
    const Value<B, U> tie_up = (y >> static_cast<U>(cut)) & U{1};
    y = (y + static_cast<U>(shifted(1, cut - 1) - 1) + tie_up) & static_cast<U>(~(shifted(1, cut) - 1));
  }
  if (exponent_bits < source.exponent_bits) {
    const std::uint64_t bias = (1u << (exponent_bits - 1)) - 1, middle = static_cast<std::uint64_t>(source.bias);
    y = select(y >= shifted(middle + bias + 1, source.mantissa_bits), infinity, y);
    y = select(y < y(shifted(middle - bias + 1, source.mantissa_bits)), U{0}, y);
  }
  return select(magnitude > infinity, mantissa_bits > 0 ? x : x(infinity), y | sign);
}

/// The same for a code of a format without infinities: what it lacks is as in a conversion.
template <class B, class U>
Value<B, U> reduce_code(const FloatFormat& source, int exponent_bits, int mantissa_bits, Value<B, U> code) {
  using Word = Value<B, std::uint32_t>;
  const bool no_sign = source.special == FloatFormat::Special::PowerOfTwo;
  const bool saturates = source.special == FloatFormat::Special::NoSpecials;
  const std::uint32_t sign_mask = no_sign ? 0 : 1u << (source.width() - 1), largest = narrow::largest_code(source);
  const Word x = resize<std::uint32_t>(code) & ((1u << source.width()) - 1u);
  const Word magnitude = x & ~sign_mask;
  const auto sign = [&](Word word) { return sign_mask == 0 ? word : word | (x & sign_mask); };
  const Word overflow = source.special == FloatFormat::Special::NanNegZero ? x(sign_mask)
                        : sign(x(saturates ? largest : largest + 1));
  Word y = magnitude;
  if (const int cut = source.mantissa_bits - mantissa_bits; cut > 0) {
    const Word tie_up = (y >> static_cast<std::uint32_t>(cut)) & 1u;
    y = (y + ((1u << (cut - 1)) - 1u) + tie_up) & ~((1u << cut) - 1u);
  }
  auto too_large = y > largest, too_small = y < 0u;
  if (exponent_bits < source.exponent_bits) {
    const int bias = (1 << (exponent_bits - 1)) - 1, from = source.bias - bias + 1, beyond = source.bias + bias + 1;
    too_small = y < static_cast<std::uint32_t>(std::max(from, 0) << source.mantissa_bits);
    too_large = too_large | (y >= static_cast<std::uint32_t>(beyond << source.mantissa_bits));
  }
  // fnuz has no -0, the powers of two none at all.
  Word number = select(too_small, 0u, y);
  number = source.special == FloatFormat::Special::NanNegZero ? select(number == number(0u), 0u, sign(number))
           : no_sign                                          ? select(too_small, 255u, number)
                                                              : sign(number);
  number = select(too_large, overflow, number);
  const auto is_nan = source.special == FloatFormat::Special::NanNegZero ? x == sign_mask : magnitude > largest;
  return resize<U>(saturates ? number : select(is_nan, x, number));
}

/// HLO's reduce-precision. Needs: a float type; exponent_bits >= 1, mantissa_bits >= 0.
template <class B>
Element<B> apply_reduce_precision(B& b, DType type, int exponent_bits, int mantissa_bits, Element<B> x) {
  const FloatFormat& format = hlo::float_format(type);
  const auto reduce = [&](auto v) { return reduce_bits(format, exponent_bits, mantissa_bits, v); };
  if (type == DType::F64) return element(bits_as<double>(reduce(bits(part<double>(b, x.real)))));
  if (type == DType::F32) return element(bits_as<float>(reduce(bits(part<float>(b, x.real)))));
  if (bit_width(type) == 16) return element(reduce(part<std::uint16_t>(b, x.real)));
  const Value<B, std::uint8_t> code = part<std::uint8_t>(b, x.real);
  return element(format.has_infinity() ? reduce(code) : reduce_code(format, exponent_bits, mantissa_bits, code));
}

/// HLO's stochastic-convert to a signed integer type: |x| is rounded up where its fraction, as an integer of the random
/// number's width, exceeds that number. Needs: `random` of the unsigned type as wide as `from`.
template <class B, class T, class U>
Element<B> stochastic_convert(DType to, Value<B, T> x, Value<B, U> random) {
  const Value<B, T> a = abs(x), whole = trunc(a);
  const T range = std::ldexp(T{1}, static_cast<int>(8 * sizeof(U)));
  const auto up = to_integer<U>((a - whole) * range) > random;
  return to_integer_type(to, with_sign(abs(whole + select(up, T{1}, x(0))), x));
}
template <class B>
Element<B> apply_stochastic_convert(B& b, DType from, DType to, Element<B> x, Element<B> random) {
  if (from == DType::F64) return stochastic_convert(to, part<double>(b, x.real), part<std::uint64_t>(b, random.real));
  if (from == DType::F32) return stochastic_convert(to, part<float>(b, x.real), part<std::uint32_t>(b, random.real));
  return with_narrow(
      from, [&]<class U>() { return stochastic_convert(to, as_float(b, from, x.real), part<U>(b, random.real)); });
}

template <class B, class T>
Value<B, bool> compare(hlo::Direction direction, Value<B, T> x, Value<B, T> y) {
  switch (direction) {
    case hlo::Direction::Eq: return x == y;
    case hlo::Direction::Ne: return x != y;
    case hlo::Direction::Ge: return x >= y;
    case hlo::Direction::Gt: return x > y;
    case hlo::Direction::Le: return x <= y;
    case hlo::Direction::Lt: return x < y;
  }
  HLOOM_CHECK(!"a direction");
  return x == y;
}

/// The bits of a signed float as an integer that orders as TOTALORDER does: -NaN, -inf … -0, +0 … inf, NaN.
template <class B, class U>
Value<B, SignedOf<U>> total_order_key(Value<B, U> x, int width) {
  using S = SignedOf<U>;
  const Value<B, S> i = wrap(resize<S>(x), width);
  const auto magnitude_mask = static_cast<S>((std::uint64_t{1} << (width - 1)) - 1);
  return select(i < S{0}, i ^ magnitude_mask, i);
}

/// HLO's compare, to pred. Needs: a comparison that suits the type.
template <class B>
Element<B> apply_compare(B& b, hlo::Direction direction, hlo::Comparison comparison, DType type, Element<B> x,
                         Element<B> y) {
  if (is_complex(type)) {
    const auto half = [&](typename B::Any u, typename B::Any v) {
      return part<bool>(b, apply_compare(b, direction, comparison, real_type(type), {u, {}}, {v, {}}).real);
    };
    const auto real = half(x.real, y.real), imag = half(x.imag, y.imag);
    return element(direction == hlo::Direction::Eq ? real & imag : real | imag);
  }
  const auto as = [&]<class T>() { return element(compare(direction, part<T>(b, x.real), part<T>(b, y.real))); };
  if (type == DType::Pred) return as.template operator()<bool>();
  if (is_integral(type)) return with_integer(type, as);
  if (comparison == hlo::Comparison::TotalOrder) {
    if (type == DType::F8E8M0FNU) return as.template operator()<std::uint8_t>();  // no sign: codes are in order
    const auto keys = [&]<class U>(Value<B, U> u, Value<B, U> v) {
      const int width = bit_width(type);
      return element(compare(direction, total_order_key(u, width), total_order_key(v, width)));
    };
    if (type == DType::F32) return keys(bits(part<float>(b, x.real)), bits(part<float>(b, y.real)));
    if (type == DType::F64) return keys(bits(part<double>(b, x.real)), bits(part<double>(b, y.real)));
    return with_narrow(type, [&]<class U>() { return keys(part<U>(b, x.real), part<U>(b, y.real)); });
  }
  if (type == DType::F64) return as.template operator()<double>();
  return element(compare(direction, as_float(b, type, x.real), as_float(b, type, y.real)));
}

/// `pred` ? yes : no, for any type; the bits are only moved.
template <class B>
Element<B> apply_select(B& b, DType type, Element<B> pred, Element<B> yes, Element<B> no) {
  const Value<B, bool> condition = part<bool>(b, pred.real);
  const auto as = [&]<class T>() {
    Element<B> result = element(select(condition, part<T>(b, yes.real), part<T>(b, no.real)));
    if (is_complex(type)) result.imag = element(select(condition, part<T>(b, yes.imag), part<T>(b, no.imag))).real;
    return result;
  };
  if (type == DType::Pred) return as.template operator()<bool>();
  if (is_integral(type)) return with_integer(type, as);
  if (is_narrow(type)) return with_narrow(type, as);
  return real_type(type) == DType::F32 ? as.template operator()<float>() : as.template operator()<double>();
}

}  // namespace hloom::functions

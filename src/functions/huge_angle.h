// The reduction of angles too large for reduce_small().
#pragma once

#include <array>

#include "functions/double_word.h"
#include "functions/trigonometric.h"

namespace hloom::functions {

/// Digit j of 1/2π in base 2^53: 1/2π = Σ kTurnDigits[j]·2^(-53(j+1)).
inline constexpr std::array<double, 23> kTurnDigits = {
    1433540284805664.0, 5957137479487989.0, 1860064896635571.0, 1390943429720389.0, 5020298653118683.0,
    5144493106191662.0, 13822778938275.0,   1274606832502572.0, 2618186147303855.0, 5962356354247068.0,
    3945969191208999.0, 1767297002589415.0, 7404395570781948.0, 5211350100443133.0, 7893600668900899.0,
    798806392691533.0,  5619025154952634.0, 4299362769199082.0, 1599398431227260.0, 6691545962833886.0,
    1452770359377327.0, 7619584807961952.0, 1795012743845719.0};

/// A sum held in three parts, to about 150 bits.
template <class B>
struct LongSum {
  Value<B, double> high, middle, low;
  void add(Value<B, double> x) {
    const auto first = exact_sum(high, x);
    const auto second = exact_sum(middle, first.low);
    high = first.high;
    middle = second.high;
    low = low + second.low;
  }
};

/// x = q·π/2 + r + r_low for any finite |x| >= 2^17; infinities and NaNs give NaN.
///
/// x/2π is needed modulo 1. x is 53 bits times a power of two, 2^e its top one. Digits of 1/2π so early that x
/// times their last place is whole drop out, and five digits from the first that counts are enough: they reach
/// 2^-159, and no double is nearer to a multiple of π/2 than about 2^-61 of a turn. Each product is taken in two
/// exact halves, whole turns are dropped, and the rest is added up.
template <class B>
Quadrant<B, double> reduce_huge(Value<B, double> x) {
  using V = Value<B, double>;
  using Word = Value<B, std::uint64_t>;
  constexpr int kDigits = 5;
  // first = max(0, (e - 52) / 53), with the division as a multiplication, right below 1024.
  const Word e = (bits(x) >> 52) & 0x7FFu;
  const Word above = select(e > Word(e(1023 + 52)), e - (1023u + 52u), e(0));
  const Word first = (above * 1237u) >> 16;

  // x in units of the first digit's last place. A huge x has a finite exponent field to take from.
  const V unit = bits_as<double>((1023u - 53u - 53u * first) << 52);
  V scaled = x * unit;
  LongSum<B> turns{x(0), x(0), x(0)};
  for (int i = 0; i < kDigits; ++i, scaled = scaled * 0x1p-53) {
    const V digit = entry(kTurnDigits, first + static_cast<std::uint64_t>(i));
    const V product = scaled * digit;
    const V error = fma(scaled, digit, -product);
    turns.add(product - round_even(product));
    turns.add(error - round_even(error));
  }
  const Rounded<B, double> q = round_product(turns.high, 4.0);
  turns.high = fma(q.number, -0.25, turns.high);
  const auto rest = exact_sum(turns.high, turns.middle);
  const V low = rest.low + turns.low;
  constexpr double kTurn = 6.283185307179586, kTurnLow = 2.4492935982947064e-16;
  const V r = rest.high * kTurn;
  return {q.bits, r, fma(rest.high, kTurn, -r) + fma(rest.high, kTurnLow, low * kTurn)};
}

/// f of the quadrant of x, whatever its size.
template <class B, class F>
Value<B, double> by_quadrant(Value<B, double> x, F f) {
  return rarely(abs(x) > kReduceLimit<double>, f(reduce_small(x)), x, [f](auto huge) { return f(reduce_huge(huge)); });
}
template <class B, class F>
Value<B, float> by_quadrant(Value<B, float> x, F f) {
  return rarely(abs(x) > kReduceLimit<float>, f(reduce_small(x)), x,
                [f](auto huge) { return to_real<float>(f(reduce_huge(to_real<double>(huge)))); });
}

template <class B, class T>
Value<B, T> sine(Value<B, T> x) {
  const Value<B, T> y = by_quadrant(x, [](const auto& quadrant) { return sine_in(quadrant, 0); });
  return select(x == x(0), x, y);  // -0
}
template <class B, class T>
Value<B, T> cosine(Value<B, T> x) {
  return by_quadrant(x, [](const auto& quadrant) { return sine_in(quadrant, 1); });
}
template <class B>
Value<B, double> tangent(Value<B, double> x) {
  const Value<B, double> y = by_quadrant(x, [](const auto& quadrant) { return tangent_in(quadrant); });
  return select(x == x(0), x, y);
}

}  // namespace hloom::functions

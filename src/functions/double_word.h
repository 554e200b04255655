// Numbers held as the unevaluated sum of two floats, for what must be known to more bits than one has.
// Source: Dekker, "A floating-point technique for extending the available precision", 1971, with fma.
#pragma once

#include "functions/value.h"

namespace hloom::functions {

/// high + low, |low| about half a last place of high.
template <class B, class T>
struct DoubleWord {
  Value<B, T> high, low;
};

/// x + y exactly.
template <class B, class T>
DoubleWord<B, T> exact_sum(Value<B, T> x, Value<B, T> y) {
  const Value<B, T> sum = x + y;
  const Value<B, T> y_part = sum - x;
  return {sum, (x - (sum - y_part)) + (y - y_part)};
}
/// The same. Needs: |x| >= |y|, or x = 0.
template <class B, class T>
DoubleWord<B, T> exact_sum_ordered(Value<B, T> x, Value<B, T> y) {
  const Value<B, T> sum = x + y;
  return {sum, y - (sum - x)};
}
/// x·y exactly, unless it leaves the range.
template <class B, class T>
DoubleWord<B, T> exact_product(Value<B, T> x, Value<B, T> y) {
  const Value<B, T> product = x * y;
  return {product, fma(x, y, -product)};
}

/// To about twice T's bits.
template <class B, class T>
DoubleWord<B, T> operator*(const DoubleWord<B, T>& x, const DoubleWord<B, T>& y) {
  const auto p = exact_product(x.high, y.high);
  return {p.high, p.low + fma(x.high, y.low, x.low * y.high)};
}
template <class B, class T>
DoubleWord<B, T> operator*(const DoubleWord<B, T>& x, Value<B, T> y) {
  const auto p = exact_product(x.high, y);
  return {p.high, fma(x.low, y, p.low)};
}
/// Needs: |x| >= |y|, or x = 0.
template <class B, class T>
DoubleWord<B, T> add_ordered(const DoubleWord<B, T>& x, const DoubleWord<B, T>& y) {
  const auto s = exact_sum_ordered(x.high, y.high);
  return exact_sum_ordered(s.high, s.low + (x.low + y.low));
}

}  // namespace hloom::functions

// erf.
//
// Up to 0.9, erf(x) = x + x·p(x^2). Beyond, 1 - e^g(|x|) with a polynomial g for log(erfc): its error is scaled by
// erfc/erf, which is below 0.26 and falls fast.
#pragma once

#include "functions/exponential.h"

namespace hloom::functions {

/// erf(x)/x - 1 in x^2. tools/fit_polynomial.py erf_small_f32, erf_small_f64.
inline constexpr float kErfSmallF32[] = {0.12837915f,   -0.37612504f, 0.112819225f,
                                         -0.026770823f, 0.005000229f, -0.00060322555f};
inline constexpr double kErfSmallF64[] = {0.1283791670955126,      -0.37612638903184115,    0.11283791670972573,
                                          -0.026866170648403177,   0.005223977656793958,    -0.0008548328765112941,
                                          0.00012055392669202343,  -1.4926939546688296e-05, 1.6479339046691292e-06,
                                          -1.6495938296934855e-07, 1.5184862533012504e-08,  -1.1022736423957248e-09};
/// log(erfc(x)) from 0.9 to 4 or 6. tools/fit_polynomial.py erf_large_f32, erf_large_f64.
inline constexpr float kErfLargeF32[] = {0.00016920865f, -1.1294885f,    -0.6334006f,    -0.10822078f,
                                         0.025080977f,   -0.0041564377f, 0.00043144161f, -2.083366e-05f};
inline constexpr double kErfLargeF64[] = {
    3.6637787452037028e-09, -1.128379242467333,      -0.63661914789511,      -0.10277560048215564,
    0.019138095681455473,   0.00018668492242900872,  -0.0016563445283304355, 0.0005349374438591003,
    3.4991914858953714e-05, -0.00011855648058273941, 6.851432270179366e-05,  -2.5741921102313383e-05,
    7.24135087949322e-06,   -1.583564944642253e-06,  2.7038512601456815e-07, -3.552714270941743e-08,
    3.477255310882755e-09,  -2.389717245888089e-10,  1.0289747055547763e-11, -2.0879814736043985e-13};

/// The error function.
template <class B, class T>
Value<B, T> error_function(Value<B, T> x) {
  using V = Value<B, T>;
  constexpr bool kSingle = sizeof(T) == 4;
  constexpr T kEnd = kSingle ? T(4) : T(6);  // from there the result is 1
  const V square = x * x;
  V small = x, exponent = x;
  const V a = smaller(kEnd, abs(x));
  if constexpr (kSingle) {
    small = fma(x, polynomial(square, kErfSmallF32), x);
    exponent = polynomial(a, kErfLargeF32);
  } else {
    small = fma(x, polynomial(square, kErfSmallF64), x);
    exponent = polynomial(a, kErfLargeF64);
  }
  // 1 - s·(1 + p) with s = 2^n, of which 1 - s is exact.
  const auto parts = split_exponent(exponent);
  const V s = power_of_two(parts.n);
  const V large = fma(-s, parts.r + parts.tail(), T{1} - s);
  return select(abs(x) < T(0.9), small, with_sign(large, x));
}

}  // namespace hloom::functions

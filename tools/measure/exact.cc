#include "exact.h"

#include <mpc.h>
#include <mpfr.h>

#include <cstdlib>
#include <functional>
#include <map>

namespace hloom::measure {
namespace {

// Enough that 1 + x keeps the last bit of a denormal double.
constexpr mpfr_prec_t kBits = 2400;

class Real {
 public:
  Real() { mpfr_init2(value_, kBits); }
  explicit Real(double x) : Real() { mpfr_set_d(value_, x, MPFR_RNDN); }
  ~Real() { mpfr_clear(value_); }
  Real(const Real&) = delete;
  Real& operator=(const Real&) = delete;
  operator mpfr_ptr() { return value_; }

 private:
  mpfr_t value_;
};

class Complex {
 public:
  Complex() { mpc_init2(value_, kBits); }
  explicit Complex(std::complex<double> x) : Complex() { mpc_set_d_d(value_, x.real(), x.imag(), MPC_RNDNN); }
  ~Complex() { mpc_clear(value_); }
  Complex(const Complex&) = delete;
  Complex& operator=(const Complex&) = delete;
  operator mpc_ptr() { return value_; }
  mpfr_ptr real() { return mpc_realref(value_); }
  mpfr_ptr imag() { return mpc_imagref(value_); }

 private:
  mpc_t value_;
};

void logistic(mpfr_ptr r, mpfr_ptr x) {
  mpfr_neg(r, x, MPFR_RNDN);
  mpfr_exp(r, r, MPFR_RNDN);
  mpfr_add_ui(r, r, 1, MPFR_RNDN);
  mpfr_ui_div(r, 1, r, MPFR_RNDN);
}

using Unary = std::function<void(mpfr_ptr, mpfr_ptr)>;
const std::map<std::string_view, Unary>& unary() {
#define HLOOM_EXACT(name, function) \
  { name, [](mpfr_ptr r, mpfr_ptr x) { function(r, x, MPFR_RNDN); } }
  static const std::map<std::string_view, Unary> all = {
      HLOOM_EXACT("exponential", mpfr_exp), HLOOM_EXACT("exponential-minus-one", mpfr_expm1),
      HLOOM_EXACT("log", mpfr_log),         HLOOM_EXACT("log-plus-one", mpfr_log1p),
      HLOOM_EXACT("tanh", mpfr_tanh),       HLOOM_EXACT("sqrt", mpfr_sqrt),
      HLOOM_EXACT("rsqrt", mpfr_rec_sqrt),  HLOOM_EXACT("cbrt", mpfr_cbrt),
      HLOOM_EXACT("sine", mpfr_sin),        HLOOM_EXACT("cosine", mpfr_cos),
      HLOOM_EXACT("tan", mpfr_tan),         HLOOM_EXACT("sinh", mpfr_sinh),
      HLOOM_EXACT("cosh", mpfr_cosh),       HLOOM_EXACT("asin", mpfr_asin),
      HLOOM_EXACT("acos", mpfr_acos),       HLOOM_EXACT("atan", mpfr_atan),
      HLOOM_EXACT("asinh", mpfr_asinh),     HLOOM_EXACT("acosh", mpfr_acosh),
      HLOOM_EXACT("atanh", mpfr_atanh),     HLOOM_EXACT("erf", mpfr_erf),
      {"logistic", logistic}};
#undef HLOOM_EXACT
  return all;
}

using ComplexUnary = std::function<void(mpc_ptr, mpc_ptr)>;
const std::map<std::string_view, ComplexUnary>& complex_unary() {
#define HLOOM_EXACT(name, function) \
  { name, [](mpc_ptr r, mpc_ptr x) { function(r, x, MPC_RNDNN); } }
  static const std::map<std::string_view, ComplexUnary> all = {
      HLOOM_EXACT("exponential", mpc_exp),
      HLOOM_EXACT("log", mpc_log),
      HLOOM_EXACT("sqrt", mpc_sqrt),
      HLOOM_EXACT("sine", mpc_sin),
      HLOOM_EXACT("cosine", mpc_cos),
      HLOOM_EXACT("tan", mpc_tan),
      HLOOM_EXACT("sinh", mpc_sinh),
      HLOOM_EXACT("cosh", mpc_cosh),
      HLOOM_EXACT("tanh", mpc_tanh),
      HLOOM_EXACT("asin", mpc_asin),
      HLOOM_EXACT("acos", mpc_acos),
      HLOOM_EXACT("atan", mpc_atan),
      HLOOM_EXACT("asinh", mpc_asinh),
      HLOOM_EXACT("acosh", mpc_acosh),
      HLOOM_EXACT("atanh", mpc_atanh),
      {"exponential-minus-one",
       [](mpc_ptr r, mpc_ptr x) {
         mpc_exp(r, x, MPC_RNDNN);
         mpc_sub_ui(r, r, 1, MPC_RNDNN);
       }},
      {"log-plus-one",
       [](mpc_ptr r, mpc_ptr x) {
         mpc_add_ui(r, x, 1, MPC_RNDNN);
         mpc_log(r, r, MPC_RNDNN);
       }},
      {"logistic",
       [](mpc_ptr r, mpc_ptr x) {
         mpc_neg(r, x, MPC_RNDNN);
         mpc_exp(r, r, MPC_RNDNN);
         mpc_add_ui(r, r, 1, MPC_RNDNN);
         mpc_ui_div(r, 1, r, MPC_RNDNN);
       }},
      {"rsqrt",
       [](mpc_ptr r, mpc_ptr x) {
         mpc_sqrt(r, x, MPC_RNDNN);
         mpc_ui_div(r, 1, r, MPC_RNDNN);
       }},
      {"cbrt",
       [](mpc_ptr r, mpc_ptr x) {
         Real size, angle;
         mpc_abs(size, x, MPFR_RNDN);
         mpfr_cbrt(size, size, MPFR_RNDN);
         mpc_arg(angle, x, MPFR_RNDN);
         mpfr_div_ui(angle, angle, 3, MPFR_RNDN);
         mpfr_sin_cos(mpc_imagref(r), mpc_realref(r), angle, MPFR_RNDN);
         mpc_mul_fr(r, r, size, MPC_RNDNN);
       }},
  };
#undef HLOOM_EXACT
  return all;
}

// Of y and x: -i·log((x + iy)/√((x + iy)(x - iy))).
void angle(mpc_ptr r, mpc_ptr y, mpc_ptr x) {
  Complex turned, product;
  mpc_mul_i(turned, y, 1, MPC_RNDNN);
  mpc_sub(product, x, turned, MPC_RNDNN);
  mpc_add(turned, x, turned, MPC_RNDNN);
  mpc_mul(product, turned, product, MPC_RNDNN);
  mpc_sqrt(product, product, MPC_RNDNN);
  mpc_div(r, turned, product, MPC_RNDNN);
  mpc_log(r, r, MPC_RNDNN);
  mpc_mul_i(r, r, -1, MPC_RNDNN);
}

// |got - want| over the last place, with the difference taken before anything is rounded.
double distance_of(const Format& f, double got, mpfr_ptr want, long double place) {
  if (std::isnan(got) || mpfr_nan_p(want) != 0) return std::isnan(got) && mpfr_nan_p(want) != 0 ? 0 : INFINITY;
  const long double end = std::ldexp(1.0L, f.max_exponent);
  Real a, b, place_of;
  mpfr_set_ld(a, finite(f, got), MPFR_RNDN);
  mpfr_set_ld(b, end, MPFR_RNDN);
  if (mpfr_cmpabs(want, b) >= 0)
    mpfr_setsign(b, b, mpfr_signbit(want), MPFR_RNDN);
  else
    mpfr_set(b, want, MPFR_RNDN);
  mpfr_sub(a, a, b, MPFR_RNDN);
  mpfr_set_ld(place_of, place, MPFR_RNDN);
  mpfr_div(a, a, place_of, MPFR_RNDN);
  return std::fabs(mpfr_get_d(a, MPFR_RNDN));
}
double distance_of(const Format& f, double got, mpfr_ptr want) {
  return distance_of(f, got, want, last_place(f, finite(f, mpfr_get_ld(want, MPFR_RNDZ))));
}

}  // namespace

double exact_distance(std::string_view function, const Format& f, double x, double got) {
  Real of(x), want;
  unary().at(function)(want, of);
  return distance_of(f, got, want);
}

double exact_distance(std::string_view function, const Format& f, double x, double y, double got) {
  Real a(x), b(y), want;
  (function == "power" ? mpfr_pow : mpfr_atan2)(want, a, b, MPFR_RNDN);
  return distance_of(f, got, want);
}

double exact_distance(std::string_view function, const Format& f, std::complex<double> x, std::complex<double> got) {
  Complex of(x), want;
  complex_unary().at(function)(want, of);
  const long double re = mpfr_get_ld(want.real(), MPFR_RNDZ), im = mpfr_get_ld(want.imag(), MPFR_RNDZ);
  const long double place = last_place(f, finite(f, std::max(std::fabs(re), std::fabs(im))));
  return std::max(distance_of(f, got.real(), want.real(), place), distance_of(f, got.imag(), want.imag(), place));
}

double exact_distance(std::string_view function, const Format& f, std::complex<double> x, std::complex<double> y, std::complex<double> got) {
  Complex a(x), b(y), want;
  const bool of_angles = function == "atan2";
  if (of_angles)
    angle(want, a, b);
  else
    mpc_pow(want, a, b, MPC_RNDNN);
  const long double re = mpfr_get_ld(want.real(), MPFR_RNDZ), im = mpfr_get_ld(want.imag(), MPFR_RNDZ);
  const long double place = last_place(f, finite(f, std::max(std::fabs(re), std::fabs(im)) + (of_angles ? 1 : 0)));
  const double imag = distance_of(f, got.imag(), want.imag(), place);
  if (!of_angles) return std::max(distance_of(f, got.real(), want.real(), place), imag);
  Real turn;
  mpfr_const_pi(turn, MPFR_RNDN);
  mpfr_mul_ui(turn, turn, 2, MPFR_RNDN);
  double real = distance_of(f, got.real(), want.real(), place);
  mpfr_add(want.real(), want.real(), turn, MPFR_RNDN);
  real = std::min(real, distance_of(f, got.real(), want.real(), place));
  mpfr_mul_ui(turn, turn, 2, MPFR_RNDN);
  mpfr_sub(want.real(), want.real(), turn, MPFR_RNDN);
  return std::max(std::min(real, distance_of(f, got.real(), want.real(), place)), imag);
}

}  // namespace hloom::measure

// Complex functions against the C library's long double ones. The error is counted in units in the last place of the
// larger part.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <cstdio>
#include <random>
#include <vector>

#include "functions/evaluate.h"

namespace hloom::functions {
namespace {

using hlo::Opcode;
using Wide = std::complex<long double>;
using Number = std::complex<double>;

Scalar scalar_of_complex(Number x) { return {scalar_of(x.real()).real, scalar_of(x.imag()).real}; }
Number complex_of(Scalar x) { return {std::bit_cast<double>(x.real), std::bit_cast<double>(x.imag)}; }
Number unary(Opcode o, Number x) { return complex_of(evaluate_unary(o, DType::C128, scalar_of_complex(x))); }
Number binary(Opcode o, Number x, Number y) {
  return complex_of(evaluate_binary(o, DType::C128, scalar_of_complex(x), scalar_of_complex(y)));
}

double error_in_ulp(Number got, Wide want) {
  const long double size = std::max(std::fabs(want.real()), std::fabs(want.imag()));
  if (!std::isfinite(static_cast<double>(size))) return 0;  // by rules, below
  const long double ulp = std::ldexp(1.0L, std::max(size == 0 ? -1022 : std::ilogb(size), -1022) - 52);
  const long double error = std::max(std::fabs(got.real() - want.real()), std::fabs(got.imag() - want.imag()));
  return std::isnan(error) ? INFINITY : static_cast<double>(error / ulp);
}

// Points of all sizes, near the axes, near the unit circle and near ±1 and ±i.
std::vector<Number> points() {
  std::vector<Number> all;
  const double sizes[] = {0.0, 1e-300, 1e-20, 1e-8, 0.3, 0.5, 0.99999, 1.0, 1.00001, 1.5, 2.0, 3.0, 20.0, 300.0, 1e8};
  for (const double x : sizes)
    for (const double y : sizes)
      for (const double sx : {1.0, -1.0})
        for (const double sy : {1.0, -1.0}) all.emplace_back(sx * x, sy * y);
  std::mt19937_64 random(11);
  std::normal_distribution<double> normal(0, 1);
  std::uniform_real_distribution<double> angle(-3.2, 3.2);
  for (int i = 0; i < 20000; ++i) {
    all.emplace_back(normal(random), normal(random));
    all.emplace_back(normal(random) * 20, normal(random) * 20);
    const double a = angle(random), r = 1 + 1e-6 * normal(random);
    all.emplace_back(r * std::cos(a), r * std::sin(a));
    all.emplace_back((i % 2 == 0 ? 1 : -1) + 1e-5 * normal(random), 1e-5 * normal(random));
    all.emplace_back(1e-5 * normal(random), (i % 2 == 0 ? 1 : -1) + 1e-5 * normal(random));
  }
  return all;
}

struct Function {
  Opcode opcode;
  double bound;
  Wide (*wide)(Wide);
};
Wide one(Wide) { return 1.0L; }
// Without cancellation: log(1 + x) and e^x - 1 by parts.
Wide log1p_of(Wide x) {
  const long double re = x.real(), im = x.imag();
  if (std::abs(x) > 0.5L) return std::log(1.0L + x);
  return {std::log1p(re * (re + 2) + im * im) / 2, std::atan2(im, 1 + re)};
}
Wide expm1_of(Wide x) {
  const long double s = std::sin(x.imag() / 2);
  return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s, std::exp(x.real()) * std::sin(x.imag())};
}
const Function kFunctions[] = {
    {Opcode::Sqrt, 3, [](Wide x) { return std::sqrt(x); }},
    {Opcode::Rsqrt, 6, [](Wide x) { return one(x) / std::sqrt(x); }},
    {Opcode::Cbrt, 4, [](Wide x) { return std::polar(std::cbrt(std::abs(x)), std::arg(x) / 3); }},
    {Opcode::Sign, 3, [](Wide x) { return x == Wide(0) ? x : x / std::abs(x); }},
    {Opcode::Exponential, 3, [](Wide x) { return std::exp(x); }},
    {Opcode::ExponentialMinusOne, 4, expm1_of},
    {Opcode::Log, 4, [](Wide x) { return std::log(x); }},
    {Opcode::LogPlusOne, 4, log1p_of},
    {Opcode::Sine, 3, [](Wide x) { return std::sin(x); }},
    {Opcode::Cosine, 3, [](Wide x) { return std::cos(x); }},
    {Opcode::Tan, 6, [](Wide x) { return std::tan(x); }},
    {Opcode::Sinh, 3, [](Wide x) { return std::sinh(x); }},
    {Opcode::Cosh, 3, [](Wide x) { return std::cosh(x); }},
    {Opcode::Tanh, 6, [](Wide x) { return std::tanh(x); }},
    {Opcode::Asin, 6, [](Wide x) { return std::asin(x); }},
    {Opcode::Acos, 6, [](Wide x) { return std::acos(x); }},
    {Opcode::Atan, 6, [](Wide x) { return std::atan(x); }},
    {Opcode::Asinh, 6, [](Wide x) { return std::asinh(x); }},
    {Opcode::Acosh, 6, [](Wide x) { return std::acosh(x); }},
    {Opcode::Atanh, 6, [](Wide x) { return std::atanh(x); }},
};

class ComplexAccuracy : public testing::TestWithParam<Function> {};

TEST_P(ComplexAccuracy, OfDoubles) {
  const Function& f = GetParam();
  double worst = 0;
  Number at, result;
  for (const Number x : points()) {
    const Number got = unary(f.opcode, x);
    const double e = error_in_ulp(got, f.wide(x));
    if (e > worst) worst = e, at = x, result = got;
  }
  const Wide want = f.wide(at);
  std::printf("%s c128: %.3f ulp at (%.17g, %.17g)\n", std::string(name(f.opcode)).c_str(), worst, at.real(),
              at.imag());
  EXPECT_LE(worst, f.bound) << at << " gave " << result << ", want " << want;
}

INSTANTIATE_TEST_SUITE_P(All, ComplexAccuracy, testing::ValuesIn(kFunctions), [](const auto& tested) {
  std::string text(name(tested.param.opcode));
  std::erase(text, '-');
  return text;
});

TEST(Complex, ArithmeticIsNearTheExact) {
  const std::vector<Number> all = points();
  std::mt19937_64 random(2);
  double worst_product = 0, worst_quotient = 0, worst_power = 0;
  for (int i = 0; i < 60000; ++i) {
    const Number x = all[random() % all.size()], y = all[random() % all.size()];
    worst_product = std::max(worst_product, error_in_ulp(binary(Opcode::Multiply, x, y), Wide(x) * Wide(y)));
    if (y == Number(0)) continue;
    worst_quotient = std::max(worst_quotient, error_in_ulp(binary(Opcode::Divide, x, y), Wide(x) / Wide(y)));
    if (std::abs(x) > 1e-3 && std::abs(x) < 1e3 && std::abs(y) < 10)
      worst_power = std::max(worst_power, error_in_ulp(binary(Opcode::Power, x, y), std::pow(Wide(x), Wide(y))));
  }
  std::printf("multiply %.3f, divide %.3f, power %.3f ulp\n", worst_product, worst_quotient, worst_power);
  EXPECT_LE(worst_product, 2);
  EXPECT_LE(worst_quotient, 4);
  EXPECT_LE(worst_power, 64);
}

// For real operands it is the real atan2 (where C99's table has no zeros to tell apart).
TEST(Complex, ArcTangent2ContinuesTheRealOne) {
  for (const double y : {-3.0, -0.5, 0.25, 1.0, 7.0})
    for (const double x : {-4.0, -1.0, 0.125, 2.0}) {
      const Number angle = binary(Opcode::Atan2, y, x);
      EXPECT_NEAR(angle.real(), std::atan2(y, x), 4e-16 * 8);
      EXPECT_NEAR(angle.imag(), 0, 4e-16 * 8);
    }
}

// Where x² + y² is negative, the sign of its imaginary part chooses the root, however small that is, zeros included.
TEST(Complex, ArcTangent2ChoosesTheRootByTheSideOfTheCut) {
  for (const double size : {0.3, -5.5})
    for (const double small : {0.0, -0.0, 1e-60, -1e-60, 1e-310, -1e-310}) {
      const Number x(small, size), angle = binary(Opcode::Atan2, x, x);
      // The root is i·√2·|size| with the sign of small·size.
      EXPECT_NEAR(angle.real(), std::signbit(small) ? -3 * M_PI / 4 : M_PI / 4, 1e-15) << x;
      EXPECT_NEAR(angle.imag(), 0, 1e-15) << x;
    }
}

// Quotients at the ends of the range, where the squares of parts are not finite or 0.
TEST(Complex, QuotientsAndSizesKeepTheirScale) {
  for (const double scale : {0x1p1000, 0x1p-1000, 0x1p-1040}) {
    EXPECT_EQ(binary(Opcode::Divide, Number(3, 4) * scale, Number(0, 1) * scale), Number(4, -3));
    EXPECT_EQ(complex_of(evaluate_unary(Opcode::Abs, DType::C128, scalar_of_complex(Number(3, 4) * scale))).real(),
              5 * scale);
    EXPECT_EQ(unary(Opcode::Sign, Number(3, -4) * scale), Number(0.6, -0.8));
  }
  EXPECT_EQ(binary(Opcode::Divide, Number(1e300, 1e300), Number(1e-300, 0)).real(), INFINITY);
  EXPECT_EQ(binary(Opcode::Divide, Number(0x1p1023, 0), Number(0x1p1023, 0)), Number(1, 0));
}

TEST(Complex, LogisticHasItsPoles) {
  EXPECT_EQ(unary(Opcode::Logistic, 0), Number(0.5));
  EXPECT_EQ(unary(Opcode::Logistic, Number(-800, 1)), Number(0, 0));
  EXPECT_EQ(unary(Opcode::Logistic, Number(800, 1)), Number(1, 0));
  // 1 + e^-x beside x = iπ is -(e^(iπ - x) - 1); 3.14… as a double is 1.22e-16 short of π.
  const Wide gap(-1e-9L, 1.2246467991473532e-16L);
  EXPECT_LE(error_in_ulp(unary(Opcode::Logistic, Number(1e-9, 3.141592653589793)), Wide(-1) / expm1_of(gap)), 8);
}

// Signed zeros choose the side of a cut.
TEST(Complex, CutsAreThoseOfC99) {
  for (const double zero : {0.0, -0.0}) {
    EXPECT_EQ(std::signbit(unary(Opcode::Sqrt, Number(-4, zero)).imag()), std::signbit(zero));
    EXPECT_EQ(std::signbit(unary(Opcode::Log, Number(-4, zero)).imag()), std::signbit(zero));
    EXPECT_EQ(std::signbit(unary(Opcode::Asin, Number(2, zero)).imag()), std::signbit(zero));
    EXPECT_NE(std::signbit(unary(Opcode::Acos, Number(2, zero)).imag()), std::signbit(zero));
    EXPECT_EQ(std::signbit(unary(Opcode::Acosh, Number(-2, zero)).imag()), std::signbit(zero));
    EXPECT_EQ(std::signbit(unary(Opcode::Atanh, Number(2, zero)).imag()), std::signbit(zero));
    EXPECT_EQ(std::signbit(unary(Opcode::Asinh, Number(zero, 2)).real()), std::signbit(zero));
    EXPECT_EQ(std::signbit(unary(Opcode::Atan, Number(zero, 2)).real()), std::signbit(zero));
  }
}

}  // namespace
}  // namespace hloom::functions

// Every function against the C library's next wider one: floats against double, doubles against long double, whose
// own errors are below 1/500 of the unit here. The bounds are those of docs/numerics-functions.md.
//
// HLOOM_EXHAUSTIVE=1 takes all 2^32 floats instead of a sample.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "functions/evaluate.h"

namespace hloom::functions {
namespace {

using hlo::Opcode;

struct Function {
  Opcode opcode;
  double float_bound, double_bound;  // largest error in units in the last place
  double (*wide)(double);
  long double (*wider)(long double);
};

template <class T>
T logistic_of(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

#define HLOOM_WIDE(f) [](double x) -> double { return f(x); }, [](long double x) -> long double { return f(x); }
const Function kFunctions[] = {
    {Opcode::Exponential, 0.9, 0.9, HLOOM_WIDE(std::exp)},
    {Opcode::ExponentialMinusOne, 1.4, 1.4, HLOOM_WIDE(std::expm1)},
    {Opcode::Log, 0.9, 0.9, HLOOM_WIDE(std::log)},
    {Opcode::LogPlusOne, 1.5, 1.5, HLOOM_WIDE(std::log1p)},
    {Opcode::Logistic, 0.9, 0.9, HLOOM_WIDE(logistic_of)},
    {Opcode::Tanh, 0.8, 2.0, HLOOM_WIDE(std::tanh)},
    {Opcode::Sqrt, 0.5, 0.5, HLOOM_WIDE(std::sqrt)},
    {Opcode::Rsqrt, 0.501, 0.501, [](double x) { return 1 / std::sqrt(x); },
     [](long double x) { return 1 / std::sqrt(x); }},
    {Opcode::Cbrt, 0.501, 1.0, HLOOM_WIDE(std::cbrt)},
    {Opcode::Sine, 0.9, 0.9, HLOOM_WIDE(std::sin)},
    {Opcode::Cosine, 0.9, 0.9, HLOOM_WIDE(std::cos)},
    {Opcode::Tan, 0.501, 1.5, HLOOM_WIDE(std::tan)},
    {Opcode::Sinh, 0.501, 2.0, HLOOM_WIDE(std::sinh)},
    {Opcode::Cosh, 0.501, 2.0, HLOOM_WIDE(std::cosh)},
    {Opcode::Asin, 0.501, 2.0, HLOOM_WIDE(std::asin)},
    {Opcode::Acos, 0.501, 2.0, HLOOM_WIDE(std::acos)},
    {Opcode::Atan, 0.501, 2.0, HLOOM_WIDE(std::atan)},
    {Opcode::Asinh, 0.501, 2.0, HLOOM_WIDE(std::asinh)},
    {Opcode::Acosh, 0.501, 2.0, HLOOM_WIDE(std::acosh)},
    {Opcode::Atanh, 0.501, 2.0, HLOOM_WIDE(std::atanh)},
    {Opcode::Erf, 1.1, 1.1, HLOOM_WIDE(std::erf)},
};

// The error of `got` in units in the last place of T at `want`. Zeros and infinities must be the same.
template <class T, class Wide>
double error_in_ulp(T got, Wide want) {
  const T rounded = static_cast<T>(want);
  if (std::isnan(rounded) || std::isnan(got)) return std::isnan(rounded) && std::isnan(got) ? 0 : INFINITY;
  if (rounded == got) {
    if (got == 0 && std::signbit(got) != std::signbit(rounded)) return INFINITY;
    if (std::isinf(got) || got == 0) return 0;
  }
  if (std::isinf(got)) return std::fabs(rounded) == std::numeric_limits<T>::max() ? 0.5 : INFINITY;
  if (std::isinf(rounded)) return std::fabs(got) == std::numeric_limits<T>::max() ? 0.5 : INFINITY;
  if (std::signbit(got) != std::signbit(rounded)) return INFINITY;
  const int exponent = std::max(std::ilogb(want), std::numeric_limits<T>::min_exponent - 1);
  const Wide ulp = std::ldexp(Wide{1}, exponent - std::numeric_limits<T>::digits + 1);
  return static_cast<double>(std::fabs((static_cast<Wide>(got) - want) / ulp));
}

template <class T>
struct Worst {
  double error = 0;
  T at = 0, got = 0;
  template <class Wide>
  void see(T x, T y, Wide want) {
    if (y == static_cast<T>(want) && y != 0) return;  // correctly rounded, which is most of them
    const double e = error_in_ulp(y, want);
    if (e > error) *this = {e, x, y};
  }
  std::string text() const {
    char buffer[128];
    std::snprintf(buffer, sizeof buffer, "%.3f ulp at %a (%.9g), which gave %a", error, static_cast<double>(at),
                  static_cast<double>(at), static_cast<double>(got));
    return buffer;
  }
};

float of_float(const Function& f, float x) {
  return value_of_scalar<float>(evaluate_unary(f.opcode, DType::F32, scalar_of(x)));
}
double of_double(const Function& f, double x) {
  return value_of_scalar<double>(evaluate_unary(f.opcode, DType::F64, scalar_of(x)));
}

// Where bodies change over or results leave the range.
constexpr double kEdges[] = {0.0,
                             0x1p-1074,
                             0x1p-1022,
                             0x1p-149,
                             0x1p-126,
                             0x1p-54,
                             0x1p-28,
                             0x1p-25,
                             0x1p-24,
                             0.125,
                             0.25,
                             0.34657359,
                             0.41421356237309503,
                             0.5,
                             0.55,
                             0.70710678118654746,
                             0.78539816339744828,
                             0.9,
                             1.0,
                             1.4142135623730951,
                             1.5,
                             1.5707963267948966,
                             2.0,
                             2.4142135623730949,
                             3.1415926535897931,
                             4.0,
                             6.0,
                             9.1,
                             17.5,
                             22.0,
                             30.0,
                             38.0,
                             87.3365447,
                             88.7228394,
                             89.0,
                             103.278929,
                             103.972084,
                             104.0,
                             709.78271289338397,
                             710.47586007394386,
                             745.13321910194122,
                             746.0,
                             131072.0,
                             0x1p20,
                             0x1p60,
                             1.7976931348623157e308,
                             INFINITY,
                             NAN};

class Accuracy : public testing::TestWithParam<Function> {};

TEST_P(Accuracy, OfFloats) {
  const Function& f = GetParam();
  // A prime stride visits all exponents and low bits.
  const std::uint64_t stride = std::getenv("HLOOM_EXHAUSTIVE") != nullptr ? 1 : 2003;
  Worst<float> worst;
  for (const double x : kEdges) {
    const float edge = static_cast<float>(x);
    for (const float y : {edge, -edge, std::nextafter(edge, 0.0f), std::nextafter(edge, INFINITY)})
      worst.see(y, of_float(f, y), f.wide(y));
  }
  for (std::uint64_t i = 0; i < 1ull << 32; i += stride) {
    const float x = std::bit_cast<float>(static_cast<std::uint32_t>(i));
    worst.see(x, of_float(f, x), f.wide(x));
  }
  std::printf("%s f32: %s\n", std::string(name(f.opcode)).c_str(), worst.text().c_str());
  EXPECT_LE(worst.error, f.float_bound) << worst.text();
}

TEST_P(Accuracy, OfDoubles) {
  const Function& f = GetParam();
  std::mt19937_64 random(1);
  Worst<double> worst;
  const auto see = [&](double x) { worst.see(x, of_double(f, x), f.wider(x)); };
  for (const double x : kEdges)
    for (const double y : {x, -x, std::nextafter(x, 0.0), std::nextafter(x, INFINITY)}) see(y);
  std::uniform_real_distribution<double> wide(-800, 800), middle(-7, 7), near_one(-0x1p-8, 0x1p-8);
  for (int i = 0; i < 100000; ++i) {
    see(std::bit_cast<double>(random()));
    see(wide(random));
    see(middle(random));
    see(1 + near_one(random));
    see(-1 + near_one(random));
  }
  std::printf("%s f64: %s\n", std::string(name(f.opcode)).c_str(), worst.text().c_str());
  EXPECT_LE(worst.error, f.double_bound) << worst.text();
}

// Doubles next to multiples of π/2, where the reduction loses most. The last is the hardest of all.
TEST(Angles, AccurateNearMultiplesOfHalfPi) {
  const long double half_pi = 1.57079632679489661923132169163975144L;
  std::vector<double> angles = {6381956970095103.0 * 0x1p797, 0x1p1023, 1.7976931348623157e308};
  for (int k = 1; k < 200000; k += 7) angles.push_back(static_cast<double>(k * half_pi));
  for (int e = 17; e < 1020; ++e) angles.push_back(std::ldexp(static_cast<double>(half_pi), e));
  Worst<double> worst;
  for (const double x : angles) {
    const auto of = [&](Opcode o) { return value_of_scalar<double>(evaluate_unary(o, DType::F64, scalar_of(x))); };
    worst.see(x, of(Opcode::Sine), std::sin(static_cast<long double>(x)));
    worst.see(x, of(Opcode::Cosine), std::cos(static_cast<long double>(x)));
  }
  EXPECT_LE(worst.error, 1.0) << worst.text();
}

// --- Two operands.

struct Function2 {
  Opcode opcode;
  double float_bound, double_bound;
  double (*wide)(double, double);
  long double (*wider)(long double, long double);
};
#define HLOOM_WIDE2(f)                                  \
  [](double x, double y) -> double { return f(x, y); }, \
      [](long double x, long double y) -> long double { return f(x, y); }
const Function2 kFunctions2[] = {{Opcode::Power, 0.501, 1.0, HLOOM_WIDE2(std::pow)},
                                 {Opcode::Atan2, 0.501, 2.0, HLOOM_WIDE2(std::atan2)},
                                 {Opcode::Remainder, 0, 0, HLOOM_WIDE2(std::fmod)},
                                 {Opcode::Divide, 0.5, 0.5, [](double x, double y) { return x / y; },
                                  [](long double x, long double y) { return x / y; }}};

class Accuracy2 : public testing::TestWithParam<Function2> {};

// Every pair of edges, then random pairs near 1, of moderate size and of any bits.
template <class T, class See>
void for_pairs(See see) {
  std::vector<T> edges;
  for (const double x : kEdges)
    for (const T sign : {T{1}, T{-1}}) edges.push_back(sign * static_cast<T>(x));
  for (const T n :
       {T{3}, T{5}, T{7.5}, T{1e10}, T{-3}, T{-2.5}, static_cast<T>(1e30), T{0x1p53}, T{0x1p24}, T{0x1p24} + 2})
    edges.push_back(n);
  for (const T x : edges)
    for (const T y : edges) see(x, y);
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(0, 1);
  const auto bits = [&] { return std::bit_cast<T>(static_cast<UnsignedOf<T>>(random())); };
  const auto some = [&](double scale) { return static_cast<T>(normal(random) * scale); };
  for (int i = 0; i < 60000; ++i) {
    see(bits(), bits());
    see(some(10), some(10));
    see(std::fabs(some(10)), some(100));
    see(1 + some(1e-3), some(1e5));
    see(some(1e-3), some(1e3));
    see(std::fabs(bits()), some(4));
    see(bits(), std::round(some(10)));
  }
}

// The wider pow rounds to T near the ends of T's range; that is where its own answer may be infinite.
TEST_P(Accuracy2, OfFloats) {
  const Function2& f = GetParam();
  Worst<float> worst;
  float other = 0;
  for_pairs<float>([&](float x, float y) {
    const double before = worst.error;
    worst.see(x, value_of_scalar<float>(evaluate_binary(f.opcode, DType::F32, scalar_of(x), scalar_of(y))),
              f.wide(x, y));
    if (worst.error > before) other = y;
  });
  std::printf("%s f32: %s, %a\n", std::string(name(f.opcode)).c_str(), worst.text().c_str(),
              static_cast<double>(other));
  EXPECT_LE(worst.error, f.float_bound) << worst.text() << " and " << other;
}
TEST_P(Accuracy2, OfDoubles) {
  const Function2& f = GetParam();
  Worst<double> worst;
  double other = 0;
  for_pairs<double>([&](double x, double y) {
    const double before = worst.error;
    worst.see(x, value_of_scalar<double>(evaluate_binary(f.opcode, DType::F64, scalar_of(x), scalar_of(y))),
              f.wider(x, y));
    if (worst.error > before) other = y;
  });
  std::printf("%s f64: %s, %a\n", std::string(name(f.opcode)).c_str(), worst.text().c_str(), other);
  EXPECT_LE(worst.error, f.double_bound) << worst.text() << " and " << other;
}

std::string test_name(Opcode opcode) {
  std::string text(name(opcode));
  std::erase(text, '-');
  return text;
}
INSTANTIATE_TEST_SUITE_P(All, Accuracy, testing::ValuesIn(kFunctions),
                         [](const auto& tested) { return test_name(tested.param.opcode); });
INSTANTIATE_TEST_SUITE_P(All, Accuracy2, testing::ValuesIn(kFunctions2),
                         [](const auto& tested) { return test_name(tested.param.opcode); });

}  // namespace
}  // namespace hloom::functions

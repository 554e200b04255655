// Every function against the C library's next wider one: floats against double, doubles against long double, whose
// own errors are below 1/500 of the unit here. The bounds are those of docs/numerics-functions.md.
//
// HLOOM_EXHAUSTIVE=1 takes all 2^32 floats instead of a sample.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <random>

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
    {Opcode::Exponential, 1.1, 1.1, HLOOM_WIDE(std::exp)},
    {Opcode::ExponentialMinusOne, 1.5, 1.5, HLOOM_WIDE(std::expm1)},
    {Opcode::Log, 1.0, 1.0, HLOOM_WIDE(std::log)},
    {Opcode::LogPlusOne, 1.5, 1.5, HLOOM_WIDE(std::log1p)},
    {Opcode::Logistic, 2.0, 2.0, HLOOM_WIDE(logistic_of)},
    {Opcode::Tanh, 1.5, 2.5, HLOOM_WIDE(std::tanh)},
    {Opcode::Sqrt, 0.5, 0.5, HLOOM_WIDE(std::sqrt)},
    {Opcode::Rsqrt, 1.5, 1.5, [](double x) { return 1 / std::sqrt(x); }, [](long double x) { return 1 / std::sqrt(x); }},
    {Opcode::Cbrt, 0.51, 1.0, HLOOM_WIDE(std::cbrt)},
    {Opcode::Sine, 1.0, 1.0, HLOOM_WIDE(std::sin)},
    {Opcode::Cosine, 1.0, 1.0, HLOOM_WIDE(std::cos)},
    {Opcode::Tan, 0.51, 3.0, HLOOM_WIDE(std::tan)},
    {Opcode::Sinh, 0.51, 2.0, HLOOM_WIDE(std::sinh)},
    {Opcode::Cosh, 0.51, 2.0, HLOOM_WIDE(std::cosh)},
    {Opcode::Asin, 0.51, 2.0, HLOOM_WIDE(std::asin)},
    {Opcode::Acos, 0.51, 2.0, HLOOM_WIDE(std::acos)},
    {Opcode::Atan, 0.51, 2.0, HLOOM_WIDE(std::atan)},
    {Opcode::Asinh, 0.51, 3.0, HLOOM_WIDE(std::asinh)},
    {Opcode::Acosh, 0.51, 3.0, HLOOM_WIDE(std::acosh)},
    {Opcode::Atanh, 0.51, 3.0, HLOOM_WIDE(std::atanh)},
    {Opcode::Erf, 1.5, 3.0, HLOOM_WIDE(std::erf)},
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

class Accuracy : public testing::TestWithParam<Function> {};

TEST_P(Accuracy, OfFloats) {
  const Function& f = GetParam();
  // A prime stride visits all exponents and low bits.
  const std::uint64_t stride = std::getenv("HLOOM_EXHAUSTIVE") != nullptr ? 1 : 2003;
  Worst<float> worst;
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

INSTANTIATE_TEST_SUITE_P(All, Accuracy, testing::ValuesIn(kFunctions), [](const auto& tested) {
  std::string text(name(tested.param.opcode));
  std::erase(text, '-');
  return text;
});

}  // namespace
}  // namespace hloom::functions

#include "functions.h"

#include <cmath>

namespace hloom::measure {
namespace {

template <class T>
T logistic(T x) {
  return x < 0 ? std::exp(x) / (1 + std::exp(x)) : 1 / (1 + std::exp(-x));
}

template <class T>
T rsqrt(T x) {
  return 1 / std::sqrt(x);
}

#define HLOOM_FUNCTION(name, f) \
  { name, [](double x) -> double { return f(x); }, [](long double x) -> long double { return f(x); } }
const Function kFunctions[] = {
    HLOOM_FUNCTION("exponential", std::exp), HLOOM_FUNCTION("exponential-minus-one", std::expm1),
    HLOOM_FUNCTION("log", std::log),         HLOOM_FUNCTION("log-plus-one", std::log1p),
    HLOOM_FUNCTION("logistic", logistic),    HLOOM_FUNCTION("tanh", std::tanh),
    HLOOM_FUNCTION("sqrt", std::sqrt),       HLOOM_FUNCTION("rsqrt", rsqrt),
    HLOOM_FUNCTION("cbrt", std::cbrt),       HLOOM_FUNCTION("sine", std::sin),
    HLOOM_FUNCTION("cosine", std::cos),      HLOOM_FUNCTION("tan", std::tan),
    HLOOM_FUNCTION("sinh", std::sinh),       HLOOM_FUNCTION("cosh", std::cosh),
    HLOOM_FUNCTION("asin", std::asin),       HLOOM_FUNCTION("acos", std::acos),
    HLOOM_FUNCTION("atan", std::atan),       HLOOM_FUNCTION("asinh", std::asinh),
    HLOOM_FUNCTION("acosh", std::acosh),     HLOOM_FUNCTION("atanh", std::atanh),
    HLOOM_FUNCTION("erf", std::erf),
};
#undef HLOOM_FUNCTION

#define HLOOM_FUNCTION(name, f)                                     \
  {                                                                 \
    name, [](double x, double y) -> double { return f(x, y); },     \
        [](long double x, long double y) -> long double { return f(x, y); } \
  }
const Function2 kFunctions2[] = {HLOOM_FUNCTION("power", std::pow), HLOOM_FUNCTION("atan2", std::atan2)};
#undef HLOOM_FUNCTION

// Without cancellation, by parts.
Wide log_plus_one(Wide x) {
  const long double re = x.real(), im = x.imag();
  if (std::abs(x) > 0.5L) return std::log(1.0L + x);
  return {std::log1p(re * (re + 2) + im * im) / 2, std::atan2(im, 1 + re)};
}
Wide exponential_minus_one(Wide x) {
  const long double s = std::sin(x.imag() / 2);
  return {std::expm1(x.real()) * std::cos(x.imag()) - 2 * s * s, std::exp(x.real()) * std::sin(x.imag())};
}

const ComplexFunction kComplexFunctions[] = {
    {"sqrt", [](Wide x) { return std::sqrt(x); }},
    {"rsqrt", [](Wide x) { return Wide(1) / std::sqrt(x); }},
    {"cbrt", [](Wide x) { return std::polar(std::cbrt(std::abs(x)), std::arg(x) / 3); }},
    {"exponential", [](Wide x) { return std::exp(x); }},
    {"exponential-minus-one", exponential_minus_one},
    {"log", [](Wide x) { return std::log(x); }},
    {"log-plus-one", log_plus_one},
    {"logistic", [](Wide x) { return x.real() < 0 ? std::exp(x) / (Wide(1) + std::exp(x)) : Wide(1) / (Wide(1) + std::exp(-x)); }},
    {"sine", [](Wide x) { return std::sin(x); }},
    {"cosine", [](Wide x) { return std::cos(x); }},
    {"tan", [](Wide x) { return std::tan(x); }},
    {"sinh", [](Wide x) { return std::sinh(x); }},
    {"cosh", [](Wide x) { return std::cosh(x); }},
    {"tanh", [](Wide x) { return std::tanh(x); }},
    {"asin", [](Wide x) { return std::asin(x); }},
    {"acos", [](Wide x) { return std::acos(x); }},
    {"atan", [](Wide x) { return std::atan(x); }},
    {"asinh", [](Wide x) { return std::asinh(x); }},
    {"acosh", [](Wide x) { return std::acosh(x); }},
    {"atanh", [](Wide x) { return std::atanh(x); }},
};

// Of y and x, the angle: through the ratio where the formula would cancel, half a turn further where it says so.
Wide angle(Wide y, Wide x) {
  constexpr Wide kI(0, 1);
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  const Wide said = -kI * (std::log(x + kI * y) - (std::log(x + kI * y) + std::log(x - kI * y)) / 2.0L);
  if (std::abs(said) > 0.5L && std::fabs(said.imag()) < 20) return said;
  const Wide by_ratio = std::atan(y / x);
  return by_ratio + Wide(kPi * std::round((said - by_ratio).real() / kPi));
}

const ComplexFunction2 kComplexFunctions2[] = {
    {"power", [](Wide x, Wide y) { return std::exp(y * std::log(x)); }, false}, {"atan2", angle, true}};

}  // namespace

std::span<const Function> functions() { return kFunctions; }
std::span<const Function2> functions2() { return kFunctions2; }
std::span<const ComplexFunction> complex_functions() { return kComplexFunctions; }
std::span<const ComplexFunction2> complex_functions2() { return kComplexFunctions2; }

}  // namespace hloom::measure

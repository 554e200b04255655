// Complex functions where a part is infinite, NaN or zero: compiled programs and the interpreter, whose methods differ, follow
// the same rules. Which numbers are finite, infinite and NaN has to agree; how exact the finite ones are is measured in
// functions/. C99 leaves the sign of an infinity open where the other part is NaN.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"

namespace hloom {
namespace {

constexpr double kParts[] = {0.0, -0.0, 1, -1, 0.5, -2, 3, 1e10, -1e-10, INFINITY, -INFINITY, NAN};

std::vector<std::complex<double>> specials() {
  std::vector<std::complex<double>> all;
  for (const double re : kParts)
    for (const double im : kParts) all.emplace_back(re, im);
  return all;
}

hlo::Literal literal_of(const std::vector<std::complex<double>>& values, DType type) {
  hlo::Literal literal(Shape::array(type, {static_cast<std::int64_t>(values.size())}));
  for (std::size_t n = 0; n < values.size(); ++n) {
    if (type == DType::C128)
      literal.mutable_data<std::complex<double>>()[n] = values[n];
    else
      literal.mutable_data<std::complex<float>>()[n] = std::complex<float>(values[n]);
  }
  return literal;
}

std::complex<double> number(const hlo::Literal& literal, std::size_t n) {
  switch (literal.shape().dtype()) {
    case DType::F32: return literal.data<float>()[n];
    case DType::F64: return literal.data<double>()[n];
    case DType::C64: return std::complex<double>(literal.data<std::complex<float>>()[n]);
    default: return literal.data<std::complex<double>>()[n];
  }
}

std::string kind(std::complex<double> z) {
  const bool sign_open = std::isnan(z.real()) || std::isnan(z.imag());
  const auto part = [&](double x) -> std::string {
    if (std::isnan(x)) return "nan";
    if (std::isfinite(x)) return "finite";
    return x > 0 || sign_open ? "infinite" : "-infinite";
  };
  return part(z.real()) + ", " + part(z.imag());
}

hlo::Literal compiled(const std::string& text, const std::vector<hlo::Literal>& arguments) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message();
  auto program = compiler::compile(std::move(*module), {});
  EXPECT_TRUE(program) << program.error().message();
  const std::vector<Shape> parameters = compiler::parameter_leaves(*program->module),
                           results = compiler::result_leaves(*program->module);
  const auto executor = runtime::Executor::create(std::move(program->program));
  EXPECT_TRUE(executor);
  runtime::ThreadPool one(1);
  auto values = compiler::execute_literals(**executor, parameters, results, arguments, one);
  EXPECT_TRUE(values);
  return std::move(values->front());
}

// Runs `op` in both ways.
void expect_same_kinds(const std::string& op, DType result, const std::vector<hlo::Literal>& arguments) {
  const std::string type = to_string(arguments[0].shape());
  Shape shape = arguments[0].shape();
  shape.set_dtype(result);
  const bool pair = arguments.size() == 2;
  const std::string text = "HloModule m\nENTRY e {\n  x = " + type + " parameter(0)\n" +
                           (pair ? "  y = " + type + " parameter(1)\n" : "") + "  ROOT r = " + to_string(shape) + " " + op +
                           (pair ? "(x, y)" : "(x)") + "\n}\n";
  const auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  const auto want = interp::interpret(**module, arguments);
  ASSERT_TRUE(want) << want.error().message();
  const hlo::Literal got = compiled(text, arguments);
  for (std::size_t n = 0; n < static_cast<std::size_t>(shape.num_elements()); ++n)
    EXPECT_EQ(kind(number(got, n)), kind(number(*want, n)))
        << op << " of " << number(arguments[0], n) << (pair ? " and " : "")
        << (pair ? number(arguments[1], n) : std::complex<double>()) << ": compiled " << number(got, n) << ", interpreted "
        << number(*want, n);
}

class ComplexSpecials : public testing::TestWithParam<DType> {};

TEST_P(ComplexSpecials, OneArgument) {
  const std::vector<hlo::Literal> x = {literal_of(specials(), GetParam())};
  for (const char* op : {"abs", "real", "imag"}) expect_same_kinds(op, real_type(GetParam()), x);
  for (const char* op :
       {"cbrt", "cosine", "exponential", "exponential-minus-one", "log", "log-plus-one", "logistic", "negate", "rsqrt", "sign",
        "sine", "sqrt", "tan", "tanh", "acos", "acosh", "asin", "asinh", "atan", "atanh", "cosh", "sinh"})
    expect_same_kinds(op, GetParam(), x);
}

TEST_P(ComplexSpecials, TwoArguments) {
  const auto all = specials();
  std::vector<std::complex<double>> x, y;
  // e^(y·log x) turns by an angle that no precision holds where a part of y is 1e10.
  const auto moderate = [](std::complex<double> z) { return std::abs(z.real()) != 1e10 && std::abs(z.imag()) != 1e10; };
  for (const auto a : all)
    for (const auto b : all)
      if (moderate(a) && moderate(b)) x.push_back(a), y.push_back(b);
  const std::vector<hlo::Literal> pair = {literal_of(x, GetParam()), literal_of(y, GetParam())};
  for (const char* op : {"add", "subtract", "multiply", "divide", "power", "atan2"}) expect_same_kinds(op, GetParam(), pair);
}

INSTANTIATE_TEST_SUITE_P(Types, ComplexSpecials, testing::Values(DType::C64, DType::C128),
                         [](const auto& type) { return std::string(name(type.param)); });

}  // namespace
}  // namespace hloom

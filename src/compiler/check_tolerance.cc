#include "compiler/check_tolerance.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <sstream>
#include <vector>

#include "arrays/compare.h"
#include "base/try.h"
#include "compiler/check_routines.h"
#include "hlo/module.h"
#include "hlo/narrow_float.h"
#include "hlo/running_window.h"
#include "interp/interpret.h"

namespace hloom::compiler {

using arrays::Tolerance;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

namespace {

bool adds_up(const hlo::Computation& c) {
  for (const Instruction& i : c.instructions()) {
    const Opcode op = i.opcode();
    const bool adds = op == Opcode::Add || op == Opcode::Multiply || op == Opcode::Subtract || op == Opcode::Divide;
    if (adds && !is_integral(i.shape().dtype())) return true;
  }
  return false;
}

// Functions are held to the bounds of the contract; everything else is one IEEE operation or moves data.
std::optional<double> ulp_bound(const Instruction& i) {
  const DType type = real_type(i.shape().dtype());
  if (!is_floating(type)) return std::nullopt;
  const double wide = bit_width(type) >= 32 ? (type == DType::F64 ? 8 : 4) : 1;
  const bool complex = is_complex(i.shape().dtype()) || (i.num_operands() > 0 && is_complex(i.operand(0)->shape().dtype()));
  switch (i.opcode()) {
    case Opcode::Acos: case Opcode::Acosh: case Opcode::Asin: case Opcode::Asinh: case Opcode::Atan: case Opcode::Atan2:
    case Opcode::Atanh: case Opcode::Cbrt: case Opcode::Cosh: case Opcode::Cosine: case Opcode::Erf:
    case Opcode::Exponential: case Opcode::ExponentialMinusOne: case Opcode::Log: case Opcode::LogPlusOne:
    case Opcode::Logistic: case Opcode::Rsqrt: case Opcode::Sine: case Opcode::Sinh:
    case Opcode::Tan: case Opcode::Tanh: return complex ? wide * 16 : wide;
    // exp(y·log x): the exponent, up to 709 in f64, is rounded before it is raised.
    case Opcode::Power: return complex ? wide * 709 : wide;
    case Opcode::Divide: case Opcode::Multiply: case Opcode::Sqrt: case Opcode::Abs: case Opcode::Sign:
      if (complex) return wide * 4;
      return std::nullopt;
    default: return std::nullopt;
  }
}

// Complex formulas overflow on the way where wider ones do not: elements that are not finite either way agree.
void forgive_overflow(Literal& got, Literal& want) {
  const DType part = real_type(got.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  const auto finite = [&](std::span<const std::byte> bytes, std::size_t at) {
    double value = 0;
    if (part == DType::F64) {
      std::memcpy(&value, bytes.data() + at, sizeof(value));
    } else {
      float narrow;
      std::memcpy(&narrow, bytes.data() + at, sizeof(narrow));
      value = narrow;
    }
    return std::isfinite(value);
  };
  const std::span<std::byte> a = got.mutable_bytes(), b = want.mutable_bytes();
  for (std::size_t at = 0; at < a.size(); at += 2 * width) {
    const bool in_got = finite(a, at) && finite(a, at + width), in_want = finite(b, at) && finite(b, at + width);
    if (in_got || in_want) continue;
    std::fill_n(a.begin() + static_cast<std::ptrdiff_t>(at), 2 * width, std::byte{0});
    std::fill_n(b.begin() + static_cast<std::ptrdiff_t>(at), 2 * width, std::byte{0});
  }
}

std::complex<double> complex_at(const Literal& literal, std::int64_t element) {
  const std::byte* from = literal.bytes().data();
  if (literal.dtype() == DType::C128) {
    std::complex<double> value;
    std::memcpy(&value, from + element * 16, sizeof(value));
    return value;
  }
  std::complex<float> value;
  std::memcpy(&value, from + element * 8, sizeof(value));
  return {value.real(), value.imag()};
}

// Angles of complex numbers: -i·log of a number of about size 1, which is off by some eps, and as well on the other side of
// the logarithm's cut. Elements of which that is all agree.
void forgive_turns(Literal& got, Literal& want) {
  const double eps = got.dtype() == DType::C128 ? 0x1p-52 : 0x1p-23, turn = 8 * std::atan(1.0);
  const auto width = static_cast<std::size_t>(byte_width(got.dtype()));
  for (std::int64_t e = 0; e < got.num_elements(); ++e) {
    const std::complex<double> a = complex_at(got, e), b = complex_at(want, e);
    std::complex<double> apart = a - b;
    if (std::fabs(apart.real()) > turn / 2) apart -= std::copysign(turn, apart.real());
    if (!(std::abs(apart) <= 64 * eps * (1 + std::abs(b)))) continue;
    for (Literal* literal : {&got, &want})
      std::fill_n(literal->mutable_bytes().begin() + static_cast<std::ptrdiff_t>(width) * e, width, std::byte{0});
  }
}

bool is_bounded_opcode(Opcode opcode) {
  switch (opcode) {
    case Opcode::Fft: case Opcode::Cholesky: case Opcode::TriangularSolve: case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference: case Opcode::BatchNormTraining: case Opcode::Rng: case Opcode::CustomCall:
    case Opcode::Scan: return true;
    default: return false;
  }
}

bool is_routine_opcode(Opcode opcode) {
  return opcode == Opcode::Fft || opcode == Opcode::Cholesky || opcode == Opcode::TriangularSolve;
}

// Computations that are applied to elements, and not run as a whole.
bool applies(Opcode opcode) {
  switch (opcode) {
    case Opcode::AllReduce: case Opcode::AllReduceStart: case Opcode::CollectiveReduce: case Opcode::ReduceScatter:
    case Opcode::Map: case Opcode::Reduce: case Opcode::ReduceWindow: case Opcode::Scatter: case Opcode::Sort:
    case Opcode::SelectAndScatter: return true;
    default: return false;
  }
}

Literal absolute(const Literal& literal) {
  Literal result = literal;
  const DType type = literal.dtype();
  if (!is_floating(type) || bit_width(type) < 8) return result;
  const auto width = static_cast<std::size_t>(byte_width(type));
  auto bytes = result.mutable_bytes();
  for (std::size_t at = width - 1; at < bytes.size(); at += width) bytes[at] &= std::byte{0x7F};
  return result;
}

std::int64_t terms(const Instruction& i) {
  std::int64_t n = 1;
  const Shape& operand = i.operand(0)->shape();
  switch (i.opcode()) {
    case Opcode::Dot:
      for (const std::int64_t d : i.attr<hlo::DotAttr>().lhs_contracting) n *= operand.dim(d);
      return n;
    case Opcode::Convolution: {
      const auto& c = i.attr<hlo::ConvolutionAttr>();
      const Shape& kernel = i.operand(1)->shape();
      return kernel.num_elements() / std::max<std::int64_t>(1, kernel.dim(c.dims.kernel_output));
    }
    case Opcode::Reduce:
      for (const std::int64_t d : i.dimensions()) n *= operand.dim(d);
      return n;
    case Opcode::ReduceWindow:
      for (const hlo::WindowDim& d : i.attr<hlo::WindowAttr>().window) n *= d.size;
      return n;
    case Opcode::Scatter: return std::max<std::int64_t>(1, i.operand(i.num_operands() / 2 + 1)->shape().num_elements());
    default: return std::max<std::int64_t>(1, operand.is_array() ? operand.num_elements() : 1);
  }
}

// The sum of the magnitudes, taken by the instruction itself. What select-and-scatter selects by stays as it is.
Expected<Literal> sum_of_magnitudes(const Instruction& i, std::span<const Literal> operands) {
  std::vector<Literal> magnitudes;
  for (const Literal& operand : operands) magnitudes.push_back(absolute(operand));
  if (i.opcode() == Opcode::SelectAndScatter) magnitudes[0] = operands[0];
  return interp::evaluate_instruction(i, magnitudes);
}

// Per element |re| + |im|, a bound of both parts.
Literal magnitude(const Literal& literal) {
  if (!is_complex(literal.dtype())) return absolute(literal);
  Literal result(literal.shape());
  for (std::int64_t e = 0; e < literal.num_elements(); ++e) {
    const std::complex<double> value = complex_at(literal, e);
    const double size = std::fabs(value.real()) + std::fabs(value.imag());
    const auto at = static_cast<std::size_t>(e);
    if (literal.dtype() == DType::C128)
      result.mutable_data<std::complex<double>>()[at] = size;
    else
      result.mutable_data<std::complex<float>>()[at] = static_cast<float>(size);
  }
  return result;
}

// As for sums of floats, those that may overflow on the way agree: in another order, or a wider type, they do not.
Expected<> forgive_overflowing_sums(const Instruction& i, std::span<const Literal> operands, Literal& got, Literal& want) {
  std::vector<Literal> magnitudes;
  for (const Literal& operand : operands) magnitudes.push_back(magnitude(operand));
  const Literal total = TRY(interp::evaluate_instruction(i, magnitudes));
  const auto width = static_cast<std::size_t>(byte_width(got.dtype()));
  for (std::int64_t e = 0; e < got.num_elements(); ++e) {
    if (std::isfinite(complex_at(total, e).real())) continue;
    for (Literal* literal : {&got, &want})
      std::fill_n(literal->mutable_bytes().begin() + static_cast<std::ptrdiff_t>(width) * e, width, std::byte{0});
  }
  return {};
}

bool are_integers(const Literal& literal) {
  if (!is_floating(literal.dtype())) return true;
  for (std::int64_t e = 0; e < literal.num_elements(); ++e) {
    const double x = element_as_double(literal, e);
    if (!std::isfinite(x) || x != std::trunc(x)) return false;
  }
  return true;
}

// |got - want| ≤ n·eps·Σ|x|, the sum taken by the same instruction over absolute values.
Expected<std::optional<std::string>> differs_as_sum(const Instruction& i, std::span<const Literal> operands,
                                                    const Literal& got, const Literal& want) {
  const Literal total = TRY(sum_of_magnitudes(i, operands));
  const hlo::FloatFormat& format = hlo::float_format(real_type(got.dtype()));
  const double eps = std::ldexp(1.0, -format.mantissa_bits);
  const auto n = static_cast<double>(terms(i));
  const double smallest = std::ldexp(1.0, 1 - format.bias - format.mantissa_bits);
  for (std::int64_t e = 0; e < got.num_elements(); ++e) {
    const double a = element_as_double(got, e), b = element_as_double(want, e);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    const double bound = (n + 2) * (eps * std::fabs(element_as_double(total, e)) + smallest);
    // Sums that overflow on the way may differ in whether they do.
    if (std::fabs(a - b) <= bound || std::isinf(bound) || std::isnan(bound)) continue;
    std::ostringstream text;
    text.precision(17);
    text << "element " << e << ": compiled " << a << ", interpreted " << b << ", allowed " << bound << " (" << n
         << " terms)";
    return std::optional(text.str());
  }
  return std::optional<std::string>();
}

}  // namespace

bool is_sum(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot:
    case Opcode::Convolution: return true;
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Scatter: return adds_up(*i.to_apply());
    case Opcode::SelectAndScatter: return adds_up(*i.called(1));
    default: return false;
  }
}

bool is_bounded(const Instruction& i) {
  if (is_bounded_opcode(i.opcode()) || ulp_bound(i)) return true;
  if (!applies(i.opcode())) return false;
  for (const hlo::Computation* c : i.called())
    for (const Instruction& inner : c->instructions())
      if (is_bounded(inner)) return true;
  return false;
}

Expected<bool> sums_exactly(const Instruction& i, std::span<const Literal> operands) {
  for (const Literal& operand : operands)
    if (is_complex(operand.dtype()) || !are_integers(operand)) return false;
  const Literal total = TRY(sum_of_magnitudes(i, operands));
  for (const Literal* leaf : hlo::leaves(total)) {
    if (!is_floating(leaf->dtype())) continue;
    const double limit = std::ldexp(1.0, hlo::float_format(leaf->dtype()).mantissa_bits + 1);
    for (std::int64_t e = 0; e < leaf->num_elements(); ++e)
      if (!(element_as_double(*leaf, e) <= limit)) return false;
  }
  return true;
}

Expected<std::optional<std::string>> differs(const Instruction& i, std::span<const Literal> operands,
                                             const Literal& got, const Literal& want) {
  if (is_routine_opcode(i.opcode())) return differs_as_routine(i, operands, got, want);
  if (is_sum(i) && is_floating(got.dtype())) return differs_as_sum(i, operands, got, want);
  Tolerance tolerance = Tolerance::exact();
  if (hlo::kind(i.opcode()) == hlo::OpcodeKind::Movement) tolerance = Tolerance::bits();
  if (const auto ulp = ulp_bound(i)) tolerance = Tolerance::within_ulp(*ulp);
  if (is_sum(i) && is_complex(got.dtype())) tolerance = Tolerance::within_ulp(64 * static_cast<double>(terms(i)));
  Literal a = got, b = want;
  if (is_complex(got.dtype()) && tolerance.kind == Tolerance::Kind::Ulp) forgive_overflow(a, b);
  if (is_complex(got.dtype()) && is_sum(i)) TRY(forgive_overflowing_sums(i, operands, a, b));
  if (is_complex(got.dtype()) && i.opcode() == Opcode::Atan2) forgive_turns(a, b);
  const auto difference = arrays::compare(a, b, tolerance);
  if (!difference) return std::optional<std::string>();
  std::ostringstream text;
  text << *difference;
  return std::optional(text.str());
}

double interpreter_work(const Instruction& i) {
  double elements = 0;
  for (const Shape* leaf : leaves(i.shape()))
    if (leaf->is_array()) elements += static_cast<double>(leaf->num_elements());
  const bool windows = i.opcode() == Opcode::ReduceWindow;
  const bool many_terms = windows ? !hlo::running_window(i) : is_sum(i) && i.opcode() != Opcode::Scatter;
  if (many_terms) return 2 * elements * static_cast<double>(terms(i));
  for (const Instruction* operand : i.operands())
    if (operand->shape().is_array()) elements += static_cast<double>(operand->shape().num_elements());
  return elements;
}

}  // namespace hloom::compiler

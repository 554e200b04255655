#include "arrays/compare.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>

#include "base/check.h"
#include "hlo/narrow_float.h"

namespace hloom::arrays {
namespace {

using hlo::FloatFormat;
using hlo::Literal;
using Kind = Tolerance::Kind;

// The distance of two finite numbers in units of the last place of a value of magnitude `top`.
double units(double difference, double top, const FloatFormat& format) {
  const int lowest = 1 - format.bias;
  int exponent = lowest;
  if (top != 0) {
    std::frexp(top, &exponent);
    exponent = std::max(exponent - 1, lowest);
  }
  return std::fabs(std::ldexp(difference, format.mantissa_bits - exponent));
}

struct Verdict {
  bool agrees;
  double distance;
};

// Two floats that may be NaN, infinite, or zeros of any sign: what every kind but Bits says about them.
// Nothing where both are finite and differ.
std::optional<Verdict> special(double got, double want, const Tolerance& t) {
  if (std::isnan(got) || std::isnan(want)) {
    const bool both = std::isnan(got) && std::isnan(want);
    return Verdict{both, both ? 0 : INFINITY};
  }
  if (got == want) {
    const bool same_sign = std::signbit(got) == std::signbit(want);
    const bool either = t.kind == Kind::Equal || t.kind == Kind::Close || t.abs.has_value();
    return Verdict{got != 0 || same_sign || either, 0};
  }
  if (std::isinf(got) || std::isinf(want)) return Verdict{false, INFINITY};
  return std::nullopt;
}

bool within(double difference, double distance, double magnitude, const Tolerance& t) {
  if (t.kind == Kind::Ulp) return distance <= t.ulp || (t.abs && difference <= *t.abs);
  return t.kind == Kind::Close && difference <= t.atol + t.rtol * magnitude;
}

Verdict judge(double got, double want, const Tolerance& t, const FloatFormat& format) {
  if (const auto verdict = special(got, want, t)) return *verdict;
  const double distance = units(got - want, want, format);
  return {within(std::fabs(got - want), distance, std::fabs(want), t), distance};
}

// Complex numbers that are finite and may differ a little count as one number, others part by part.
Verdict judge_complex(const double* got, const double* want, const Tolerance& t, const FloatFormat& format) {
  const bool finite =
      std::isfinite(got[0]) && std::isfinite(got[1]) && std::isfinite(want[0]) && std::isfinite(want[1]);
  if (!finite || (t.kind != Kind::Ulp && t.kind != Kind::Close)) {
    const Verdict re = judge(got[0], want[0], t, format), im = judge(got[1], want[1], t, format);
    return {re.agrees && im.agrees, std::max(re.distance, im.distance)};
  }
  const double difference = std::max(std::fabs(got[0] - want[0]), std::fabs(got[1] - want[1]));
  const double distance = units(difference, std::max(std::fabs(want[0]), std::fabs(want[1])), format);
  if (t.kind == Kind::Ulp) return {within(difference, distance, 0, t), distance};
  return {within(std::hypot(got[0] - want[0], got[1] - want[1]), distance, std::hypot(want[0], want[1]), t), distance};
}

// The parts of element i: one number, or two.
void parts_of(const Literal& literal, std::int64_t i, double parts[2]) {
  const DType real = real_type(literal.dtype());
  const std::int64_t width = byte_width(real), count = byte_width(literal.dtype()) / width;
  for (std::int64_t p = 0; p < count; ++p) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, literal.bytes().data() + (i * count + p) * width, static_cast<std::size_t>(width));
    parts[p] = hlo::decode_float(hlo::float_format(real), bits);
  }
}

Verdict judge_element(const Literal& got, const Literal& want, std::int64_t i, const Tolerance& t) {
  const DType type = want.dtype();
  if (!is_floating(type) && !is_complex(type)) {
    const auto g = hlo::element_as_int64(got, i), w = hlo::element_as_int64(want, i);
    const bool wide = type == DType::U64;
    const double distance =
        wide ? static_cast<double>(static_cast<std::uint64_t>(g)) - static_cast<double>(static_cast<std::uint64_t>(w))
             : static_cast<double>(g) - static_cast<double>(w);
    const double magnitude = std::fabs(hlo::element_as_double(want, i));
    return {t.kind == Kind::Close && within(std::fabs(distance), 0, magnitude, t), std::fabs(distance)};
  }
  const FloatFormat& format = hlo::float_format(real_type(type));
  double g[2] = {}, w[2] = {};
  parts_of(got, i, g);
  parts_of(want, i, w);
  Verdict verdict = is_complex(type) ? judge_complex(g, w, t, format) : judge(g[0], w[0], t, format);
  if (t.kind == Kind::Bits) verdict.agrees = false;
  return verdict;
}

void put_float(std::ostream& out, double value, std::uint64_t bits, const FloatFormat& format) {
  if (std::isnan(value))
    out << (std::signbit(value) ? "-nan" : "nan") << "(0x" << std::hex << bits << std::dec << ')';
  else
    out << std::defaultfloat, out.precision(format.mantissa_bits > 23 ? 17 : 9), out << value;
}

std::string element_text(const Literal& literal, std::int64_t i) {
  std::ostringstream out;
  const DType type = literal.dtype();
  if (type == DType::U64) {
    out << static_cast<std::uint64_t>(hlo::element_as_int64(literal, i));
  } else if (!is_floating(type) && !is_complex(type)) {
    out << hlo::element_as_int64(literal, i);
  } else {
    const DType real = real_type(type);
    const FloatFormat& format = hlo::float_format(real);
    double parts[2] = {};
    parts_of(literal, i, parts);
    std::uint64_t bits[2] = {};
    const auto width = static_cast<std::size_t>(byte_width(real)), count = is_complex(type) ? 2ul : 1ul;
    for (std::size_t p = 0; p < count; ++p)
      std::memcpy(&bits[p], literal.bytes().data() + (static_cast<std::size_t>(i) * count + p) * width, width);
    if (is_complex(type)) out << '(';
    put_float(out, parts[0], bits[0], format);
    if (!is_complex(type)) return std::move(out).str();
    out << ", ";
    put_float(out, parts[1], bits[1], format);
    out << ')';
  }
  return std::move(out).str();
}

std::vector<std::int64_t> index_of(std::int64_t i, const Shape& shape) {
  std::vector<std::int64_t> index(shape.dims().size());
  for (std::size_t d = index.size(); d-- > 0; i /= shape.dims()[d]) index[d] = i % shape.dims()[d];
  return index;
}

ElementDifference describe(const Literal& got, const Literal& want, std::int64_t i, double distance) {
  return {index_of(i, want.shape()), element_text(got, i), element_text(want, i), distance};
}

std::ostream& operator<<(std::ostream& out, const ElementDifference& e) {
  out << " at [";
  for (std::size_t d = 0; d < e.index.size(); ++d) out << (d > 0 ? "," : "") << e.index[d];
  return out << "]: " << e.got << " instead of " << e.want;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Difference& d) {
  if (!d.shapes.empty()) return out << d.shapes;
  out << d.num_different << " of " << d.num_elements << " elements differ; first" << d.first;
  if (d.worst.index != d.first.index) out << "; worst" << d.worst;
  return out << " (" << d.worst.distance << (std::isfinite(d.worst.distance) ? " apart)" : ")");
}

std::optional<Difference> compare(const Literal& got, const Literal& want, const Tolerance& t) {
  Difference result;
  if (got.dtype() != want.dtype() || !same_dims(got.shape(), want.shape())) {
    result.shapes = to_string(got.shape(), false) + " instead of " + to_string(want.shape(), false);
    return result;
  }
  if (!want.shape().is_array() || t.kind == Kind::None) return std::nullopt;
  const auto width = static_cast<std::size_t>(byte_width(want.dtype()));
  const std::byte* a = got.bytes().data();
  const std::byte* b = want.bytes().data();
  result.num_elements = want.num_elements();
  std::int64_t first = -1, worst = -1;
  double first_distance = 0, worst_distance = -1;
  for (std::int64_t i = 0; i < result.num_elements; ++i, a += width, b += width) {
    if (std::memcmp(a, b, width) == 0) continue;
    const Verdict verdict = judge_element(got, want, i, t);
    if (verdict.agrees) continue;
    ++result.num_different;
    if (first < 0) first = i, first_distance = verdict.distance;
    if (verdict.distance > worst_distance) worst = i, worst_distance = verdict.distance;
  }
  if (first < 0) return std::nullopt;
  result.first = describe(got, want, first, first_distance);
  result.worst = describe(got, want, worst, worst_distance);
  return result;
}

std::optional<std::string> compare_results(std::span<const Literal> got, std::span<const Literal> want,
                                           std::span<const Tolerance> tolerances) {
  std::vector<const Literal*> g, w;
  for (const Literal& l : got)
    for (const Literal* leaf : hlo::leaves(l)) g.push_back(leaf);
  for (const Literal& l : want)
    for (const Literal* leaf : hlo::leaves(l)) w.push_back(leaf);
  std::ostringstream out;
  if (g.size() != w.size()) {
    out << g.size() << " results instead of " << w.size();
    return std::move(out).str();
  }
  HLOOM_CHECK(tolerances.size() == 1 || tolerances.size() == w.size());
  for (std::size_t i = 0; i < w.size(); ++i) {
    const auto difference = compare(*g[i], *w[i], tolerances[tolerances.size() == 1 ? 0 : i]);
    if (!difference) continue;
    out << "result " << i << ": " << *difference;
    return std::move(out).str();
  }
  return std::nullopt;
}

}  // namespace hloom::arrays

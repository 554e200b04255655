// Whether values agree, and where they do not.
#pragma once

#include <cstdint>
#include <optional>
#include <ostream>
#include <span>
#include <string>
#include <vector>

#include "hlo/literal.h"

namespace hloom::arrays {

/// How near an element has to be. Integers and pred must be equal, unless the kind is Close or None.
struct Tolerance {
  enum class Kind : std::uint8_t {
    Bits,   ///< the same bits, NaN payloads too
    Exact,  ///< the same value; zeros of one sign; any NaN for a NaN
    Equal,  ///< as Exact, but either zero will do
    Ulp,    ///< within `ulp` units in the last place of the expected value or, if given, within `abs`
    Close,  ///< within atol + rtol·|expected|; infinities and NaN as in Equal
    None,   ///< not compared
  };
  Kind kind = Kind::Exact;
  double ulp = 0;
  std::optional<double> abs;
  double rtol = 0, atol = 0;

  static Tolerance bits() { return {Kind::Bits, 0, {}, 0, 0}; }
  static Tolerance exact() { return {Kind::Exact, 0, {}, 0, 0}; }
  static Tolerance equal() { return {Kind::Equal, 0, {}, 0, 0}; }
  static Tolerance within_ulp(double n) { return {Kind::Ulp, n, {}, 0, 0}; }
  static Tolerance close(double rtol, double atol) { return {Kind::Close, 0, {}, rtol, atol}; }
  static Tolerance none() { return {Kind::None, 0, {}, 0, 0}; }
};

/// One element that differs.
struct ElementDifference {
  std::vector<std::int64_t> index;
  std::string got, want;  ///< values, floats with all their digits
  double distance = 0;    ///< floats: in units of the last place of `want` (infinite where one is NaN or infinite);
                        ///< integers: the difference. Complex: counted in units of the larger part.
};

/// How an array differs from what was expected.
struct Difference {
  std::int64_t num_different = 0, num_elements = 0;
  ElementDifference first, worst;
  std::string shapes;  ///< says it where already shapes differ; the rest is then empty
};
/// "3 of 12 elements differ; first at [0,2]: 1.5 instead of 2; worst at [1,0]: …"
std::ostream& operator<<(std::ostream&, const Difference&);

/// Nothing if all elements agree. Layouts do not count. Needs: arrays or tokens.
std::optional<Difference> compare(const hlo::Literal& got, const hlo::Literal& want, const Tolerance&);

/// Compares results leaf by leaf, depth first; the answer names the result, or is empty if all agree.
/// `tolerances`: one a leaf, or one for all.
std::optional<std::string> compare_results(std::span<const hlo::Literal> got, std::span<const hlo::Literal> want,
                                           std::span<const Tolerance> tolerances);

}  // namespace hloom::arrays

#include "hlo/best_element.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/literal.h"

namespace hloom::hlo {
namespace {

enum class Side : std::uint8_t { Earlier, Later };

/// What an instruction of the reducer is in one case: a truth, or one of two elements.
struct Known {
  bool is_truth = false;
  bool truth = false;
  std::int64_t operand = 0;
  Side side = Side::Earlier;
};

/// Two elements of the key and of the operand that places are compared by.
struct Case {
  std::int64_t key = 0, places = -1;
  double keys[2] = {0, 0};
  double numbers[2] = {0, 0};

  std::optional<double> number(const Known& x) const {
    const auto at = static_cast<std::size_t>(x.side);
    if (x.is_truth || (x.operand != key && x.operand != places)) return std::nullopt;
    return x.operand == key ? keys[at] : numbers[at];
  }
};

bool holds(Direction direction, double x, double y) {
  switch (direction) {
    case Direction::Eq: return x == y;
    case Direction::Ne: return !(x == y);
    case Direction::Lt: return x < y;
    case Direction::Le: return x <= y;
    case Direction::Gt: return x > y;
    case Direction::Ge: return x >= y;
  }
  return false;
}

std::optional<Known> compared(const Instruction& i, const Known& x, const Known& y, const Case& c) {
  const auto a = c.number(x), b = c.number(y);
  if (!a || !b || x.operand != y.operand) return std::nullopt;
  const bool is_float = is_floating(i.operand(0)->shape().dtype());
  if (is_float && i.attr<CompareAttr>().type != Comparison::Float) return std::nullopt;
  return Known{true, holds(i.attr<CompareAttr>().direction, *a, *b)};
}

// IEEE 754-2019's minimum and maximum give one of the two.
std::optional<Known> extreme(bool least, const Known& x, const Known& y, const Case& c) {
  const auto a = c.number(x), b = c.number(y);
  if (!a || !b || x.operand != y.operand) return std::nullopt;
  if (std::isnan(*a) || std::isnan(*b)) return std::isnan(*a) ? x : y;
  if (*a == *b) return std::signbit(*a) == least ? x : y;
  return (*a < *b) == least ? x : y;
}

std::optional<Known> logic(Opcode op, const Known& x, const Known& y) {
  if (!x.is_truth || !y.is_truth) return std::nullopt;
  if (op == Opcode::And) return Known{true, x.truth && y.truth};
  if (op == Opcode::Or) return Known{true, x.truth || y.truth};
  return Known{true, x.truth != y.truth};
}

/// Follows a reducer through one case.
class Trial {
 public:
  Trial(const Computation& reducer, const Case& c) : case_(c), half_(std::ssize(reducer.parameters()) / 2) {
    for (const Instruction& i : reducer.instructions())
      if (const auto what = known(i)) known_.emplace(&i, *what);
  }
  std::optional<Known> of(const Instruction* i) const {
    const auto found = known_.find(i);
    return found == known_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::optional<Known> known(const Instruction& i) const {
    if (i.opcode() == Opcode::Parameter) {
      const std::int64_t n = i.parameter_number();
      return Known{false, false, n % half_, n < half_ ? Side::Earlier : Side::Later};
    }
    if (i.opcode() == Opcode::Constant && i.shape().is_scalar() && i.shape().dtype() == DType::Pred)
      return Known{true, element_as_double(i.literal(), 0) != 0};
    std::vector<Known> from;
    for (const Instruction* operand : i.operands()) {
      const auto what = of(operand);
      if (!what) return std::nullopt;
      from.push_back(*what);
    }
    return combined(i, from);
  }
  std::optional<Known> combined(const Instruction& i, const std::vector<Known>& from) const {
    switch (i.opcode()) {
      case Opcode::Compare: return compared(i, from[0], from[1], case_);
      case Opcode::Minimum: return extreme(true, from[0], from[1], case_);
      case Opcode::Maximum: return extreme(false, from[0], from[1], case_);
      case Opcode::And:
      case Opcode::Or:
      case Opcode::Xor: return logic(i.opcode(), from[0], from[1]);
      case Opcode::Not: return from[0].is_truth ? std::optional(Known{true, !from[0].truth}) : std::nullopt;
      case Opcode::Copy: return from[0];
      case Opcode::Select:
        if (!from[0].is_truth) return std::nullopt;
        return from[0].truth ? from[1] : from[2];
      default: return std::nullopt;
    }
  }

  const Case& case_;
  const std::int64_t half_;
  std::unordered_map<const Instruction*, Known> known_;
};

/// Which of two equals a result is taken from: as they come, or by the second operand.
enum class Tie : std::uint8_t { First, Last, Least, Greatest };

/// What a reducer of the operands `key` and `places` (-1: none) does in each case.
class Trials {
 public:
  Trials(const Instruction& reduce, std::int64_t key, std::int64_t places)
      : reducer_(*reduce.to_apply()), n_(reduce.num_operands() / 2), key_(key), places_(places) {
    is_float_ = is_floating(reduce.operand(key)->shape().dtype());
  }

  // Needs: `direction` as monotone() gives it for `places`.
  std::optional<BestElement> best(int direction) const {
    BestElement best{.key = key_};
    const auto greater = all_from(1, 2), less = all_from(2, 1);
    if (!greater || !less || *greater == *less) return std::nullopt;
    best.least = *greater == Side::Earlier;
    const auto last = others_last(1, 1, direction);
    if (!last) return std::nullopt;
    best.last = best.last_zero = *last;
    if (!is_float_) return best;
    if (others_last(-0.0, 0.0, direction) != last || others_last(0.0, -0.0, direction) != last) return std::nullopt;
    const auto zero = is_last(key_, -0.0, 0.0, direction), other = is_last(key_, 0.0, -0.0, direction);
    if (!zero || zero != other) return std::nullopt;
    best.last_zero = *zero;
    if (n_ == 1) best.last = *zero;
    constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
    best.nans_are_best = all_from(kNan, 1) == Side::Earlier && all_from(1, kNan) == Side::Later &&
                         (n_ == 1 || others_last(kNan, kNan, direction) == best.last);
    return best;
  }

 private:
  // Where each result is from when the two elements have these keys and numbers.
  std::optional<std::vector<Side>> sides(double earlier, double later, double place, double later_place) const {
    const Case c{key_, places_, {earlier, later}, {place, later_place}};
    const Trial trial(reducer_, c);
    std::vector<Side> sides;
    for (std::int64_t k = 0; k < n_; ++k) {
      const Instruction* root = reducer_.root();
      const auto what = trial.of(root->opcode() == Opcode::Tuple ? root->operand(k) : root);
      if (!what || what->is_truth || what->operand != k) return std::nullopt;
      sides.push_back(what->side);
    }
    return sides;
  }

  // The side that all results are from, whatever the numbers.
  std::optional<Side> all_from(double earlier, double later) const {
    std::optional<Side> all;
    for (const double place : {0.0, 1.0, 2.0}) {
      const auto from = sides(earlier, later, place, 1);
      if (!from) return std::nullopt;
      for (const Side side : *from)
        if (std::exchange(all, side).value_or(side) != side) return std::nullopt;
    }
    return all;
  }

  // How result k is taken from two elements whose keys are equal.
  std::optional<Tie> tie(std::int64_t k, double earlier, double later) const {
    const auto less = sides(earlier, later, 0, 1), equal = sides(earlier, later, 1, 1), greater = sides(earlier, later, 2, 1);
    if (!less || !equal || !greater) return std::nullopt;
    const auto at = static_cast<std::size_t>(k);
    if ((*less)[at] != (*greater)[at]) return (*less)[at] == Side::Earlier ? Tie::Least : Tie::Greatest;
    if (k != places_ && (*equal)[at] != (*less)[at]) return std::nullopt;
    return (*less)[at] == Side::Earlier ? Tie::First : Tie::Last;
  }

  std::optional<bool> is_last(std::int64_t k, double earlier, double later, int direction) const {
    const auto how = tie(k, earlier, later);
    if (!how) return std::nullopt;
    if (*how == Tie::First || *how == Tie::Last) return *how == Tie::Last;
    if (direction == 0) return std::nullopt;
    return (*how == Tie::Greatest) == (direction > 0);
  }

  // The same for all results but the key's, which is no matter.
  std::optional<bool> others_last(double earlier, double later, int direction) const {
    std::optional<bool> last;
    for (std::int64_t k = 0; k < n_; ++k) {
      if (k == key_) continue;
      const auto own = is_last(k, earlier, later, direction);
      if (!own || last.value_or(*own) != *own) return std::nullopt;
      last = own;
    }
    return n_ == 1 ? false : last;
  }

  const Computation& reducer_;
  const std::int64_t n_, key_, places_;
  bool is_float_ = false;
};

// Operands whose two elements the reducer may compare.
Dims compared_operands(const Instruction& reduce) {
  const std::int64_t n = reduce.num_operands() / 2;
  Dims found;
  for (const Instruction* parameter : reduce.to_apply()->parameters())
    for (const Instruction* user : parameter->users()) {
      const std::int64_t k = parameter->parameter_number() % n;
      const bool compares = user->opcode() == Opcode::Compare || user->opcode() == Opcode::Minimum || user->opcode() == Opcode::Maximum;
      if (compares && std::ranges::find(found, k) == found.end()) found.push_back(k);
    }
  return found;
}

bool is_number(DType type) { return (is_floating(type) || is_signed(type) || is_unsigned(type) || type == DType::Pred) && !is_complex(type); }

bool has_form(const Instruction& reduce) {
  const std::int64_t n = reduce.num_operands() / 2;
  const Instruction& root = *reduce.to_apply()->root();
  if ((root.opcode() == Opcode::Tuple ? root.num_operands() : 1) != n) return false;
  for (std::int64_t k = 0; k < n; ++k) {
    const DType type = reduce.operand(k)->shape().dtype();
    if (reduce.operand(n + k)->shape().dtype() != type || reduce.to_apply()->parameter(k)->shape().dtype() != type) return false;
  }
  return true;
}

/// constant + Σ coefficient·index, of an array's elements.
struct Affine {
  __int128 constant = 0;
  std::vector<__int128> coefficients;
};

std::optional<Affine> affine(const Instruction& i);

// Whether all elements are what they are said to be in the array's type.
bool fits(const Affine& a, const Shape& shape) {
  const DType type = shape.dtype();
  if (!is_signed(type) && !is_unsigned(type)) return false;
  __int128 low = a.constant, high = a.constant;
  for (std::size_t d = 0; d < a.coefficients.size(); ++d) {
    const __int128 reach = a.coefficients[d] * (shape.dims()[d] - 1);
    (reach < 0 ? low : high) += reach;
  }
  const int bits = bit_width(type) - (is_signed(type) ? 1 : 0);
  const __int128 end = static_cast<__int128>(1) << bits;
  return low >= (is_signed(type) ? -end : 0) && high < end;
}

// The same elements in another shape: one that differs in dimensions of one element, or of an array that counts all through.
std::optional<Affine> reshaped(const Affine& a, const Shape& from, const Shape& to) {
  Affine result{a.constant, std::vector<__int128>(to.dims().size())};
  std::vector<std::size_t> old, now;
  for (std::size_t d = 0; d < from.dims().size(); ++d)
    if (from.dims()[d] != 1) old.push_back(d);
  for (std::size_t d = 0; d < to.dims().size(); ++d)
    if (to.dims()[d] != 1) now.push_back(d);
  const auto same = [&](std::size_t x, std::size_t y) { return from.dims()[x] == to.dims()[y]; };
  if (std::ranges::equal(old, now, same)) {
    for (std::size_t d = 0; d < old.size(); ++d) result.coefficients[now[d]] = a.coefficients[old[d]];
    return result;
  }
  if (old.empty()) return std::nullopt;
  const __int128 step = a.coefficients[old.back()];
  __int128 expected = step;
  for (std::size_t d = old.size(); d-- > 0; expected *= from.dims()[old[d]])
    if (a.coefficients[old[d]] != expected) return std::nullopt;
  expected = step;
  for (std::size_t d = now.size(); d-- > 0; expected *= to.dims()[now[d]]) result.coefficients[now[d]] = expected;
  return result;
}

std::optional<Affine> of_two(const Instruction& i) {
  const auto x = affine(*i.operand(0)), y = affine(*i.operand(1));
  if (!x || !y) return std::nullopt;
  const bool x_constant = std::ranges::all_of(x->coefficients, [](__int128 c) { return c == 0; });
  const bool y_constant = std::ranges::all_of(y->coefficients, [](__int128 c) { return c == 0; });
  Affine result = *x;
  if (i.opcode() == Opcode::Multiply) {
    if (!x_constant && !y_constant) return std::nullopt;
    const __int128 factor = x_constant ? x->constant : y->constant;
    result = x_constant ? *y : *x;
    result.constant *= factor;
    for (__int128& c : result.coefficients) c *= factor;
    return result;
  }
  const int sign = i.opcode() == Opcode::Subtract ? -1 : 1;
  result.constant += sign * y->constant;
  for (std::size_t d = 0; d < result.coefficients.size(); ++d) result.coefficients[d] += sign * y->coefficients[d];
  return result;
}

std::optional<Affine> moved(const Instruction& i) {
  const Instruction& from = *i.operand(0);
  auto x = affine(from);
  if (!x) return std::nullopt;
  Affine result{x->constant, std::vector<__int128>(i.shape().dims().size())};
  switch (i.opcode()) {
    case Opcode::Broadcast:
      for (std::size_t d = 0; d < x->coefficients.size(); ++d) result.coefficients[static_cast<std::size_t>(i.dimension(static_cast<std::int64_t>(d)))] = x->coefficients[d];
      return result;
    case Opcode::Transpose:
      for (std::size_t d = 0; d < x->coefficients.size(); ++d) result.coefficients[d] = x->coefficients[static_cast<std::size_t>(i.dimension(static_cast<std::int64_t>(d)))];
      return result;
    case Opcode::Reverse:
      for (const std::int64_t d : i.dimensions()) {
        __int128& c = x->coefficients[static_cast<std::size_t>(d)];
        x->constant += c * (from.shape().dim(d) - 1);
        c = -c;
      }
      return x;
    case Opcode::Reshape: return reshaped(*x, from.shape(), i.shape());
    case Opcode::Bitcast: {
      const auto plain = [](const Shape& s) { return !s.has_layout() || s.layout().is_descending(); };
      if (!plain(from.shape()) || !plain(i.shape()) || from.shape().dtype() != i.shape().dtype()) return std::nullopt;
      return reshaped(*x, from.shape(), i.shape());
    }
    default: return x;  // convert, copy
  }
}

std::optional<Affine> affine(const Instruction& i) {
  if (!i.shape().is_array() || i.shape().num_elements() == 0) return std::nullopt;
  std::optional<Affine> result;
  switch (i.opcode()) {
    case Opcode::Iota:
      result = Affine{0, std::vector<__int128>(i.shape().dims().size())};
      result->coefficients[static_cast<std::size_t>(i.iota_dimension())] = 1;
      break;
    case Opcode::Constant:
      if (!is_splat(i.literal()) || is_floating(i.shape().dtype()) || bit_width(i.shape().dtype()) > 32) return std::nullopt;
      result = Affine{static_cast<std::int64_t>(element_as_double(i.literal(), 0)), std::vector<__int128>(i.shape().dims().size())};
      break;
    case Opcode::Add:
    case Opcode::Subtract:
    case Opcode::Multiply: result = of_two(i); break;
    case Opcode::Broadcast:
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Convert:
    case Opcode::Copy: result = moved(i); break;
    default: break;
  }
  return result && fits(*result, i.shape()) ? result : std::nullopt;
}

}  // namespace

int monotone(const Instruction& array, const Dims& dimensions) {
  const auto a = affine(array);
  if (!a) return 0;
  int direction = 0;
  __int128 reach = 0;  // of the dimensions within
  for (auto d = dimensions.rbegin(); d != dimensions.rend(); ++d) {
    const std::int64_t n = array.shape().dim(*d);
    if (n == 1) continue;
    const __int128 step = a->coefficients[static_cast<std::size_t>(*d)];
    const int own = step > 0 ? 1 : -1;
    if ((direction != 0 && own != direction) || own * step <= reach) return 0;
    direction = own;
    reach += own * step * (n - 1);
  }
  return direction;
}

std::optional<BestElement> best_element(const Instruction& reduce) {
  if (!has_form(reduce)) return std::nullopt;
  const Dims compared = compared_operands(reduce);
  if (compared.empty() || compared.size() > 2) return std::nullopt;
  Dims dimensions = reduce.dimensions();
  std::ranges::sort(dimensions);
  for (std::size_t k = 0; k < compared.size(); ++k) {
    const std::int64_t key = compared[k], places = compared.size() == 2 ? compared[1 - k] : -1;
    if (!is_number(reduce.operand(key)->shape().dtype())) continue;
    const int direction = places < 0 ? 0 : monotone(*reduce.operand(places), dimensions);
    if (const auto best = Trials(reduce, key, places).best(direction)) return best;
  }
  return std::nullopt;
}

}  // namespace hloom::hlo

#include "hlo/sort_keys.h"

#include <cmath>

namespace hloom::hlo {
namespace {

// The operands of a binary instruction in both orders.
template <class See>
auto either_way(const Instruction& i, See see) -> decltype(see(*i.operand(0), *i.operand(1))) {
  if (const auto found = see(*i.operand(0), *i.operand(1))) return found;
  return see(*i.operand(1), *i.operand(0));
}

bool is_scalar_constant(const Instruction& i) { return i.opcode() == Opcode::Constant && i.shape().is_scalar(); }
bool is_zero(const Instruction& i) {
  if (!is_scalar_constant(i) || !is_floating(i.shape().dtype())) return false;
  const double value = element_as_double(i.literal(), 0);
  return value == 0 && !std::signbit(value);
}
bool is_nan(const Instruction& i) {
  if (!is_scalar_constant(i) || !is_floating(i.shape().dtype())) return false;
  const double value = element_as_double(i.literal(), 0);
  return std::isnan(value) && !std::signbit(value);
}
bool is_comparison(const Instruction& i, Direction direction) {
  return i.opcode() == Opcode::Compare && i.attr<CompareAttr>().direction == direction;
}

/// A parameter, or what stands for it.
struct Seen {
  std::int64_t parameter;
  SortKey key;  // without its operand
};

// `i` is x, or select(x == 0, 0, x), or select(x != x, NaN, x), or both in any order, for a parameter x.
std::optional<Seen> seen(const Instruction& i) {
  if (i.opcode() == Opcode::Parameter) return Seen{i.parameter_number(), {}};
  if (i.opcode() != Opcode::Select) return std::nullopt;
  auto inner = seen(*i.operand(2));
  if (!inner) return std::nullopt;
  const auto is_it = [&](const Instruction& x) {
    const auto other = seen(x);
    return other && other->parameter == inner->parameter;
  };
  const Instruction& condition = *i.operand(0);
  if (is_comparison(condition, Direction::Eq) && is_zero(*i.operand(1))) {
    const bool with_zero = either_way(condition, [&](const Instruction& x, const Instruction& zero) {
      return is_it(x) && is_scalar_constant(zero) && is_floating(zero.shape().dtype()) && element_as_double(zero.literal(), 0) == 0;
    });
    if (!with_zero) return std::nullopt;
    inner->key.zeros_equal = true;
    return inner;
  }
  if (!is_comparison(condition, Direction::Ne) || !is_nan(*i.operand(1))) return std::nullopt;
  if (condition.operand(0) != condition.operand(1) || !is_it(*condition.operand(0))) return std::nullopt;
  inner->key.nans_equal = true;
  return inner;
}

// Whether a comparison of this type is a total order of all values.
bool is_total(const Instruction& compare) {
  const DType type = compare.operand(0)->shape().dtype();
  if (is_complex(type)) return false;
  return !is_floating(type) || compare.attr<CompareAttr>().type == Comparison::TotalOrder;
}

// The key of a comparison of an operand's two elements; `descending` means nothing for Eq.
std::optional<SortKey> key_of(const Instruction& compare) {
  const auto left = seen(*compare.operand(0)), right = seen(*compare.operand(1));
  if (!left || !right || left->key != right->key || !is_total(compare)) return std::nullopt;
  if (left->parameter / 2 != right->parameter / 2 || left->parameter == right->parameter) return std::nullopt;
  const Direction direction = compare.attr<CompareAttr>().direction;
  const bool crossed = left->parameter > right->parameter;
  SortKey key = left->key;
  key.operand = left->parameter / 2;
  key.descending = (direction == Direction::Gt) != crossed;
  return key;
}

std::optional<SortKey> strict_key(const Instruction& i) {
  if (!is_comparison(i, Direction::Lt) && !is_comparison(i, Direction::Gt)) return std::nullopt;
  return key_of(i);
}

bool is_equality(const Instruction& i, SortKey of) {
  if (!is_comparison(i, Direction::Eq)) return false;
  auto key = key_of(i);
  if (!key) return false;
  key->descending = of.descending;
  return *key == of;
}

// before, or (equal and what comes next says so).
bool add_keys(const Instruction& i, std::vector<SortKey>& keys) {
  if (const auto key = strict_key(i)) {
    keys.push_back(*key);
    return true;
  }
  if (i.opcode() != Opcode::Or) return false;
  return either_way(i, [&](const Instruction& first, const Instruction& rest) {
    const auto key = strict_key(first);
    if (!key || rest.opcode() != Opcode::And) return false;
    return either_way(rest, [&](const Instruction& equal, const Instruction& next) {
      if (!is_equality(equal, *key)) return false;
      const std::size_t before = keys.size();
      keys.push_back(*key);
      if (add_keys(next, keys)) return true;
      keys.resize(before);
      return false;
    });
  });
}

}  // namespace

std::optional<std::vector<SortKey>> sort_keys(const Instruction& i) {
  if (i.opcode() == Opcode::Topk) return std::vector<SortKey>{{.operand = 0, .descending = i.attr<TopKAttr>().largest}};
  std::vector<SortKey> keys;
  if (!add_keys(*i.to_apply()->root(), keys)) return std::nullopt;
  return keys;
}

}  // namespace hloom::hlo

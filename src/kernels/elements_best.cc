// Reduces in search of one element: argmax and its like. Lanes find the place of the best key of a row; the results are what the
// operands have there.
#include <algorithm>

#include "base/try.h"
#include "fusion/cost.h"
#include "kernels/elements.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;
using Values = std::vector<Value>;

namespace {

// Whether somebody looks at result k.
bool is_used(const Instruction& reduce, std::int64_t k) {
  if (reduce.shape().is_array() || reduce.parent()->root() == &reduce) return true;
  return std::ranges::any_of(reduce.users(), [&](const Instruction* user) {
    return user->opcode() != Opcode::GetTupleElement || user->tuple_index() == k;
  });
}

// The type that lanes compare keys of a type in.
DType compared_type(DType type) {
  if (is_floating(type)) return bit_width(type) < 32 ? DType::F32 : type;
  return bit_width(type) < 8 ? DType::S32 : type;
}

}  // namespace

std::optional<hlo::BestElement> Elements::best_by_lanes(const Instruction& i) {
  if (i.opcode() != Opcode::Reduce || !hlo::minor_order(i).by_lanes || hlo::reduce_op(i) != Opcode::Tuple) return std::nullopt;
  return fusion::is_unrolled(i) ? std::nullopt : hlo::best_element(i);
}

Expected<> Elements::reduce_to_best(const Instruction& i, const Point& kept, const hlo::BestElement& best) {
  const std::int64_t n = i.num_operands() / 2;
  const hlo::ReduceOrder order = hlo::minor_order(i);
  Values initial;
  for (std::int64_t k = 0; k < n; ++k) initial.push_back(TRY(at(*i.operand(n + k), {})));
  const bool nested = std::exchange(fold_reduces, false);
  const auto results = walk(reduced_box(i, order.first), initial, [&](const Point& window, const Values& sofar) {
    return best_of_row({i, best, order, reduced_point(i, kept, window)}, sofar);
  });
  fold_reduces = nested;
  const Values values = TRY(results);
  for (std::int64_t k = 0; k < n; ++k)
    remember(i, kept, n == 1 ? ShapeIndex{} : ShapeIndex{k}, values[static_cast<std::size_t>(k)]);
  return {};
}

namespace {

// A point of the operands: the element of the row that lanes go over.
Point element_point(Builder& b, const Instruction& reduce, const hlo::ReduceOrder& order, Point row, const Index& element) {
  const auto& dims = reduce.operand(0)->shape().dims();
  const Point tail = b.delinearise(element, {dims.begin() + static_cast<std::ptrdiff_t>(order.first), dims.end()});
  std::ranges::copy(tail, row.begin() + static_cast<std::ptrdiff_t>(order.first));
  return row;
}

}  // namespace

// What NaNs make depends on the order where they are not the best: rows with one go element by element.
Expected<Values> Elements::best_of_row(const Search& s, const Values& sofar) {
  const std::int64_t n = s.reduce.num_operands() / 2;
  const DType type = s.reduce.operand(s.best.key)->shape().dtype();
  Value has_nan = kNoValue;
  const Value place = TRY(best_place(s, s.best.last, is_floating(type) && !s.best.nans_are_best ? &has_nan : nullptr));
  const auto found = [&]() -> Expected<Values> {
    Values values = sofar;
    for (std::int64_t k = 0; k < n; ++k) {
      const auto element = [&] { return at(*s.reduce.operand(k), element_point(b_, s.reduce, s.order, s.row, index_of(place))); };
      values.push_back(TRY(k == s.best.key ? key_at(s, place) : element()));
    }
    return apply(*s.reduce.to_apply(), values);
  };
  if (has_nan == kNoValue) return found();
  return either(has_nan, [&] { return in_order(s, sofar); }, found);
}

Expected<Values> Elements::in_order(const Search& s, const Values& sofar) {
  const std::vector<std::int64_t> box = {s.order.extent};
  return walk(box, sofar, [&](const Point& element, const Values& before) {
    return reduce_step(s.reduce, element_point(b_, s.reduce, s.order, s.row, element[0]), before);
  });
}

Expected<Value> Elements::search_key(const Search& s, const Index& element) {
  const Value x = TRY(at(*s.reduce.operand(s.best.key), element_point(b_, s.reduce, s.order, s.row, element)));
  return convert(x, compared_type(b_.type(x)));
}

Expected<Value> Elements::best_place(const Search& s, bool last, Value* has_nan) {
  const int lanes = byte_width(s.reduce.operand(s.best.key)->shape().dtype()) < 8 ? s.order.lanes() : std::min(s.order.lanes(), 32);
  const Value no = has_nan == nullptr ? kNoValue : b_.constant(DType::Pred, 0);
  const Value lane = b_.begin_loop(0, s.order.extent, lanes);
  const Value before = has_nan == nullptr ? kNoValue : b_.add_fold(Opcode::Or, no);
  const auto x = search_key(s, index_of(lane));
  const Value place = b_.add_best(s.best.least, last, x ? *x : lane);
  if (has_nan != nullptr) {
    const Value is_nan = x ? compare(hlo::Direction::Ne, *x, *x, hlo::Comparison::Float) : before;
    b_.set_fold_next(0, b_.line(Opcode::Or, DType::Pred, {before, is_nan}));
    *has_nan = b_.loop().folds[0].carry.result;
  }
  b_.end_loop();
  if (!x) return x.error();
  return place;
}

// Equal keys differ in the sign of a zero alone.
Expected<Value> Elements::key_at(const Search& s, Value place) {
  const Instruction& key = *s.reduce.operand(s.best.key);
  const auto element = [&](Value where) { return at(key, element_point(b_, s.reduce, s.order, s.row, index_of(where))); };
  const Value x = TRY(element(place));
  if (!is_floating(key.shape().dtype()) || s.best.last_zero == s.best.last || !is_used(s.reduce, s.best.key)) return x;
  const Value same = convert(x, compared_type(b_.type(x)));
  const Value is_zero = compare(hlo::Direction::Eq, same, b_.constant(b_.type(same), 0), hlo::Comparison::Float);
  const auto other = [&]() -> Expected<Values> {
    const Value there = TRY(best_place(s, s.best.last_zero, nullptr));
    return Values{TRY(element(there))};
  };
  const Values values = TRY(either(is_zero, other, [&]() -> Expected<Values> { return Values{x}; }));
  return values[0];
}

Expected<Values> Elements::either(Value condition, const std::function<Expected<Values>()>& yes,
                                  const std::function<Expected<Values>()>& no) {
  If choice;
  choice.selector = condition;
  for (const auto* branch : {&yes, &no}) {
    b_.begin_block();
    const auto made = (*branch)();
    choice.branches.push_back(b_.end_block());
    const Values given = TRY(made);
    choice.results.resize(given.size());
    for (std::size_t k = 0; k < given.size(); ++k) choice.results[k].from.push_back(given[k]);
  }
  Values results;
  for (If::Result& r : choice.results) {
    r.result = b_.define(b_.type(r.from[0]));
    results.push_back(r.result);
  }
  b_.append(Statement{std::move(choice)});
  return results;
}

}  // namespace hloom::kernels

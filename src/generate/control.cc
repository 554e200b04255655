// Loops, branches, calls, maps, fusions that are there already.
#include <algorithm>
#include <array>

#include "generate/scope.h"

namespace hloom::generate {
namespace {

constexpr int kMaxDepth = 3;

/// Values that go into a computation: as one tuple, or as parameters.
std::vector<Instruction*> pick_values(Scope& s, std::int64_t most) {
  std::vector<Instruction*> picked;
  const std::int64_t number = s.random().pick(1, most);
  for (std::int64_t n = 0; n < number; ++n)
    if (Instruction* v = s.pick()) picked.push_back(v);
  return picked;
}

std::vector<Instruction*> elements_of(Scope& inner, Instruction* tuple, const std::vector<double>& bounds) {
  std::vector<Instruction*> elements;
  for (std::size_t n = 0; n < bounds.size(); ++n)
    elements.push_back(
        inner.keep(inner.computation().add_get_tuple_element(tuple, static_cast<std::int64_t>(n)), bounds[n]));
  return elements;
}

void keep_elements(Scope& s, Instruction* tuple, const std::vector<double>& bounds) {
  for (std::size_t n = 0; n < bounds.size(); ++n)
    s.keep(s.computation().add_get_tuple_element(tuple, static_cast<std::int64_t>(n)), bounds[n]);
}

// A value for a carry: itself, another one of its shape, an update of it, or something computed. Within the bound.
Instruction* next_value(Scope& body, Instruction* carry, const std::vector<Instruction*>& carries, double bound) {
  if (body.random().chance(15)) return carry;
  const Shape& shape = carry->shape();
  if (body.random().chance(20)) {
    Instruction* other = body.random().of(carries);
    if (compatible(other->shape(), shape) && body.bound(other) <= bound) return other;
  }
  Instruction* next = nullptr;
  for (int tries = 0; tries < 3 && next == nullptr; ++tries) {
    next = body.pick([&](const Instruction& i) { return compatible(i.shape(), shape) && &i != carry; });
    if (next == nullptr) body.steps(1);
  }
  if (next == nullptr || body.random().chance(30)) {
    Instruction* other = body.make(shape.dtype(), shape.dims());
    const Opcode op = shape.dtype() == DType::Pred ? Opcode::Xor : Opcode::Add;
    if (Instruction* sum = body.add(op, {carry, other})) next = body.keep(sum, body.bound(carry) + body.bound(other));
  }
  if (next == nullptr) return carry;
  if (bound == kUnbounded || body.bound(next) <= bound) return next;
  next = body.tame(body.keep(next, kUnbounded));
  return next != nullptr && body.bound(next) <= bound ? next : carry;
}

struct Counter {
  std::int64_t start, limit, step;
  hlo::Direction direction;
};

Counter draw_counter(Random& random) {
  const std::int64_t trips = random.of({0, 1, 2, 3, 3, 4, 5, 7});
  switch (random.pick(0, 5)) {
    case 0: return {trips - 1, 0, -1, hlo::Direction::Ge};
    case 1: return {2, 2 + 3 * trips, 3, hlo::Direction::Lt};
    case 2: return {5, 5 + trips, 1, hlo::Direction::Ne};
    case 3: return {1, trips, 1, hlo::Direction::Le};
    default: return {0, trips, 1, hlo::Direction::Lt};
  }
}

// `counted`: the counter alone ends the loop.
hlo::Computation* draw_condition(Scope& s, const Shape& state, const Counter& counter, std::int64_t place, bool counted) {
  hlo::Computation* condition = s.module().add_computation("condition");
  Instruction* p = condition->add_parameter(0, state, "state");
  Instruction* i = condition->add_get_tuple_element(p, place, "i");
  Instruction* n = condition->add_constant([&] {
    hlo::Literal literal(Shape::scalar(DType::S32));
    literal.mutable_data<std::int32_t>()[0] = static_cast<std::int32_t>(counter.limit);
    return literal;
  }());
  Instruction* c = condition->add(Opcode::Compare, Shape::scalar(DType::Pred), {i, n});
  c->mutable_attr<hlo::CompareAttr>().direction = counter.direction;
  c->mutable_attr<hlo::CompareAttr>().type = hlo::Comparison::Signed;
  condition->set_root(c);
  if (counted) return condition;
  // A second reason to stop.
  for (std::int64_t e = 0; e < static_cast<std::int64_t>(state.elements().size()); ++e)
    if (state.element(e).is_scalar() && state.element(e).dtype() == DType::Pred && s.random().chance(70)) {
      Instruction* go_on = condition->add_get_tuple_element(p, e);
      condition->set_root(condition->add(Opcode::And, Shape::scalar(DType::Pred), {c, go_on}));
      break;
    }
  return condition;
}

bool draw_while(Scope& s) {
  if (s.depth() >= kMaxDepth) return false;
  std::vector<Instruction*> init = pick_values(s, 5);
  if (init.empty()) return false;
  const Counter counter = draw_counter(s.random());
  const std::int64_t place = s.random().chance(80) ? 0 : s.random().pick(0, static_cast<std::int64_t>(init.size()));
  init.insert(init.begin() + place, s.scalar(DType::S32, counter.start));
  std::vector<double> bounds;
  for (const Instruction* v : init) bounds.push_back(std::max(7.0, s.bound(v)));
  bounds[static_cast<std::size_t>(place)] = 40;
  Instruction* tuple = s.computation().add_tuple(init, "init");
  const Shape state = tuple->shape();

  hlo::Computation* body = s.module().add_computation("body");
  Scope inner(s.draw(), *body, s.depth() + 1, false);
  if (s.meets()) inner.set_meets(s.random().chance(70));
  const std::vector<Instruction*> carries = elements_of(inner, body->add_parameter(0, state, "state"), bounds);
  inner.steps(static_cast<int>(s.random().pick(1, 9)));
  std::vector<Instruction*> next;
  for (std::size_t n = 0; n < carries.size(); ++n) {
    if (static_cast<std::int64_t>(n) == place)
      next.push_back(inner.add(Opcode::Add, {carries[n], inner.scalar(DType::S32, counter.step)}));
    else
      next.push_back(next_value(inner, carries[n], carries, bounds[n]));
  }
  body->set_root(body->add_tuple(next));

  hlo::Computation* condition = draw_condition(s, state, counter, place, inner.meets());
  Instruction* loop = s.computation().add(Opcode::While, state, {tuple});
  loop->set_called({condition, body});
  keep_elements(s, loop, bounds);
  return true;
}

/// A computation on these parameters with results of these shapes (drawn where there are none yet).
hlo::Computation* draw_branch(Scope& s, const Shape& parameter, const std::vector<double>& parameter_bounds,
                              std::vector<Shape>& results, std::vector<double>& bounds) {
  hlo::Computation* branch = s.module().add_computation("branch");
  Scope inner(s.draw(), *branch, s.depth() + 1, false);
  Instruction* p = branch->add_parameter(0, parameter, "p");
  if (parameter.is_tuple())
    elements_of(inner, p, parameter_bounds);
  else
    inner.keep(p, parameter_bounds[0]);
  inner.steps(static_cast<int>(s.random().pick(0, 6)));
  std::vector<Instruction*> roots;
  if (results.empty()) {
    roots = pick_values(inner, 3);
    for (const Instruction* r : roots) {
      results.push_back(r->shape());
      bounds.push_back(0);
    }
  } else {
    for (const Shape& shape : results) roots.push_back(inner.make(shape.dtype(), shape.dims()));
  }
  for (std::size_t n = 0; n < roots.size(); ++n) bounds[n] = std::max(bounds[n], inner.bound(roots[n]));
  branch->set_root(roots.size() == 1 ? roots[0] : branch->add_tuple(roots));
  return branch;
}

bool draw_conditional(Scope& s) {
  if (s.depth() >= kMaxDepth) return false;
  const std::vector<Instruction*> values = pick_values(s, 3);
  if (values.empty()) return false;
  const bool by_number = s.random().chance(40);
  Instruction* selector = s.make(by_number ? DType::S32 : DType::Pred, {});
  const std::int64_t branches = by_number ? s.random().pick(1, 4) : 2;
  std::vector<double> bounds, result_bounds;
  for (const Instruction* v : values) bounds.push_back(s.bound(v));
  Instruction* argument = values.size() == 1 ? values[0] : s.computation().add_tuple(values);
  std::vector<Instruction*> operands{selector};
  std::vector<hlo::Computation*> called;
  std::vector<Shape> results;
  for (std::int64_t b = 0; b < branches; ++b) {
    operands.push_back(argument);
    called.push_back(draw_branch(s, argument->shape(), bounds, results, result_bounds));
  }
  const bool alone = results.size() == 1;
  Instruction* r = s.computation().add(Opcode::Conditional, alone ? results[0] : Shape::tuple(results), operands);
  r->set_called(called);
  if (alone)
    s.keep(r, result_bounds[0]);
  else
    keep_elements(s, r, result_bounds);
  return true;
}

// A fusion computes nothing in vain.
std::vector<Instruction*> unused(Scope& s) {
  std::vector<Instruction*> result;
  for (Instruction& i : s.computation().instructions())
    if (i.users().empty()) result.push_back(&i);
  return result;
}

bool draw_called(Scope& s, Opcode opcode, int steps, bool plain) {
  const std::vector<Instruction*> arguments = pick_values(s, 4);
  if (arguments.empty()) return false;
  hlo::Computation* callee = s.module().add_computation(opcode == Opcode::Call ? "called" : "fused");
  Scope inner(s.draw(), *callee, plain ? kMaxDepth : s.depth() + 1, false);
  inner.set_meets(s.meets() && !plain);
  for (std::size_t n = 0; n < arguments.size(); ++n)
    inner.keep(callee->add_parameter(static_cast<std::int64_t>(n), arguments[n]->shape(), "p"), s.bound(arguments[n]));
  inner.steps(steps);
  const std::vector<Instruction*> roots = opcode == Opcode::Fusion ? unused(inner) : pick_values(inner, 2);
  callee->set_root(roots.size() == 1 ? roots[0] : callee->add_tuple(roots));
  Instruction* r = s.computation().add(opcode, callee->root()->shape(), arguments);
  r->set_called({callee});
  if (opcode == Opcode::Fusion) r->mutable_attr<hlo::FusionAttr>().kind = hlo::FusionKind::Loop;
  std::vector<double> bounds;
  for (const Instruction* root : roots) bounds.push_back(inner.bound(root));
  if (roots.size() == 1)
    s.keep(r, bounds[0]);
  else
    keep_elements(s, r, bounds);
  return true;
}

bool draw_call(Scope& s) {
  if (s.depth() >= kMaxDepth) return false;
  return draw_called(s, Opcode::Call, static_cast<int>(s.random().pick(1, 6)), false);
}

bool draw_fusion(Scope& s) { return draw_called(s, Opcode::Fusion, static_cast<int>(s.random().pick(1, 5)), true); }

// Scalars that become a function of elements.
bool draw_map(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0; });
  if (x == nullptr) return false;
  Instruction* y = s.make(x->shape().dtype(), x->shape().dims());
  if (y == nullptr) return false;
  hlo::Computation* f = s.module().add_computation("mapped");
  const Shape scalar = Shape::scalar(x->shape().dtype());
  Scope inner(s.draw(), *f, kMaxDepth, false);
  Instruction* a = inner.keep(f->add_parameter(0, scalar, "a"), s.bound(x));
  Instruction* b = inner.keep(f->add_parameter(1, scalar, "b"), s.bound(y));
  Instruction* sum = inner.add(scalar.dtype() == DType::Pred ? Opcode::Xor : Opcode::Multiply, {a, b});
  Instruction* root = inner.add(scalar.dtype() == DType::Pred ? Opcode::Or : Opcode::Add, {sum, a});
  f->set_root(root == nullptr ? a : root);
  Instruction* r = s.add(Opcode::Map, {x, y}, [&](Instruction& i) {
    i.set_dimensions(iota(x->shape().rank()));
    i.set_called({f});
  });
  const double complex = is_complex(scalar.dtype()) ? 2 : 1;
  return s.keep(r, complex * s.bound(x) * s.bound(y) + s.bound(x)) != nullptr;
}

constexpr std::array kFamilies = {
    Family{40, draw_while}, Family{25, draw_conditional}, Family{20, draw_call},
    Family{5, draw_map},    Family{8, draw_fusion},
};

}  // namespace

std::span<const Family> control_families() { return kFamilies; }

}  // namespace hloom::generate

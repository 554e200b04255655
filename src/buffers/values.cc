#include "buffers/values.h"

#include <algorithm>
#include <iterator>

#include "base/check.h"
#include "buffers/steps.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

std::string to_string(const Value& v) {
  if (!v.definer->shape().is_tuple()) return v.definer->name();
  return v.definer->name() + "{" + std::to_string(v.leaf) + "}";
}

bool same_storage(const Shape& a, const Shape& b) {
  if (!a.is_array() || !b.is_array()) return a.is_array() == b.is_array();
  const Layout &x = a.layout(), &y = b.layout();
  return a.dtype() == b.dtype() && a.dims() == b.dims() && x.parts() == y.parts() &&
         (a.rank() < 2 || x.minor_to_major == y.minor_to_major);
}

std::int64_t first_leaf(const Shape& tuple, std::int64_t index) {
  std::int64_t leaf = 0;
  for (std::int64_t k = 0; k < index; ++k) leaf += tuple.element(k).is_tuple() ? num_leaves(tuple.element(k)) : 1;
  return leaf;
}

Values::Values(const hlo::Module& module) : ranges_(static_cast<std::size_t>(module.num_ids())) {
  std::vector<std::vector<ValueId>> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    make_all(Value::Kind::Parameter, *p);
    arguments.push_back(copy_of(*p));
  }
  walk(*module.entry(), arguments);
  drop_trivial_phis();
  for (ValueId& v : table_) v = find(v);
  for (Value& value : values_)
    for (ValueId& input : value.inputs) input = find(input);
}

ValueId Values::make(Value::Kind kind, const Instruction& i, std::int64_t leaf, const Shape& shape) {
  const auto v = static_cast<ValueId>(values_.size());
  values_.push_back({kind, &i, leaf, shape, leaf_bytes(shape), {}, {}});
  names_.push_back(v);
  return v;
}

void Values::make_all(Value::Kind kind, const Instruction& i) {
  std::vector<ValueId> made;
  for (const Shape* leaf : leaves(i.shape()))
    made.push_back(make(kind, i, static_cast<std::int64_t>(made.size()), *leaf));
  set(i, std::move(made));
}

void Values::set(const Instruction& i, std::vector<ValueId> values) {
  ranges_[static_cast<std::size_t>(i.id())] = {table_.size(), values.size()};
  table_.insert(table_.end(), values.begin(), values.end());
}

std::vector<ValueId> Values::copy_of(const Instruction& i) const {
  const auto values = of(i);
  return {values.begin(), values.end()};
}

void Values::walk(const Computation& c, const std::vector<std::vector<ValueId>>& arguments) {
  for (const Instruction& i : c.instructions()) {
    if (i.opcode() == Opcode::Parameter)
      set(i, arguments[static_cast<std::size_t>(i.parameter_number())]);
    else
      visit(i);
  }
}

void Values::visit(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Constant: return make_all(Value::Kind::Constant, i);
    case Opcode::While: return visit_while(i);
    case Opcode::Conditional: return visit_conditional(i);
    case Opcode::Call:
    case Opcode::AsyncStart: return visit_call(i);
    default: break;
  }
  if (is_alias(i)) return visit_alias(i);
  make_all(Value::Kind::Made, i);
  const OperandLeaves named = operand_leaves(i);
  std::vector<ValueId> operands;
  for (const Instruction* operand : i.operands()) std::ranges::copy(of(*operand), std::back_inserter(operands));
  for (std::int64_t k = 0; k < named.count; ++k)
    names_[static_cast<std::size_t>(of(i, named.first + k))] = operands[static_cast<std::size_t>(k)];
}

void Values::visit_while(const Instruction& i) {
  make_all(Value::Kind::Loop, i);
  const std::vector<ValueId> head = copy_of(i), init = copy_of(*i.operand(0));
  walk(*i.condition(), {head});
  walk(*i.body(), {head});
  const auto next = of(*i.body()->root());
  HLOOM_CHECK(init.size() == head.size() && next.size() == head.size());
  const auto init_shapes = leaves(i.operand(0)->shape()), next_shapes = leaves(i.body()->root()->shape());
  for (std::size_t k = 0; k < head.size(); ++k) {
    Value& value = values_[static_cast<std::size_t>(head[k])];
    value.inputs = {init[k], next[k]};
    value.input_shapes = {init_shapes[k], next_shapes[k]};
  }
}

void Values::visit_conditional(const Instruction& i) {
  make_all(Value::Kind::Join, i);
  const std::vector<ValueId> joined = copy_of(i);
  for (std::size_t b = 0; b < i.called().size(); ++b) {
    walk(*i.called()[b], {copy_of(*i.operand(static_cast<std::int64_t>(b) + 1))});
    const auto root = of(*i.called()[b]->root());
    HLOOM_CHECK(root.size() == joined.size());
    const auto root_shapes = leaves(i.called()[b]->root()->shape());
    for (std::size_t k = 0; k < joined.size(); ++k) {
      Value& value = values_[static_cast<std::size_t>(joined[k])];
      value.inputs.push_back(root[k]);
      value.input_shapes.push_back(root_shapes[k]);
    }
  }
}

void Values::visit_call(const Instruction& i) {
  std::vector<std::vector<ValueId>> arguments;
  for (const Instruction* operand : i.operands()) arguments.push_back(copy_of(*operand));
  walk(*i.to_apply(), arguments);
  std::vector<ValueId> result = copy_of(*i.to_apply()->root());
  if (i.opcode() == Opcode::AsyncStart) {  // ((operands), result, context …)
    std::vector<ValueId> all;
    for (const auto& a : arguments) all.insert(all.end(), a.begin(), a.end());
    all.insert(all.end(), result.begin(), result.end());
    const std::vector<const Shape*> parts = leaves(i.shape());
    while (all.size() < parts.size()) {
      const auto leaf = static_cast<std::int64_t>(all.size());
      all.push_back(make(Value::Kind::Made, i, leaf, *parts[all.size()]));
    }
    result = std::move(all);
  }
  set(i, std::move(result));
}

void Values::visit_alias(const Instruction& i) {
  std::vector<ValueId> all;
  switch (i.opcode()) {
    case Opcode::Tuple:
      for (const Instruction* operand : i.operands()) {
        const auto part = of(*operand);
        all.insert(all.end(), part.begin(), part.end());
      }
      return set(i, std::move(all));
    case Opcode::GetTupleElement:
    case Opcode::AllGatherDone:
    case Opcode::AsyncDone:
    case Opcode::CollectivePermuteDone:
    case Opcode::CopyDone: {
      const Shape& tuple = i.operand(0)->shape();
      const std::int64_t element = i.opcode() == Opcode::GetTupleElement ? i.tuple_index()
                                   : i.opcode() == Opcode::CopyDone      ? 0
                                                                         : 1;
      const auto part = of(*i.operand(0))
                            .subspan(static_cast<std::size_t>(first_leaf(tuple, element)),
                                     static_cast<std::size_t>(num_leaves(i.shape())));
      all.assign(part.begin(), part.end());
      return set(i, std::move(all));
    }
    default: return set(i, copy_of(*i.operand(0)));
  }
}

ValueId Values::find(ValueId v) {
  ValueId real = v;
  while (names_[static_cast<std::size_t>(real)] != real) real = names_[static_cast<std::size_t>(real)];
  while (names_[static_cast<std::size_t>(v)] != real) {
    const ValueId next = names_[static_cast<std::size_t>(v)];
    names_[static_cast<std::size_t>(v)] = real;
    v = next;
  }
  return real;
}

// Whether the inputs of a phi are itself and one other value, in the same storage.
bool Values::is_trivial(ValueId v, ValueId& only) {
  const Value& value = values_[static_cast<std::size_t>(v)];
  only = v;
  for (std::size_t k = 0; k < value.inputs.size(); ++k) {
    if (!same_storage(*value.input_shapes[k], value.shape)) return false;
    const ValueId real = find(value.inputs[k]);
    if (real == v) continue;
    if (only != v && only != real) return false;
    only = real;
  }
  return only != v;
}

// Such a phi names the other value. Dropping one may make another trivial.
void Values::drop_trivial_phis() {
  for (bool changed = true; changed;) {
    changed = false;
    for (ValueId v = 0; v < static_cast<ValueId>(values_.size()); ++v) {
      ValueId only = v;
      if (values_[static_cast<std::size_t>(v)].inputs.empty() || find(v) != v || !is_trivial(v, only)) continue;
      names_[static_cast<std::size_t>(v)] = only;
      changed = true;
    }
  }
}

}  // namespace hloom::buffers

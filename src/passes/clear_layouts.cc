#include "passes/clear_layouts.h"

#include <algorithm>

#include "passes/make.h"

namespace hloom::passes {
namespace {

Shape row_major(Shape shape) {
  for (Shape& e : shape.elements()) e = row_major(std::move(e));
  if (!shape.is_array()) return shape;
  const std::int64_t space = shape.has_layout() ? shape.layout().memory_space() : 0;
  Layout layout = Layout::descending(shape.rank());
  layout.set_memory_space(space);
  shape.set_layout(std::move(layout));
  return shape;
}

// The layouts that the entry asks for: row-major where it does not say.
Shape entry_shape(Shape shape) {
  for (Shape& e : shape.elements()) e = entry_shape(std::move(e));
  if (shape.is_array() && !shape.has_layout()) shape.set_layout(Layout::descending(shape.rank()));
  return shape;
}

// `i` as a value of the shape `wanted`, which differs from its own in layouts alone: copies of the leaves that do.
Instruction* with_layouts(Instruction* i, const Shape& wanted) {
  if (i->shape() == wanted) return i;
  Make make(*i);
  if (!wanted.is_tuple()) return make.op(Opcode::Copy, wanted, {i});
  std::vector<Instruction*> elements;
  for (std::size_t k = 0; k < wanted.elements().size(); ++k)
    elements.push_back(with_layouts(make.element(i, static_cast<std::int64_t>(k)), wanted.elements()[k]));
  return make.tuple(elements);
}

// Lets the users of `i`, which has the layouts that bind, use a row-major copy. Elements of a tuple bind like it.
void convert_for_users(Instruction* i) {
  const Shape wanted = row_major(i->shape());
  if (wanted == i->shape()) return;
  const std::vector<Instruction*> users = i->users();
  const bool was_root = i->is_root();
  std::vector<Instruction*> elements;
  for (Instruction* user : users) {
    if (!is(user, Opcode::GetTupleElement)) continue;
    user->set_shape(i->shape().element(user->tuple_index()));
    elements.push_back(user);
  }
  if (elements.size() < users.size() || was_root) {
    Instruction* converted = with_layouts(i, wanted);
    for (Instruction* user : users)
      for (std::int64_t n = 0; n < user->num_operands(); ++n)
        if (user->operand(n) == i && !is(user, Opcode::GetTupleElement)) user->replace_operand(n, converted);
    if (was_root) i->parent()->set_root(converted);
  }
  for (Instruction* element : elements) convert_for_users(element);
}

void bind_operand(Instruction& i, std::int64_t n, const Shape& wanted) {
  if (wanted.is_array() && !wanted.has_layout()) return;
  i.replace_operand(n, with_layouts(i.operand(n), wanted));
}

// What an instruction asks of layouts, recorded before any is changed.
struct Binding {
  Instruction* instruction;
  std::vector<Shape> operands;  // empty: any will do
};

bool changes_layout(const Instruction& i) {
  return is(&i, Opcode::Copy) && i.shape().is_array() && !(i.shape() == i.operand(0)->shape()) &&
         !(row_major(i.shape()) == i.shape());
}

std::optional<Binding> binding_of(Instruction& i) {
  if (is(&i, Opcode::CustomCall)) {
    const auto& constraints = i.attr<hlo::CustomCallAttr>().operand_layouts;
    return Binding{&i, constraints ? *constraints : std::vector<Shape>()};
  }
  if (is(&i, Opcode::Bitcast)) return Binding{&i, {i.operand(0)->shape()}};
  if (changes_layout(i)) return Binding{&i, {}};
  return std::nullopt;
}

void clear(Instruction& i) {
  i.set_shape(row_major(i.shape()));
  if (!is(&i, Opcode::Constant) || !i.shape().is_array()) return;
  i.mutable_attr<hlo::ConstantAttr>().literal.set_shape_layout(i.shape().layout());
}

void clear(hlo::Computation& computation) {
  std::vector<Binding> bindings;
  for (Instruction& i : computation.instructions()) {
    if (const auto binding = binding_of(i))
      bindings.push_back(*binding);
    else
      clear(i);
  }
  for (const Binding& b : bindings) {
    for (std::size_t n = 0; n < b.operands.size(); ++n)
      bind_operand(*b.instruction, static_cast<std::int64_t>(n), b.operands[n]);
    convert_for_users(b.instruction);
  }
}

void bind_entry(hlo::Module& module) {
  hlo::Computation& entry = *module.entry();
  const hlo::ModuleConfig& config = module.config();
  for (Instruction* p : entry.parameters()) {
    const auto n = static_cast<std::size_t>(p->parameter_number());
    if (n >= config.entry_parameters.size() || !compatible(config.entry_parameters[n], p->shape())) continue;
    p->set_shape(entry_shape(config.entry_parameters[n]));
    convert_for_users(p);
  }
  if (!config.entry_result.is_valid() || !compatible(config.entry_result, entry.root()->shape())) return;
  entry.set_root(with_layouts(entry.root(), entry_shape(config.entry_result)));
}

// What may have any layout, and take operands of any: what binds, what reads its elements, and the copies between.
bool is_free(const Instruction& i) {
  if (is(&i, Opcode::GetTupleElement)) return is_free(*i.operand(0));
  const bool in_entry = i.parent() == i.module().entry();
  return is(&i, Opcode::Copy) || is(&i, Opcode::CustomCall) || is(&i, Opcode::Bitcast) ||
         (in_entry && (is(&i, Opcode::Parameter) || is(&i, Opcode::Tuple)));
}

bool is_row_major(const Instruction& i) { return row_major(i.shape()) == i.shape(); }

// What binds is bound: a custom call has the operands that it asks for, an element its tuple's layout.
bool is_bound(const Instruction& i) {
  if (is(&i, Opcode::GetTupleElement)) return i.shape() == i.operand(0)->shape().element(i.tuple_index());
  if (!is(&i, Opcode::CustomCall)) return true;
  const auto& constraints = i.attr<hlo::CustomCallAttr>().operand_layouts;
  for (std::int64_t n = 0; constraints && n < i.num_operands(); ++n) {
    const Shape& wanted = (*constraints)[static_cast<std::size_t>(n)];
    if (!(wanted.is_array() && !wanted.has_layout()) && !(wanted == i.operand(n)->shape())) return false;
  }
  return true;
}

bool is_clear(const Instruction& i) {
  if (!is_bound(i)) return false;
  return is_free(i) ||
         (is_row_major(i) && std::ranges::all_of(i.operands(), [](const Instruction* o) { return is_row_major(*o); }));
}

// The pass has nothing to do: it would put copies behind the copies that are there.
bool is_clear(const hlo::Module& module) {
  for (const hlo::Computation& c : module.computations())
    if (!std::ranges::all_of(c.instructions(), [](const Instruction& i) { return is_clear(i); })) return false;
  const hlo::ModuleConfig& config = module.config();
  const hlo::Computation& entry = *module.entry();
  for (std::size_t n = 0; n < std::min(config.entry_parameters.size(), entry.parameters().size()); ++n)
    if (!(entry_shape(config.entry_parameters[n]) == entry.parameters()[n]->shape())) return false;
  return !config.entry_result.is_valid() || entry_shape(config.entry_result) == entry.root()->shape();
}

}  // namespace

Expected<Changed> clear_layouts(hlo::Module& module) {
  if (module.config().is_scheduled || is_clear(module)) return Changed::No;
  const std::uint64_t before = hlo::fingerprint(module);
  for (hlo::Computation& c : module.computations()) clear(c);
  bind_entry(module);
  return hlo::fingerprint(module) == before ? Changed::No : Changed::Yes;
}

}  // namespace hloom::passes

#include "passes/clear_layouts.h"

#include <algorithm>

#include "hlo/packing.h"
#include "passes/make.h"
#include "passes/placement.h"

namespace hloom::passes {
namespace {

Shape row_major(Shape shape) {
  for (Shape& e : shape.elements()) e = row_major(std::move(e));
  if (!shape.is_array()) return shape;
  const Placement placement = placement_of(shape);
  shape.set_layout(Layout::descending(shape.rank()));
  place(shape, placement);
  return shape;
}

// Elements a byte each and no tiles, in the order that was chosen.
Shape unpacked(Shape shape) {
  for (Shape& e : shape.elements()) e = unpacked(std::move(e));
  if (!shape.is_array() || !shape.has_layout() || shape.layout().extra == nullptr) return shape;
  const Placement placement = placement_of(shape);
  Layout layout = shape.layout();
  layout.extra = nullptr;
  shape.set_layout(std::move(layout));
  place(shape, placement);
  return shape;
}

// What is free to have any layout gets this one. The layouts of a scheduled module were chosen, but for packing.
Shape cleared(const Instruction& i) { return i.module().config().is_scheduled ? unpacked(i.shape()) : row_major(i.shape()); }

// The layouts that the entry asks for: row-major where it does not say.
Shape entry_shape(Shape shape) {
  for (Shape& e : shape.elements()) e = entry_shape(std::move(e));
  if (shape.is_array() && !shape.has_layout()) shape.set_layout(Layout::descending(shape.rank()));
  return shape;
}

// A copy moves elements or packs them, not both.
bool takes_two_copies(const Shape& from, const Shape& to) {
  return from.is_array() && hlo::packed_bits(from) != hlo::packed_bits(to) &&
         (from.layout().minor_to_major != to.layout().minor_to_major ||
          (hlo::packed_bits(from) != 0 && hlo::packed_bits(to) != 0));
}

// `i` as a value of the shape `wanted`, which differs from its own in layouts alone: copies of the leaves that do.
Instruction* with_layouts(Instruction* i, const Shape& wanted) {
  if (i->shape() == wanted) return i;
  if (is(i, Opcode::Copy) && i->operand(0)->shape() == wanted) return i->operand(0);
  Make make(*i);
  if (takes_two_copies(i->shape(), wanted)) {
    const Shape between = hlo::packed_bits(i->shape()) != 0 ? hlo::unpacked(i->shape()) : hlo::unpacked(wanted);
    return with_layouts(make.op(Opcode::Copy, between, {i}), wanted);
  }
  if (!wanted.is_tuple()) return make.op(Opcode::Copy, wanted, {i});
  std::vector<Instruction*> elements;
  for (std::size_t k = 0; k < wanted.elements().size(); ++k)
    elements.push_back(with_layouts(make.element(i, static_cast<std::int64_t>(k)), wanted.elements()[k]));
  return make.tuple(elements);
}

// Lets the users of `i`, which has the layouts that bind, use a copy with a free layout. Elements of a tuple bind like it.
void convert_for_users(Instruction* i) {
  const Shape wanted = cleared(*i);
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
         !(cleared(i) == i.shape());
}

std::optional<Binding> binding_of(Instruction& i) {
  if (is(&i, Opcode::CustomCall)) {
    const auto& constraints = i.attr<hlo::CustomCallAttr>().operand_layouts;
    return Binding{&i, constraints ? *constraints : std::vector<Shape>()};
  }
  if (is(&i, Opcode::Bitcast)) return Binding{&i, {i.operand(0)->shape()}};
  if (changes_layout(i)) {
    const bool packed = hlo::packed_bits(i.shape()) != 0;
    return Binding{&i, packed ? std::vector<Shape>{hlo::unpacked(i.shape())} : std::vector<Shape>()};
  }
  return std::nullopt;
}

void clear(Instruction& i) {
  i.set_shape(cleared(i));
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

// What binds at the entry, by parameter number, and for its result. A scheduled module's instructions have it; else the
// module says it, and what it leaves open is row-major.
struct Entry {
  std::vector<Shape> parameters;
  Shape result;
};

Entry entry_of(const hlo::Module& module) {
  const hlo::Computation& entry = *module.entry();
  const hlo::ModuleConfig& config = module.config();
  const auto wanted = [&](const Instruction& i, const Shape* said) {
    if (config.is_scheduled) return i.shape();
    return said != nullptr && said->is_valid() && compatible(*said, i.shape()) ? entry_shape(*said) : row_major(i.shape());
  };
  Entry result;
  for (std::size_t n = 0; n < entry.parameters().size(); ++n)
    result.parameters.push_back(wanted(*entry.parameter(static_cast<std::int64_t>(n)),
                                       n < config.entry_parameters.size() ? &config.entry_parameters[n] : nullptr));
  result.result = wanted(*entry.root(), &config.entry_result);
  return result;
}

void bind_entry(hlo::Computation& entry, const Entry& wanted) {
  for (Instruction* p : entry.parameters()) {
    p->set_shape(wanted.parameters[static_cast<std::size_t>(p->parameter_number())]);
    convert_for_users(p);
  }
  entry.set_root(with_layouts(entry.root(), wanted.result));
}

// What may have any layout, and take operands of any: what binds, what reads its elements, and the copies between.
bool is_free(const Instruction& i) {
  if (is(&i, Opcode::GetTupleElement)) return is_free(*i.operand(0));
  const bool in_entry = i.parent() == i.module().entry();
  return is(&i, Opcode::Copy) || is(&i, Opcode::CustomCall) || is(&i, Opcode::Bitcast) ||
         (in_entry && (is(&i, Opcode::Parameter) || is(&i, Opcode::Tuple)));
}

bool has_clear_layout(const Instruction& i) { return cleared(i) == i.shape(); }

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
  if (is(&i, Opcode::Copy) && takes_two_copies(i.operand(0)->shape(), i.shape())) return false;
  return is_free(i) || (has_clear_layout(i) && std::ranges::all_of(i.operands(), [](const Instruction* o) {
           return has_clear_layout(*o);
         }));
}

// The pass has nothing to do: it would put copies behind the copies that are there.
bool is_clear(const hlo::Module& module) {
  for (const hlo::Computation& c : module.computations())
    if (!std::ranges::all_of(c.instructions(), [](const Instruction& i) { return is_clear(i); })) return false;
  const Entry wanted = entry_of(module);
  for (const Instruction* p : module.entry()->parameters())
    if (!(wanted.parameters[static_cast<std::size_t>(p->parameter_number())] == p->shape())) return false;
  return wanted.result == module.entry()->root()->shape();
}

}  // namespace

Expected<Changed> clear_layouts(hlo::Module& module) {
  if (is_clear(module)) return Changed::No;
  const std::uint64_t before = hlo::fingerprint(module);
  const Entry entry = entry_of(module);
  for (hlo::Computation& c : module.computations()) clear(c);
  bind_entry(*module.entry(), entry);
  if (module.config().is_scheduled)  // copies were added at the end
    for (hlo::Computation& c : module.computations()) c.sort();
  return hlo::fingerprint(module) == before ? Changed::No : Changed::Yes;
}

}  // namespace hloom::passes

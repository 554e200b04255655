// First all fusions are asked, then the constants: one that two kernels want in two orders, or that something else reads as well,
// would be there twice.
#include "compiler/pack_constants.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <span>
#include <unordered_set>
#include <vector>

#include "base/try.h"
#include "compiler/layout_bytes.h"
#include "hlo/panels.h"
#include "kernels/plan_dot.h"
#include "passes/make.h"

namespace hloom::compiler {
namespace {

using hlo::Computation;
using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using kernels::PanelOrder;
using passes::Make;

struct Reader {
  Instruction* fusion = nullptr;
  kernels::WantedPanels wanted;
};
using Readers = std::map<int, std::vector<Reader>>;  // by the constant's id

// A bitcast of whole buffers has the constant's bytes.
Instruction* constant_of(Instruction* operand) {
  while (operand->opcode() == Opcode::Bitcast && operand->shape().dtype() == operand->operand(0)->shape().dtype()) operand = operand->operand(0);
  return operand->opcode() == Opcode::Constant && operand->shape().is_array() ? operand : nullptr;
}

Expected<Readers> find_readers(hlo::Module& module, const kernels::VectorUnit& unit) {
  const auto calls = hlo::callers(module);
  Readers readers;
  for (Computation& computation : module.computations())
    for (Instruction& i : computation.instructions()) {
      if (i.opcode() != Opcode::Fusion || calls.at(i.called(0)).size() != 1) continue;
      std::vector<bool> is_constant;
      for (Instruction* operand : i.operands()) is_constant.push_back(constant_of(operand) != nullptr);
      if (std::ranges::find(is_constant, true) == is_constant.end() || !kernels::is_dot_fusion(i)) continue;
      const auto wanted = TRY(kernels::wanted_panels(i, is_constant, unit));
      if (wanted) readers[constant_of(i.operand(wanted->operand))->id()].push_back({&i, *wanted});
    }
  return readers;
}

// Uses of the constant's bytes, through bitcasts too.
std::int64_t num_uses(const Instruction& constant) {
  std::int64_t uses = constant.is_root() ? 1 : 0;
  for (const Instruction* user : constant.users()) uses += user->opcode() == Opcode::Bitcast ? num_uses(*user) : 1;
  return uses;
}

bool may_pack(const Instruction& constant, const std::vector<Reader>& readers) {
  constexpr std::int64_t kMostTwice = 1 << 20;
  const std::string order = to_string(readers[0].wanted.order);
  const bool as_one = std::ranges::all_of(readers, [&](const Reader& r) { return to_string(r.wanted.order) == order; });
  return constant.shape().size_bytes() <= kMostTwice || (as_one && num_uses(constant) == std::ssize(readers));
}

hlo::Literal panels_of(const Instruction& constant, const PanelOrder& order) {
  const hlo::Literal& literal = constant.literal();
  std::vector<std::byte> array;
  std::span<const std::byte> memory = literal.bytes();
  if (!constant.shape().layout().is_descending()) {
    array.resize(memory.size());
    store_literal(literal, constant.shape(), array);
    memory = array;
  }
  return hlo::Literal::from_bytes(Shape::array(literal.dtype(), order.dims()), packed(order, memory, byte_width(literal.dtype())));
}

Instruction* first(Make& make, Instruction* a, std::size_t dim, std::int64_t size) {
  const Dims& dims = a->shape().dims();
  hlo::SliceAttr slice{Dims(dims.size(), 0), dims, Dims(dims.size(), 1)};
  slice.limits[dim] = size;
  return make.slice(a, std::move(slice));
}

// Outer indices, the free one, steps: the panels without what fills them up.
Instruction* loops_of(Make& make, Instruction* panels, const PanelOrder& o) {
  Instruction* a = panels;
  if (o.together > 1) {
    a = make.transpose(a, {0, 1, 3, 2, 4});
    a = make.reshape(a, {o.num_outer(), o.num_panels() * o.lanes, o.pitch * o.together});
  } else {
    a = make.transpose(a, {0, 1, 3, 2});
    a = make.reshape(a, {o.num_outer(), o.num_panels() * o.lanes, o.pitch});
  }
  return first(make, first(make, a, 1, o.free.extent), 2, o.num_steps());
}

// The array in the order of its memory, then as its shape has it.
Instruction* unpacked(Make& make, Instruction* panels, const PanelOrder& o, const Shape& shape) {
  std::vector<PanelOrder::Axis> axes = o.outer;
  axes.push_back(o.free);
  axes.insert(axes.end(), o.sums.begin(), o.sums.end());
  Dims extents, by_memory(axes.size());
  for (std::size_t a = 0; a < axes.size(); ++a) extents.push_back(axes[a].extent), by_memory[a] = static_cast<std::int64_t>(a);
  const auto at = [&](std::int64_t a) -> const PanelOrder::Axis& { return axes[static_cast<std::size_t>(a)]; };
  std::ranges::stable_sort(by_memory, std::ranges::greater(), [&](std::int64_t a) { return at(a).extent == 1 ? 0 : std::abs(at(a).stride); });
  Instruction* a = make.transpose(make.reshape(loops_of(make, panels, o), extents), by_memory);
  Dims backwards;
  for (std::size_t d = 0; d < by_memory.size(); ++d)
    if (at(by_memory[d]).stride < 0 && at(by_memory[d]).extent > 1) backwards.push_back(static_cast<std::int64_t>(d));
  if (!backwards.empty()) {
    a = make.op(Opcode::Reverse, a->shape(), {a});
    a->set_dimensions(backwards);
  }
  const auto& minor_to_major = shape.layout().minor_to_major;
  Dims sizes, places(minor_to_major.size());
  for (std::size_t n = 0; n < minor_to_major.size(); ++n) {
    const std::int64_t d = minor_to_major[minor_to_major.size() - 1 - n];
    sizes.push_back(shape.dim(d));
    places[static_cast<std::size_t>(d)] = static_cast<std::int64_t>(n);
  }
  a = make.transpose(make.reshape(a, sizes), places);
  // Marked even where panels are the array as it was.
  a = make.op(Opcode::Copy, shape, {a});
  hlo::mark_panels(*a, to_string(o));
  return a;
}

void read_panels(Instruction& fusion, const kernels::WantedPanels& wanted, Instruction* panels) {
  Computation& body = *fusion.called(0);
  Instruction* parameter = body.parameter(wanted.operand);
  const Shape shape = parameter->shape();
  const std::vector<Instruction*> users = parameter->users();
  parameter->set_shape(panels->shape());
  Make make(*parameter, body);
  Instruction* array = unpacked(make, parameter, wanted.order, shape);
  for (Instruction* user : users)
    for (std::int64_t k = 0; k < user->num_operands(); ++k)
      if (user->operand(k) == parameter) user->replace_operand(k, array);
  body.sort();
  fusion.replace_operand(wanted.operand, panels);
}

// Whether nothing is left that reads it.
bool is_unused(const Instruction& i) {
  return i.users().empty() && !i.is_root() && (i.opcode() == Opcode::Constant || i.opcode() == Opcode::Bitcast);
}

}  // namespace

Expected<> pack_constants(hlo::Module& module, const base::Target& target) {
  const Readers all = TRY(find_readers(module, kernels::vector_unit(target)));
  std::unordered_set<Computation*> changed;
  for (const auto& [id, readers] : all) {
    Instruction* constant = constant_of(readers[0].fusion->operand(readers[0].wanted.operand));
    if (!may_pack(*constant, readers)) continue;
    std::map<std::string, Instruction*> made;
    for (const Reader& reader : readers) {
      Instruction*& panels = made[to_string(reader.wanted.order)];
      if (panels == nullptr) {
        Make make(*constant);
        panels = make.constant(panels_of(*constant, reader.wanted.order));
        module.rename(*panels, constant->name() + "_panels");
      }
      read_panels(*reader.fusion, reader.wanted, panels);
    }
    changed.insert(constant->parent());
  }
  for (Computation* c : changed) {
    c->remove_all(is_unused);
    c->sort();
  }
  return {};
}

}  // namespace hloom::compiler

#include "compiler/fit_layouts.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/build_collective.h"
#include "compiler/routines.h"
#include "library/lapack.h"

namespace hloom::compiler {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

// The shape with elements in this order, where the old one says.
Shape ordered(Shape array, const Layout& order) {
  Layout layout = array.layout();
  layout.minor_to_major = order.minor_to_major;
  array.set_layout(std::move(layout));
  return array;
}

Instruction* copied(Computation& c, Instruction* i, const Shape& shape) {
  if (i->shape() == shape) return i;
  Instruction* copy = c.add(Opcode::Copy, shape, {i}, i->name());
  copy->mutable_annotations().metadata = i->annotations().metadata;
  return copy;
}

bool fit_operand(Instruction& i, std::int64_t k, const Layout& order) {
  const Shape& shape = i.operand(k)->shape();
  if (!shape.is_array() || ordered(shape, order) == shape) return false;
  i.replace_operand(k, copied(*i.parent(), i.operand(k), ordered(shape, order)));
  return true;
}

// `i` as its users want it: with copies of its leaves in the layouts of `wanted`.
Instruction* converted(Computation& c, Instruction* i, const Shape& wanted) {
  if (!wanted.is_tuple()) return wanted.is_array() ? copied(c, i, wanted) : i;
  std::vector<Instruction*> elements;
  for (std::int64_t k = 0; k < std::ssize(wanted.elements()); ++k)
    elements.push_back(converted(c, c.add_get_tuple_element(i, k), wanted.element(k)));
  return c.add_tuple(elements);
}

bool fit_result(Instruction& i, Shape shape) {
  if (shape == i.shape()) return false;
  Computation& c = *i.parent();
  const Shape wanted = i.shape();
  const std::vector<Instruction*> users = i.users();
  const bool was_root = i.is_root();
  i.set_shape(std::move(shape));
  Instruction* with = converted(c, &i, wanted);
  for (Instruction* user : users)
    for (std::int64_t k = 0; k < user->num_operands(); ++k)
      if (user->operand(k) == &i) user->replace_operand(k, with);
  if (was_root) c.set_root(with);
  return true;
}

bool fit_row_major(Instruction& i) {
  bool fitted = false;
  for (std::int64_t k = 0; k < i.num_operands(); ++k)
    fitted |= fit_operand(i, k, Layout::descending(i.operand(k)->shape().rank()));
  return fit_result(i, ordered(i.shape(), Layout::descending(i.shape().rank()))) || fitted;
}

Expected<bool> fit_lapack(Instruction& i) {
  const auto layouts = library::lapack_layouts(custom_call_problem(i));
  if (!layouts) return fail(layouts.error().code(), i.name(), ": ", layouts.error().message());
  bool fitted = false;
  for (std::int64_t k = 0; k < i.num_operands(); ++k)
    fitted |= fit_operand(i, k, layouts->operands[static_cast<std::size_t>(k)]);
  Shape shape = i.shape();
  for (std::size_t k = 0; k < layouts->results.size(); ++k) {
    Shape& leaf = shape.is_tuple() ? shape.elements()[k] : shape;
    if (leaf.is_array()) leaf = ordered(leaf, layouts->results[k]);
  }
  fitted |= fit_result(i, std::move(shape));
  if (auto& constraints = i.mutable_attr<hlo::CustomCallAttr>().operand_layouts; fitted && constraints)
    for (std::int64_t k = 0; k < i.num_operands(); ++k) (*constraints)[static_cast<std::size_t>(k)] = i.operand(k)->shape();
  return fitted;
}

// The operands of a start are in its result as well; nobody but its done reads it.
void note_operands(Instruction& start) {
  Shape shape = start.shape();
  Shape& given = shape.elements()[0];
  for (std::int64_t k = 0; k < start.num_operands(); ++k)
    (given.is_tuple() ? given.elements()[static_cast<std::size_t>(k)] : given) = start.operand(k)->shape();
  start.set_shape(std::move(shape));
}

// An operand takes the layout of the result that is made of it.
bool fit_collective(Instruction& i) {
  bool fitted = false;
  const std::vector<const Shape*> results = leaves(i.shape());
  const std::vector<std::int64_t> written = written_leaves(i);
  for (std::int64_t k = 0; k < std::min(std::ssize(written), i.num_operands()); ++k) {
    const Shape result = *results[static_cast<std::size_t>(written[static_cast<std::size_t>(k)])];
    if (result.is_array()) fitted |= fit_operand(i, k, result.layout());
  }
  if (fitted && !written.empty() && written[0] != 0) note_operands(i);
  return fitted;
}

// Rows lie together in all three arrays.
bool fit_ragged(Instruction& i) {
  Layout order = i.shape().layout();
  if (order.minor_to_major.back() != 0) order = Layout::descending(i.shape().rank());
  bool fitted = false;
  for (const std::int64_t k : {0, 1}) fitted |= fit_operand(i, k, order);
  return fit_result(i, ordered(i.shape(), order)) || fitted;
}

Expected<bool> fit(Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Cholesky:
    case Opcode::Fft:
    case Opcode::TriangularSolve: return fit_row_major(i);
    case Opcode::CustomCall:
      if (library::is_lapack(i.attr<hlo::CustomCallAttr>().target)) return fit_lapack(i);
      return false;
    case Opcode::RaggedAllToAll: return fit_ragged(i);
    default: return is_collective(i) && fit_collective(i);
  }
}

}  // namespace

Expected<> fit_layouts(hlo::Module& module) {
  for (Computation& c : module.computations()) {
    bool fitted = false;
    for (Instruction* i : c.post_order()) {
      const bool one = TRY(fit(*i));
      fitted |= one;
    }
    if (fitted) c.sort();
  }
  return {};
}

}  // namespace hloom::compiler

// Control flow, structure, asynchronous forms, hlo-ops 10.
#include "hlo/infer_rules.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

std::vector<Shape> operand_shapes(const Instruction& i) {
  std::vector<Shape> shapes;
  for (const Instruction* operand : i.operands()) shapes.push_back(operand->shape());
  return shapes;
}

Expected<Shape> infer_get_tuple_element(const Instruction& i) {
  const Shape& s = i.operand(0)->shape();
  if (!s.is_tuple()) return wrong(i, "the operand must be a tuple, found ", s);
  const std::int64_t index = i.tuple_index();
  if (index < 0 || index >= static_cast<std::int64_t>(s.elements().size()))
    return wrong(i, "index ", index, " is not an element of ", s);
  return s.element(index);
}

Expected<Shape> infer_while(const Instruction& i) {
  const Shape& carried = i.operand(0)->shape();
  TRY(want_signature(i, *i.condition(), {carried}, Shape::scalar(DType::Pred)));
  TRY(want_signature(i, *i.body(), {carried}, carried));
  return carried;
}

Expected<Shape> infer_conditional(const Instruction& i) {
  const auto branches = static_cast<std::int64_t>(i.called().size());
  if (i.num_operands() != branches + 1)
    return wrong(i, "takes a selector and ", branches, " arguments, found ", i.num_operands(), " operands");
  const Shape& selector = i.operand(0)->shape();
  if (!selector.is_scalar() || !(selector.dtype() == DType::S32 || (selector.dtype() == DType::Pred && branches == 2)))
    return wrong(i, "the selector must be pred[] of two branches or s32[], found ", selector);
  const Shape& result = i.called(0)->root()->shape();
  for (std::int64_t k = 0; k < branches; ++k) TRY(want_signature(i, *i.called(k), {i.operand(k + 1)->shape()}, result));
  return result;
}

Expected<Shape> infer_call(const Instruction& i) {
  TRY(want_signature(i, *i.to_apply(), operand_shapes(i), Shape()));
  return i.to_apply()->root()->shape();
}

// ((operands), result, context…): the context is what is written.
Expected<Shape> infer_async_start(const Instruction& i) {
  TRY(want_signature(i, *i.to_apply(), operand_shapes(i), Shape()));
  std::vector<Shape> elements{Shape::tuple(operand_shapes(i)), i.to_apply()->root()->shape()};
  const Shape& written = i.shape();
  if (written.is_tuple())
    for (std::size_t k = 2; k < written.elements().size(); ++k) elements.push_back(written.elements()[k]);
  return Shape::tuple(std::move(elements));
}

Expected<> want_async_chain(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, i.opcode(), " needs an operand");
  const Instruction& before = *i.operand(0);
  const Shape& s = before.shape();
  const bool chained = before.opcode() == Opcode::AsyncStart || before.opcode() == Opcode::AsyncUpdate;
  if (chained && s.is_tuple() && s.elements().size() >= 2) return {};
  return wrong(i, "the operand must be async-start or async-update, found ", before.opcode(), " of ", s);
}

Expected<Shape> infer_after_all(const Instruction& i) {
  for (const Instruction* operand : i.operands())
    if (!operand->shape().is_token()) return wrong(i, "after-all takes tokens, found ", operand->shape());
  return Shape::token();
}

Expected<Shape> infer_add_dependency(const Instruction& i) {
  if (!i.operand(1)->shape().is_token()) return wrong(i, "operand 1 must be a token, found ", i.operand(1)->shape());
  return i.operand(0)->shape();
}

}  // namespace

Expected<Shape> infer_control(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Tuple: return Shape::tuple(operand_shapes(i));
    case Opcode::GetTupleElement: return infer_get_tuple_element(i);
    case Opcode::While: return infer_while(i);
    case Opcode::Conditional: return infer_conditional(i);
    case Opcode::Call:
    case Opcode::Fusion: return infer_call(i);
    case Opcode::AsyncStart: return infer_async_start(i);
    case Opcode::AsyncUpdate: TRY(want_async_chain(i)); return i.operand(0)->shape();
    case Opcode::AsyncDone: TRY(want_async_chain(i)); return i.operand(0)->shape().element(1);
    case Opcode::AfterAll: return infer_after_all(i);
    case Opcode::AddDependency: return infer_add_dependency(i);
    case Opcode::OptBarrier:
    case Opcode::Domain: return i.operand(0)->shape();
    default: return wrong(i, i.opcode(), " is no control flow");
  }
}

}  // namespace hloom::hlo

#include "passes/expand_narrow_matrices.h"

#include "base/try.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

Expected<Instruction*> widened(Instruction& i) {
  const DType type = i.shape().dtype();
  if (!is_floating(type) || bit_width(type) >= 32) return nullptr;
  Make make(i);
  std::vector<Instruction*> operands;
  for (Instruction* operand : i.operands()) operands.push_back(make.convert(operand, DType::F32));
  Instruction* wide = i.parent()->add_clone(i, operands, i.name());
  Shape shape = i.shape();
  wide->set_shape(Shape::array(DType::F32, shape.dims(), shape.layout()));
  return make.op(Opcode::Convert, std::move(shape), {wide});
}

}  // namespace

Expected<Changed> expand_narrow_matrices(hlo::Module& module) {
  auto changed = TRY(expand(module, Opcode::Cholesky, widened));
  const Changed solves = TRY(expand(module, Opcode::TriangularSolve, widened));
  return changed | solves;
}

}  // namespace hloom::passes

#include "compiler/leaves.h"

namespace hloom::compiler {

hlo::Literal take_value(const Shape& shape, std::span<const hlo::Literal>& leaves) {
  if (!shape.is_tuple()) {
    hlo::Literal leaf = leaves.front();
    leaves = leaves.subspan(1);
    return leaf;
  }
  std::vector<hlo::Literal> elements;
  for (const Shape& element : shape.elements()) elements.push_back(take_value(element, leaves));
  return hlo::Literal::tuple(std::move(elements));
}

std::vector<hlo::Literal> arguments_of(const hlo::Module& module, std::span<const hlo::Literal> leaves) {
  std::vector<hlo::Literal> values;
  for (const hlo::Instruction* p : module.entry()->parameters()) values.push_back(take_value(p->shape(), leaves));
  return values;
}

}  // namespace hloom::compiler

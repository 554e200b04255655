#include "buffers/leaf.h"

#include "buffers/values.h"

namespace hloom::buffers {

using hlo::Instruction;
using hlo::Opcode;

namespace {

Instruction* element(Instruction* tuple, std::int64_t k, Added& added) {
  if (tuple->opcode() == Opcode::Tuple) return tuple->operand(k);
  added.push_back(tuple->parent()->add_get_tuple_element(tuple, k));
  return added.back();
}

}  // namespace

Instruction* leaf_of(Instruction* whole, std::int64_t leaf, Added& added) {
  while (whole->shape().is_tuple()) {
    const Shape& shape = whole->shape();
    std::int64_t k = 0;
    for (std::int64_t count = num_leaves(shape.element(0)); leaf >= count; count = num_leaves(shape.element(k))) {
      leaf -= count;
      ++k;
    }
    whole = element(whole, k, added);
  }
  return whole;
}

Instruction* with_leaves(Instruction* whole, const std::map<std::int64_t, Instruction*>& replacements, Added& added) {
  if (replacements.empty()) return whole;
  if (!whole->shape().is_tuple()) return replacements.begin()->second;
  std::vector<Instruction*> elements;
  std::int64_t first = 0;
  for (std::int64_t k = 0; k < static_cast<std::int64_t>(whole->shape().elements().size()); ++k) {
    const std::int64_t count = num_leaves(whole->shape().element(k));
    std::map<std::int64_t, Instruction*> part;
    for (auto r = replacements.lower_bound(first); r != replacements.end() && r->first < first + count; ++r)
      part.emplace(r->first - first, r->second);
    elements.push_back(with_leaves(element(whole, k, added), part, added));
    first += count;
  }
  added.push_back(whole->parent()->add_tuple(std::move(elements), whole->name()));
  return added.back();
}

}  // namespace hloom::buffers

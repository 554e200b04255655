#include "passes/numbering.h"

#include <algorithm>

#include "passes/effects.h"
#include "passes/match.h"

namespace hloom::passes {
namespace {

void mix(std::size_t& h, std::size_t v) {
  h = (h ^ v) * 0x9E3779B97F4A7C15ull;
  h ^= h >> 29;
}

void mix_dims(std::size_t& h, const Dims& dims) {
  for (const std::int64_t d : dims) mix(h, static_cast<std::size_t>(d));
}

// Of the attributes that tell most apart; the rest is compared.
std::size_t hash_attributes(const hlo::Instruction& i) {
  std::size_t h = 0;
  if (const auto* a = i.attributes().get_if<hlo::ConstantAttr>()) {
    const auto bytes = a->literal.bytes();
    mix(h, std::hash<std::string_view>()({reinterpret_cast<const char*>(bytes.data()), bytes.size()}));
  } else if (const auto* slice = i.attributes().get_if<hlo::SliceAttr>()) {
    mix_dims(h, slice->starts), mix_dims(h, slice->limits);
  } else if (const auto* parameter = i.attributes().get_if<hlo::ParameterAttr>()) {
    mix(h, static_cast<std::size_t>(parameter->number));
  } else if (const auto* element = i.attributes().get_if<hlo::TupleElementAttr>()) {
    mix(h, static_cast<std::size_t>(element->index));
  } else if (const auto* compare = i.attributes().get_if<hlo::CompareAttr>()) {
    mix(h, static_cast<std::size_t>(compare->direction));
  }
  return h;
}

void mix_shape(std::size_t& h, const Shape& shape) {
  mix(h, static_cast<std::size_t>(shape.dtype()));
  mix_dims(h, shape.dims());
  for (const Shape& e : shape.elements()) mix_shape(h, e);
}

// What may change how an instruction is compiled or what it means, metadata and origin aside.
bool same_annotations(const hlo::Instruction& a, const hlo::Instruction& b) {
  if (!a.has_annotations() && !b.has_annotations()) return true;
  const hlo::Annotations &x = a.annotations(), &y = b.annotations();
  return x.frontend_attributes == y.frontend_attributes && x.backend_config == y.backend_config &&
         x.decisions == y.decisions && x.sharding == y.sharding && x.result_accuracy == y.result_accuracy;
}

}  // namespace

std::size_t Numbering::hash(const hlo::Instruction& i, const std::vector<int>& operands) const {
  std::size_t h = static_cast<std::size_t>(i.opcode());
  mix_shape(h, i.shape());
  mix_dims(h, i.dimensions());
  for (const int o : operands) mix(h, static_cast<std::size_t>(o));
  mix(h, hash_attributes(i));
  return h;
}

bool Numbering::same(const hlo::Instruction& a, const hlo::Instruction& b) const {
  const auto class_of = [&](const hlo::Computation* c) { return classes_.first_like(c); };
  return a.opcode() == b.opcode() && a.shape() == b.shape() && a.dimensions() == b.dimensions() &&
         a.attributes() == b.attributes() && std::ranges::equal(a.called(), b.called(), {}, class_of, class_of) &&
         same_annotations(a, b);
}

Numbering::Numbered Numbering::number(hlo::Instruction& i, std::vector<int> operands) {
  if (is_commutative(i)) std::ranges::sort(operands);
  const std::size_t h = hash(i, operands);
  const auto [begin, end] = entries_.equal_range(h);
  for (auto it = begin; it != end; ++it)
    if (it->second.operands == operands && same(*it->second.instruction, i))
      return {it->second.number, it->second.instruction};
  const int number = fresh();
  entries_.emplace(h, Entry{&i, std::move(operands), number});
  return {number, &i};
}

// All computations share one numbering, in which parameters of the same number and shape are equal; then a computation
// is its root's number and its parameters' shapes. Callees come first, so that their classes are known.
ComputationClasses::ComputationClasses(const hlo::Module& module) {
  Effects effects;
  Numbering numbering(*this);
  std::unordered_map<int, std::vector<hlo::Computation*>> by_root;
  for (hlo::Computation& c : module.computations()) {
    first_.emplace(&c, &c);
    if (effects.of(c)) continue;
    std::unordered_map<const hlo::Instruction*, int> numbers;
    for (hlo::Instruction* i : c.post_order()) {
      std::vector<int> operands;
      for (const hlo::Instruction* o : i->operands()) operands.push_back(numbers.at(o));
      numbers.emplace(i, numbering.number(*i, std::move(operands)).number);
    }
    auto& candidates = by_root[numbers.at(c.root())];
    const auto same_signature = [&](const hlo::Computation* other) {
      return other->execution_thread() == c.execution_thread() &&
             std::ranges::equal(other->parameters(), c.parameters(), {}, &hlo::Instruction::shape,
                                &hlo::Instruction::shape);
    };
    const auto found = std::ranges::find_if(candidates, same_signature);
    if (found != candidates.end())
      first_[&c] = *found;
    else
      candidates.push_back(&c);
  }
}

}  // namespace hloom::passes

#include "generate/reducers.h"

#include <cmath>
#include <cstring>
#include <limits>

#include "generate/literals.h"
#include "hlo/narrow_float.h"

namespace hloom::generate {
namespace {

using hlo::Computation;

/// The one of this key, made by `build` when first asked for.
template <typename Build>
Computation* shared(Scope& s, const std::string& key, const Build& build) {
  Computation*& made = s.draw().reducers[key];
  if (made == nullptr) {
    made = s.module().add_computation(key);
    build(*made);
  }
  return made;
}

Opcode opcode_of(Combiner c) {
  switch (c) {
    case Combiner::Add: return Opcode::Add;
    case Combiner::Multiply: return Opcode::Multiply;
    case Combiner::Maximum: return Opcode::Maximum;
    case Combiner::Minimum: return Opcode::Minimum;
    case Combiner::And: return Opcode::And;
    case Combiner::Or: return Opcode::Or;
    case Combiner::Replace: break;
  }
  return Opcode::Copy;
}

Instruction* compare(Computation& c, Instruction* a, Instruction* b, hlo::Direction direction,
                     bool total_order = false) {
  Instruction* i = c.add(Opcode::Compare, Shape::scalar(DType::Pred), {a, b});
  auto& attr = i->mutable_attr<hlo::CompareAttr>();
  const DType type = a->shape().dtype();
  attr.direction = direction;
  attr.type = is_signed(type)                            ? hlo::Comparison::Signed
              : is_unsigned(type) || type == DType::Pred ? hlo::Comparison::Unsigned
              : total_order                              ? hlo::Comparison::TotalOrder
                                                         : hlo::Comparison::Float;
  return i;
}

}  // namespace

Combiner draw_combiner(Scope& s, DType type, bool overwrite) {
  if (overwrite && s.random().chance(30)) return Combiner::Replace;
  if (type == DType::Pred) return s.random().of({Combiner::And, Combiner::Or});
  if (s.random().chance(60)) return Combiner::Add;
  if (is_complex(type)) return Combiner::Add;
  if (is_floating(type)) return s.random().of({Combiner::Maximum, Combiner::Minimum, Combiner::Multiply});
  return s.random().of({Combiner::Maximum, Combiner::Minimum, Combiner::Multiply, Combiner::And, Combiner::Or});
}

Computation* reducer(Scope& s, Combiner combiner, DType type) {
  const std::string key = "combine_" + std::string(hlo::name(opcode_of(combiner))) + "_" + std::string(name(type));
  return shared(s, key, [&](Computation& c) {
    Instruction* a = c.add_parameter(0, Shape::scalar(type), "a");
    Instruction* b = c.add_parameter(1, Shape::scalar(type), "b");
    c.set_root(combiner == Combiner::Replace ? b : c.add(opcode_of(combiner), Shape::scalar(type), {a, b}));
  });
}

Computation* argmax_reducer(Scope& s, DType value, DType index, bool minimum) {
  const std::string key =
      std::string(minimum ? "argmin_" : "argmax_") + std::string(name(value)) + "_" + std::string(name(index));
  return shared(s, key, [&](Computation& c) {
    Instruction* a = c.add_parameter(0, Shape::scalar(value), "a");
    Instruction* i = c.add_parameter(1, Shape::scalar(index), "i");
    Instruction* b = c.add_parameter(2, Shape::scalar(value), "b");
    Instruction* j = c.add_parameter(3, Shape::scalar(index), "j");
    const Shape pred = Shape::scalar(DType::Pred);
    Instruction* better = compare(c, a, b, minimum ? hlo::Direction::Lt : hlo::Direction::Gt);
    Instruction* wins = c.add(Opcode::Or, pred, {better, compare(c, a, a, hlo::Direction::Ne)});
    Instruction* tie =
        c.add(Opcode::And, pred, {compare(c, a, b, hlo::Direction::Eq), compare(c, i, j, hlo::Direction::Lt)});
    Instruction* earlier = c.add(Opcode::Or, pred, {wins, tie});
    Instruction* v = c.add(Opcode::Select, Shape::scalar(value), {wins, a, b});
    Instruction* k = c.add(Opcode::Select, Shape::scalar(index), {earlier, i, j});
    c.set_root(c.add_tuple({v, k}));
  });
}

Computation* comparator(Scope& s, const std::vector<DType>& operands, bool total_order, bool greater) {
  std::string key = std::string(greater ? "greater" : "less") + (total_order ? "_total" : "");
  for (const DType t : operands) key += "_" + std::string(name(t));
  return shared(s, key, [&](Computation& c) {
    std::vector<Instruction*> scalars;
    for (std::size_t n = 0; n < 2 * operands.size(); ++n)
      scalars.push_back(c.add_parameter(static_cast<std::int64_t>(n), Shape::scalar(operands[n / 2]), "x"));
    c.set_root(compare(c, scalars[0], scalars[1], greater ? hlo::Direction::Gt : hlo::Direction::Lt, total_order));
  });
}

Computation* selector(Scope& s, DType type) {
  return shared(s, "at_least_" + std::string(name(type)), [&](Computation& c) {
    Instruction* a = c.add_parameter(0, Shape::scalar(type), "a");
    Instruction* b = c.add_parameter(1, Shape::scalar(type), "b");
    c.set_root(compare(c, a, b, hlo::Direction::Ge));
  });
}

Instruction* neutral(Scope& s, Combiner combiner, DType type) {
  if (combiner == Combiner::Add || combiner == Combiner::Or || combiner == Combiner::Replace) return s.scalar(type, 0);
  if (combiner == Combiner::Multiply) return s.scalar(type, 1);
  if (combiner == Combiner::And) return s.scalar(type, type == DType::Pred ? 1 : -1);
  hlo::Literal literal = number(type, 0);
  const bool lowest = combiner == Combiner::Maximum;
  if (is_floating(type)) {
    const hlo::FloatFormat& f = hlo::float_format(type);
    if (!f.has_infinity()) return s.scalar(type, lowest ? -100 : 100);
    const double infinity = lowest ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
    std::uint64_t bits = hlo::encode_float(f, infinity);
    std::memcpy(literal.mutable_bytes().data(), &bits, static_cast<std::size_t>(byte_width(type)));
    return s.keep(s.computation().add_constant(literal), 0);
  }
  return s.scalar(type, is_unsigned(type) ? (lowest ? 0 : 7) : (lowest ? -8 : 7));
}

}  // namespace hloom::generate

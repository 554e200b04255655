#include "passes/expand_rng.h"

#include <algorithm>
#include <unordered_map>

#include "base/try.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

hlo::Literal f64(double value) {
  hlo::Literal literal(Shape::scalar(DType::F64));
  literal.mutable_data<double>()[0] = value;
  return literal;
}

DType unsigned_of(DType type) {
  switch (bit_width(type)) {
    case 4: return DType::U4;
    case 8: return DType::U8;
    case 16: return DType::U16;
    case 32: return DType::U32;
    default: return DType::U64;
  }
}

/// The numbers of one rng.
class Numbers {
 public:
  explicit Numbers(Instruction& i) : make_(i), dims_(i.shape().dims()), type_(i.shape().dtype()), a_(i.operand(0)),
                                     b_(i.operand(1)), count_(i.shape().num_elements()) {}

  // In [a, b); a where that is empty.
  Instruction* uniform_integers() {
    const DType wide = is_signed(type_) ? DType::S64 : DType::U64;
    Instruction *a = make_.convert(a_, wide), *b = make_.convert(b_, wide);
    Instruction* empty = make_.compare(hlo::Direction::Le, b, a);
    Instruction* size = make_.convert(make_.binary(Opcode::Subtract, b, a), DType::U64);
    Instruction* offset = make_.convert(make_.binary(Opcode::Remainder, words(1, 0), spread(size)), wide);
    Instruction* x = make_.binary(Opcode::Add, spread(a), offset);
    return make_.convert(make_.select(spread(empty), spread(a), x), type_);
  }

  // a + (b - a) · unit. Rounding may reach b, which does not belong: then it is the number below, or a.
  Instruction* uniform_floats() {
    Instruction *a = make_.convert(a_, DType::F64), *b = make_.convert(b_, DType::F64);
    Instruction* width = make_.binary(Opcode::Subtract, b, a);
    Instruction* x = make_.binary(Opcode::Add, spread(a), make_.binary(Opcode::Multiply, spread(width), unit(1, 0)));
    x = make_.convert(x, type_);
    Instruction* last = make_.binary(Opcode::Maximum, a_, below(b_));
    return make_.select(make_.compare(hlo::Direction::Ge, x, spread(b_)), spread(last), x);
  }

  // a + b · normal, by Box and Muller.
  Instruction* normal() {
    Instruction *a = make_.convert(a_, DType::F64), *b = make_.convert(b_, DType::F64);
    Instruction* log = make_.unary(Opcode::LogPlusOne, make_.unary(Opcode::Negate, unit(2, 0)));
    Instruction* radius = make_.unary(Opcode::Sqrt, make_.binary(Opcode::Multiply, number(-2), log));
    Instruction* angle = make_.binary(Opcode::Multiply, number(2 * 3.14159265358979323846), unit(2, 1));
    Instruction* x = make_.binary(Opcode::Multiply, radius, make_.unary(Opcode::Cosine, angle));
    x = make_.binary(Opcode::Add, spread(a), make_.binary(Opcode::Multiply, spread(b), x));
    return make_.convert(x, type_);
  }

 private:
  Instruction* spread(Instruction* scalar) { return make_.broadcast_scalar(scalar, dims_); }
  Instruction* number(double value) { return make_.splat(f64(value), dims_); }

  // Word `word` of the `per_element` that each element takes.
  Instruction* words(std::int64_t per_element, std::int64_t word) {
    if (bits_ == nullptr) bits_ = draw(per_element);
    Instruction* own = make_.slice(bits_, {{0, word}, {count_, word + 1}, {1, 1}});
    return make_.reshape(own, dims_);
  }

  Instruction* draw(std::int64_t per_element) {
    Instruction* state = make_.op(Opcode::RngGetAndUpdateState, Shape::array(DType::U64, {2}), {});
    state->mutable_attr<hlo::RngStateAttr>().delta = (count_ * per_element + 1) / 2;
    Instruction* key = make_.integer(DType::U64, 0, {1});
    Instruction* counter = make_.op(Opcode::Concatenate, Shape::array(DType::U64, {3}), {key, state});
    counter->set_dimensions({0});
    const Shape bits = Shape::array(DType::U64, {count_, per_element});
    Instruction* drawn = make_.op(Opcode::RngBitGenerator, Shape::tuple({counter->shape(), bits}), {counter});
    drawn->mutable_attr<hlo::RngBitsAttr>().algorithm = hlo::RngAlgorithm::Philox;
    return make_.element(drawn, 1);
  }

  // In [0, 1): the upper 53 bits.
  Instruction* unit(std::int64_t per_element, std::int64_t word) {
    Instruction* high = make_.binary(Opcode::ShiftRightLogical, words(per_element, word), make_.integer(DType::U64, 11, dims_));
    return make_.binary(Opcode::Multiply, make_.convert(high, DType::F64), number(0x1p-53));
  }

  // The next smaller number: of a positive one the bits less one, of a negative one more; below zero the smallest.
  Instruction* below(Instruction* x) {
    const DType bits_type = unsigned_of(type_);
    const std::uint64_t top = std::uint64_t{1} << (bit_width(type_) - 1);
    const auto sign = static_cast<std::int64_t>(top), magnitudes = static_cast<std::int64_t>(top - 1);
    Instruction* bits = make_.op(Opcode::BitcastConvert, Shape::scalar(bits_type), {x});
    Instruction* one = make_.integer(bits_type, 1);
    Instruction* is_negative = make_.compare(hlo::Direction::Ge, bits, make_.integer(bits_type, sign));
    Instruction* next = make_.select(is_negative, make_.binary(Opcode::Add, bits, one),
                                     make_.binary(Opcode::Subtract, bits, one));
    Instruction* magnitude = make_.binary(Opcode::And, bits, make_.integer(bits_type, magnitudes));
    Instruction* is_zero = make_.compare(hlo::Direction::Eq, magnitude, make_.integer(bits_type, 0));
    next = make_.select(is_zero, make_.integer(bits_type, sign | 1), next);
    return make_.op(Opcode::BitcastConvert, Shape::scalar(type_), {next});
  }

  Make make_;
  Dims dims_;
  DType type_;
  Instruction *a_, *b_, *bits_ = nullptr;
  std::int64_t count_;
};

Expected<Instruction*> numbers(Instruction& i) {
  const DType type = i.shape().dtype();
  const bool normal = i.attr<hlo::RngAttr>().distribution == hlo::Distribution::Normal;
  if (is_floating(type)) return normal ? Numbers(i).normal() : Numbers(i).uniform_floats();
  return normal || !is_integral(type) ? nullptr : Numbers(i).uniform_integers();
}

/// Which computations read the state.
class Readers {
 public:
  bool of(const hlo::Computation& c) {
    if (const auto found = known_.find(&c); found != known_.end()) return found->second;
    const bool reads = std::ranges::any_of(c.instructions(), [&](const Instruction& i) { return of(i); });
    return known_[&c] = reads;
  }
  bool of(const Instruction& i) {
    return is(&i, Opcode::RngGetAndUpdateState) ||
           std::ranges::any_of(i.called(), [&](const hlo::Computation* c) { return of(*c); });
  }

 private:
  std::unordered_map<const hlo::Computation*, bool> known_;
};

bool has_predecessor(const Instruction& i, const Instruction* before) {
  const auto& all = i.control_predecessors();
  return std::ranges::find(all, before) != all.end();
}

Changed chain(hlo::Computation& computation, Readers& readers) {
  auto changed = Changed::No;
  Instruction* last = nullptr;
  for (Instruction* i : computation.post_order()) {
    if (!readers.of(*i)) continue;
    if (last != nullptr && !has_predecessor(*i, last)) {
      i->add_control_predecessor(last);
      changed = Changed::Yes;
    }
    last = i;
  }
  return changed;
}

}  // namespace

Expected<Changed> expand_rng(hlo::Module& module) {
  auto changed = TRY(expand(module, Opcode::Rng, numbers));
  Readers readers;
  for (hlo::Computation& c : module.computations())
    if (readers.of(c)) changed |= chain(c, readers);
  return changed;
}

}  // namespace hloom::passes

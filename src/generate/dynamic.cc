// Arrays with run-time sizes, for a few steps: what others see of them has all its elements.
#include <algorithm>
#include <array>

#include "generate/reducers.h"
#include "generate/scope.h"
#include "hlo/infer_shape.h"

namespace hloom::generate {
namespace {

// As Scope::add(), but nobody else picks it.
Instruction* add_unseen(Scope& s, Opcode opcode, std::vector<Instruction*> operands, const std::function<void(Instruction&)>& set = {}) {
  for (const Instruction* operand : operands)
    if (operand == nullptr) return nullptr;
  Instruction* root = s.computation().root();
  Instruction* i = s.computation().add(opcode, {}, std::move(operands));
  if (set) set(*i);
  auto shape = hlo::infer_shape(*i);
  if (!shape || shape->num_elements() > 4 * s.draw().max_elements) {
    s.computation().set_root(root);
    s.computation().remove(i);
    return nullptr;
  }
  i->set_shape(*std::move(shape));
  return i;
}

// The first elements of a dimension; how many is known when it runs.
Instruction* with_size(Scope& s, Instruction* x, std::int64_t d) {
  Instruction* size = s.pick([](const Instruction& i) { return i.shape() == Shape::scalar(DType::S32); });
  if (size == nullptr || s.random().chance(40)) size = s.scalar(DType::S32, s.random().pick(0, x->shape().dim(d)));
  size = s.add(Opcode::Clamp, {s.scalar(DType::S32, 0), size, s.scalar(DType::S32, x->shape().dim(d))});
  return add_unseen(s, Opcode::SetDimensionSize, {x, size}, [&](Instruction& i) { i.set_dimensions({d}); });
}

Instruction* padded(Scope& s, Instruction* y) {
  return add_unseen(s, Opcode::Pad, {y, s.scalar(y->shape().dtype(), 1)}, [&](Instruction& i) {
    for (std::int64_t d = 0; d < y->shape().rank(); ++d) {
      const bool pads = s.random().chance(50);
      i.mutable_attr<hlo::PadAttr>().dims.push_back(
          pads ? hlo::PadDim{s.random().pick(0, 3), s.random().pick(0, 3), s.random().pick(0, 1)} : hlo::PadDim{});
    }
  });
}

Instruction* next(Scope& s, Instruction* y) {
  const std::int64_t rank = y->shape().rank(), d = s.random().pick(0, rank - 1);
  switch (s.random().pick(0, 4)) {
    case 0: return add_unseen(s, Opcode::Reverse, {y}, [&](Instruction& i) { i.set_dimensions({d}); });
    case 1: {
      Dims order = iota(rank);
      s.random().shuffle(order);
      return add_unseen(s, Opcode::Transpose, {y}, [&](Instruction& i) { i.set_dimensions(order); });
    }
    case 2: return add_unseen(s, Opcode::Concatenate, {y, y}, [&](Instruction& i) { i.set_dimensions({d}); });
    case 3: return padded(s, y);
    default: break;
  }
  const bool complex = is_complex(y->shape().dtype());
  Instruction* other = with_size(s, s.make(y->shape().dtype(), y->shape().dims()), d);
  if (complex || other == nullptr) return nullptr;
  Instruction* size_of_y = add_unseen(s, Opcode::GetDimensionSize, {y}, [&](Instruction& i) { i.set_dimensions({d}); });
  s.keep(size_of_y, kUnbounded);
  if (other->shape() != y->shape()) return nullptr;
  return add_unseen(s, Opcode::Maximum, {y, other});
}

// The first of what is there, zeros behind it; or what all of it is together.
bool end(Scope& s, Instruction* y, Combiner combiner, double bound) {
  Dims dynamic;
  for (std::int64_t d = 0; d < y->shape().rank(); ++d)
    if (y->shape().is_dynamic_dim(d)) dynamic.push_back(d);
  if (s.random().chance(30) && !dynamic.empty()) {
    hlo::SliceAttr attr;
    for (std::int64_t d = 0; d < y->shape().rank(); ++d) {
      const std::int64_t n = y->shape().dim(d);
      attr.starts.push_back(0), attr.strides.push_back(1);
      attr.limits.push_back(y->shape().is_dynamic_dim(d) && n > 0 ? s.random().pick(0, n - 1) : n);
    }
    Instruction* part = add_unseen(s, Opcode::Slice, {y}, [&](Instruction& i) { i.set_attributes(attr); });
    if (part != nullptr && !part->shape().has_dynamic_dims()) return s.keep(part, std::max(bound, 0.0)) != nullptr;
  }
  const DType type = y->shape().dtype();
  Instruction* r = add_unseen(s, Opcode::Reduce, {y, neutral(s, combiner, type)}, [&](Instruction& i) {
    i.set_dimensions(dynamic);
    i.set_called({reducer(s, combiner, type)});
  });
  return s.keep(r, combiner == Combiner::Maximum || combiner == Combiner::Minimum ? bound : kUnbounded) != nullptr;
}

bool draw_dynamic(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0 && i.shape().rank() < 5; });
  if (x == nullptr) return false;
  const Combiner combiner = draw_combiner(s, x->shape().dtype(), false);
  // Padding, and each of up to four joins, may double what is summed.
  if (combiner == Combiner::Add) x = s.tame(x, 4096);
  if (x == nullptr) return false;
  Instruction* y = with_size(s, x, s.random().pick(0, x->shape().rank() - 1));
  for (std::int64_t n = s.random().pick(0, 3); n > 0 && y != nullptr; --n)
    if (Instruction* z = next(s, y); z != nullptr) y = z;
  return y != nullptr && end(s, y, combiner, std::max(s.bound(x), 4.0));
}

constexpr std::array kFamilies = {Family{1, draw_dynamic}};

}  // namespace

std::span<const Family> dynamic_families() { return kFamilies; }

}  // namespace hloom::generate

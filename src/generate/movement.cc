// What moves elements by places that are known.
#include <algorithm>
#include <array>

#include "generate/scope.h"

namespace hloom::generate {
namespace {

bool has_dims(const Instruction& i) { return i.shape().rank() > 0; }

bool draw_broadcast(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  Dims dims = x->shape().dims(), places = iota(x->shape().rank());
  const std::int64_t more = s.random().pick(x->shape().is_scalar() ? 1 : 0, 2);
  for (std::int64_t n = 0; n < more && dims.size() < 5; ++n) {
    const auto at = s.random().pick(0, static_cast<std::int64_t>(dims.size()));
    dims.insert(dims.begin() + at, s.dims(1)[0]);
    for (std::int64_t& p : places) p += p >= at ? 1 : 0;
  }
  if (count(dims) > s.draw().max_elements) return false;
  Instruction* b = s.add(
      Opcode::Broadcast, {x}, [&](Instruction& i) { i.set_dimensions(places); },
      Shape::array(x->shape().dtype(), dims));
  return s.keep(b, s.bound(x)) != nullptr;
}

// Another way to cut the same number of elements.
Dims refactor(Scope& s, std::int64_t n) {
  if (n == 0) return s.random().chance(50) ? Dims{0} : Dims{s.random().pick(1, 4), 0};
  Dims dims;
  for (int tries = 0; tries < 4 && n > 1; ++tries) {
    const std::int64_t f = s.random().of({1, 2, 2, 3, 4, 5, 7, 8, 11, 16});
    if (n % f == 0) {
      dims.push_back(f);
      n /= f;
    }
  }
  if (n > 1 || dims.empty()) dims.push_back(n);
  s.random().shuffle(dims);
  return dims;
}

bool draw_reshape(Scope& s) {
  Instruction* x = s.pick();
  if (x == nullptr) return false;
  Dims dims = refactor(s, count(x->shape().dims()));
  if (dims == Dims{1} && s.random().chance(50)) dims.clear();
  Instruction* r = s.add(Opcode::Reshape, {x}, {}, Shape::array(x->shape().dtype(), dims));
  return s.keep(r, s.bound(x)) != nullptr;
}

bool draw_transpose(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 1; });
  if (x == nullptr) return false;
  Dims order = iota(x->shape().rank());
  s.random().shuffle(order);
  Instruction* t = s.add(Opcode::Transpose, {x}, [&](Instruction& i) { i.set_dimensions(order); });
  return s.keep(t, s.bound(x)) != nullptr;
}

bool draw_slice(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  hlo::SliceAttr attr;
  for (const std::int64_t n : x->shape().dims()) {
    std::int64_t start = s.random().pick(0, n), limit = s.random().pick(0, n);
    if (start > limit) std::swap(start, limit);
    if (start == limit && n > 0 && s.random().chance(90)) start = 0, limit = n;
    if (s.random().chance(40)) start = 0, limit = n;
    attr.starts.push_back(start);
    attr.limits.push_back(limit);
    attr.strides.push_back(s.random().chance(75) ? 1 : s.random().pick(2, 4));
  }
  Instruction* r = s.add(Opcode::Slice, {x}, [&](Instruction& i) { i.mutable_attr<hlo::SliceAttr>() = attr; });
  return s.keep(r, s.bound(x)) != nullptr;
}

bool draw_pad(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  hlo::PadAttr attr;
  for (std::int64_t d = 0; d < x->shape().rank(); ++d) {
    const bool touched = s.random().chance(60);
    const std::int64_t from = s.random().chance(30) ? -2 : 0;
    attr.dims.push_back({touched ? s.random().pick(from, 3) : 0, touched ? s.random().pick(from, 3) : 0,
                         s.random().chance(15) ? s.random().pick(1, 2) : 0});
  }
  Instruction* value = s.scalar(x->shape().dtype(), s.random().chance(60) ? 0 : s.random().pick(-2, 7));
  Instruction* r = s.add(Opcode::Pad, {x, value}, [&](Instruction& i) { i.mutable_attr<hlo::PadAttr>() = attr; });
  return s.keep(r, std::max(s.bound(x), s.bound(value))) != nullptr;
}

bool draw_concatenate(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  const std::int64_t along = s.random().pick(0, x->shape().rank() - 1);
  std::vector<Instruction*> operands{x};
  double bound = s.bound(x);
  const std::int64_t number = s.random().chance(10) ? s.random().pick(5, 12) : s.random().pick(1, 4);
  for (std::int64_t n = 1; n < number; ++n) {
    Instruction* y = s.pick([&](const Instruction& i) {
      if (i.shape().dtype() != x->shape().dtype() || i.shape().rank() != x->shape().rank()) return false;
      Dims dims = i.shape().dims();
      dims[static_cast<std::size_t>(along)] = x->shape().dim(along);
      return dims == x->shape().dims();
    });
    if (y == x || s.random().chance(40)) {
      Dims dims = x->shape().dims();
      dims[static_cast<std::size_t>(along)] = s.random().pick(0, 5);
      y = s.make(x->shape().dtype(), dims);
    }
    if (y == nullptr) return false;
    operands.push_back(y);
    bound = std::max(bound, s.bound(y));
  }
  s.random().shuffle(operands);
  Instruction* r = s.add(Opcode::Concatenate, operands, [&](Instruction& i) { i.set_dimensions({along}); });
  return s.keep(r, bound) != nullptr;
}

// The end put before the beginning, as jnp.roll is lowered.
bool draw_roll(Scope& s) {
  Instruction* x = s.pick([](const Instruction& i) { return i.shape().rank() > 0 && count(i.shape().dims()) > 1; });
  if (x == nullptr) return false;
  const std::int64_t along = s.random().pick(0, x->shape().rank() - 1), n = x->shape().dim(along);
  const std::int64_t cut = s.random().pick(0, n);
  const auto part = [&](std::int64_t from, std::int64_t to) {
    return s.add(Opcode::Slice, {x}, [&](Instruction& i) {
      auto& attr = i.mutable_attr<hlo::SliceAttr>();
      attr.starts.assign(static_cast<std::size_t>(x->shape().rank()), 0);
      attr.limits = x->shape().dims();
      attr.strides.assign(static_cast<std::size_t>(x->shape().rank()), 1);
      attr.starts[static_cast<std::size_t>(along)] = from;
      attr.limits[static_cast<std::size_t>(along)] = to;
    });
  };
  Instruction* tail = s.keep(part(cut, n), s.bound(x));
  Instruction* head = s.keep(part(0, cut), s.bound(x));
  Instruction* r = s.add(Opcode::Concatenate, {tail, head}, [&](Instruction& i) { i.set_dimensions({along}); });
  return s.keep(r, s.bound(x)) != nullptr;
}

bool draw_reverse(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  Dims dims;
  for (std::int64_t d = 0; d < x->shape().rank(); ++d)
    if (s.random().chance(60)) dims.push_back(d);
  Instruction* r = s.add(Opcode::Reverse, {x}, [&](Instruction& i) { i.set_dimensions(dims); });
  return s.keep(r, s.bound(x)) != nullptr;
}

bool draw_iota(Scope& s) {
  const DType type = s.random().chance(70) ? DType::S32 : s.type();
  if (type == DType::Pred) return false;
  const Dims dims = s.dims(s.random().pick(1, 3));
  const std::int64_t along = s.random().pick(0, static_cast<std::int64_t>(dims.size()) - 1);
  Instruction* r = s.add(
      Opcode::Iota, {}, [&](Instruction& i) { i.mutable_attr<hlo::IotaAttr>().dimension = along; },
      Shape::array(type, dims));
  return s.keep(r, static_cast<double>(dims[static_cast<std::size_t>(along)])) != nullptr;
}

bool draw_new(Scope& s) { return s.make_new(s.type(), s.dims(s.random().pick(0, 4))) != nullptr; }

bool draw_barrier(Scope& s) {
  Instruction* x = s.pick();
  return s.keep(s.add(Opcode::OptBarrier, {x}), x == nullptr ? 0 : s.bound(x)) != nullptr;
}

constexpr std::array kFamilies = {
    Family{40, draw_broadcast}, Family{30, draw_reshape},     Family{18, draw_transpose}, Family{30, draw_slice},
    Family{14, draw_pad},       Family{18, draw_concatenate}, Family{6, draw_roll},       Family{10, draw_reverse},
    Family{10, draw_iota},      Family{14, draw_new},         Family{2, draw_barrier},
};

}  // namespace

std::span<const Family> movement_families() { return kFamilies; }

}  // namespace hloom::generate

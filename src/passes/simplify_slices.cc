#include <algorithm>

#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

std::int64_t last_read(const hlo::SliceAttr& a, std::int64_t d, std::int64_t size) {
  return a.starts[at(d)] + (size - 1) * a.strides[at(d)];
}

hlo::SliceAttr whole(const Shape& shape) {
  const Dims zeros(at(shape.rank()), 0), ones(at(shape.rank()), 1);
  return {zeros, shape.dims(), ones};
}

Instruction* slice_of_slice(Instruction& i) {
  const auto &outer = i.attr<hlo::SliceAttr>(), &inner = i.operand(0)->attr<hlo::SliceAttr>();
  hlo::SliceAttr both;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    const std::int64_t size = i.shape().dim(d);
    both.starts.push_back(inner.starts[at(d)] + outer.starts[at(d)] * inner.strides[at(d)]);
    both.strides.push_back(inner.strides[at(d)] * outer.strides[at(d)]);
    both.limits.push_back(both.starts.back() + (size == 0 ? 0 : (size - 1) * both.strides.back() + 1));
    if (size == 0) both.starts.back() = both.limits.back() = 0;
  }
  return Make(i).slice(i.operand(0)->operand(0), std::move(both));
}

Instruction* slice_of_broadcast(Instruction& i) {
  const Instruction* spread = i.operand(0);
  Instruction* x = spread->operand(0);
  const auto& a = i.attr<hlo::SliceAttr>();
  hlo::SliceAttr inner;
  for (const std::int64_t d : spread->dimensions()) {
    inner.starts.push_back(a.starts[at(d)]);
    inner.limits.push_back(a.limits[at(d)]);
    inner.strides.push_back(a.strides[at(d)]);
  }
  Make make(i);
  return make.broadcast(make.slice(x, std::move(inner)), i.shape().dims(), spread->dimensions());
}

// The one operand that holds all that is read, if there is one.
Instruction* slice_of_concatenate(Instruction& i) {
  const Instruction* joined = i.operand(0);
  const std::int64_t d = joined->dimension(0), size = i.shape().dim(d);
  hlo::SliceAttr a = i.attr<hlo::SliceAttr>();
  if (size == 0) return nullptr;
  std::int64_t begin = 0;
  for (Instruction* part : joined->operands()) {
    const std::int64_t end = begin + part->shape().dim(d);
    if (a.starts[at(d)] >= begin && last_read(a, d, size) < end) {
      const std::int64_t limit = last_read(a, d, size) + 1;
      a.starts[at(d)] -= begin;
      a.limits[at(d)] = limit - begin;
      return Make(i).slice(part, std::move(a));
    }
    begin = end;
  }
  return nullptr;
}

// What is read is turned, not all.
Instruction* slice_of_reverse(Instruction& i) {
  const Instruction* turned = i.operand(0);
  hlo::SliceAttr a = i.attr<hlo::SliceAttr>();
  if (i.shape().num_elements() == 0) return nullptr;
  for (const std::int64_t d : turned->dimensions()) {
    const std::int64_t n = turned->shape().dim(d), last = last_read(a, d, i.shape().dim(d));
    a.limits[at(d)] = n - a.starts[at(d)];
    a.starts[at(d)] = n - 1 - last;
  }
  Make make(i);
  Instruction* result = make.op(Opcode::Reverse, i.shape(), {make.slice(turned->operand(0), std::move(a))});
  result->set_dimensions(turned->dimensions());
  return result;
}

// Nothing of the padding is read.
Instruction* slice_of_pad(Instruction& i) {
  const Instruction* padded = i.operand(0);
  hlo::SliceAttr a = i.attr<hlo::SliceAttr>();
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    const hlo::PadDim& p = padded->attr<hlo::PadAttr>().dims[at(d)];
    const std::int64_t size = i.shape().dim(d), inner = padded->operand(0)->shape().dim(d);
    if (p.interior != 0 || size == 0) return nullptr;
    const std::int64_t last = last_read(a, d, size) - p.low;
    a.starts[at(d)] -= p.low;
    a.limits[at(d)] = last + 1;
    if (a.starts[at(d)] < 0 || last >= inner) return nullptr;
  }
  return Make(i).slice(padded->operand(0), std::move(a));
}

// Whether much of what an update writes is better read where it then stands: the updated array is made in any case, and with a second
// reader what is computed for its window would be written twice, as an array of its own and into the window.
bool is_better_read(const Instruction& slice, const Instruction& update) {
  constexpr std::int64_t kMuch = 8;  // a part in so many
  const Instruction* written = update.operand(1);
  const bool is_there = is(written, Opcode::Parameter) || is(written, Opcode::GetTupleElement) || is(written, Opcode::Constant);
  const bool is_made = update.is_root() || std::ranges::any_of(update.users(), [](const Instruction* u) { return !is(u, Opcode::Slice); });
  return !is_there && is_made && slice.shape().num_elements() * kMuch > written->shape().num_elements();
}

// A slice of an array that an update at a known place has written: all of the update's elements, or none.
Instruction* slice_of_update(Instruction& i) {
  Instruction* update = i.operand(0);
  if (!has_scalar_starts(*update)) return nullptr;
  const auto& a = i.attr<hlo::SliceAttr>();
  hlo::SliceAttr inside = a;
  bool is_inside = true;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    const std::int64_t size = i.shape().dim(d), width = update->operand(1)->shape().dim(d);
    const auto start = constant_integer(update->operand(2 + d));
    if (!start || size == 0) return nullptr;
    if (is_unsigned(update->operand(2 + d)->shape().dtype()) && *start < 0) return nullptr;
    const std::int64_t begin = std::clamp<std::int64_t>(*start, 0, update->shape().dim(d) - width);
    const std::int64_t last = last_read(a, d, size);
    if (last < begin || a.starts[at(d)] >= begin + width) return Make(i).slice(update->operand(0), a);
    is_inside = is_inside && a.starts[at(d)] >= begin && last < begin + width;
    inside.starts[at(d)] -= begin;
    inside.limits[at(d)] = last + 1 - begin;
  }
  return is_inside && !is_better_read(i, *update) ? Make(i).slice(update->operand(1), std::move(inside)) : nullptr;
}

}  // namespace

Instruction* slice(Instruction& i) {
  Instruction* x = i.operand(0);
  if (x->shape().dims() == i.shape().dims()) return x;
  switch (x->opcode()) {
    case Opcode::Slice: return slice_of_slice(i);
    case Opcode::Broadcast: return slice_of_broadcast(i);
    case Opcode::Concatenate: return slice_of_concatenate(i);
    case Opcode::Pad: return slice_of_pad(i);
    case Opcode::Reverse: return slice_of_reverse(i);
    case Opcode::DynamicUpdateSlice: return slice_of_update(i);
    default: return nullptr;
  }
}

Instruction* pad(Instruction& i) {
  Instruction *x = i.operand(0), *value = i.operand(1);
  const auto& dims = i.attr<hlo::PadAttr>().dims;
  Make make(i);
  const auto moves_nothing = [](const hlo::PadDim& p) { return p.low == 0 && p.high == 0 && p.interior == 0; };
  if (std::ranges::all_of(dims, moves_nothing)) return x;
  if (x->shape().num_elements() == 0 || splat_source(x) == value) return make.broadcast_scalar(value, i.shape().dims());
  const auto only_cuts = [](const hlo::PadDim& p) { return p.low <= 0 && p.high <= 0 && p.interior == 0; };
  if (!std::ranges::all_of(dims, only_cuts)) return nullptr;
  hlo::SliceAttr a = whole(x->shape());
  for (std::size_t d = 0; d < dims.size(); ++d) {
    a.starts[d] -= dims[d].low;
    a.limits[d] = a.starts[d] + i.shape().dims()[d];
    if (a.limits[d] > x->shape().dims()[d]) return nullptr;  // an empty result cut from beyond the end
  }
  return make.slice(x, std::move(a));
}

namespace {

// Parts that hold something, with those of inner concatenations in their place.
std::vector<Instruction*> parts_of(const Instruction& i) {
  std::vector<Instruction*> parts;
  for (Instruction* part : i.operands()) {
    if (part->shape().num_elements() == 0) continue;
    if (is(part, Opcode::Concatenate) && part->dimension(0) == i.dimension(0) && has_one_use(part))
      parts.insert(parts.end(), part->operands().begin(), part->operands().end());
    else
      parts.push_back(part);
  }
  return parts;
}

// Whether `b` goes on along `d` where `a` ends, both slices of one array.
bool is_continued(const Instruction* a, const Instruction* b, std::int64_t d) {
  if (!is(a, Opcode::Slice) || !is(b, Opcode::Slice) || a->operand(0) != b->operand(0)) return false;
  const auto &x = a->attr<hlo::SliceAttr>(), &y = b->attr<hlo::SliceAttr>();
  for (std::int64_t k = 0; k < a->shape().rank(); ++k) {
    if (x.strides[at(k)] != 1 || y.strides[at(k)] != 1) return false;
    if (k == d ? x.limits[at(k)] != y.starts[at(k)]
               : x.starts[at(k)] != y.starts[at(k)] || x.limits[at(k)] != y.limits[at(k)])
      return false;
  }
  return true;
}

std::vector<Instruction*> join_slices(Make& make, const std::vector<Instruction*>& parts, std::int64_t d) {
  std::vector<Instruction*> joined;
  for (Instruction* part : parts) {
    if (joined.empty() || !is_continued(joined.back(), part, d)) {
      joined.push_back(part);
      continue;
    }
    hlo::SliceAttr both = joined.back()->attr<hlo::SliceAttr>();
    both.limits[at(d)] = part->attr<hlo::SliceAttr>().limits[at(d)];
    joined.back() = make.slice(part->operand(0), std::move(both));
  }
  return joined;
}

bool spread_one_scalar(const std::vector<Instruction*>& parts) {
  const Instruction* scalar = splat_source(parts.front());
  return scalar != nullptr &&
         std::ranges::all_of(parts, [&](Instruction* part) { return splat_source(part) == scalar; });
}

// The array of which `part` is what stands at [begin, …) along d.
Instruction* array_cut_at(const Instruction* part, std::int64_t d, std::int64_t begin, const Shape& shape) {
  if (!is(part, Opcode::Slice) || !(part->operand(0)->shape() == shape)) return nullptr;
  const auto& a = part->attr<hlo::SliceAttr>();
  for (std::int64_t k = 0; k < shape.rank(); ++k)
    if (a.strides[at(k)] != 1 || a.starts[at(k)] != (k == d ? begin : 0)) return nullptr;
  return part->operand(0);
}

// Slices of an array around something new, in their places: an update of the array. Not if most is new, or the array
// is read besides: then the update would copy it, and a concatenation can be fused into what reads it.
Instruction* update_of_slices(Instruction& i, const std::vector<Instruction*>& parts, std::int64_t d) {
  Instruction *base = nullptr, *update = nullptr;
  std::int64_t begin = 0, place = 0;
  for (Instruction* part : parts) {
    Instruction* array = array_cut_at(part, d, begin, i.shape());
    if (array != nullptr && (base == nullptr || base == array)) {
      base = array;
    } else {
      if (update != nullptr) return nullptr;
      update = part;
      place = begin;
    }
    begin += part->shape().dim(d);
  }
  if (base == nullptr || update == nullptr || 2 * update->shape().dim(d) > i.shape().dim(d)) return nullptr;
  const auto is_part = [&](const Instruction* user) { return std::ranges::find(parts, user) != parts.end(); };
  if (base->is_root() || !std::ranges::all_of(base->users(), is_part)) return nullptr;
  Make make(i);
  std::vector<Instruction*> starts;
  for (std::int64_t k = 0; k < i.shape().rank(); ++k) starts.push_back(make.integer(DType::S64, k == d ? place : 0));
  return make.dynamic_update_slice(base, update, starts);
}

}  // namespace

Instruction* concatenate(Instruction& i) {
  const std::int64_t d = i.dimension(0);
  Make make(i);
  const std::vector<Instruction*> all_parts = parts_of(i);
  if (all_parts.empty()) return i.operand(0)->shape() == i.shape() ? i.operand(0) : nullptr;
  if (spread_one_scalar(all_parts)) return make.broadcast_scalar(splat_source(all_parts.front()), i.shape().dims());
  const std::vector<Instruction*> parts = join_slices(make, all_parts, d);
  if (parts.size() == 1) return parts.front();
  if (Instruction* with = update_of_slices(i, parts, d)) return with;
  if (parts == i.operands()) return nullptr;
  Instruction* result = make.op(Opcode::Concatenate, i.shape(), parts);
  result->set_dimensions({d});
  return result;
}

}  // namespace hloom::passes::rules

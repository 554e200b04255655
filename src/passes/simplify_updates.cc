#include <algorithm>

#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

const Dims& window_dims(const Instruction& i) {
  return is(&i, Opcode::DynamicSlice) ? i.shape().dims() : i.operand(1)->shape().dims();
}

// Where a constant start takes the window: clamped in the index's own type.
std::optional<std::int64_t> known_start(const Instruction& i, std::int64_t d) {
  Instruction* start = i.operand(first_start(i) + d);
  const std::int64_t room = i.operand(0)->shape().dim(d) - window_dims(i)[at(d)];
  if (room == 0) return 0;
  const auto value = constant_integer(start);
  if (!value) return std::nullopt;
  if (is_unsigned(start->shape().dtype()) && *value < 0) return room;  // beyond 2^63
  return std::clamp<std::int64_t>(*value, 0, room);
}

// Starts as scalars, each constant one as the place it means. Null if they are so already.
Instruction* canonical_starts(Instruction& i) {
  const std::int64_t first = first_start(i), rank = i.operand(0)->shape().rank();
  Make make(i);
  if (!has_scalar_starts(i)) {
    std::vector<Instruction*> operands(i.operands().begin(), i.operands().begin() + first);
    const std::vector<Instruction*> starts = start_scalars(i);
    operands.insert(operands.end(), starts.begin(), starts.end());
    return i.parent()->add_clone(i, std::move(operands));
  }
  bool changed = false;
  for (std::int64_t d = 0; d < rank; ++d) {
    Instruction* start = i.operand(first + d);
    const auto known = known_start(i, d);
    if (!known || constant_integer(start) == *known) continue;
    i.replace_operand(first + d, make.integer(start->shape().dtype(), *known));
    changed = true;
  }
  return changed ? &i : nullptr;
}

// Whether two windows of one size in arrays of one shape stand at one place.
bool same_starts(const Instruction& a, const Instruction& b) {
  return has_scalar_starts(a) && has_scalar_starts(b) &&
         std::ranges::equal(a.operands() | std::views::drop(first_start(a)),
                            b.operands() | std::views::drop(first_start(b)));
}

bool is_same_window(const Instruction& a, const Instruction& b) {
  return same_dims(a.operand(0)->shape(), b.operand(0)->shape()) && window_dims(a) == window_dims(b) &&
         same_starts(a, b);
}

Instruction* static_slice(Instruction& i) {
  hlo::SliceAttr a;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    const auto start = known_start(i, d);
    if (!start) return nullptr;
    a.starts.push_back(*start);
    a.limits.push_back(*start + i.shape().dim(d));
    a.strides.push_back(1);
  }
  return Make(i).slice(i.operand(0), std::move(a));
}

Instruction* dynamic_slice_of_broadcast(Instruction& i) {
  const Instruction* spread = i.operand(0);
  Make make(i);
  std::vector<Instruction*> starts;
  Dims sizes;
  for (const std::int64_t d : spread->dimensions()) {
    starts.push_back(i.operand(1 + d));
    sizes.push_back(i.shape().dim(d));
  }
  return make.broadcast(make.dynamic_slice(spread->operand(0), starts, sizes), i.shape().dims(), spread->dimensions());
}

}  // namespace

Instruction* dynamic_slice(Instruction& i) {
  Instruction* x = i.operand(0);
  if (x->shape().dims() == i.shape().dims()) return x;
  if (Instruction* with = canonical_starts(i)) return with;
  if (Instruction* with = static_slice(i)) return with;
  if (is(x, Opcode::DynamicUpdateSlice) && is_same_window(*x, i)) return x->operand(1);
  if (is(x, Opcode::Broadcast)) return dynamic_slice_of_broadcast(i);
  return nullptr;
}

Instruction* dynamic_update_slice(Instruction& i) {
  Instruction *base = i.operand(0), *update = i.operand(1);
  if (base->shape().dims() == update->shape().dims()) return update;
  if (update->shape().num_elements() == 0) return base;
  if (Instruction* with = canonical_starts(i)) return with;
  if (is(update, Opcode::DynamicSlice) && update->operand(0) == base && is_same_window(*update, i)) return base;
  if (is(base, Opcode::DynamicUpdateSlice) && is_same_window(*base, i)) {
    i.replace_operand(0, base->operand(0));
    return &i;
  }
  return nullptr;
}

// select(p, dus(x, u), x) writes the window anyhow, with what stood there where p is false: x is updated in place.
Instruction* select_of_update(Instruction& i) {
  Instruction* p = i.operand(0);
  for (const int n : {1, 2}) {
    Instruction *update = i.operand(n), *base = i.operand(3 - n);
    if (!is(update, Opcode::DynamicUpdateSlice) || update->operand(0) != base || !has_one_use(update) ||
        !has_scalar_starts(*update))
      continue;
    Make make(i);
    const std::vector<Instruction*> starts = start_scalars(*update);
    const Dims& window = window_dims(*update);
    Instruction* old = make.dynamic_slice(base, starts, window);
    Instruction* where =
        p->shape().is_scalar() ? make.broadcast_scalar(p, window) : make.dynamic_slice(p, starts, window);
    Instruction* chosen =
        n == 1 ? make.select(where, update->operand(1), old) : make.select(where, old, update->operand(1));
    return make.dynamic_update_slice(base, chosen, starts);
  }
  return nullptr;
}

namespace {

// Component k of the one index vector, as a scalar.
Instruction* component(Make& make, Instruction* indices, std::int64_t vector_dim, std::int64_t k) {
  hlo::SliceAttr a{Dims(at(indices->shape().rank()), 0), indices->shape().dims(), Dims(at(indices->shape().rank()), 1)};
  if (vector_dim < indices->shape().rank()) {
    a.starts[at(vector_dim)] = k;
    a.limits[at(vector_dim)] = k + 1;
  }
  return make.reshape(make.slice(indices, std::move(a)), {});
}

// Whether there is exactly one index vector.
bool has_one_vector(const Instruction* indices, std::int64_t vector_dim) {
  for (std::int64_t d = 0; d < indices->shape().rank(); ++d)
    if (d != vector_dim && indices->shape().dim(d) != 1) return false;
  return true;
}

// A start for each dimension of the operand: the component that `map` assigns to it, or 0.
std::vector<Instruction*> starts_of(Make& make, Instruction* indices, std::int64_t vector_dim, const Dims& map,
                                    std::int64_t rank) {
  std::vector<Instruction*> starts(at(rank), nullptr);
  for (std::size_t k = 0; k < map.size(); ++k)
    starts[at(map[k])] = component(make, indices, vector_dim, static_cast<std::int64_t>(k));
  for (Instruction*& start : starts)
    if (start == nullptr) start = make.integer(indices->shape().dtype(), 0);
  return starts;
}

}  // namespace

// One index vector reads one window, which a gather clamps as a dynamic-slice does. The batch has one element, so the
// window's dimensions in order, some of size 1 left out, are the result.
Instruction* gather(Instruction& i) {
  const auto& a = i.attr<hlo::GatherAttr>();
  Instruction *x = i.operand(0), *indices = i.operand(1);
  if (!has_one_vector(indices, a.index_vector_dim) || i.shape().num_elements() == 0) return nullptr;
  Make make(i);
  const auto starts = starts_of(make, indices, a.index_vector_dim, a.start_index_map, x->shape().rank());
  return make.reshape(make.dynamic_slice(x, starts, a.slice_sizes), i.shape().dims());
}

namespace {

// The largest start at which the window fits, as a constant of the index's type; null if all its values fit.
Instruction* largest_start(Make& make, DType type, std::int64_t room) {
  const int bits = bit_width(type) - (is_signed(type) ? 1 : 0);
  if (bits < 63 && room >= (std::int64_t{1} << bits) - 1) return nullptr;
  return make.integer(type, room);
}

// Whether the window at `start` lies inside along a dimension with `room` beside it; null if it always does.
Instruction* fits_inside(Make& make, Instruction* start, std::int64_t room) {
  const DType type = start->shape().dtype();
  Instruction* largest = largest_start(make, type, room);
  Instruction* below = largest == nullptr ? nullptr : make.compare(hlo::Direction::Le, start, largest);
  if (is_unsigned(type)) return below;
  Instruction* above = make.compare(hlo::Direction::Ge, start, make.integer(type, 0));
  return below == nullptr ? above : make.binary(Opcode::And, above, below);
}

// The window that a scatter's one update covers, by dimension of the input.
Dims scatter_window(const Instruction& i, const hlo::ScatterAttr& a) {
  Dims window;
  std::size_t next = 0;
  for (std::int64_t d = 0; d < i.operand(0)->shape().rank(); ++d) {
    const auto in = [d](const Dims& list) { return std::ranges::find(list, d) != list.end(); };
    const bool is_left_out = in(a.inserted_window_dims) || in(a.input_batching_dims);
    window.push_back(is_left_out ? 1 : i.operand(2)->shape().dim(a.update_window_dims[next++]));
  }
  return window;
}

}  // namespace

// A scatter of one window: an update at its place, by what stands there where the window is not inside, for then a
// scatter writes nothing and an update would move the window.
Instruction* scatter(Instruction& i) {
  if (i.num_operands() != 3) return nullptr;
  const auto& a = i.attr<hlo::ScatterAttr>();
  Instruction *x = i.operand(0), *indices = i.operand(1), *updates = i.operand(2);
  if (updates->shape().num_elements() == 0) return x;
  const auto combiner = simple_combiner(*i.to_apply());
  const bool overwrites = returns_parameter(*i.to_apply(), 1);
  if (!has_one_vector(indices, a.index_vector_dim) || (!overwrites && !combiner)) return nullptr;
  Make make(i);
  const Dims window = scatter_window(i, a);
  const auto starts = starts_of(make, indices, a.index_vector_dim, a.scatter_dims_to_operand_dims, x->shape().rank());
  Instruction* inside = nullptr;
  for (const std::int64_t d : a.scatter_dims_to_operand_dims) {
    Instruction* fits = fits_inside(make, starts[at(d)], x->shape().dim(d) - window[at(d)]);
    if (fits != nullptr) inside = inside == nullptr ? fits : make.binary(Opcode::And, inside, fits);
  }
  Instruction* old = make.dynamic_slice(x, starts, window);
  Instruction* written = make.reshape(updates, window);
  if (!overwrites) written = make.binary(*combiner, old, written);
  if (inside != nullptr) written = make.select(make.broadcast_scalar(inside, window), written, old);
  return make.dynamic_update_slice(x, written, starts);
}

}  // namespace hloom::passes::rules

#include <algorithm>

#include "passes/make.h"
#include "passes/simplify_rules.h"

namespace hloom::passes::rules {
namespace {

// For each dimension of size other than 1 in `dims`, in order, its number.
Dims places_of_non_units(const Dims& dims) {
  Dims places;
  for (std::size_t d = 0; d < dims.size(); ++d)
    if (dims[d] != 1) places.push_back(static_cast<std::int64_t>(d));
  return places;
}

bool has_units(const Dims& dims) { return std::ranges::find(dims, 1) != dims.end(); }

// A reshape of a broadcast that only puts in or takes out dimensions of size 1 is a broadcast itself.
Instruction* reshape_of_broadcast(Instruction& i) {
  const Instruction* spread = i.operand(0);
  Instruction* x = spread->operand(0);
  Make make(i);
  if (x->shape().is_scalar()) return make.broadcast_scalar(x, i.shape().dims());
  if (without_units(spread->shape().dims()) != without_units(i.shape().dims()) || has_units(x->shape().dims()))
    return nullptr;
  const Dims from = places_of_non_units(spread->shape().dims()), to = places_of_non_units(i.shape().dims());
  Dims dimensions;
  for (const std::int64_t d : spread->dimensions())
    dimensions.push_back(to[static_cast<std::size_t>(std::ranges::find(from, d) - from.begin())]);
  return make.broadcast(x, i.shape().dims(), dimensions);
}

}  // namespace

Instruction* constant(Instruction& i) {
  if (!i.shape().is_array() || i.shape().num_elements() <= 1) return nullptr;
  const auto splat = splat_constant(&i);
  if (!splat) return nullptr;
  return Make(i).splat(*splat, i.shape().dims());
}

Instruction* iota(Instruction& i) {
  Make make(i);
  const std::int64_t d = i.iota_dimension();
  if (i.shape().rank() == 1) return nullptr;
  Instruction* line = make.op(Opcode::Iota, Shape::array(i.shape().dtype(), {i.shape().dim(d)}), {});
  return make.broadcast(line, i.shape().dims(), {d});
}

Instruction* reshape(Instruction& i) {
  Instruction* x = i.operand(0);
  if (x->shape().dims() == i.shape().dims()) return x;
  if (is(x, Opcode::Reshape)) return Make(i).reshape(x->operand(0), i.shape().dims());
  if (is(x, Opcode::Broadcast)) return reshape_of_broadcast(i);
  return nullptr;
}

Instruction* broadcast(Instruction& i) {
  Instruction* x = i.operand(0);
  const Dims &dims = i.shape().dims(), &places = i.dimensions();
  Make make(i);
  if (is(x, Opcode::Broadcast)) {
    Dims composed;
    for (const std::int64_t d : x->dimensions()) composed.push_back(places[static_cast<std::size_t>(d)]);
    return make.broadcast(x->operand(0), dims, composed);
  }
  const bool sorted = std::ranges::is_sorted(places);
  if (sorted && x->shape().dims() == dims) return x;
  if (sorted && without_units(x->shape().dims()) == without_units(dims)) return make.reshape(x, dims);
  if (!has_units(x->shape().dims())) return nullptr;
  Dims kept;
  for (const std::int64_t d : places_of_non_units(x->shape().dims()))
    kept.push_back(places[static_cast<std::size_t>(d)]);
  return make.broadcast(make.reshape(x, without_units(x->shape().dims())), dims, kept);
}

Instruction* transpose(Instruction& i) {
  Instruction* x = i.operand(0);
  const Dims& p = i.dimensions();
  Make make(i);
  if (std::ranges::is_sorted(p)) return x;
  if (is(x, Opcode::Transpose)) {
    Dims composed;
    for (const std::int64_t d : p) composed.push_back(x->dimension(d));
    return make.transpose(x->operand(0), composed);
  }
  Dims moved;  // the dimensions that have more than one element, in their new order
  std::ranges::copy_if(p, std::back_inserter(moved), [&](std::int64_t d) { return x->shape().dim(d) != 1; });
  if (std::ranges::is_sorted(moved)) return make.reshape(x, i.shape().dims());
  if (!is(x, Opcode::Broadcast)) return nullptr;
  Dims places;
  for (const std::int64_t d : x->dimensions()) places.push_back(std::ranges::find(p, d) - p.begin());
  // Else the broadcast would transpose, which is no better.
  return std::ranges::is_sorted(places) ? make.broadcast(x->operand(0), i.shape().dims(), places) : nullptr;
}

Instruction* reverse(Instruction& i) {
  Instruction* x = i.operand(0);
  const auto is_spread_along = [&](std::int64_t d) {
    return is(x, Opcode::Broadcast) && std::ranges::find(x->dimensions(), d) == x->dimensions().end();
  };
  Dims dims;
  for (const std::int64_t d : i.dimensions())
    if (x->shape().dim(d) != 1 && !is_spread_along(d)) dims.push_back(d);
  Instruction* source = x;
  if (is(x, Opcode::Reverse)) {
    // What both turn stays.
    Dims once;
    for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
      const auto turns = [d](const Dims& list) { return std::ranges::find(list, d) != list.end(); };
      if (turns(dims) != turns(x->dimensions())) once.push_back(d);
    }
    dims = once;
    source = x->operand(0);
  }
  if (dims.empty()) return source;
  if (dims == i.dimensions() && source == x) return nullptr;
  Instruction* result = Make(i).op(Opcode::Reverse, i.shape(), {source});
  result->set_dimensions(dims);
  return result;
}

}  // namespace hloom::passes::rules

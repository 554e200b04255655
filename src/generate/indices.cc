// What moves elements to and from places that are computed.
#include <algorithm>
#include <array>

#include "generate/reducers.h"
#include "generate/scope.h"

namespace hloom::generate {
namespace {

bool has_dims(const Instruction& i) { return i.shape().rank() > 0; }

// A scalar to start at: often there already, a loop's counter for one; sometimes far outside.
Instruction* start(Scope& s, DType type, std::int64_t room) {
  if (s.random().chance(60))
    if (Instruction* there =
            s.pick([&](const Instruction& i) { return i.shape().is_scalar() && i.shape().dtype() == type; }))
      return there;
  if (s.random().chance(10)) return s.scalar(type, s.random().of({-1, -100, 100, 127}));
  return s.scalar(type, s.random().pick(0, std::min<std::int64_t>(room, 100)));
}

std::vector<Instruction*> starts(Scope& s, const Dims& dims, const Dims& sizes) {
  const DType type = s.index_type();
  std::vector<Instruction*> result;
  const bool all_same = s.random().chance(20);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    if (all_same && d > 0) {
      result.push_back(result[0]);
      continue;
    }
    result.push_back(s.random().chance(35) ? s.scalar(type, 0) : start(s, type, dims[d] - sizes[d]));
  }
  return result;
}

Dims window_in(Scope& s, const Dims& dims) {
  Dims sizes;
  for (const std::int64_t n : dims)
    sizes.push_back(s.random().chance(40)   ? n
                    : s.random().chance(40) ? std::min<std::int64_t>(n, 1)
                                            : s.random().pick(n > 0 ? 1 : 0, n));
  return sizes;
}

bool draw_dynamic_slice(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  const Dims sizes = window_in(s, x->shape().dims());
  std::vector<Instruction*> operands{x};
  for (Instruction* i : starts(s, x->shape().dims(), sizes)) operands.push_back(i);
  Instruction* r = s.add(Opcode::DynamicSlice, operands,
                         [&](Instruction& i) { i.mutable_attr<hlo::DynamicSliceAttr>().sizes = sizes; });
  return s.keep(r, s.bound(x)) != nullptr;
}

// The window is part of the array itself now and then: moved by one, say.
Instruction* update_for(Scope& s, Instruction* x, Dims& sizes) {
  if (s.random().chance(25)) {
    Instruction* part = s.pick([&](const Instruction& i) {
      if (i.shape().dtype() != x->shape().dtype() || i.shape().rank() != x->shape().rank()) return false;
      for (std::int64_t d = 0; d < x->shape().rank(); ++d)
        if (i.shape().dim(d) > x->shape().dim(d)) return false;
      return true;
    });
    if (part != nullptr) {
      sizes = part->shape().dims();
      return part;
    }
  }
  return s.make(x->shape().dtype(), sizes);
}

bool draw_update(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  Dims sizes = window_in(s, x->shape().dims());
  Instruction* update = update_for(s, x, sizes);
  std::vector<Instruction*> operands{x, update};
  for (Instruction* i : starts(s, x->shape().dims(), sizes)) operands.push_back(i);
  Instruction* r = s.add(Opcode::DynamicUpdateSlice, operands);
  if (r == nullptr) return false;
  s.keep(r, std::max(s.bound(x), s.bound(update)));
  if (s.random().chance(30)) {  // a value of the array's old elements keeps it alive beyond the update, or not
    Instruction* again = s.add(Opcode::DynamicUpdateSlice, {r, update, operands[2]}, {});
    s.keep(again, s.bound(r));
  }
  return true;
}

/// The lists that gather and scatter share.
struct Places {
  Dims window_dims, dropped, batching, indices_batching, index_map, slice_sizes, indices_dims;
  std::int64_t vector_dim = 0;
};

Places draw_places(Scope& s, const Dims& dims) {
  Places p;
  const auto rank = static_cast<std::int64_t>(dims.size());
  const Dims batch = s.random().chance(50)   ? Dims{s.random().pick(1, 9)}
                     : s.random().chance(30) ? Dims{}
                                             : Dims{s.random().pick(1, 5), s.random().pick(0, 17)};
  p.indices_dims = batch;
  Dims order = iota(rank);
  s.random().shuffle(order);
  std::int64_t mapped = s.random().pick(1, rank);
  for (std::int64_t d = 0; d < mapped; ++d) p.index_map.push_back(order[static_cast<std::size_t>(d)]);
  // A dimension that both sides share, walked in step.
  if (rank > mapped && !batch.empty() && s.random().chance(25)) {
    const std::int64_t d = order[static_cast<std::size_t>(mapped)];
    p.batching.push_back(d);
    p.indices_batching.push_back(0);
    p.indices_dims[0] = dims[static_cast<std::size_t>(d)];
  }
  const bool implicit = mapped == 1 && s.random().chance(50);
  p.vector_dim = implicit || s.random().chance(60)
                     ? static_cast<std::int64_t>(p.indices_dims.size())
                     : s.random().pick(0, static_cast<std::int64_t>(p.indices_dims.size()));
  if (!implicit) {
    p.indices_dims.insert(p.indices_dims.begin() + p.vector_dim, mapped);
    for (std::int64_t& d : p.indices_batching) d += d >= p.vector_dim ? 1 : 0;
  }
  std::int64_t windows = 0;
  for (std::int64_t d = 0; d < rank; ++d) {
    const std::int64_t n = dims[static_cast<std::size_t>(d)];
    const bool is_mapped = std::ranges::find(p.index_map, d) != p.index_map.end();
    const bool is_batch = std::ranges::find(p.batching, d) != p.batching.end();
    if (is_batch || (is_mapped && s.random().chance(70) && n > 0)) {
      if (!is_batch) p.dropped.push_back(d);
      p.slice_sizes.push_back(std::min<std::int64_t>(n, 1));
      continue;
    }
    p.slice_sizes.push_back(!is_mapped && s.random().chance(80) ? n : s.random().pick(0, n));
    ++windows;
  }
  Dims places = iota(windows + static_cast<std::int64_t>(p.indices_dims.size()) - (implicit ? 0 : 1));
  if (s.random().chance(40))
    s.random().shuffle(places);
  else
    std::ranges::reverse(places);
  places.resize(static_cast<std::size_t>(windows));
  std::ranges::sort(places);
  p.window_dims = places;
  return p;
}

bool draw_gather(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  const Places p = draw_places(s, x->shape().dims());
  Instruction* indices = s.make(s.index_type(), p.indices_dims);
  Instruction* r = s.add(Opcode::Gather, {x, indices}, [&](Instruction& i) {
    auto& a = i.mutable_attr<hlo::GatherAttr>();
    a.offset_dims = p.window_dims;
    a.collapsed_slice_dims = p.dropped;
    a.operand_batching_dims = p.batching;
    a.start_indices_batching_dims = p.indices_batching;
    a.start_index_map = p.index_map;
    a.index_vector_dim = p.vector_dim;
    a.slice_sizes = p.slice_sizes;
  });
  return s.keep(r, s.bound(x)) != nullptr;
}

Dims update_dims(const Places& p, std::int64_t rank_of_updates) {
  Dims windows, batch = p.indices_dims, dims;
  if (p.vector_dim < static_cast<std::int64_t>(batch.size())) batch.erase(batch.begin() + p.vector_dim);
  for (std::size_t d = 0; d < p.slice_sizes.size(); ++d) {
    const auto n = static_cast<std::int64_t>(d);
    if (std::ranges::find(p.dropped, n) == p.dropped.end() && std::ranges::find(p.batching, n) == p.batching.end())
      windows.push_back(p.slice_sizes[d]);
  }
  std::size_t window = 0, at = 0;
  for (std::int64_t d = 0; d < rank_of_updates; ++d)
    dims.push_back(std::ranges::find(p.window_dims, d) != p.window_dims.end() ? windows[window++] : batch[at++]);
  return dims;
}

// Index vectors whose windows do not meet: the first component goes up from one to the next, or down, by the window's size or more.
Instruction* distinct_indices(Scope& s, const Places& p, bool up) {
  hlo::Literal literal(Shape::array(DType::S32, p.indices_dims));
  const std::int64_t window = std::max<std::int64_t>(1, p.slice_sizes[static_cast<std::size_t>(p.index_map[0])]);
  const std::int64_t step = up ? window + s.random().pick(0, 1) : -window, first = up ? s.random().pick(-2, 3) : s.random().pick(0, 30);
  std::int64_t vectors = 1, inner = 1;
  const std::int64_t rank = std::ssize(p.indices_dims), components = p.vector_dim < rank ? p.indices_dims[static_cast<std::size_t>(p.vector_dim)] : 1;
  for (std::int64_t d = 0; d < rank; ++d) {
    if (d != p.vector_dim) vectors *= p.indices_dims[static_cast<std::size_t>(d)];
    if (d > p.vector_dim) inner *= p.indices_dims[static_cast<std::size_t>(d)];
  }
  const auto to = literal.mutable_data<std::int32_t>();
  for (std::int64_t v = 0; v < vectors; ++v)
    for (std::int64_t c = 0; c < components; ++c)
      to[static_cast<std::size_t>((v / inner * components + c) * inner + v % inner)] =
          static_cast<std::int32_t>(c == 0 ? first + v * step : s.random().pick(0, 6));
  return s.keep(s.computation().add_constant(std::move(literal)), kUnbounded);
}

bool draw_scatter(Scope& s) {
  Instruction* x = s.pick(has_dims);
  if (x == nullptr) return false;
  const Places p = draw_places(s, x->shape().dims());
  const auto batch = static_cast<std::int64_t>(p.indices_dims.size()) -
                     (p.vector_dim < static_cast<std::int64_t>(p.indices_dims.size()) ? 1 : 0);
  const Dims dims = update_dims(p, batch + static_cast<std::int64_t>(p.window_dims.size()));
  if (count(dims) > s.draw().max_elements) return false;
  const DType type = x->shape().dtype();
  const Combiner combiner = draw_combiner(s, type, /*overwrite=*/true);
  const auto terms = static_cast<double>(count(dims) + 1);
  if (combiner == Combiner::Add) x = s.tame(x, terms);
  Instruction* updates = s.make(type, dims);
  if (combiner == Combiner::Add) updates = s.tame(updates, terms);
  if (x == nullptr || updates == nullptr) return false;
  // Hints are true of the indices that they are given to.
  const bool distinct = s.random().chance(30), up = s.random().chance(60);
  Instruction* indices = distinct ? distinct_indices(s, p, up) : s.make(s.index_type(), p.indices_dims);
  Instruction* r = s.add(Opcode::Scatter, {x, indices, updates}, [&](Instruction& i) {
    auto& a = i.mutable_attr<hlo::ScatterAttr>();
    a.update_window_dims = p.window_dims;
    a.inserted_window_dims = p.dropped;
    a.input_batching_dims = p.batching;
    a.scatter_indices_batching_dims = p.indices_batching;
    a.scatter_dims_to_operand_dims = p.index_map;
    a.index_vector_dim = p.vector_dim;
    a.unique_indices = distinct;
    a.indices_are_sorted = distinct && up && p.batching.empty();
    i.set_called({reducer(s, combiner, type)});
  });
  const double bound = std::max(s.bound(x), s.bound(updates));
  return s.keep(r, combiner == Combiner::Add        ? terms * bound
                   : combiner == Combiner::Multiply ? kUnbounded
                                                    : bound) != nullptr;
}

constexpr std::array kFamilies = {
    Family{30, draw_dynamic_slice},
    Family{40, draw_update},
    Family{15, draw_gather},
    Family{15, draw_scatter},
};

}  // namespace

std::span<const Family> index_families() { return kFamilies; }

}  // namespace hloom::generate

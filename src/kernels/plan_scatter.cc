// Updates are applied one after the other in row-major order, each window by lanes; windows that reach out of bounds are
// left out whole.
//
// Where there is much to do, each call of the kernel owns a range of one dimension of the destination. It goes over the
// updates in pieces: first it counts those that fall into its range and lists them in their order, without a branch, then
// it applies the list. So every element sees its updates in the order that one call would give them, nobody else writes
// it, and a call that owns everything counts nothing. Of sorted indices the updates of a range are found by halving.
#include "kernels/plan_scatter.h"

#include <algorithm>
#include <bit>
#include <functional>

#include "base/try.h"
#include "kernels/elements.h"

namespace hloom::kernels {
namespace {

using hlo::Direction;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kBlockBytes = 32 * 1024;
constexpr std::int64_t kSerialBytes = 128 * 1024;
constexpr std::int64_t kSerialRangedBytes = 2 << 20;  // with less, that each call looks at all indices eats what calls gain
constexpr std::int64_t kMaxBlocks = 256;
constexpr std::int64_t kWindowBytes = 16;    // what an update costs besides its elements
constexpr std::int64_t kLineBytes = 64;
constexpr std::int64_t kListed = 2048;       // updates of a piece
constexpr std::int64_t kLeastRange = 8;      // of a dimension that is shared out

bool contains(const hlo::Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

/// What shapes and attributes say.
struct Form {
  explicit Form(const Instruction& scatter)
      : i(scatter), s(scatter.attr<hlo::ScatterAttr>()), n(scatter.num_operands() / 2), whole(scatter.operand(0)->shape()),
        updates(scatter.operand(n + 1)->shape()), indices(*scatter.operand(n)) {
    elementwise = window_before_batch();
    for (std::int64_t d = 0; d < updates.rank(); ++d)
      if (elementwise || !contains(s.update_window_dims, d)) {
        walked.push_back(d);
        walked_dims.push_back(updates.dim(d));
        num_walked *= updates.dim(d);
      }
    std::int64_t w = 0;
    for (std::int64_t d = 0; d < whole.rank(); ++d) {
      const bool has_none = contains(s.inserted_window_dims, d) || contains(s.input_batching_dims, d);
      update_dim.push_back(has_none ? -1 : s.update_window_dims[static_cast<std::size_t>(w++)]);
      window.push_back(has_none ? 1 : updates.dim(update_dim.back()));
    }
  }

  // Along a dimension of the destination, how much of it one step over `walked` writes.
  std::int64_t reach(std::int64_t d) const { return elementwise ? 1 : window[static_cast<std::size_t>(d)]; }
  bool is_indexed(std::int64_t d) const {
    return contains(s.scatter_dims_to_operand_dims, d) || contains(s.input_batching_dims, d);
  }

  const Instruction& i;
  const hlo::ScatterAttr& s;
  std::int64_t n;  ///< arrays
  const Shape &whole, &updates;
  const Instruction& indices;
  bool elementwise = false;               ///< one element of the updates after the other
  std::vector<std::int64_t> walked;       ///< dimensions of the updates that are walked in order; the others are windows
  std::vector<std::int64_t> walked_dims;  ///< their extents
  std::int64_t num_walked = 1;
  std::vector<std::int64_t> update_dim, window;  ///< for each dimension of the destination; -1, 1: none

 private:
  // Whether, in row-major order of the updates, one window's elements stand between another's.
  bool window_before_batch() const {
    bool in_window = false;
    for (std::int64_t d = 0; d < updates.rank(); ++d) {
      if (updates.dim(d) == 1) continue;
      const bool of_window = contains(s.update_window_dims, d);
      if (in_window && !of_window) return true;
      in_window = in_window || of_window;
    }
    return false;
  }
};

// The dimension of the destination whose ranges have owners: the longest of those that indices choose an element of; else,
// for few large windows, the outermost that windows are long in.
std::int64_t shared_dimension(const Form& form) {
  std::int64_t best = -1;
  for (std::int64_t d = 0; d < form.whole.rank(); ++d)
    if (form.is_indexed(d) && form.reach(d) == 1 && form.whole.dim(d) >= kLeastRange)
      if (best < 0 || form.whole.dim(d) > form.whole.dim(best)) best = d;
  if (best >= 0) return best;
  const auto& order = form.whole.layout().minor_to_major;
  for (auto d = order.rbegin(); d != order.rend(); ++d)
    if (form.reach(*d) >= kLeastRange) return *d;
  return -1;
}

bool has_whole_layouts(const Form& form) {
  return form.whole.has_layout() && static_cast<std::int64_t>(form.whole.layout().minor_to_major.size()) == form.whole.rank();
}

// Indices of `dim` in a block, such that blocks share no line of memory.
std::int64_t range_block(const Form& form, std::int64_t dim, std::int64_t blocks) {
  const std::int64_t bytes = strides_of(form.whole)[static_cast<std::size_t>(dim)] * byte_width(form.whole.dtype());
  const std::int64_t multiple = std::max<std::int64_t>(1, kLineBytes / bytes);
  const std::int64_t block = (form.whole.dim(dim) + blocks - 1) / blocks;
  return (block + multiple - 1) / multiple * multiple;
}

class Planner {
 public:
  Planner(Builder& b, const Instruction& scatter, const Places& places, const ScatterGrid& grid)
      : b_(b), f_(scatter), results_(places.results), grid_(grid),
        e_(b, [&b, &places](std::int64_t n, const ShapeIndex&, const Point& point, Value mask) -> Expected<Value> {
          return b.load(places.operands[static_cast<std::size_t>(n)], point, mask);
        }) {}

  Expected<> plan(std::span<const std::int64_t> copied) {
    using Share = ScatterGrid::Share;
    if (f_.num_walked == 0 && copied.empty()) return {};
    if (grid_.share == Share::Updates) {
      const Index u = index_of(b_.begin_loop(0, f_.num_walked, 0, grid_.block));
      return closed(1, [&] { return update(u); });
    }
    if (grid_.share == Share::None) return all_updates();
    std::tie(first_, end_) = b_.begin_range(0, f_.whole.dim(grid_.dim), grid_.block);
    return closed(1, [&]() -> Expected<> {
      for (const std::int64_t k : copied) TRY(copy(k));
      return is_sorted() ? sorted_updates() : own_updates();
    });
  }

 private:
  using Body = std::function<Expected<>()>;

  // The body, and the ends of as many loops.
  Expected<> closed(std::size_t loops, const Body& body) {
    auto done = body();
    while (loops-- > 0) b_.end_loop();
    return done;
  }
  Expected<> when(Value condition, const Body& then, const Body& otherwise) {
    If branch;
    branch.selector = condition;
    Expected<> done;
    for (const Body* body : {&then, &otherwise}) {
      b_.begin_block();
      if (done && *body) done = (*body)();
      branch.branches.push_back(b_.end_block());
    }
    b_.append(Statement{std::move(branch)});
    return done;
  }
  Value both(Value p, Value q) { return b_.line(Opcode::And, DType::Pred, {p, q}); }
  Value less(Value x, Value y) { return e_.compare(Direction::Lt, x, y); }
  Value least(const Index& x, Value y) { return b_.line(Opcode::Minimum, DType::S64, {b_.affine(x), y}); }
  Value most(const Index& x, Value y) { return b_.line(Opcode::Maximum, DType::S64, {b_.affine(x), y}); }
  bool has_owner() const { return first_ != kNoValue; }
  bool is_owned(std::int64_t d) const { return has_owner() && d == grid_.dim; }

  // --- The base, where it is not in place

  // What the call owns of it.
  Expected<> copy(std::int64_t k) {
    const auto& order = f_.whole.layout().minor_to_major;
    const auto outermost = std::find_if(order.rbegin(), order.rend(), [&](std::int64_t d) { return f_.whole.dim(d) > 1; });
    return outermost != order.rend() && *outermost == grid_.dim ? copy_run(k) : copy_box(k);
  }
  // One piece of memory.
  Expected<> copy_run(std::int64_t k) {
    const std::int64_t stride = strides_of(f_.whole)[static_cast<std::size_t>(grid_.dim)];
    const Value from = b_.affine(index_of(first_, stride)), end = b_.affine(index_of(end_, stride));
    const Index x = index_of(b_.begin_loop(0, f_.whole.num_elements(), lanes_for(f_.whole.num_elements())));
    b_.loop().from_value = from, b_.loop().to_value = end;
    std::vector<std::int64_t> outer_first(f_.whole.layout().minor_to_major);
    std::ranges::reverse(outer_first);
    std::vector<std::int64_t> dims;
    for (const std::int64_t d : outer_first) dims.push_back(f_.whole.dim(d));
    const std::vector<Index> place = b_.delinearise(x, dims);
    Point point(place.size());
    for (std::size_t n = 0; n < place.size(); ++n) point[static_cast<std::size_t>(outer_first[n])] = place[n];
    return closed(1, [&] { return copy_element(k, point); });
  }
  Expected<> copy_box(std::int64_t k) {
    Point point(static_cast<std::size_t>(f_.whole.rank()));
    const auto& order = f_.whole.layout().minor_to_major;
    std::size_t loops = 0;
    for (auto d = order.rbegin(); d != order.rend(); ++d) {
      const std::int64_t extent = f_.whole.dim(*d);
      if (extent == 1 && !is_owned(*d)) continue;
      point[static_cast<std::size_t>(*d)] = index_of(b_.begin_loop(0, extent, *d == order[0] ? lanes_for(extent) : 0));
      if (is_owned(*d)) b_.loop().from_value = first_, b_.loop().to_value = end_;
      ++loops;
    }
    return closed(loops, [&] { return copy_element(k, point); });
  }
  Expected<> copy_element(std::int64_t k, const Point& point) {
    const Value x = TRY(e_.at(*f_.i.operand(k), point));
    b_.store(results_[static_cast<std::size_t>(k)], point, x);
    return {};
  }
  static int lanes_for(std::int64_t extent) {
    if (extent < 2) return 0;
    return static_cast<int>(std::min<std::int64_t>(32, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent)))));
  }

  // --- Which updates, in which order

  Expected<> all_updates() {
    std::vector<Index> at;
    for (const std::int64_t extent : f_.walked_dims) at.push_back(index_of(b_.begin_loop(0, extent)));
    return closed(at.size(), [&] { return update_at(at); });
  }
  // `listed`: known to be in bounds and in the range.
  Expected<> update(const Index& number, bool listed = false) {
    return update_at(b_.delinearise(number, f_.walked_dims), listed);
  }

  Expected<> own_updates() {
    const Value none_before = e_.compare(Direction::Eq, first_, b_.constant_index(0));
    const Value none_behind = e_.compare(Direction::Eq, end_, b_.constant_index(f_.whole.dim(grid_.dim)));
    const auto all = [&] {
      const Value first = std::exchange(first_, kNoValue);
      auto done = all_updates();
      first_ = first;
      return done;
    };
    return when(both(none_before, none_behind), all, [&] { return listed_updates(); });
  }

  Expected<> listed_updates() {
    const std::int64_t pieces = (f_.num_walked + kListed - 1) / kListed;
    const Index start = index_of(b_.begin_loop(0, pieces)) * kListed;
    return closed(1, [&]() -> Expected<> {
      const Value count = TRY(list(start));
      b_.forget_loads();
      const Index k = index_of(b_.begin_loop(0, std::min(kListed, f_.num_walked)));
      b_.loop().from_value = b_.constant_index(0), b_.loop().to_value = count;
      return closed(1, [&] {
        const Value number = b_.line(Opcode::Convert, DType::S64, {b_.load_linear(scratch(), k, DType::S32)});
        b_.set_range(number, {0, kListed - 1});
        const Value own = b_.affine(start + index_of(number));
        b_.set_range(own, {0, f_.num_walked - 1});
        return update(index_of(own), true);
      });
    });
  }

  // Numbers of the piece's updates in the range; how many.
  Expected<Value> list(const Index& start) {
    const Value to = least(start * -1 + f_.num_walked, b_.constant_index(kListed));
    const Value none = b_.constant_index(0);
    const Index j = index_of(b_.begin_loop(0, std::min(kListed, f_.num_walked)));
    b_.loop().from_value = none, b_.loop().to_value = to;
    const Value count = b_.add_carry(none);
    b_.set_range(count, {0, kListed - 1});
    const Value own = b_.affine(start + j);
    b_.set_range(own, {0, f_.num_walked - 1});
    Expected<Target> target = target_of(b_.delinearise(index_of(own), f_.walked_dims));
    if (target) {
      b_.store_linear(scratch(), index_of(count), b_.line(Opcode::Convert, DType::S32, {b_.affine(j)}));
      const Value one = b_.line(Opcode::Convert, DType::S64, {target->inside});
      b_.set_next(0, b_.affine(index_of(count) + index_of(one)));
    }
    const Value total = b_.loop().carries[0].result;
    b_.end_loop();
    if (!target) return target.error();
    return total;
  }
  int scratch() const { return static_cast<int>(b_.kernel().arguments.size()); }

  // --- Sorted indices

  bool is_sorted() const {
    return f_.s.indices_are_sorted && !f_.elementwise && f_.s.input_batching_dims.empty() &&
           f_.s.scatter_dims_to_operand_dims == hlo::Dims{grid_.dim};
  }
  // All that fall there lie between: the hint may be wrong, so each is asked again.
  Expected<> sorted_updates() {
    const std::int64_t before = f_.reach(grid_.dim) - 1;
    const Value from = TRY(first_not_below(b_.affine(index_of(first_) + -before)));
    const Value to = TRY(first_not_below(end_));
    const Index u = index_of(b_.begin_loop(0, f_.num_walked));
    b_.loop().from_value = from, b_.loop().to_value = to;
    return closed(1, [&] { return update(u); });
  }
  // The number of the first update whose index is no less.
  Expected<Value> first_not_below(Value bound) {
    While w;
    b_.begin_block();
    const Value low = b_.define(DType::S64), high = b_.define(DType::S64);
    w.predicate = less(low, high);
    w.condition = b_.end_block();
    b_.begin_block();
    const Value sum = b_.affine(index_of(low) + index_of(high));
    const Value middle = b_.line(Opcode::Divide, DType::S64, {sum, b_.constant_index(2)});
    b_.set_range(middle, {0, f_.num_walked - 1});
    const auto start = start_of(0, b_.delinearise(index_of(middle), f_.walked_dims));
    const Value is_below = start ? less(*start, bound) : kNoValue;
    const auto select = [&](Value t, Value f) { return b_.line(Opcode::Select, DType::S64, {is_below, t, f}); };
    const Value next_low = start ? select(b_.affine(index_of(middle) + 1), low) : low;
    const Value next_high = start ? select(high, middle) : high;
    w.body = b_.end_block();
    TRY(start);
    const Value result = b_.define(DType::S64);
    w.carries = {{low, b_.constant_index(0), next_low, result},
                 {high, b_.constant_index(f_.num_walked), next_high, b_.define(DType::S64)}};
    b_.append(Statement{std::move(w)});
    return result;
  }

  // --- One update, or one element of it

  struct Target {
    Point to;                ///< where its window begins
    Value inside = kNoValue;  ///< in bounds, and in the call's range
  };

  // Coordinate k of the update's indices. `at` has one for each dimension of `walked`.
  Expected<Value> start_of(std::size_t k, const std::vector<Index>& at) {
    Point batch = batch_of(at);
    if (f_.s.index_vector_dim < f_.indices.shape().rank())
      batch.insert(batch.begin() + static_cast<std::ptrdiff_t>(f_.s.index_vector_dim), Index{static_cast<std::int64_t>(k), {}});
    return e_.index_value(f_.indices, batch);
  }
  Point batch_of(const std::vector<Index>& at) const {
    Point batch;
    for (std::size_t n = 0; n < at.size(); ++n)
      if (!contains(f_.s.update_window_dims, f_.walked[n])) batch.push_back(at[n]);
    return batch;
  }

  Expected<Target> target_of(const std::vector<Index>& at) {
    Target t{Point(static_cast<std::size_t>(f_.whole.rank())), b_.constant(DType::Pred, 1)};
    for (std::size_t k = 0; k < f_.s.scatter_dims_to_operand_dims.size(); ++k) {
      const auto d = static_cast<std::size_t>(f_.s.scatter_dims_to_operand_dims[k]);
      const Value start = TRY(start_of(k, at));
      t.to[d] = index_of(start);
      // What lies in the call's range lies in the array.
      if (is_owned(static_cast<std::int64_t>(d)) && f_.window[d] == 1) continue;
      t.inside = both(t.inside, is_below(start, f_.whole.dim(static_cast<std::int64_t>(d)) - f_.window[d] + 1));
    }
    const Point batch = batch_of(at);
    for (std::size_t j = 0; j < f_.s.input_batching_dims.size(); ++j) {
      std::int64_t d = f_.s.scatter_indices_batching_dims[j];
      if (d > f_.s.index_vector_dim) --d;
      t.to[static_cast<std::size_t>(f_.s.input_batching_dims[j])] = batch[static_cast<std::size_t>(d)];
    }
    if (f_.elementwise) add_window_element(at, t.to);
    if (has_owner()) t.inside = both(t.inside, meets_range(t.to[static_cast<std::size_t>(grid_.dim)]));
    return t;
  }
  void add_window_element(const std::vector<Index>& at, Point& to) const {
    for (std::size_t d = 0; d < to.size(); ++d)
      for (std::size_t n = 0; n < at.size(); ++n)
        if (f_.walked[n] == f_.update_dim[d]) to[d] = to[d] + at[n];
  }
  // One comparison: what is negative is large without a sign.
  Value is_below(Value x, std::int64_t bound) { return below_unsigned(x, b_.constant_index(bound)); }
  Value below_unsigned(Value x, Value bound) {
    const auto bits = [&](Value v) { return b_.line(Opcode::BitcastConvert, DType::U64, {v}); };
    return e_.compare(Direction::Lt, bits(x), bits(bound), hlo::Comparison::Unsigned);
  }
  Value meets_range(const Index& start) {
    const std::int64_t reach = f_.reach(grid_.dim);
    const Index behind_first = start + index_of(first_, -1) + (reach - 1);
    return below_unsigned(b_.affine(behind_first), b_.affine(index_of(end_) + index_of(first_, -1) + (reach - 1)));
  }

  Expected<> update_at(const std::vector<Index>& at, bool listed = false) {
    Target target = TRY(target_of(at));
    Point point(static_cast<std::size_t>(f_.updates.rank()));
    for (std::size_t n = 0; n < at.size(); ++n) point[static_cast<std::size_t>(f_.walked[n])] = at[n];
    const Body window = [&] {
      // Updates before this one may have changed the element, even where its place is the same for all of them.
      updated_ = index_of(b_.begin_loop(0, 1));
      return closed(1, [&] { return f_.elementwise ? combine(target.to, point) : over_window(target.to, point); });
    };
    return listed ? window() : when(target.inside, window, {});
  }

  // The window, or what lies of it in the call's range.
  Expected<> over_window(Point to, Point point) {
    std::size_t loops = 0;
    std::int64_t lane_dim = -1;
    for (std::int64_t d = 0; d < f_.whole.rank(); ++d)
      if (f_.window[static_cast<std::size_t>(d)] > 1) lane_dim = d;
    for (std::int64_t dim = 0; dim < f_.whole.rank(); ++dim) {
      const auto d = static_cast<std::size_t>(dim);
      if (f_.window[d] == 1) continue;
      Value from = kNoValue, end = kNoValue;
      if (is_owned(dim)) {
        from = most(index_of(first_) + to[d] * -1, b_.constant_index(0));
        end = least(index_of(end_) + to[d] * -1, b_.constant_index(f_.window[d]));
      }
      const Index v = index_of(b_.begin_loop(0, f_.window[d], dim == lane_dim ? lanes_for(f_.window[d]) : 0));
      b_.loop().from_value = from, b_.loop().to_value = end;
      ++loops;
      to[d] = to[d] + v;
      point[static_cast<std::size_t>(f_.update_dim[d])] = v;
    }
    return closed(loops, [&] { return combine(to, point); });
  }

  Expected<> combine(const Point& to, const Point& point) {
    std::vector<Value> arguments;
    for (const Place& result : results_) arguments.push_back(b_.load_after(result, to, updated_));
    for (std::int64_t k = 0; k < f_.n; ++k) {
      const Value x = TRY(e_.at(*f_.i.operand(f_.n + 1 + k), point));
      arguments.push_back(x);
    }
    const std::vector<Value> combined = TRY(e_.apply(*f_.i.to_apply(), arguments));
    for (std::size_t k = 0; k < results_.size(); ++k) b_.store(results_[k], to, combined[k]);
    return {};
  }

  Builder& b_;
  const Form f_;
  const std::vector<Place>& results_;
  const ScatterGrid& grid_;
  Elements e_;
  Index updated_;                          ///< 0, known only after the updates before
  Value first_ = kNoValue, end_ = kNoValue;  ///< of `grid_.dim`, what the call owns, unless that is all
};

}  // namespace

ScatterGrid scatter_grid(const Instruction& scatter, bool in_place) {
  using Share = ScatterGrid::Share;
  const Form form(scatter);
  ScatterGrid grid;
  grid.cost = form.num_walked * kWindowBytes;
  for (std::int64_t k = 0; k < form.n; ++k) {
    grid.cost += 2 * scatter.operand(form.n + 1 + k)->shape().size_bytes();
    if (!in_place) grid.cost += 2 * scatter.operand(k)->shape().size_bytes();
  }
  const std::int64_t blocks = std::min((grid.cost + kBlockBytes - 1) / kBlockBytes, kMaxBlocks);
  if (grid.cost <= kSerialBytes || form.num_walked == 0 || !has_whole_layouts(form)) return grid;
  if (form.s.unique_indices && in_place && form.num_walked >= 2 * blocks) {
    grid.share = Share::Updates;
    grid.block = (form.num_walked + blocks - 1) / blocks;
    grid.blocks = (form.num_walked + grid.block - 1) / grid.block;
    return grid;
  }
  if (grid.cost <= kSerialRangedBytes) return grid;
  grid.dim = shared_dimension(form);
  if (grid.dim < 0) return grid;
  grid.block = range_block(form, grid.dim, blocks);
  grid.blocks = (form.whole.dim(grid.dim) + grid.block - 1) / grid.block;
  if (grid.blocks < 2) return grid;
  grid.share = Share::Ranges;
  grid.scratch_bytes = kListed * static_cast<std::int64_t>(sizeof(std::int32_t));
  return grid;
}

Expected<> plan_scatter_into(Builder& b, const Instruction& scatter, const Places& places, const ScatterGrid& grid,
                             std::span<const std::int64_t> copied) {
  return Planner(b, scatter, places, grid).plan(copied);
}

}  // namespace hloom::kernels

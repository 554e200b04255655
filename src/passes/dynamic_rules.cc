#include "passes/dynamic_rules.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/inline.h"
#include "passes/dynamic_collectives.h"
#include "passes/dynamic_reshape.h"
#include "passes/dynamic_windows.h"

namespace hloom::passes {
namespace {

bool contains(const Dims& list, std::int64_t d) { return std::ranges::find(list, d) != list.end(); }
bool any_size(const DimSizes& sizes) {
  return std::ranges::any_of(sizes, [](const Instruction* s) { return s != nullptr; });
}

/// One instruction and the sizes of its operands.
class Rules {
 public:
  Rules(Instruction& i, const SizesOf& sizes_of) : i_(i), make_(i), sizes_of_(sizes_of) {}

  Expected<Sized> apply() {
    switch (i_.opcode()) {
      case Opcode::Broadcast: return broadcast();
      case Opcode::Transpose: return transpose();
      case Opcode::Reverse: return reverse();
      case Opcode::Concatenate: return concatenate();
      case Opcode::Pad: return pad();
      case Opcode::Slice: return slice();
      case Opcode::DynamicSlice: return dynamic_slice();
      case Opcode::DynamicUpdateSlice: return dynamic_update_slice();
      case Opcode::Reshape: return reshape();
      case Opcode::DynamicReshape: return dynamic_reshape();
      case Opcode::Dot: return dot();
      case Opcode::Reduce: return reduce();
      case Opcode::ReduceWindow: return reduce_window();
      case Opcode::Sort: return sort();
      case Opcode::Gather: return gather();
      case Opcode::GetDimensionSize: return get_dimension_size();
      case Opcode::SetDimensionSize: return set_dimension_size();
      case Opcode::OptBarrier:
      case Opcode::AddDependency: return same(sizes(0));
      case Opcode::BitcastConvert:
        if (i_.shape().rank() == i_.operand(0)->shape().rank()) return same(sizes(0));
        return no_form();
      case Opcode::Convolution:
      case Opcode::Scatter:
      case Opcode::Fft:
      case Opcode::Cholesky:
      case Opcode::TriangularSolve:
      case Opcode::BatchNormGrad:
      case Opcode::BatchNormInference:
      case Opcode::BatchNormTraining:
      case Opcode::SelectAndScatter: return apply_window_sizes(i_, sizes_of_);
      case Opcode::AllGather:
      case Opcode::AllReduce:
      case Opcode::AllToAll:
      case Opcode::CollectiveBroadcast:
      case Opcode::CollectivePermute:
      case Opcode::ReduceScatter: return apply_collective_sizes(i_, sizes_of_);
      default:
        if (hlo::is_elementwise(i_.opcode())) return same(least(0, i_.num_operands()));
        return no_form();
    }
  }

 private:
  Expected<Sized> no_form() const { return no_dynamic_form(i_); }
  // The instruction itself, on bounds.
  Expected<Sized> same(DimSizes sizes) {
    i_.set_shape(with_bounds(i_.shape()));
    return Sized{&i_, {std::move(sizes)}};
  }

  DimSizes sizes(std::int64_t operand) const { return sizes_of_(i_.operand(operand)); }
  Instruction* number(std::int64_t n) { return make_.integer(DType::S32, n); }
  Instruction* size_or_bound(const DimSizes& sizes, std::int64_t operand, std::int64_t d) {
    Instruction* s = sizes[static_cast<std::size_t>(d)];
    return s != nullptr ? s : number(i_.operand(operand)->shape().dim(d));
  }
  Instruction* smaller(Instruction* a, Instruction* b) {
    if (a == nullptr || a == b) return b;
    return b == nullptr ? a : make_.binary(Opcode::Minimum, a, b);
  }
  // Where operands must agree the smallest size counts.
  DimSizes least(std::int64_t first, std::int64_t last) {
    DimSizes result;
    for (std::int64_t k = first; k < last; ++k) {
      const DimSizes own = sizes(k);
      if (result.size() < own.size()) result.resize(own.size(), nullptr);
      for (std::size_t d = 0; d < own.size(); ++d) result[d] = smaller(result[d], own[d]);
    }
    return result;
  }
  Instruction* zero(DType type) { return make_.zeros(Shape::scalar(type)); }

  Expected<Sized> broadcast() {
    const DimSizes from = sizes(0);
    DimSizes to(static_cast<std::size_t>(i_.shape().rank()), nullptr);
    for (std::size_t d = 0; d < from.size(); ++d) to[static_cast<std::size_t>(i_.dimensions()[d])] = from[d];
    return same(std::move(to));
  }

  Expected<Sized> transpose() {
    const DimSizes from = sizes(0);
    DimSizes to;
    for (const std::int64_t d : i_.dimensions()) to.push_back(from[static_cast<std::size_t>(d)]);
    return same(std::move(to));
  }

  // Elements from `start` on along d, as many as the dimension has; what lies past its end is any.
  Instruction* from_start(Instruction* x, std::int64_t d, Instruction* start) {
    Dims twice = x->shape().dims();
    twice[static_cast<std::size_t>(d)] *= 2;
    Instruction* wide = make_.op(Opcode::Concatenate, Shape::array(x->shape().dtype(), twice), {x, x});
    wide->set_dimensions({d});
    std::vector<Instruction*> starts(twice.size(), number(0));
    starts[static_cast<std::size_t>(d)] = start;
    return make_.dynamic_slice(wide, starts, x->shape().dims());
  }

  // Reversed whole, the elements that count stand at the end.
  Expected<Sized> reverse() {
    const DimSizes own = sizes(0);
    Instruction* result = make_.op(Opcode::Reverse, with_bounds(i_.shape()), {i_.operand(0)});
    result->set_dimensions(i_.dimensions());
    for (const std::int64_t d : i_.dimensions()) {
      Instruction* size = own[static_cast<std::size_t>(d)];
      if (size == nullptr) continue;
      result = from_start(result, d, make_.binary(Opcode::Subtract, number(i_.shape().dim(d)), size));
    }
    return Sized{result, {own}};
  }

  // Each operand where the ones before it end; the next overwrites what does not count of it.
  Expected<Sized> concatenate() {
    const std::int64_t along = i_.dimension(0);
    const auto u = static_cast<std::size_t>(along);
    DimSizes result = least(0, i_.num_operands());
    bool shifts = false;
    for (std::int64_t k = 0; k < i_.num_operands(); ++k) shifts = shifts || sizes(k)[u] != nullptr;
    result[u] = nullptr;
    if (!shifts) return same(std::move(result));
    Instruction* to = make_.zeros(with_bounds(i_.shape()));
    Instruction* at = number(0);
    for (std::int64_t k = 0; k < i_.num_operands(); ++k) {
      std::vector<Instruction*> starts(result.size(), number(0));
      starts[u] = at;
      to = make_.dynamic_update_slice(to, i_.operand(k), starts);
      at = make_.binary(Opcode::Add, at, size_or_bound(sizes(k), k, along));
    }
    result[u] = at;
    return Sized{to, {std::move(result)}};
  }

  // What does not count is padding too, so that it may stand where the padding behind the run-time size goes.
  Expected<Sized> pad() {
    const DimSizes own = sizes(0);
    const auto& padding = i_.attr<hlo::PadAttr>().dims;
    i_.replace_operand(0, masked(make_, i_.operand(0), own, i_.operand(1)));
    DimSizes result(own.size(), nullptr);
    for (std::size_t d = 0; d < own.size(); ++d) {
      if (own[d] == nullptr) continue;
      Instruction* gaps = make_.binary(Opcode::Maximum, make_.binary(Opcode::Subtract, own[d], number(1)), number(0));
      Instruction* size = make_.binary(Opcode::Add, own[d], make_.binary(Opcode::Multiply, gaps, number(padding[d].interior)));
      size = make_.binary(Opcode::Add, size, number(padding[d].low + padding[d].high));
      result[d] = make_.binary(Opcode::Maximum, size, number(0));
    }
    return same(std::move(result));
  }

  // A part of a dynamic dimension has its own fixed size; what is past the run-time size is zero in it.
  Expected<Sized> slice() {
    const DimSizes own = sizes(0);
    DimSizes kept = own, cut = own;
    for (std::int64_t d = 0; d < i_.shape().rank(); ++d)
      (i_.shape().is_dynamic_dim(d) ? cut : kept)[static_cast<std::size_t>(d)] = nullptr;
    i_.replace_operand(0, masked(make_, i_.operand(0), cut, zero(i_.shape().dtype())));
    return same(std::move(kept));
  }

  // Starts are clamped to where the window still lies within the run-time size.
  Expected<Sized> dynamic_slice() {
    const DimSizes own = sizes(0);
    DimSizes kept = own, cut = own;
    for (std::int64_t d = 0; d < i_.shape().rank(); ++d)
      (i_.shape().is_dynamic_dim(d) ? cut : kept)[static_cast<std::size_t>(d)] = nullptr;
    if (any_size(cut)) {
      const std::vector<Instruction*> starts = clamped_starts(cut, i_.shape().dims());
      Instruction* from = masked(make_, i_.operand(0), cut, zero(i_.shape().dtype()));
      return Sized{make_.dynamic_slice(from, starts, i_.shape().dims()), {kept}};
    }
    return same(std::move(kept));
  }

  std::vector<Instruction*> clamped_starts(const DimSizes& sizes, const Dims& window) {
    std::vector<Instruction*> starts = start_scalars(i_);
    for (std::size_t d = 0; d < starts.size(); ++d) {
      if (sizes[d] == nullptr) continue;
      Instruction* top = make_.binary(Opcode::Subtract, sizes[d], number(window[d]));
      top = make_.convert(make_.binary(Opcode::Maximum, top, number(0)), starts[d]->shape().dtype());
      starts[d] = make_.binary(Opcode::Minimum, starts[d], top);
    }
    return starts;
  }

  Expected<Sized> dynamic_update_slice() {
    const DimSizes own = sizes(0), update = sizes(1);
    // An update as long as a dynamic dimension is the whole of it.
    for (std::size_t d = 0; d < own.size(); ++d)
      if (update[d] != nullptr && (update[d] != own[d] || i_.operand(0)->shape().dims()[d] != i_.operand(1)->shape().dims()[d]))
        return no_form();
    DimSizes cut = own;
    for (std::size_t d = 0; d < own.size(); ++d)
      if (update[d] != nullptr) cut[d] = nullptr;
    if (!any_size(cut)) return same(own);
    const std::vector<Instruction*> starts = clamped_starts(cut, i_.operand(1)->shape().dims());
    return Sized{make_.dynamic_update_slice(i_.operand(0), i_.operand(1), starts), {own}};
  }

  Expected<Sized> reshape() {
    const DimSizes own = sizes(0);
    const Shape bound = with_bounds(i_.shape());
    DimSizes result(bound.dims().size(), nullptr);
    const std::int64_t inferred = i_.attr<hlo::ReshapeAttr>().inferred_dimension;
    for (std::int64_t d = 0; d < bound.rank(); ++d) {
      if (!i_.shape().is_dynamic_dim(d) || (inferred >= 0 && d != inferred)) continue;
      Instruction* count = number(1);
      for (std::int64_t k = 0; k < std::ssize(own); ++k)
        count = make_.binary(Opcode::Multiply, count, size_or_bound(own, 0, k));
      std::int64_t others = 1;
      for (std::int64_t k = 0; k < bound.rank(); ++k) others *= k == d ? 1 : bound.dim(k);
      result[static_cast<std::size_t>(d)] = others == 0 ? number(0) : make_.binary(Opcode::Divide, count, number(others));
      break;
    }
    return Sized{reshape_in_bounds(make_, i_.operand(0), own, bound.dims(), result), {result}};
  }

  Expected<Sized> dynamic_reshape() {
    const Shape bound = with_bounds(i_.shape());
    DimSizes result(bound.dims().size(), nullptr);
    Instruction *count = number(1), *new_count = number(1);
    for (std::int64_t d = 0; d < bound.rank(); ++d) {
      const bool dynamic = i_.shape().is_dynamic_dim(d);
      Instruction* size = checked_size(make_, i_.operand(d + 1), dynamic ? 0 : bound.dim(d), bound.dim(d));
      if (dynamic) result[static_cast<std::size_t>(d)] = size;
      new_count = make_.binary(Opcode::Multiply, new_count, size);
    }
    for (std::int64_t d = 0; d < i_.operand(0)->shape().rank(); ++d)
      count = make_.binary(Opcode::Multiply, count, size_or_bound(sizes(0), 0, d));
    checked_size(make_, new_count, count, count);
    return Sized{reshape_in_bounds(make_, i_.operand(0), sizes(0), bound.dims(), result), {result}};
  }

  // Zeros on both sides where what is contracted ends: what does not count may be a NaN.
  Expected<Sized> dot() {
    const auto& attr = i_.attr<hlo::DotAttr>();
    DimSizes lhs = sizes(0), rhs = sizes(1);
    const auto pair = [&](const Dims& a, const Dims& b) {
      for (std::size_t k = 0; k < a.size(); ++k) {
        Instruction *&x = lhs[static_cast<std::size_t>(a[k])], *&y = rhs[static_cast<std::size_t>(b[k])];
        x = y = smaller(x, y);
      }
    };
    pair(attr.lhs_batch, attr.rhs_batch);
    pair(attr.lhs_contracting, attr.rhs_contracting);
    DimSizes result;
    for (const std::int64_t d : attr.lhs_batch) result.push_back(lhs[static_cast<std::size_t>(d)]);
    const auto side = [&](std::int64_t operand, const DimSizes& own, const Dims& batch, const Dims& contracting) {
      DimSizes cut(own.size(), nullptr);
      for (const std::int64_t d : contracting) cut[static_cast<std::size_t>(d)] = own[static_cast<std::size_t>(d)];
      for (std::int64_t d = 0; d < std::ssize(own); ++d)
        if (!contains(batch, d) && !contains(contracting, d)) result.push_back(own[static_cast<std::size_t>(d)]);
      Instruction* x = i_.operand(operand);
      i_.replace_operand(operand, masked(make_, x, cut, zero(x->shape().dtype())));
    };
    side(0, lhs, attr.lhs_batch, attr.lhs_contracting);
    side(1, rhs, attr.rhs_batch, attr.rhs_contracting);
    return same(std::move(result));
  }

  // The element that a combiner leaves others as they are with, or null.
  Instruction* identity(const hlo::Computation& combiner, DType type) {
    const auto op = simple_combiner(combiner);
    return op ? make_.identity(*op, type) : nullptr;
  }

  Expected<Sized> reduce() {
    const std::int64_t n = i_.num_operands() / 2;
    const DimSizes own = least(0, n);
    DimSizes kept, cut(own.size(), nullptr);
    for (std::int64_t d = 0; d < std::ssize(own); ++d) {
      if (contains(i_.dimensions(), d))
        cut[static_cast<std::size_t>(d)] = own[static_cast<std::size_t>(d)];
      else
        kept.push_back(own[static_cast<std::size_t>(d)]);
    }
    std::vector<DimSizes> all(static_cast<std::size_t>(n), kept);
    Instruction* neutral = n == 1 ? identity(*i_.to_apply(), i_.operand(0)->shape().dtype()) : nullptr;
    if (!any_size(cut) || neutral != nullptr) {
      if (any_size(cut)) i_.replace_operand(0, masked(make_, i_.operand(0), cut, neutral));
      i_.set_shape(with_bounds(i_.shape()));
      return Sized{&i_, std::move(all)};
    }
    return Sized{reduce_what_counts(cut, n), std::move(all)};
  }

  // With one more operand that says which elements count: pairs of which one does not are the other.
  Instruction* reduce_what_counts(const DimSizes& cut, std::int64_t n) {
    Instruction* yes = make_.integer(DType::Pred, 1);
    Instruction* no = make_.integer(DType::Pred, 0);
    const Dims& dims = i_.operand(0)->shape().dims();
    Instruction* counts = masked(make_, make_.broadcast_scalar(yes, dims), cut, no);
    std::vector<Instruction*> operands(i_.operands().begin(), i_.operands().begin() + n);
    operands.push_back(counts);
    operands.insert(operands.end(), i_.operands().begin() + n, i_.operands().end());
    operands.push_back(yes);
    const Shape bound = with_bounds(i_.shape());
    std::vector<Shape> shapes = n == 1 ? std::vector<Shape>{bound} : bound.elements();
    shapes.push_back(Shape::array(DType::Pred, shapes[0].dims()));
    Instruction* wide = make_.op(Opcode::Reduce, Shape::tuple(std::move(shapes)), std::move(operands));
    wide->set_dimensions(i_.dimensions());
    wide->set_called({counting_combiner(n)});
    if (n == 1) return make_.element(wide, 0);
    std::vector<Instruction*> results;
    for (std::int64_t k = 0; k < n; ++k) results.push_back(make_.element(wide, k));
    return make_.tuple(results);
  }

  hlo::Computation* counting_combiner(std::int64_t n) {
    const hlo::Computation& f = *i_.to_apply();
    hlo::Computation* c = i_.module().add_computation(f.name() + "_of_what_counts");
    Make make(i_, *c);
    std::vector<Instruction*> a, b;
    const auto parameter = [&](std::int64_t number, std::int64_t of) {
      const Shape shape = of == n ? Shape::scalar(DType::Pred) : f.parameter(number >= n + 1 ? of + n : of)->shape();
      return c->add_parameter(number, shape);
    };
    for (std::int64_t k = 0; k <= n; ++k) a.push_back(parameter(k, k));
    for (std::int64_t k = 0; k <= n; ++k) b.push_back(parameter(n + 1 + k, k));
    std::vector<Instruction*> arguments(a.begin(), a.end() - 1);
    arguments.insert(arguments.end(), b.begin(), b.end() - 1);
    Instruction* both = inline_computation(f, arguments, *c);
    Instruction* either = make.binary(Opcode::Or, a.back(), b.back());
    std::vector<Instruction*> results;
    for (std::int64_t k = 0; k < n; ++k) {
      const auto u = static_cast<std::size_t>(k);
      Instruction* joined = n == 1 ? both : make.element(both, k);
      Instruction* second = make.convert(b[u], joined->shape().dtype());
      results.push_back(make.select(b.back(), make.select(a.back(), joined, second), a[u]));
    }
    results.push_back(either);
    c->set_root(make.tuple(results));
    return c;
  }

  Expected<Sized> reduce_window() {
    const DimSizes own = sizes(0);
    const auto& window = i_.attr<hlo::WindowAttr>().window;
    if (i_.num_operands() != 2) return no_form();
    DimSizes cut(own.size(), nullptr), result(own.size(), nullptr);
    for (std::size_t d = 0; d < own.size(); ++d) {
      if (own[d] == nullptr) continue;
      result[d] = window_count(make_, own[d], window[d]);
      if (!(window[d] == hlo::WindowDim())) cut[d] = own[d];
    }
    if (any_size(cut)) {
      Instruction* neutral = identity(*i_.to_apply(), i_.operand(0)->shape().dtype());
      if (neutral == nullptr) return no_form();
      i_.replace_operand(0, masked(make_, i_.operand(0), cut, neutral));
    }
    return same(std::move(result));
  }

  // Along the sorted dimension what does not count comes last.
  Expected<Sized> sort() {
    const std::int64_t n = i_.num_operands(), along = i_.dimension(0);
    const DimSizes own = least(0, n);
    std::vector<DimSizes> all(static_cast<std::size_t>(n), own);
    Instruction* size = own[static_cast<std::size_t>(along)];
    if (size == nullptr) {
      i_.set_shape(with_bounds(i_.shape()));
      return Sized{&i_, std::move(all)};
    }
    const Dims& dims = i_.operand(0)->shape().dims();
    Instruction* at = make_.iota(DType::S32, dims, along);
    Instruction* past = make_.compare(hlo::Direction::Ge, at, make_.broadcast_scalar(size, dims));
    std::vector<Instruction*> operands = i_.operands();
    operands.push_back(past);
    std::vector<Shape> shapes;
    for (const Instruction* operand : operands) shapes.push_back(Shape::array(operand->shape().dtype(), dims));
    Instruction* wide = make_.op(Opcode::Sort, Shape::tuple(std::move(shapes)), std::move(operands));
    wide->set_dimensions(i_.dimensions());
    wide->set_attributes(i_.attributes());
    wide->set_called({past_last(n)});
    if (n == 1) return Sized{make_.element(wide, 0), std::move(all)};
    std::vector<Instruction*> results;
    for (std::int64_t k = 0; k < n; ++k) results.push_back(make_.element(wide, k));
    return Sized{make_.tuple(results), std::move(all)};
  }

  // Of a pair of which one counts that one is first; else as before.
  hlo::Computation* past_last(std::int64_t n) {
    const hlo::Computation& f = *i_.to_apply();
    hlo::Computation* c = i_.module().add_computation(f.name() + "_past_last");
    Make make(i_, *c);
    std::vector<Instruction*> arguments;
    for (std::int64_t k = 0; k < 2 * n; ++k) arguments.push_back(c->add_parameter(k, f.parameter(k)->shape()));
    Instruction* a = c->add_parameter(2 * n, Shape::scalar(DType::Pred));
    Instruction* b = c->add_parameter(2 * n + 1, Shape::scalar(DType::Pred));
    Instruction* less = inline_computation(f, arguments, *c);
    Instruction* differ = make.binary(Opcode::Xor, a, b);
    c->set_root(make.select(differ, b, less));
    return c;
  }

  // Dynamic dimensions of the indices are the result's; a part of a dynamic dimension of the operand is looked for below
  // the run-time size.
  Expected<Sized> gather() {
    const auto& attr = i_.attr<hlo::GatherAttr>();
    const DimSizes array = sizes(0), indices = sizes(1);
    if (attr.index_vector_dim < std::ssize(indices) && indices[static_cast<std::size_t>(attr.index_vector_dim)] != nullptr)
      return no_form();
    DimSizes window, batch, cut(array.size(), nullptr);
    for (std::int64_t d = 0; d < std::ssize(array); ++d) {
      const auto u = static_cast<std::size_t>(d);
      const bool whole = attr.slice_sizes[u] == i_.operand(0)->shape().dim(d);
      if (array[u] != nullptr && contains(attr.operand_batching_dims, d)) return no_form();
      if (!whole) cut[u] = array[u];
      if (contains(attr.collapsed_slice_dims, d) || contains(attr.operand_batching_dims, d)) continue;
      window.push_back(whole ? array[u] : nullptr);
    }
    for (std::int64_t d = 0; d < std::ssize(indices); ++d)
      if (d != attr.index_vector_dim) batch.push_back(indices[static_cast<std::size_t>(d)]);
    DimSizes result;
    std::size_t next_window = 0, next_batch = 0;
    for (std::int64_t d = 0; d < i_.shape().rank(); ++d)
      result.push_back(contains(attr.offset_dims, d) ? window[next_window++] : batch[next_batch++]);
    if (any_size(cut)) {
      i_.replace_operand(0, masked(make_, i_.operand(0), cut, zero(i_.shape().dtype())));
      i_.replace_operand(1, clamped_indices(attr, cut));
    }
    return same(std::move(result));
  }

  // Each component of the index vectors is at most what leaves the window within the size.
  Instruction* clamped_indices(const hlo::GatherAttr& attr, const DimSizes& cut) {
    Instruction* indices = i_.operand(1);
    const DType type = indices->shape().dtype();
    std::vector<Instruction*> tops;
    for (const std::int64_t d : attr.start_index_map) {
      const auto u = static_cast<std::size_t>(d);
      Instruction* size = cut[u] != nullptr ? cut[u] : number(i_.operand(0)->shape().dim(d));
      Instruction* top = make_.binary(Opcode::Subtract, size, number(attr.slice_sizes[u]));
      tops.push_back(make_.reshape(make_.convert(make_.binary(Opcode::Maximum, top, number(0)), type), {1}));
    }
    const Dims& dims = indices->shape().dims();
    if (attr.index_vector_dim == std::ssize(dims))
      return make_.binary(Opcode::Minimum, indices, make_.broadcast_scalar(make_.reshape(tops[0], {}), dims));
    Instruction* limits = tops[0];
    if (tops.size() > 1) {
      limits = make_.op(Opcode::Concatenate, Shape::array(type, {static_cast<std::int64_t>(tops.size())}), tops);
      limits->set_dimensions({0});
    }
    return make_.binary(Opcode::Minimum, indices, make_.broadcast(limits, dims, {attr.index_vector_dim}));
  }

  Expected<Sized> get_dimension_size() { return Sized{size_or_bound(sizes(0), 0, i_.dimension(0)), {{}}}; }

  Expected<Sized> set_dimension_size() {
    DimSizes own = sizes(0);
    const std::int64_t d = i_.dimension(0), bound = i_.shape().dim(d);
    const bool whole = !i_.shape().is_dynamic_dim(d) || constant_integer(i_.operand(1)) == bound;
    own[static_cast<std::size_t>(d)] = whole ? nullptr : checked_size(make_, i_.operand(1), 0, bound);
    return Sized{i_.operand(0), {std::move(own)}};
  }

  Instruction& i_;
  Make make_;
  const SizesOf& sizes_of_;
};

}  // namespace

bool is_dynamic(const Shape& shape) {
  return std::ranges::any_of(leaves(shape), [](const Shape* leaf) { return leaf->has_dynamic_dims(); });
}

Shape with_bounds(const Shape& shape) {
  Shape result = shape;
  if (shape.is_tuple())
    for (Shape& element : result.elements()) element = with_bounds(element);
  else if (shape.is_array())
    for (std::int64_t d = 0; d < shape.rank(); ++d) result.set_dynamic_dim(d, false);
  return result;
}

Instruction* masked(Make& make, Instruction* x, const DimSizes& sizes, Instruction* fill) {
  const Dims& dims = x->shape().dims();
  Instruction* inside = nullptr;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d] == nullptr) continue;
    Instruction* at = make.iota(DType::S32, dims, static_cast<std::int64_t>(d));
    Instruction* below = make.compare(hlo::Direction::Lt, at, make.broadcast_scalar(sizes[d], dims));
    inside = inside == nullptr ? below : make.binary(Opcode::And, inside, below);
  }
  return inside == nullptr ? x : make.select(inside, x, make.broadcast_scalar(fill, dims));
}

Expected<Sized> apply_sizes(Instruction& i, const SizesOf& sizes_of) { return Rules(i, sizes_of).apply(); }

}  // namespace hloom::passes

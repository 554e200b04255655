// reduce, scan, sort, topk, hlo-ops 7.
#include "hlo/infer_rules.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

// N arrays of equal dimensions, then N scalars.
Expected<> want_arrays_and_inits(const Instruction& i) {
  if (i.num_operands() < 2 || i.num_operands() % 2 != 0)
    return wrong(i, i.opcode(), " takes N arrays and N initial values, found ", i.num_operands(), " operands");
  TRY(want_arrays(i));
  const std::int64_t n = i.num_operands() / 2;
  for (std::int64_t k = 0; k < n; ++k) {
    if (!same_dims(i.operand(k)->shape(), i.operand(0)->shape()))
      return wrong(i, "arrays must have equal dimensions, found ", i.operand(0)->shape(), " and ",
                   i.operand(k)->shape());
    if (!i.operand(n + k)->shape().is_scalar())
      return wrong(i, "initial value ", k, " must be a scalar, found ", i.operand(n + k)->shape());
  }
  return {};
}

// The function takes N accumulators, which have the types of the initial values, then N elements, and gives N
// accumulators. Element types may differ from the accumulators' in precision.
Expected<> want_reducer(const Instruction& i) {
  const std::int64_t n = i.num_operands() / 2;
  const Computation& reducer = *i.to_apply();
  std::vector<Shape> accumulators, elements;
  for (std::int64_t k = 0; k < n; ++k) {
    accumulators.push_back(Shape::scalar(i.operand(n + k)->shape().dtype()));
    elements.push_back(Shape::scalar(i.operand(k)->shape().dtype()));
    if (!more_precise(accumulators.back().dtype(), elements.back().dtype()))
      return wrong(i, "reduces ", elements.back(), " from an initial value of ", accumulators.back());
  }
  const Shape result = one_or_tuple(accumulators);
  std::vector<Shape> parameters = accumulators;
  parameters.insert(parameters.end(), elements.begin(), elements.end());
  // The result may also be a tuple of one.
  const bool tuple_of_one = n == 1 && reducer.root()->shape().is_tuple();
  TRY(want_signature(i, reducer, parameters, tuple_of_one ? Shape::tuple(accumulators) : result,
                     /*ignore_precision=*/true));
  for (std::int64_t k = 0; k < n; ++k)
    if (!compatible(reducer.parameter(k)->shape(), results_of(reducer)[static_cast<std::size_t>(k)]))
      return wrong(i, "computation ", reducer.name(), " must give the type of its parameter ", k);
  return {};
}

Expected<Shape> infer_reduce(const Instruction& i) {
  TRY(want_arrays_and_inits(i));
  const Shape& first = i.operand(0)->shape();
  TRY(want_distinct(i, i.dimensions(), first.rank(), "dimensions"));
  TRY(want_reducer(i));
  const Dims kept = remaining_dims(first, i.dimensions());
  std::vector<Shape> results;
  for (const Shape& r : results_of(*i.to_apply())) {
    Shape result = pick_dims(first, kept);
    for (std::int64_t k = 0; k < i.num_operands() / 2; ++k)
      for (std::size_t d = 0; d < kept.size(); ++d)
        if (i.operand(k)->shape().is_dynamic_dim(kept[d])) result.set_dynamic_dim(static_cast<std::int64_t>(d), true);
    result.set_dtype(r.dtype());
    results.push_back(std::move(result));
  }
  return i.to_apply()->root()->shape().is_tuple() ? Shape::tuple(std::move(results)) : results.front();
}

Expected<Shape> infer_reduce_window(const Instruction& i) {
  TRY(want_arrays_and_inits(i));
  const Shape& first = i.operand(0)->shape();
  const Window& window = i.attr<WindowAttr>().window;
  if (static_cast<std::int64_t>(window.size()) != first.rank())
    return wrong(i, "window has ", window.size(), " dimensions, operand ", first.rank());
  for (const WindowDim& w : window)
    if (w.reversal) return wrong(i, "the window of ", i.opcode(), " may not be reversed");
  TRY(want_reducer(i));
  const Dims dims = TRY(windowed_dims(i, first.dims(), window));
  std::vector<Shape> results;
  for (const Shape& r : results_of(*i.to_apply())) {
    Shape result = Shape::array(r.dtype(), dims);
    for (std::int64_t d = 0; d < first.rank(); ++d) result.set_dynamic_dim(d, first.is_dynamic_dim(d));
    results.push_back(std::move(result));
  }
  return i.to_apply()->root()->shape().is_tuple() ? Shape::tuple(std::move(results)) : results.front();
}

Expected<Shape> infer_select_and_scatter(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape &array = i.operand(0)->shape(), &source = i.operand(1)->shape(), &init = i.operand(2)->shape();
  const Window& window = i.attr<WindowAttr>().window;
  if (static_cast<std::int64_t>(window.size()) != array.rank())
    return wrong(i, "window has ", window.size(), " dimensions, operand ", array.rank());
  for (const WindowDim& w : window)
    if (w.reversal) return wrong(i, "the window of ", i.opcode(), " may not be reversed");
  if (!init.is_scalar()) return wrong(i, "the initial value must be a scalar, found ", init);
  const Dims dims = TRY(windowed_dims(i, array.dims(), window));
  if (source.dims() != dims)
    return wrong(i, "source ", source, " must have the window's dimensions ", Shape::array(source.dtype(), dims));
  const Shape value = Shape::scalar(array.dtype()), from = Shape::scalar(source.dtype());
  TRY(want_signature(i, *i.called(0), {value, value}, Shape::scalar(DType::Pred)));
  TRY(want_signature(i, *i.called(1), {from, Shape::scalar(init.dtype())}, value, /*ignore_precision=*/true));
  return with_type(array, array.dtype());
}

Expected<Shape> infer_sort(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, "sort needs an operand");
  TRY(want_arrays(i));
  const Shape& first = i.operand(0)->shape();
  if (i.dimensions().size() != 1) return wrong(i, "sort needs one dimension, found ", i.dimensions().size());
  TRY(want_distinct(i, i.dimensions(), first.rank(), "dimensions"));
  std::vector<Shape> results, parameters;
  for (const Instruction* operand : i.operands()) {
    const Shape& s = operand->shape();
    if (!same_dims(s, first)) return wrong(i, "operands must have equal dimensions, found ", first, " and ", s);
    results.push_back(with_type(s, s.dtype()));
    parameters.insert(parameters.end(), 2, Shape::scalar(s.dtype()));
  }
  TRY(want_signature(i, *i.to_apply(), parameters, Shape::scalar(DType::Pred)));
  return one_or_tuple(std::move(results));
}

Expected<Shape> infer_topk(const Instruction& i) {
  TRY(want_array(i, 0));
  Shape values = with_type(i.operand(0)->shape(), i.operand(0)->shape().dtype());
  const std::int64_t k = i.attr<TopKAttr>().k, last = values.rank() - 1;
  if (last < 0) return wrong(i, "topk needs a dimension, found ", values);
  if (k < 0 || (values.dim(last) != Shape::kUnbounded && k > values.dim(last)))
    return wrong(i, "k ", k, " must lie in [0, ", values.dim(last), "]");
  values.set_dim(last, k);
  values.set_dynamic_dim(last, false);
  return Shape::tuple({values, with_type(values, DType::S32)});
}

Expected<Shape> infer_scan(const Instruction& i) {
  TRY(want_arrays(i));
  const std::int64_t carries = i.attr<ScanAttr>().num_carries;
  if (carries < 0 || carries >= i.num_operands())
    return wrong(i, "num_carries ", carries, " of ", i.num_operands(), " operands leaves no input");
  const std::int64_t inputs = i.num_operands() - carries;
  if (i.dimensions().size() != 1) return wrong(i, "scan needs one dimension, found ", i.dimensions().size());
  const std::int64_t along = i.dimension(0);
  const Shape& first = i.operand(0)->shape();
  std::vector<Shape> parameters, final_carries;
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    const Shape& s = i.operand(k)->shape();
    if (k >= inputs) {
      final_carries.push_back(with_type(s, s.dtype()));
      parameters.push_back(final_carries.back());
      continue;
    }
    TRY(want_distinct(i, i.dimensions(), s.rank(), "dimensions"));
    if (s.dim(along) != first.dim(along))
      return wrong(i, "inputs must have equal dimension ", along, ", found ", first, " and ", s);
    parameters.push_back(pick_dims(s, remaining_dims(s, i.dimensions())));
  }
  TRY(want_signature(i, *i.to_apply(), parameters, Shape()));
  const std::vector<Shape> given = results_of(*i.to_apply());
  const auto outputs = static_cast<std::int64_t>(given.size()) - carries;
  if (outputs < 0) return wrong(i, "computation ", i.to_apply()->name(), " gives fewer results than carries");
  std::vector<Shape> results;
  for (std::int64_t k = 0; k < outputs; ++k) {
    const Shape& slice = given[static_cast<std::size_t>(k)];
    if (!slice.is_array() || slice.rank() >= Shape::kMaxRank || along > slice.rank())
      return wrong(i, "output ", k, " of ", i.to_apply()->name(), " cannot be stacked: ", slice);
    Dims dims = slice.dims();
    dims.insert(dims.begin() + along, first.dim(along));
    results.push_back(Shape::array(slice.dtype(), std::move(dims)));
  }
  for (std::int64_t k = 0; k < carries; ++k) {
    const Shape &carry = final_carries[static_cast<std::size_t>(k)],
                &next = given[static_cast<std::size_t>(outputs + k)];
    if (!compatible(carry, next)) return wrong(i, "carry ", k, " is ", carry, " and becomes ", next);
    results.push_back(carry);
  }
  return Shape::tuple(std::move(results));
}

}  // namespace

Expected<Shape> infer_reduction(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Reduce: return infer_reduce(i);
    case Opcode::ReduceWindow: return infer_reduce_window(i);
    case Opcode::SelectAndScatter: return infer_select_and_scatter(i);
    case Opcode::Sort: return infer_sort(i);
    case Opcode::Topk: return infer_topk(i);
    case Opcode::Scan: return infer_scan(i);
    default: return wrong(i, i.opcode(), " reduces nothing");
  }
}

}  // namespace hloom::hlo

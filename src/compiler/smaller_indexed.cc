// Gathers of some places of the batch, and scatters of those updates that meet a box.

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "compiler/smaller_plan.h"
#include "interp/index.h"

namespace hloom::compiler {

using hlo::Dims;
using hlo::Instruction;
using hlo::Literal;

namespace {

bool contains(const Dims& list, std::int64_t d) { return std::ranges::find(list, d) != list.end(); }

// Dimension d of the indices, as one of the batch.
std::size_t batch_dim(std::int64_t d, std::int64_t index_vector_dim) {
  return static_cast<std::size_t>(d < index_vector_dim ? d : d - 1);
}

}  // namespace

// Windows stay whole: where they begin depends on their sizes.
SmallerPlan smaller_gather(const Instruction& i, const Box& wanted) {
  const auto& attr = i.attr<hlo::GatherAttr>();
  const Shape& indices = i.operand(1)->shape();
  Box box = wanted;
  for (const std::int64_t d : attr.offset_dims) grow(box, i.shape(), d);
  SmallerPlan plan = plan_of(i, box);
  Dims start, size;  // of the batch
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    if (contains(attr.offset_dims, d)) continue;
    start.push_back(box.start[static_cast<std::size_t>(d)]);
    size.push_back(box.size[static_cast<std::size_t>(d)]);
  }
  Box& part = plan.operands[1].box.emplace(whole_box(indices));
  for (std::int64_t d = 0; d < indices.rank(); ++d) {
    if (d == attr.index_vector_dim) continue;
    part.start[static_cast<std::size_t>(d)] = start[batch_dim(d, attr.index_vector_dim)];
    part.size[static_cast<std::size_t>(d)] = size[batch_dim(d, attr.index_vector_dim)];
  }
  if (attr.operand_batching_dims.empty()) return plan;
  Box& from = plan.operands[0].box.emplace(whole_box(i.operand(0)->shape()));
  for (std::size_t j = 0; j < attr.operand_batching_dims.size(); ++j) {
    const auto d = static_cast<std::size_t>(attr.operand_batching_dims[j]);
    const std::size_t b = batch_dim(attr.start_indices_batching_dims[j], attr.index_vector_dim);
    from.start[d] = start[b];
    from.size[d] = size[b];
  }
  return plan;
}

namespace {

/// The updates of a scatter whose window lies in a box of its result, in order.
class Hits {
 public:
  // Needs: the update's window dimensions are its last.
  Hits(const Instruction& scatter, const Box& box, const Literal& indices)
      : attr_(scatter.attr<hlo::ScatterAttr>()), box_(box), indices_(indices), dims_(scatter.operand(0)->shape().dims()) {
    const Dims& all = indices.shape().dims();
    const Dims strides = interp::row_major(all);
    for (std::int64_t d = 0; d < std::ssize(all); ++d) {
      if (d == attr_.index_vector_dim) vector_stride_ = strides[static_cast<std::size_t>(d)];
      else {
        batch_.push_back(all[static_cast<std::size_t>(d)]);
        strides_.push_back(strides[static_cast<std::size_t>(d)]);
      }
    }
  }

  // `windows`: sizes in the operand's dimensions.
  void find(const Dims& windows) {
    const std::int64_t count = interp::product(batch_);
    Dims at(batch_.size(), 0);
    for (std::int64_t n = 0; n < count; ++n, interp::next(at, batch_)) {
      const Dims start = start_of(at);
      bool inside = true;
      for (std::size_t d = 0; d < dims_.size() && inside; ++d)
        inside = start[d] >= box_.start[d] && start[d] + windows[d] <= box_.start[d] + box_.size[d];
      if (!inside) continue;
      numbers_.push_back(n);
      for (const std::int64_t d : components()) starts_.push_back(start[static_cast<std::size_t>(d)] - box_.start[static_cast<std::size_t>(d)]);
    }
  }

  /// Operand dimensions that have an index, each its own here.
  Dims components() const {
    Dims all = attr_.scatter_dims_to_operand_dims;
    all.insert(all.end(), attr_.input_batching_dims.begin(), attr_.input_batching_dims.end());
    return all;
  }
  Literal indices() const {
    Literal result(Shape::array(DType::S64, {std::ssize(numbers_), std::ssize(components())}));
    std::ranges::copy(starts_, result.mutable_data<std::int64_t>().begin());
    return result;
  }
  Literal chosen(const Literal& updates) const {
    const Dims& dims = updates.shape().dims();
    Dims sizes{std::ssize(numbers_)};
    sizes.insert(sizes.end(), dims.begin() + std::ssize(batch_), dims.end());
    Literal result(Shape::array(updates.dtype(), sizes));
    const std::size_t width = updates.bytes().size() / static_cast<std::size_t>(interp::product(batch_));
    for (std::size_t n = 0; n < numbers_.size(); ++n)
      std::memcpy(result.mutable_bytes().data() + n * width, updates.bytes().data() + static_cast<std::size_t>(numbers_[n]) * width, width);
    return result;
  }

 private:
  Dims start_of(const Dims& batch) const {
    Dims start(dims_.size(), 0);
    const std::int64_t first = interp::position(batch, strides_);
    for (std::size_t k = 0; k < attr_.scatter_dims_to_operand_dims.size(); ++k)
      start[static_cast<std::size_t>(attr_.scatter_dims_to_operand_dims[k])] =
          hlo::element_as_int64(indices_, first + static_cast<std::int64_t>(k) * vector_stride_);
    for (std::size_t j = 0; j < attr_.input_batching_dims.size(); ++j)
      start[static_cast<std::size_t>(attr_.input_batching_dims[j])] =
          batch[batch_dim(attr_.scatter_indices_batching_dims[j], attr_.index_vector_dim)];
    // Far outside is outside: sums with these numbers stay numbers.
    for (std::size_t d = 0; d < start.size(); ++d)
      if (start[d] > dims_[d]) start[d] = -1;
    return start;
  }

  const hlo::ScatterAttr& attr_;
  const Box& box_;
  const Literal& indices_;
  const Dims& dims_;
  Dims batch_, strides_;
  std::int64_t vector_stride_ = 1;
  std::vector<std::int64_t> numbers_;  ///< of the updates, in the order of the batch
  Dims starts_;
};

// The window's sizes in the operand's dimensions; nothing if the update has a dimension of the batch after one of the window.
std::optional<Dims> window_sizes(const Instruction& i) {
  const auto& attr = i.attr<hlo::ScatterAttr>();
  const Shape &operand = i.operand(0)->shape(), &updates = i.operand(i.num_operands() / 2 + 1)->shape();
  Dims sizes(operand.dims().size(), 1);
  std::size_t w = 0;
  const std::int64_t batch = updates.rank() - std::ssize(attr.update_window_dims);
  for (std::int64_t d = 0; d < operand.rank(); ++d) {
    if (contains(attr.inserted_window_dims, d) || contains(attr.input_batching_dims, d)) continue;
    if (attr.update_window_dims[w] != batch + static_cast<std::int64_t>(w)) return std::nullopt;
    sizes[static_cast<std::size_t>(d)] = updates.dim(attr.update_window_dims[w++]);
  }
  return sizes;
}

}  // namespace

Expected<MaybePlan> smaller_scatter(const Instruction& i, const Box& wanted, const WholeOperand& whole) {
  const auto windows = window_sizes(i);
  const auto n = static_cast<std::size_t>(i.num_operands() / 2);
  if (!windows || i.operands()[n + 1]->shape().num_elements() == 0) return MaybePlan();
  Box box = wanted;
  for (std::size_t d = 0; d < windows->size(); ++d)
    if ((*windows)[d] != 1) grow(box, first_array(i.shape()), static_cast<std::int64_t>(d));
  const Literal indices = TRY(whole(static_cast<std::int64_t>(n)));
  Hits hits(i, box, indices);
  hits.find(*windows);
  SmallerPlan plan = plan_of(i, box);
  for (std::size_t k = 0; k < n; ++k) {
    plan.operands[k].box = box;
    const Literal updates = TRY(whole(static_cast<std::int64_t>(n + 1 + k)));
    plan.operands[n + 1 + k].value = hits.chosen(updates);
  }
  plan.operands[n].value = hits.indices();
  hlo::ScatterAttr attr = i.attr<hlo::ScatterAttr>();
  for (std::size_t w = 0; w < attr.update_window_dims.size(); ++w) attr.update_window_dims[w] = 1 + static_cast<std::int64_t>(w);
  attr.inserted_window_dims.insert(attr.inserted_window_dims.end(), attr.input_batching_dims.begin(), attr.input_batching_dims.end());
  std::ranges::sort(attr.inserted_window_dims);
  attr.scatter_dims_to_operand_dims = hits.components();
  attr.input_batching_dims.clear();
  attr.scatter_indices_batching_dims.clear();
  attr.index_vector_dim = 1;
  plan.adjust = [attr](Instruction& copy) { copy.set_attributes(attr); };
  return MaybePlan(std::move(plan));
}

}  // namespace hloom::compiler

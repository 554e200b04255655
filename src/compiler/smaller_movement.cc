#include <algorithm>

#include "base/try.h"
#include "compiler/smaller_plan.h"
#include "interp/index.h"

namespace hloom::compiler {

using hlo::Dims;
using hlo::Instruction;
using hlo::Literal;

SmallerPlan smaller_concatenate(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  const auto d = static_cast<std::size_t>(i.dimension(0));
  std::int64_t first = 0;  // of the operand in the result
  for (std::size_t k = 0; k < plan.operands.size(); ++k) {
    const std::int64_t size = i.operands()[k]->shape().dims()[d];
    Box& part = plan.operands[k].box.emplace(box);
    part.start[d] = std::clamp<std::int64_t>(box.start[d] - first, 0, size);
    part.size[d] = std::clamp<std::int64_t>(box.start[d] + box.size[d] - first, 0, size) - part.start[d];
    first += size;
  }
  return plan;
}

namespace {

std::int64_t up(std::int64_t x, std::int64_t step) { return x <= 0 ? -(-x / step) : (x + step - 1) / step; }

}  // namespace

// Element e stands at low + e·step.
SmallerPlan smaller_pad(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  hlo::PadAttr small = i.attr<hlo::PadAttr>();
  Box& part = plan.operands[0].box.emplace(box);
  for (std::size_t d = 0; d < small.dims.size(); ++d) {
    hlo::PadDim& p = small.dims[d];
    const std::int64_t step = p.interior + 1, size = i.operand(0)->shape().dims()[d];
    part.start[d] = std::clamp<std::int64_t>(up(box.start[d] - p.low, step), 0, size);
    part.size[d] = std::clamp<std::int64_t>(up(box.start[d] + box.size[d] - p.low, step), part.start[d], size) - part.start[d];
    p.low += part.start[d] * step - box.start[d];
    p.high = box.size[d] - p.low - (part.size[d] > 0 ? (part.size[d] - 1) * step + 1 : 0);
  }
  plan.adjust = [small](Instruction& copy) { copy.set_attributes(small); };
  return plan;
}

SmallerPlan smaller_slice(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  hlo::SliceAttr small = i.attr<hlo::SliceAttr>();
  Box& part = plan.operands[0].box.emplace(box);
  for (std::size_t d = 0; d < box.size.size(); ++d) {
    part.start[d] = small.starts[d] + box.start[d] * small.strides[d];
    part.size[d] = (box.size[d] - 1) * small.strides[d] + 1;
    small.starts[d] = 0;
    small.limits[d] = part.size[d];
  }
  plan.adjust = [small](Instruction& copy) { copy.set_attributes(small); };
  return plan;
}

SmallerPlan smaller_reverse(const Instruction& i, const Box& box) {
  SmallerPlan plan = plan_of(i, box);
  Box& part = plan.operands[0].box.emplace(box);
  for (const std::int64_t dimension : i.dimensions()) {
    const auto d = static_cast<std::size_t>(dimension);
    part.start[d] = i.shape().dims()[d] - box.start[d] - box.size[d];
  }
  return plan;
}

namespace {

// Dimensions, the slowest varying first, as the layout has them.
Dims physical(const Shape& shape, const Dims& logical) {
  const auto& order = shape.layout().minor_to_major;
  Dims result;
  for (auto d = order.rbegin(); d != order.rend(); ++d) result.push_back(logical[static_cast<std::size_t>(*d)]);
  return result;
}

Dims logical(const Shape& shape, const Dims& physical) {
  const auto& order = shape.layout().minor_to_major;
  Dims result(physical.size());
  for (std::size_t d = 0; d < order.size(); ++d) result[static_cast<std::size_t>(order[order.size() - 1 - d])] = physical[d];
  return result;
}

/// Elements of a row-major array that follow each other.
struct Run {
  std::int64_t begin = 0, end = 0;
  bool operator==(const Run&) const = default;
};

// From the first element of the box to its last.
Run run_of(const Dims& start, const Dims& size, const Dims& dims) {
  Run run;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    run.begin = run.begin * dims[d] + start[d];
    run.end = run.end * dims[d] + start[d] + size[d] - 1;
  }
  ++run.end;
  return run;
}

// The smallest box around the run that is a run itself: one index in the first dimensions, several in one, all in the rest.
Box box_of(const Run& run, const Dims& dims) {
  Box box{Dims(dims.size(), 0), dims};
  std::int64_t first = run.begin, last = run.end - 1, inner = interp::product(dims);
  for (std::size_t d = 0; d < dims.size(); ++d) {
    inner /= dims[d];
    box.start[d] = first / inner;
    box.size[d] = last / inner - first / inner + 1;
    first %= inner;
    last %= inner;
    if (box.size[d] > 1) break;
  }
  return box;
}

bool is_simple(const Shape& shape) { return shape.has_layout() && shape.layout().is_plain(); }

// Boxes of dimensions [from, from_end) of one array and [to, to_end) of the other, which hold the same elements in the same order.
struct Group {
  Dims from, to;  // sizes
  std::size_t from_first = 0, to_first = 0;
};

// The fewest dimensions whose products agree, again and again.
std::vector<Group> groups_of(const Dims& from, const Dims& to) {
  std::vector<Group> groups;
  std::size_t f = 0, t = 0;
  while (f < from.size() || t < to.size()) {
    Group g{{}, {}, f, t};
    std::int64_t a = 1, b = 1;
    do {
      if (f < from.size() && (a <= b || t == to.size())) {
        g.from.push_back(from[f]);
        a *= from[f++];
      } else {
        g.to.push_back(to[t]);
        b *= to[t++];
      }
    } while (a != b && (f < from.size() || t < to.size()));
    groups.push_back(std::move(g));
  }
  return groups;
}

void put(Box& whole, std::size_t first, const Box& part) {
  std::ranges::copy(part.start, whole.start.begin() + static_cast<std::ptrdiff_t>(first));
  std::ranges::copy(part.size, whole.size.begin() + static_cast<std::ptrdiff_t>(first));
}

}  // namespace

// Both arrays in the order of memory: there it is a reshape.
MaybePlan smaller_bitcast(const Instruction& i, const Box& box) {
  const bool moves = i.opcode() == hlo::Opcode::Reshape;
  const Shape &from = i.operand(0)->shape(), &to = i.shape();
  const Shape from_order = moves ? Shape::array(from.dtype(), from.dims()) : from;
  const Shape to_order = moves ? Shape::array(to.dtype(), to.dims()) : to;
  if (!is_simple(from_order) || !is_simple(to_order) || bit_width(from.dtype()) != bit_width(to.dtype())) return std::nullopt;
  if (from.num_elements() != to.num_elements()) return std::nullopt;
  const Dims from_dims = physical(from_order, from.dims()), to_dims = physical(to_order, to.dims());
  const Dims start = physical(to_order, box.start), size = physical(to_order, box.size);
  Box from_box{from_dims, from_dims}, to_box{to_dims, to_dims};
  for (const Group& g : groups_of(from_dims, to_dims)) {
    const auto of = [&](const Dims& all) {
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(g.to_first);
      return Dims(begin, begin + std::ssize(g.to));
    };
    Box to_part{of(start), of(size)}, from_part = to_part;
    if (g.from != g.to) {
      Run run = run_of(to_part.start, to_part.size, g.to);
      for (Run before; before != run;) {
        before = run;
        to_part = box_of(run, g.to);
        run = run_of(to_part.start, to_part.size, g.to);
        from_part = box_of(run, g.from);
        run = run_of(from_part.start, from_part.size, g.from);
      }
    }
    put(to_box, g.to_first, to_part);
    put(from_box, g.from_first, from_part);
  }
  SmallerPlan plan = plan_of(i, {logical(to_order, to_box.start), logical(to_order, to_box.size)});
  plan.operands[0].box = Box{logical(from_order, from_box.start), logical(from_order, from_box.size)};
  return plan;
}

namespace {

// Where a window of these sizes begins, clamped so that it lies inside. Indices are scalars from operand `first` on, or one vector.
Expected<Dims> clamped_starts(const Instruction& i, std::int64_t first, const Dims& sizes, const WholeOperand& whole) {
  const Dims& dims = i.operand(0)->shape().dims();
  const bool vector = i.num_operands() == first + 1 && i.operand(first)->shape().rank() == 1;
  Dims starts;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const auto n = static_cast<std::int64_t>(d);
    const Literal index = TRY(whole(vector ? first : first + n));
    std::int64_t start = hlo::element_as_int64(index, vector ? n : 0);
    if (index.dtype() == DType::U64 && start < 0) start = INT64_MAX;
    starts.push_back(std::clamp<std::int64_t>(start, 0, dims[d] - sizes[d]));
  }
  return starts;
}

}  // namespace

// The operand's box is just the window, which then begins at 0 wherever the indices say.
Expected<MaybePlan> smaller_dynamic_slice(const Instruction& i, const Box& box, const WholeOperand& whole) {
  const Dims starts = TRY(clamped_starts(i, 1, i.attr<hlo::DynamicSliceAttr>().sizes, whole));
  SmallerPlan plan = plan_of(i, box);
  Box& part = plan.operands[0].box.emplace(box);
  for (std::size_t d = 0; d < starts.size(); ++d) part.start[d] += starts[d];
  plan.adjust = [sizes = box.size](Instruction& copy) { copy.mutable_attr<hlo::DynamicSliceAttr>().sizes = sizes; };
  return MaybePlan(std::move(plan));
}

Expected<MaybePlan> smaller_dynamic_update_slice(const Instruction& i, const Box& box, const WholeOperand& whole) {
  const Dims& sizes = i.operand(1)->shape().dims();
  const Dims starts = TRY(clamped_starts(i, 2, sizes, whole));
  SmallerPlan plan = plan_of(i, box);
  plan.operands[0].box = box;
  Box part{sizes, sizes};
  Dims first(sizes.size());  // of the window in the box
  bool meets = true;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const std::int64_t begin = std::max(starts[d], box.start[d]);
    const std::int64_t end = std::min(starts[d] + sizes[d], box.start[d] + box.size[d]);
    meets = meets && begin < end;
    part.start[d] = begin - starts[d];
    part.size[d] = end - begin;
    first[d] = begin - box.start[d];
  }
  if (!meets) {
    part = {Dims(sizes.size(), 0), Dims(sizes.size(), 0)};
    first.assign(sizes.size(), 0);
  }
  plan.operands[1].box = part;
  const bool vector = !sizes.empty() && i.operand(i.num_operands() - 1)->shape().rank() == 1;
  for (std::size_t k = 2; k < plan.operands.size(); ++k) {
    Literal index(Shape::array(DType::S64, vector ? Dims{std::ssize(first)} : Dims{}));
    std::ranges::copy(vector ? first : Dims{first[k - 2]}, index.mutable_data<std::int64_t>().begin());
    plan.operands[k].value = std::move(index);
  }
  return MaybePlan(std::move(plan));
}

}  // namespace hloom::compiler

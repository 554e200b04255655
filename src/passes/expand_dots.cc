#include "passes/expand_dots.h"

#include <algorithm>

#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

using hlo::DotAttr;

bool contains(const Dims& list, std::int64_t d) { return std::ranges::find(list, d) != list.end(); }

Dims without(const Dims& dims, std::int64_t d) {
  Dims rest = dims;
  rest.erase(rest.begin() + d);
  return rest;
}

// Numbers of dimensions once dimension `gone` is no more.
Dims renumbered(Dims list, std::int64_t gone) {
  for (std::int64_t& d : list) d -= d > gone;
  return list;
}

/// One ragged dot: for the group g, the elements of lhs's ragged dimension from `start` to below `limit`, which may
/// differ along the dimensions `prefix_` of lhs.
class RaggedDot {
 public:
  explicit RaggedDot(Instruction& i) : i_(i), attr_(i.attr<DotAttr>()), ragged_(attr_.lhs_ragged[0]) {
    for (std::int64_t d = 0; d < lhs().rank(); ++d)
      if (!contains(attr_.lhs_batch, d) && !contains(attr_.lhs_contracting, d)) free_.push_back(d);
    groups_ = sizes().shape().dims().back();
    const DType given = sizes().shape().dtype();
    size_type_ = bit_width(given) < 32 || given == DType::S32 ? DType::S32 : DType::S64;
    const Dims candidates = dimensions_before();
    if (sizes().shape().rank() > 1) prefix_ = candidates;
    prefix_sizes_ = sizes().shape().dims();
    prefix_sizes_.pop_back();
  }

  bool fits() const { return prefix_.size() + 1 == sizes().shape().dims().size(); }

  Instruction* build() { return contains(attr_.lhs_batch, ragged_) ? batch() : loop(); }

 private:
  const Shape& lhs() const { return i_.operand(0)->shape(); }
  const Instruction& sizes() const { return *i_.operand(2); }

  // Those whose coordinates may choose a row of sizes: of the ragged dimension's kind, before it, after the batches.
  Dims dimensions_before() const {
    if (contains(attr_.lhs_batch, ragged_))
      return {attr_.lhs_batch.begin(), std::ranges::find(attr_.lhs_batch, ragged_)};
    const Dims& kind = contains(attr_.lhs_contracting, ragged_) ? attr_.lhs_contracting : free_;
    Dims before = attr_.lhs_batch;
    before.insert(before.end(), kind.begin(), std::ranges::find(kind, ragged_));
    return before;
  }

  bool by_rows() const { return contains(free_, ragged_); }

  // Where a dimension of lhs lies in the plain dot's result.
  Dims result_places(const Dims& lhs_dims) const {
    Dims order = attr_.lhs_batch, places;
    order.insert(order.end(), free_.begin(), free_.end());
    for (const std::int64_t d : lhs_dims) places.push_back(std::ranges::find(order, d) - order.begin());
    return places;
  }

  // Where dimensions of lhs lie in rhs: batch and contracting ones.
  Dims rhs_places(const Dims& lhs_dims) const {
    Dims places;
    for (const std::int64_t d : lhs_dims) {
      const auto batch = std::ranges::find(attr_.lhs_batch, d);
      places.push_back(batch != attr_.lhs_batch.end()
                           ? attr_.rhs_batch[static_cast<std::size_t>(batch - attr_.lhs_batch.begin())]
                           : attr_.rhs_contracting[static_cast<std::size_t>(
                                 std::ranges::find(attr_.lhs_contracting, d) - attr_.lhs_contracting.begin())]);
    }
    return places;
  }

  // Which elements of an array of these dims are in the group, where lhs's prefix and ragged dimensions lie at `places`
  // (the ragged one last).
  Instruction* mask(Make& make, Instruction* start, Instruction* limit, const Dims& dims, const Dims& places) const {
    const Dims prefix(places.begin(), places.end() - 1);
    Instruction* at = make.iota(size_type_, dims, places.back());
    Instruction* from = make.compare(hlo::Direction::Ge, at, make.broadcast(start, dims, prefix));
    Instruction* to = make.compare(hlo::Direction::Lt, at, make.broadcast(limit, dims, prefix));
    return make.binary(Opcode::And, from, to);
  }

  Instruction* plain_dot(Make& make, Instruction* a, Instruction* b, const Shape& result, const DotAttr& attr) const {
    Instruction* dot = make.op(Opcode::Dot, Shape::array(result.dtype(), result.dims()), {a, b});
    auto& own = dot->mutable_attr<DotAttr>();
    own = attr;
    own.lhs_ragged.clear();
    own.rhs_group.clear();
    return dot;
  }

  Dims mask_dims() const {
    Dims dims = prefix_;
    dims.push_back(ragged_);
    return dims;
  }

  // Rows past the sum of the sizes are 0.
  Instruction* batch() const {
    Make make(i_);
    Instruction* zero = make.integer(size_type_, 0);
    Instruction* total =
        make.reduce(Opcode::Add, make.convert(i_.operand(2), size_type_), zero, {sizes().shape().rank() - 1});
    Instruction* dot = plain_dot(make, i_.operand(0), i_.operand(1), i_.shape(), attr_);
    Instruction* start = make.integer(size_type_, 0, prefix_sizes_);
    return make.select(mask(make, start, total, i_.shape().dims(), result_places(mask_dims())), dot,
                       make.zeros(dot->shape()));
  }

  // State: the group, lhs, rhs, sizes, where the group starts, the result.
  Instruction* loop() const {
    Make make(i_);
    Instruction* state = make.tuple({make.integer(DType::S32, 0), i_.operand(0), i_.operand(1),
                                     make.convert(i_.operand(2), size_type_), make.integer(size_type_, 0, prefix_sizes_),
                                     make.zeros(Shape::array(i_.shape().dtype(), i_.shape().dims()))});
    if (groups_ == 0) return make.element(state, 5);
    hlo::Computation* condition = i_.module().add_computation(i_.name() + "_condition");
    hlo::Computation* body = i_.module().add_computation(i_.name() + "_body");
    Make in_condition(i_, *condition);
    Instruction* at = in_condition.element(condition->add_parameter(0, state->shape()), 0);
    condition->set_root(in_condition.compare(hlo::Direction::Lt, at, in_condition.integer(DType::S32, groups_)));
    write_body(*body, state->shape());
    Instruction* loop = make.op(Opcode::While, state->shape(), {state});
    loop->set_called({condition, body});
    return make.element(loop, 5);
  }

  void write_body(hlo::Computation& c, const Shape& state) const {
    Make make(i_, c);
    Instruction* p = c.add_parameter(0, state);
    const auto leaf = [&](std::int64_t k) { return make.element(p, k); };
    Instruction *group = leaf(0), *start = leaf(4);
    Instruction* size = one_of(make, leaf(3), sizes().shape().rank() - 1, group);
    Instruction* limit = make.binary(Opcode::Add, start, size);
    Instruction* result = by_rows() ? rows(make, leaf(1), leaf(2), start, limit, group, leaf(5))
                                    : part(make, leaf(1), leaf(2), start, limit, group, leaf(5));
    c.set_root(make.tuple({make.binary(Opcode::Add, group, make.integer(DType::S32, 1)), leaf(1), leaf(2), leaf(3), limit,
                           result}));
  }

  // The place `at` of dimension d, which is then no more.
  static Instruction* one_of(Make& make, Instruction* a, std::int64_t d, Instruction* at) {
    std::vector<Instruction*> starts;
    Dims sizes = a->shape().dims();
    for (std::int64_t k = 0; k < a->shape().rank(); ++k) starts.push_back(k == d ? at : make.integer(DType::S32, 0));
    sizes[static_cast<std::size_t>(d)] = 1;
    return make.reshape(make.dynamic_slice(a, starts, sizes), without(a->shape().dims(), d));
  }

  // All rows with the group's rhs, of which the group's are kept.
  Instruction* rows(Make& make, Instruction* a, Instruction* b, Instruction* start, Instruction* limit,
                    Instruction* group, Instruction* result) const {
    const std::int64_t g = attr_.rhs_group[0];
    DotAttr attr = attr_;
    attr.rhs_batch = renumbered(attr.rhs_batch, g);
    attr.rhs_contracting = renumbered(attr.rhs_contracting, g);
    Instruction* dot = plain_dot(make, a, one_of(make, b, g, group), i_.shape(), attr);
    return make.select(mask(make, start, limit, i_.shape().dims(), result_places(mask_dims())), dot, result);
  }

  // What both sides have in the group, as the group's part of the result.
  Instruction* part(Make& make, Instruction* a, Instruction* b, Instruction* start, Instruction* limit,
                    Instruction* group, Instruction* result) const {
    const auto masked = [&](Instruction* x, const Dims& places) {
      return make.select(mask(make, start, limit, x->shape().dims(), places), x, make.zeros(x->shape()));
    };
    const Dims dims = without(i_.shape().dims(), 0);
    Instruction* dot = plain_dot(make, masked(a, mask_dims()), masked(b, rhs_places(mask_dims())),
                                 Shape::array(i_.shape().dtype(), dims), attr_);
    Dims row = dims;
    row.insert(row.begin(), 1);
    std::vector<Instruction*> at(i_.shape().dims().size(), make.integer(DType::S32, 0));
    at[0] = group;
    return make.dynamic_update_slice(result, make.reshape(dot, row), at);
  }

  Instruction& i_;
  const DotAttr attr_;
  std::int64_t ragged_, groups_ = 0;
  DType size_type_ = DType::S32;
  Dims free_, prefix_, prefix_sizes_;
};

Expected<Instruction*> ragged(Instruction& i) {
  RaggedDot dot(i);
  return dot.fits() ? dot.build() : nullptr;
}

// Each element times the element of the scale whose block it is in.
Instruction* scaled(Make& make, Instruction* x, Instruction* scale) {
  const Dims &dims = x->shape().dims(), &blocks = scale->shape().dims();
  Instruction* factor = make.convert(scale, DType::F64);
  Dims split, places;
  for (std::size_t d = 0; d < blocks.size(); ++d) {
    places.push_back(static_cast<std::int64_t>(split.size()));
    split.push_back(blocks[d]);
    split.push_back(blocks[d] == 0 ? 0 : dims[d] / blocks[d]);
  }
  factor = blocks.empty() ? make.broadcast_scalar(factor, dims) : make.reshape(make.broadcast(factor, split, places), dims);
  return make.binary(Opcode::Multiply, make.convert(x, DType::F64), factor);
}

Expected<Instruction*> with_scales(Instruction& i) {
  if (is_complex(i.shape().dtype())) return nullptr;
  Make make(i);
  Instruction* dot = make.op(Opcode::Dot, Shape::array(DType::F64, i.shape().dims()),
                             {scaled(make, i.operand(0), i.operand(2)), scaled(make, i.operand(1), i.operand(3))});
  dot->set_attributes(i.attributes());
  return make.convert(dot, i.shape().dtype());
}

}  // namespace

Expected<Changed> expand_ragged_dot(hlo::Module& module) { return expand(module, Opcode::RaggedDot, ragged); }
Expected<Changed> expand_scaled_dot(hlo::Module& module) { return expand(module, Opcode::ScaledDot, with_scales); }

}  // namespace hloom::passes

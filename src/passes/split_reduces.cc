#include "passes/split_reduces.h"

#include <algorithm>

#include "hlo/reduce_order.h"
#include "passes/layout_graph.h"
#include "passes/make.h"
#include "passes/rewrite.h"

namespace hloom::passes {
namespace {

// What one partial value takes one after the other, at most. With less, an f32 sum of equal numbers is right to 1e-5 or so.
constexpr std::int64_t kLongestChain = 4096;
constexpr std::int64_t kBlock = 8192;
// What is not in a row. Few rows a block are for sums over all rows, which a kernel over rows then makes beside its own work; inside other
// dimensions they would only multiply the partial results (pairs of 16384 bodies: 64 times the forces).
struct Columns {
  std::int64_t longest, block;
};
constexpr Columns kOverAllRows{2048, 256}, kInsideOthers{16384, 1024};
// Reduces to fewer elements than kFew leave threads idle, which counts from so many elements each on.
constexpr std::int64_t kFew = 16, kMany = std::int64_t{1} << 16;

// How dimension `dim` is cut: into `blocks` of `rows` indices, the last of which may run over the end.
struct Cut {
  std::int64_t dim = 0, rows = 1, blocks = 1;
};

bool is_reduced(const Instruction& i, std::int64_t d) {
  return std::ranges::find(i.dimensions(), d) != i.dimensions().end();
}

// A divisor of `size` near `rows`, so that nothing runs over the end; else `rows`.
std::int64_t rows_near(std::int64_t rows, std::int64_t size) {
  for (std::int64_t near = rows; near * 2 > rows; --near)
    if (size % near == 0) return near;
  for (std::int64_t near = rows; near <= 2 * rows; ++near)
    if (size % near == 0) return near;
  return rows;
}

// Cuts the outermost dimension of those that are reduced.
std::optional<Cut> cut(const Instruction& i) {
  const Shape& x = i.operand(0)->shape();
  const Order order = order_of(x);
  const auto outermost = std::ranges::find_if(order, [&](std::int64_t d) { return is_reduced(i, d); });
  if (outermost == order.end()) return std::nullopt;
  const std::int64_t size = x.dim(*outermost), kept = std::max<std::int64_t>(i.shape().num_elements(), 1),
                     all = x.num_elements() / kept;
  const hlo::ReduceOrder how = hlo::order_of(i);
  const bool over_all = std::all_of(order.begin(), outermost, [&](std::int64_t d) { return x.dim(d) == 1; });
  const Columns& columns = over_all ? kOverAllRows : kInsideOthers;
  const bool too_long = how.by_lanes ? all / how.lanes() > kLongestChain : all > columns.longest;
  if (!too_long && (kept >= kFew || all < kMany)) return std::nullopt;
  const std::int64_t inner = all / size, wanted = (how.by_lanes ? kBlock : columns.block) / inner;
  if (wanted <= 1 && inner == 1) return std::nullopt;
  Cut result{.dim = *outermost};
  if (wanted > 1) result.rows = rows_near(wanted, size);
  result.blocks = (size + result.rows - 1) / result.rows;
  return result;
}

// The shape with dimension `dim` made two, blocks and rows, which lie as it did.
Shape with_blocks(const Shape& x, const Cut& cut) {
  Dims dims = x.dims();
  dims[static_cast<std::size_t>(cut.dim)] = cut.blocks;
  dims.insert(dims.begin() + cut.dim + 1, cut.rows);
  Order order;
  for (const std::int64_t d : order_of(x)) {
    const std::int64_t moved = d + (d > cut.dim ? 1 : 0);
    if (dims[static_cast<std::size_t>(moved)] != 1) order.push_back(moved);
    if (d == cut.dim && cut.rows != 1) order.push_back(d + 1);
  }
  return in_order(Shape::array(x.dtype(), std::move(dims)), order);
}

// `shape` without those dimensions; what is left lies in the same order.
Shape without(const Shape& shape, const Dims& gone) {
  const auto is_gone = [&](std::int64_t d) { return std::ranges::find(gone, d) != gone.end(); };
  Dims dims;
  std::vector<std::int64_t> place;
  for (std::int64_t d = 0; d < shape.rank(); ++d) {
    place.push_back(std::ssize(dims));
    if (!is_gone(d)) dims.push_back(shape.dim(d));
  }
  Order order;
  for (const std::int64_t d : order_of(shape))
    if (!is_gone(d)) order.push_back(place[static_cast<std::size_t>(d)]);
  return in_order(Shape::array(shape.dtype(), std::move(dims)), order);
}

class Splitter {
 public:
  Splitter(Instruction& i, Opcode combine) : i_(i), combine_(combine), make_(i) {}

  Instruction* split(const Cut& cut) {
    const DType type = i_.shape().dtype();
    const DType sum = hlo::accumulator(combine_, type);
    Instruction* identity = make_.identity(combine_, sum);
    if (identity == nullptr) return nullptr;
    Instruction* x = in_blocks(make_.convert(i_.operand(0), sum), identity, cut);
    Dims within;  // the dimensions that are reduced inside a block
    for (const std::int64_t d : i_.dimensions())
      if (d != cut.dim) within.push_back(d + (d > cut.dim ? 1 : 0));
    within.push_back(cut.dim + 1);
    std::ranges::sort(within);
    Instruction* partial = make_.reduce(combine_, x, identity, within);
    partial->set_shape(without(x->shape(), within));
    const auto before = std::ranges::count_if(i_.dimensions(), [&](std::int64_t d) { return d < cut.dim; });
    Instruction* total = make_.reduce(combine_, partial, make_.convert(i_.operand(1), sum), {cut.dim - before});
    Shape shape = i_.shape();
    shape.set_dtype(sum);
    total->set_shape(std::move(shape));
    return make_.convert(total, type);
  }

 private:
  Instruction* in_blocks(Instruction* x, Instruction* identity, const Cut& cut) {
    std::vector<hlo::PadDim> padding(static_cast<std::size_t>(x->shape().rank()));
    padding[static_cast<std::size_t>(cut.dim)].high = cut.blocks * cut.rows - x->shape().dim(cut.dim);
    Instruction* whole = make_.pad(x, identity, std::move(padding));
    if (whole != x) whole->set_shape(in_order(whole->shape(), order_of(x->shape())));
    return make_.op(Opcode::Bitcast, with_blocks(whole->shape(), cut), {whole});
  }

  Instruction& i_;
  Opcode combine_;
  Make make_;
};

bool is_packed_or_tiled(const Shape& shape) { return !shape.layout().is_plain(); }

Instruction* split(Instruction& i) {
  if (!is(&i, Opcode::Reduce)) return nullptr;
  const Opcode combine = hlo::reduce_op(i);
  if (combine == Opcode::Tuple) return nullptr;
  const Shape& x = i.operand(0)->shape();
  if (is_packed_or_tiled(x) || is_packed_or_tiled(i.shape()) || i.shape().num_elements() == 0) return nullptr;
  const auto how = cut(i);
  return how ? Splitter(i, combine).split(*how) : nullptr;
}

}  // namespace

Expected<Changed> split_reduces(hlo::Module& module) { return rewrite(module, split); }

}  // namespace hloom::passes

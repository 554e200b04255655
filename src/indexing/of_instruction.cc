#include "indexing/of_instruction.h"

#include <algorithm>
#include <unordered_map>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/module.h"

namespace hloom::indexing {
namespace {

using hlo::Dims;
using hlo::Instruction;
using hlo::Opcode;
using Maps = std::vector<OperandMap>;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

bool contains(const Dims& list, std::int64_t d) { return std::ranges::find(list, d) != list.end(); }

// The dimensions of the result, or of the arrays it holds.
const Shape& result_shape(const Instruction& i) {
  const Shape* shape = &i.shape();
  while (shape->is_tuple()) shape = &shape->element(0);
  return *shape;
}

Domain domain_of(const Shape& shape) {
  Domain domain;
  for (const std::int64_t size : shape.dims()) domain.dimensions.push_back({0, size - 1});
  return domain;
}

// A map under construction: from the elements of a result.
struct Build {
  explicit Build(const Instruction& i) : domain(domain_of(result_shape(i))) {}

  Expr add_range(std::int64_t size) {
    domain.ranges.push_back({0, size - 1});
    return Expr::range(static_cast<std::int64_t>(domain.ranges.size()) - 1);
  }
  // Element `element` of operand `operand`, clamped into [0, room]; what a constant says is known at once.
  Expr add_runtime(const Instruction& i, std::int64_t operand, std::vector<Expr> element, std::int64_t room) {
    if (room == 0) return {};
    const Instruction* source = i.operand(operand);
    if (source->opcode() == Opcode::Constant && source->shape().num_elements() == 1) {
      const std::int64_t value = hlo::element_as_int64(source->literal(), 0);
      const bool is_beyond = is_unsigned(source->shape().dtype()) && value < 0;
      return Expr(is_beyond ? room : std::clamp<std::int64_t>(value, 0, room));
    }
    if (source->opcode() == Opcode::Iota && source->shape().dim(source->iota_dimension()) <= room + 1)
      return element[at(source->iota_dimension())];
    domain.runtime.push_back({0, room});
    sources.push_back({operand, std::move(element)});
    return Expr::runtime(static_cast<std::int64_t>(domain.runtime.size()) - 1);
  }
  OperandMap done() const {
    return {simplified(PiecewiseMap{{IndexMap(domain, results, constraints, sources)}}), true};
  }

  Domain domain;
  std::vector<Expr> results;
  std::vector<Constraint> constraints;
  std::vector<RuntimeSource> sources;
};

// All elements read the operand's one.
OperandMap scalar_map(const Instruction& i) { return Build(i).done(); }

OperandMap identity_map(const Instruction& i) {
  return {PiecewiseMap{{IndexMap::identity(result_shape(i).dims())}}, true};
}

Maps elementwise(const Instruction& i) {
  Maps maps;
  for (const Instruction* operand : i.operands())
    maps.push_back(operand->shape().rank() == i.shape().rank() ? identity_map(i) : scalar_map(i));
  return maps;
}

// One operand, whose element is given by an expression for each of its dimensions.
template <typename Coordinate>
Maps one_operand(const Instruction& i, const Coordinate& coordinate) {
  Build b(i);
  for (std::int64_t d = 0; d < i.operand(0)->shape().rank(); ++d) b.results.push_back(coordinate(d));
  return {b.done()};
}

Maps pad(const Instruction& i) {
  Build b(i);
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    const hlo::PadDim& p = i.attr<hlo::PadAttr>().dims[at(d)];
    const Expr inner = Expr::dimension(d) - p.low;
    const std::int64_t step = p.interior + 1;
    b.constraints.push_back({inner, {0, (i.operand(0)->shape().dim(d) - 1) * step}});
    b.constraints.push_back({inner.mod(step), {0, 0}});
    b.results.push_back(inner.floor_div(step));
  }
  return {b.done(), scalar_map(i)};
}

Maps concatenate(const Instruction& i) {
  Maps maps;
  std::int64_t offset = 0;
  for (const Instruction* operand : i.operands()) {
    Build b(i);
    const std::int64_t along = i.dimension(0), size = operand->shape().dim(along);
    for (std::int64_t d = 0; d < i.shape().rank(); ++d)
      b.results.push_back(Expr::dimension(d) - (d == along ? offset : 0));
    b.domain.dimensions[at(along)] = {offset, offset + size - 1};
    maps.push_back(b.done());
    offset += size;
  }
  return maps;
}

Maps reduce(const Instruction& i) {
  Maps maps;
  const std::int64_t n = i.num_operands() / 2;
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    if (k >= n) {
      maps.push_back(scalar_map(i));
      continue;
    }
    Build b(i);
    std::int64_t next = 0;
    for (std::int64_t d = 0; d < i.operand(k)->shape().rank(); ++d)
      b.results.push_back(contains(i.dimensions(), d) ? b.add_range(i.operand(k)->shape().dim(d))
                                                      : Expr::dimension(next++));
    maps.push_back(b.done());
  }
  return maps;
}

// The operand's coordinate along a windowed dimension of `size` elements.
Expr windowed(Build& b, const Expr& out, const Expr& in_window, const hlo::WindowDim& w, std::int64_t size) {
  const Expr p = out * w.stride + in_window * w.rhs_dilate - w.pad_low;
  b.constraints.push_back({p, {0, (size - 1) * w.lhs_dilate}});
  b.constraints.push_back({p.mod(w.lhs_dilate), {0, 0}});
  return p.floor_div(w.lhs_dilate);
}

Maps reduce_window(const Instruction& i) {
  Maps maps;
  const std::int64_t n = i.num_operands() / 2;
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    if (k >= n) {
      maps.push_back(scalar_map(i));
      continue;
    }
    Build b(i);
    const hlo::Window& window = i.attr<hlo::WindowAttr>().window;
    for (std::int64_t d = 0; d < i.operand(k)->shape().rank(); ++d) {
      if (window.empty()) {
        b.results.push_back(Expr::dimension(d));
        continue;
      }
      const Expr w = b.add_range(window[at(d)].size);
      b.results.push_back(windowed(b, Expr::dimension(d), w, window[at(d)], i.operand(k)->shape().dim(d)));
    }
    maps.push_back(b.done());
  }
  return maps;
}

Maps dot(const Instruction& i) {
  const auto& a = i.attr<hlo::DotAttr>();
  const auto batch = static_cast<std::int64_t>(a.lhs_batch.size());
  const std::int64_t lhs_free =
      i.operand(0)->shape().rank() - batch - static_cast<std::int64_t>(a.lhs_contracting.size());
  Maps maps;
  for (const int side : {0, 1}) {
    const Dims &batches = side == 0 ? a.lhs_batch : a.rhs_batch,
               &contracting = side == 0 ? a.lhs_contracting : a.rhs_contracting;
    Build b(i);
    b.results.resize(at(i.operand(side)->shape().rank()));
    for (std::size_t n = 0; n < batches.size(); ++n)
      b.results[at(batches[n])] = Expr::dimension(static_cast<std::int64_t>(n));
    for (const std::int64_t d : contracting) b.results[at(d)] = b.add_range(i.operand(side)->shape().dim(d));
    std::int64_t next = side == 0 ? batch : batch + lhs_free;
    for (std::int64_t d = 0; d < i.operand(side)->shape().rank(); ++d)
      if (!contains(batches, d) && !contains(contracting, d)) b.results[at(d)] = Expr::dimension(next++);
    maps.push_back(b.done());
  }
  return maps;
}

// Output feature o belongs to feature group o div (features of a group), which reads its own input features; and to a
// batch group likewise, which reads its own part of the batch.
Maps convolution(const Instruction& i) {
  const auto& a = i.attr<hlo::ConvolutionAttr>();
  const hlo::ConvolutionDims& dims = a.dims;
  const Shape &input = i.operand(0)->shape(), &kernel = i.operand(1)->shape();
  const std::int64_t out_features = i.shape().dim(dims.output_feature), in_features = kernel.dim(dims.kernel_input);
  const Expr feature = Expr::dimension(dims.output_feature), batch = Expr::dimension(dims.output_batch);
  Build lhs(i), rhs(i);
  lhs.results.resize(at(input.rank()));
  rhs.results.resize(at(kernel.rank()));
  const Expr group = feature.floor_div(out_features / a.feature_groups),
             batch_group = feature.floor_div(out_features / a.batch_groups);
  lhs.results[at(dims.input_batch)] = batch_group * i.shape().dim(dims.output_batch) + batch;
  lhs.results[at(dims.input_feature)] = group * in_features + lhs.add_range(in_features);
  rhs.results[at(dims.kernel_output)] = feature;
  rhs.results[at(dims.kernel_input)] = rhs.add_range(in_features);
  for (std::size_t n = 0; n < dims.input_spatial.size(); ++n) {
    const hlo::WindowDim& w = a.window[n];
    const Expr out = Expr::dimension(dims.output_spatial[n]);
    const Expr in_window = lhs.add_range(w.size), in_kernel = rhs.add_range(w.size);
    lhs.results[at(dims.input_spatial[n])] = windowed(lhs, out, in_window, w, input.dim(dims.input_spatial[n]));
    windowed(rhs, out, in_kernel, w, input.dim(dims.input_spatial[n]));  // a tap outside multiplies nothing
    rhs.results[at(dims.kernel_spatial[n])] = w.reversal ? Expr(w.size - 1) - in_kernel : in_kernel;
  }
  return {lhs.done(), rhs.done()};
}

// --- At places that a run knows ------------------------------------------------------------------------------------

// The start along dimension d of a slice or update, whose start operands begin at number `first`.
Expr start_along(Build& b, const Instruction& i, std::int64_t first, std::int64_t d, std::int64_t room) {
  if (i.operand(first)->shape().rank() == 0) return b.add_runtime(i, first + d, {}, room);
  return b.add_runtime(i, first, {Expr(d)}, room);
}

// A start operand is read for all elements; of an index vector all elements are.
void add_start_maps(Maps& maps, const Instruction& i, std::int64_t first) {
  for (std::int64_t n = first; n < i.num_operands(); ++n) {
    Build b(i);
    if (i.operand(n)->shape().rank() == 1) b.results = {b.add_range(i.operand(n)->shape().dim(0))};
    maps.push_back(b.done());
  }
}

Maps dynamic_slice(const Instruction& i) {
  Build b(i);
  for (std::int64_t d = 0; d < i.shape().rank(); ++d)
    b.results.push_back(Expr::dimension(d) + start_along(b, i, 1, d, i.operand(0)->shape().dim(d) - i.shape().dim(d)));
  Maps maps = {b.done()};
  add_start_maps(maps, i, 1);
  return maps;
}

// Where the update does not go the base is read: in boxes, if the place is known.
OperandMap base_of_update(const Instruction& i, const std::vector<Expr>& starts) {
  const Dims& window = i.operand(1)->shape().dims();
  if (i.operand(1)->shape().num_elements() == 0) return identity_map(i);
  if (!std::ranges::all_of(starts, &Expr::is_constant)) {
    OperandMap all = identity_map(i);
    all.exact = false;
    return all;
  }
  std::vector<Interval> hole;
  for (std::size_t d = 0; d < window.size(); ++d)
    hole.push_back({starts[d].constant(), starts[d].constant() + window[d] - 1});
  OperandMap around;
  const IndexMap whole = IndexMap::identity(i.shape().dims());
  for (std::vector<Interval>& box : difference(whole.domain().dimensions, hole))
    around.map.pieces.emplace_back(Domain{std::move(box), {}, {}}, whole.results());
  return around;
}

Maps dynamic_update_slice(const Instruction& i) {
  Build b(i);
  std::vector<Expr> starts;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d) {
    const std::int64_t size = i.operand(1)->shape().dim(d);
    starts.push_back(start_along(b, i, 2, d, i.shape().dim(d) - size));
    b.results.push_back(Expr::dimension(d) - starts.back());
    b.constraints.push_back({b.results.back(), {0, size - 1}});
  }
  Maps maps = {base_of_update(i, starts), b.done()};
  add_start_maps(maps, i, 2);
  return maps;
}

// The coordinates of the index vector of a result element: those outside the offset dimensions, in order; and `k` where
// the vector lies.
std::vector<Expr> index_vector(const Instruction& i, const hlo::GatherAttr& a, const Expr& k) {
  std::vector<Expr> element;
  for (std::int64_t d = 0; d < i.shape().rank(); ++d)
    if (!contains(a.offset_dims, d)) element.push_back(Expr::dimension(d));
  if (a.index_vector_dim < i.operand(1)->shape().rank()) element.insert(element.begin() + a.index_vector_dim, k);
  return element;
}

Maps gather(const Instruction& i) {
  const auto& a = i.attr<hlo::GatherAttr>();
  const Shape& operand = i.operand(0)->shape();
  Build b(i);
  b.results.resize(at(operand.rank()));
  const std::vector<Expr> batch = index_vector(i, a, Expr(0));
  for (std::size_t k = 0; k < a.start_index_map.size(); ++k) {
    const std::int64_t d = a.start_index_map[k];
    b.results[at(d)] = b.add_runtime(i, 1, index_vector(i, a, Expr(static_cast<std::int64_t>(k))),
                                     operand.dim(d) - a.slice_sizes[at(d)]);
  }
  for (std::size_t n = 0; n < a.operand_batching_dims.size(); ++n)
    b.results[at(a.operand_batching_dims[n])] = batch[at(a.start_indices_batching_dims[n])];
  std::size_t next = 0;
  for (std::int64_t d = 0; d < operand.rank(); ++d)
    if (!contains(a.collapsed_slice_dims, d) && !contains(a.operand_batching_dims, d))
      b.results[at(d)] = b.results[at(d)] + Expr::dimension(a.offset_dims[next++]);
  Build indices(i);
  const bool has_vector = a.index_vector_dim < i.operand(1)->shape().rank();
  indices.results =
      index_vector(i, a, has_vector ? indices.add_range(i.operand(1)->shape().dim(a.index_vector_dim)) : Expr());
  return {b.done(), indices.done()};
}

// --- Reshapes ------------------------------------------------------------------------------------------------------

Dims physical_order(const Shape& shape) {
  Dims order(shape.layout().minor_to_major.rbegin(), shape.layout().minor_to_major.rend());
  return order;
}

Dims in_order(const Dims& dims, const Dims& order) {
  Dims result;
  for (const std::int64_t d : order) result.push_back(dims[at(d)]);
  return result;
}

// Bytes keep their place: in the order of each layout it is a reshape.
Expected<Maps> bitcast(const Instruction& i) {
  const Shape &to = i.shape(), &from = i.operand(0)->shape();
  const auto is_dense = [](const Shape& s) { return s.is_array() && s.has_layout() && s.layout().is_plain(); };
  if (!is_dense(to) || !is_dense(from) || byte_width(to.dtype()) != byte_width(from.dtype()))
    return fail(Code::Unimplemented, i.name(), ": a bitcast of tiles, or of other elements, has no index map");
  const Dims to_order = physical_order(to), from_order = physical_order(from);
  const IndexMap physical = reshape_map(in_order(to.dims(), to_order), in_order(from.dims(), from_order));
  Assignment<Expr> names;  // of the physical dimensions of the result
  for (const std::int64_t d : to_order) names.dimensions.push_back(Expr::dimension(d));
  Build b(i);
  b.results.resize(from_order.size());
  for (std::size_t n = 0; n < from_order.size(); ++n)
    b.results[at(from_order[n])] = substitute(physical.results()[n], names);
  return Maps{b.done()};
}

// --- Fusions -------------------------------------------------------------------------------------------------------

// From the fusion's result to each instruction, users before operands: so each is gone through once, with all the maps
// that its users gave it.
class FusionMaps {
 public:
  explicit FusionMaps(const Instruction& fusion) : fusion_(fusion) {}

  Expected<Maps> run() {
    const hlo::Computation& fused = *fusion_.to_apply();
    if (fused.root()->shape().is_tuple())
      return fail(Code::Unimplemented, fusion_.name(), ": a fusion of several results has no one index map");
    reached_[fused.root()] = {PiecewiseMap{{IndexMap::identity(fused.root()->shape().dims())}}, true};
    const std::vector<Instruction*> order = fused.post_order();
    for (auto i = order.rbegin(); i != order.rend(); ++i)
      if (reached_.contains(*i)) TRY(pass_on(**i));
    Maps maps;
    for (const Instruction* p : fused.parameters()) maps.push_back(reached_[p]);
    return maps;
  }

 private:
  Expected<> pass_on(const Instruction& i) {
    OperandMap& here = reached_[&i];
    here.map = simplified(std::move(here.map));
    if (here.map.pieces.size() > kMaxPieces)
      return fail(Code::ResourceExhausted, fusion_.name(), ": reads ", i.name(), " through more than ", kMaxPieces,
                  " maps");
    if (i.num_operands() == 0) return {};
    const Maps maps = TRY(operand_maps(i));
    for (std::int64_t n = 0; n < i.num_operands(); ++n) {
      PiecewiseMap through = compose(here.map, maps[at(n)].map);
      OperandMap& there = reached_[i.operand(n)];
      // What only a run knows has no source among the fusion's own operands.
      for (const IndexMap& piece : through.pieces)
        there.map.pieces.emplace_back(piece.domain(), piece.results(), piece.constraints());
      there.exact = there.exact && here.exact && maps[at(n)].exact;
    }
    return {};
  }

  const Instruction& fusion_;
  std::unordered_map<const Instruction*, OperandMap> reached_;
};

}  // namespace

IndexMap reshape_map(const std::vector<std::int64_t>& result, const std::vector<std::int64_t>& operand) {
  const IndexMap from = IndexMap::identity(result);
  std::vector<Expr> results(operand.size());
  if (std::ranges::find(result, 0) != result.end()) return IndexMap(from.domain(), std::move(results));
  // A group ends where the products of both sides are equal.
  for (std::size_t r = 0, o = 0; r < result.size() || o < operand.size();) {
    const std::size_t first_r = r, first_o = o;
    std::int64_t left = r < result.size() ? result[r++] : 1, right = o < operand.size() ? operand[o++] : 1;
    while (left != right) left < right ? left *= result[r++] : right *= operand[o++];
    std::vector<Expr> coordinates;
    for (std::size_t d = first_r; d < r; ++d) coordinates.push_back(Expr::dimension(static_cast<std::int64_t>(d)));
    const Expr linear = linearize(coordinates, {result.begin() + static_cast<std::ptrdiff_t>(first_r),
                                                result.begin() + static_cast<std::ptrdiff_t>(r)});
    const auto apart = delinearize(linear, {operand.begin() + static_cast<std::ptrdiff_t>(first_o),
                                            operand.begin() + static_cast<std::ptrdiff_t>(o)});
    std::ranges::copy(apart, results.begin() + static_cast<std::ptrdiff_t>(first_o));
  }
  return IndexMap(from.domain(), std::move(results)).simplified();
}

Expected<std::vector<OperandMap>> operand_maps(const hlo::Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Constant:
    case Opcode::Iota:
    case Opcode::Parameter: return Maps();
    case Opcode::Broadcast: return one_operand(i, [&](std::int64_t d) { return Expr::dimension(i.dimension(d)); });
    case Opcode::Transpose:
      return one_operand(i, [&](std::int64_t d) {
        return Expr::dimension(std::ranges::find(i.dimensions(), d) - i.dimensions().begin());
      });
    case Opcode::Reverse:
      return one_operand(i, [&](std::int64_t d) {
        return contains(i.dimensions(), d) ? Expr(i.shape().dim(d) - 1) - Expr::dimension(d) : Expr::dimension(d);
      });
    case Opcode::Slice: {
      const auto& a = i.attr<hlo::SliceAttr>();
      return one_operand(i, [&](std::int64_t d) { return Expr::dimension(d) * a.strides[at(d)] + a.starts[at(d)]; });
    }
    case Opcode::Reshape:
      return Maps{{PiecewiseMap{{reshape_map(i.shape().dims(), i.operand(0)->shape().dims())}}, true}};
    case Opcode::Bitcast: return bitcast(i);
    case Opcode::Pad: return pad(i);
    case Opcode::Concatenate: return concatenate(i);
    case Opcode::Reduce: return reduce(i);
    case Opcode::ReduceWindow: return reduce_window(i);
    case Opcode::Dot:
      if (i.num_operands() == 2) return dot(i);
      break;
    case Opcode::Convolution:
      if (i.num_operands() == 2) return convolution(i);
      break;
    case Opcode::DynamicSlice: return dynamic_slice(i);
    case Opcode::DynamicUpdateSlice: return dynamic_update_slice(i);
    case Opcode::Gather: return gather(i);
    case Opcode::Fusion: return FusionMaps(i).run();
    case Opcode::Map: return elementwise(i);
    default: break;
  }
  if (hlo::is_elementwise(i.opcode()) && i.shape().is_array()) return elementwise(i);
  return fail(Code::Unimplemented, i.name(), ": ", i.opcode(), " has no index map");
}

}  // namespace hloom::indexing

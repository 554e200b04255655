#include "kernels/dot_problem.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/convolutions.h"
#include "hlo/panels.h"
#include "hlo/staged.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

// --- Which fusions -------------------------------------------------------------------------------------------------

namespace {

// How instructions depend on the dot: not at all, by elementwise ops alone (so that an element is made of the dot's at
// the same point), or otherwise.
enum class Over : std::uint8_t { Apart, Elementwise, Else };
using Dependence = std::unordered_map<const Instruction*, Over>;

Dependence dependence_on(const Instruction& dot) {
  Dependence result;
  for (const Instruction* i : dot.parent()->post_order()) {
    Over over = i == &dot ? Over::Elementwise : Over::Apart;
    for (const Instruction* o : i->operands()) over = std::max(over, result[o]);
    const bool aligned = hlo::is_elementwise(i->opcode()) && same_dims(i->shape(), dot.shape());
    result[i] = over == Over::Apart || i == &dot || aligned ? over : Over::Else;
  }
  return result;
}


bool moves_points(const Instruction& i) {
  if (i.opcode() == Opcode::Transpose || i.opcode() == Opcode::Reshape) return true;
  // A bitcast of row-major shapes is a reshape.
  return i.opcode() == Opcode::Bitcast && i.shape().dtype() == i.operand(0)->shape().dtype() &&
         i.shape().layout().is_descending() && i.operand(0)->shape().layout().is_descending();
}

// A convolution of which each product counts: its operands' dimensions are sums of strides, as a dot's are single ones, and
// its groups are batches.
bool is_whole_convolution(const Instruction& i) {
  if (i.opcode() != Opcode::Convolution || (hlo::has_thin_groups(i) && !hlo::sums_by_channel(i))) return false;
  return std::ranges::all_of(i.attr<hlo::ConvolutionAttr>().window, [](const hlo::WindowDim& d) {
    return d.pad_low == 0 && d.pad_high == 0 && d.lhs_dilate == 1;
  });
}

const Instruction* only_dot(const hlo::Computation& computation) {
  const Instruction* dot = nullptr;
  for (const Instruction& i : computation.instructions()) {
    if (i.opcode() != Opcode::Dot && !is_whole_convolution(i)) continue;
    if (dot != nullptr) return nullptr;
    dot = &i;
  }
  return dot;
}

bool add_root(DotFusion& result, const Instruction* root, ShapeIndex leaf, const Dependence& dependence) {
  while (root->opcode() == Opcode::Tuple && !leaf.empty()) {
    root = root->operand(leaf.front());
    leaf.erase(leaf.begin());
  }
  if (!leaf.empty()) return false;
  DotFusion::Root r;
  while (dependence.at(root) == Over::Else && moves_points(*root)) {
    r.moves.insert(r.moves.begin(), root);
    root = root->operand(0);
  }
  r.value = root;
  result.roots.push_back(r);
  return dependence.at(root) != Over::Else && root->shape().is_array() && same_dims(root->shape(), result.dot->shape());
}

// Whether elements are moved, or converted one by one.
bool moves_elements(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Bitcast: return i.shape().dtype() == i.operand(0)->shape().dtype();
    case Opcode::Convert:
    case Opcode::Copy:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::Transpose: return true;
    default: return false;
  }
}

// A type whose elements are whole bytes.
bool has_whole_bytes(const Shape& shape) {
  return shape.is_array() && shape.dtype() != DType::Pred && bit_width(shape.dtype()) == 8 * byte_width(shape.dtype()) &&
         shape.has_layout() && shape.layout().unplaced().is_plain() && shape.layout().parts().splits.empty();
}

const Instruction* source_of(const Instruction& operand) {
  const Instruction* i = &operand;
  while (hlo::panels_of(*i).empty() && moves_elements(*i)) i = i->operand(0);
  const bool known = i->opcode() == Opcode::Parameter || !hlo::panels_of(*i).empty();
  return known && has_whole_bytes(i->shape()) ? i : nullptr;
}

// The parameter that panels are.
const Instruction& panels_parameter(const Instruction& source) {
  const Instruction* i = &source;
  while (i->opcode() != Opcode::Parameter) i = i->operand(0);
  return *i;
}

const Instruction& widened(const Instruction& operand) {
  const bool wide = operand.opcode() == Opcode::Convert && is_integral(operand.shape().dtype()) && bit_width(operand.shape().dtype()) == 32;
  return wide ? *operand.operand(0) : operand;
}

// The largest magnitude of an operand's elements, if it is a short integer or was converted from one; else 0.
std::int64_t largest_magnitude(const Instruction& operand) {
  const DType type = widened(operand).shape().dtype();
  if (type == DType::Pred) return 1;
  if (!is_integral(type) || bit_width(type) > 8) return 0;
  return is_signed(type) ? std::int64_t{1} << (bit_width(type) - 1) : (std::int64_t{1} << bit_width(type)) - 1;
}

// Products of short integers and sums of some of them are whole numbers that f32 holds, and its multiply-adds are the
// fastest there are.
void choose_sum_type(DotFusion& fusion) {
  const Instruction& dot = *fusion.dot;
  const DType type = dot.shape().dtype();
  fusion.sum_type = is_floating(type) && bit_width(type) < 32 ? DType::F32 : type;
  if (dot.opcode() != Opcode::Dot || !is_integral(type)) return;
  if (dot.operand(0)->shape().dtype() != dot.operand(1)->shape().dtype()) return;
  const std::int64_t product = largest_magnitude(*dot.operand(0)) * largest_magnitude(*dot.operand(1));
  if (product == 0) return;
  constexpr std::int64_t kWholeFloats = 1 << 24;
  std::int64_t steps = 1;
  for (const std::int64_t d : dot.attr<hlo::DotAttr>().lhs_contracting) steps *= dot.operand(0)->shape().dim(d);
  fusion.sum_type = DType::F32;
  if (steps > kWholeFloats / product) fusion.exact_steps = kWholeFloats / product / 16 * 16;
}

}  // namespace

DotFusion find_dot(const Instruction& fusion) {
  if (fusion.opcode() != Opcode::Fusion) return {};
  DotFusion result{&fusion, only_dot(*fusion.called(0)), {}};
  if (result.dot == nullptr) return {};
  const Dependence dependence = dependence_on(*result.dot);
  const Instruction* root = fusion.called(0)->root();
  for (const ShapeIndex& leaf : leaf_indices(root->shape()))
    if (!add_root(result, root, leaf, dependence)) return {};
  choose_sum_type(result);
  for (const std::int64_t n : {0, 1}) result.sources[static_cast<std::size_t>(n)] = source_of(*result.dot->operand(n));
  const bool is_float = result.sum_type == DType::F32 || result.sum_type == DType::F64;
  if (is_float && hlo::is_staged(*result.dot->operand(0))) result.staged = result.dot->operand(0);
  const auto uses_dot = [&](const DotFusion::Root& r) { return dependence.at(r.value) != Over::Apart; };
  return std::ranges::any_of(result.roots, uses_dot) ? result : DotFusion{};
}

void sum_as_integers(DotFusion& fusion) {
  fusion.sum_type = fusion.dot->shape().dtype();
  fusion.exact_steps = 0;
}

bool may_sum_bytes(const DotFusion& fusion) {
  const Instruction& dot = *fusion.dot;
  if (!is_integral(dot.shape().dtype())) return false;
  const Instruction &lhs = *dot.operand(0), &rhs = *dot.operand(1);
  return largest_magnitude(lhs) > 1 && largest_magnitude(rhs) > 1;
}

bool DotFusion::lies_in_panels(std::int64_t operand) const {
  const Instruction* source = sources[static_cast<std::size_t>(operand)];
  return source != nullptr && source->opcode() != Opcode::Parameter;
}

namespace {

// As if the array that panels were made of lay there.
Place place_before(const DotFusion& fusion, const Places& places, const Instruction& source) {
  Place place = operand_place(*fusion.fusion, places, panels_parameter(source).parameter_number(), {});
  place.shape = source.shape();
  return place;
}

}  // namespace

std::optional<Place> place_of_operand(const DotFusion& fusion, const Places& places, std::int64_t number) {
  const Instruction& operand = widened(*fusion.dot->operand(number));
  if (fusion.lies_in_panels(number) && &operand == fusion.sources[static_cast<std::size_t>(number)])
    return place_before(fusion, places, operand);
  if (operand.opcode() != Opcode::Parameter || !operand.shape().is_array()) return std::nullopt;
  return operand_place(*fusion.fusion, places, operand.parameter_number(), {});
}

namespace {

// Whether four steps of the innermost summed axis are four bytes in memory, and all words lie whole numbers of words apart.
bool lies_in_words(const DotFusion& fusion, const DotProblem& problem, const Places& places, std::int64_t number) {
  const std::optional<Place> place = place_of_operand(fusion, places, number);
  const DotOperand& operand = number == 0 ? problem.lhs : problem.rhs;
  if (!place || !operand.plain || place->byte_offset % 4 != 0 || problem.axes.back().extent % 4 != 0) return false;
  if (place->shape.dtype() != DType::S8 && place->shape.dtype() != DType::U8) return false;
  const auto stride = [&](const DotAxis& a) { return number == 0 ? a.lhs : a.rhs; };
  const auto whole = [&](const DotAxis& a) { return &a == &problem.axes.back() ? stride(a) == 1 : stride(a) % 4 == 0; };
  return std::ranges::all_of(problem.axes, whole);
}

// Strides of an operand in words.
void count_words(DotProblem& problem, bool words, DotOperand& operand, std::int64_t DotAxis::*stride) {
  operand.words = words;
  operand.narrow = !words;
  problem.axes.back().*stride *= 4;
  if (!words) return;
  for (DotAxis& a : problem.axes) a.*stride /= 4;
}

}  // namespace

std::optional<DotProblem> sum_as_bytes(DotFusion& fusion, const DotProblem& problem, const Places& places) {
  constexpr std::int64_t kShortest = 16, kLeastRows = 4;  // what packing is worth
  const DType type = fusion.dot->shape().dtype();
  const std::int64_t steps = problem.axes.back().extent;
  const auto is_unsigned = [&](std::int64_t n) { return widened(*fusion.dot->operand(n)).shape().dtype() == DType::U8; };
  const bool wraps = bit_width(type) <= 32 || problem.sum_extent() < 1 << 15;
  if (!wraps || problem.sum_extent() < kShortest) return std::nullopt;
  if (problem.extent(problem.lhs_axis) < kLeastRows || problem.extent(problem.rhs_axis) < kLeastRows) return std::nullopt;
  const bool one_sum = problem.axes.size() == problem.rhs_axis + 2;
  const bool lhs_words = lies_in_words(fusion, problem, places, 0), rhs_words = lies_in_words(fusion, problem, places, 1);
  fusion.lhs_unsigned = is_unsigned(0);
  fusion.rhs_unsigned = is_unsigned(1);
  if (!one_sum && !(lhs_words && (fusion.lhs_unsigned || !fusion.rhs_unsigned))) return std::nullopt;
  fusion.sum_type = DType::S32;
  fusion.byte_steps = steps;
  DotProblem result = problem;
  result.axes.back().extent = (steps + 3) / 4;
  count_words(result, lhs_words, result.lhs, &DotAxis::lhs);
  count_words(result, rhs_words, result.rhs, &DotAxis::rhs);
  return result;
}

// --- Elements ------------------------------------------------------------------------------------------------------

namespace {

using AxisFilter = bool (*)(DotAxis::Of);
bool is_summed(DotAxis::Of of) { return of == DotAxis::Of::Sum; }
bool is_free(DotAxis::Of of) { return of != DotAxis::Of::Sum; }
bool is_batch(DotAxis::Of of) { return of == DotAxis::Of::Batch; }

// Where an element is in the result, or in the contracted dimensions, as some axes say. `wanted` tells the dimensions that are
// asked for; indices of other axes may be those of loops that have ended.
Point dot_point(Builder& b, const std::vector<DotAxis>& axes, const AxisIndices& indices, AxisFilter counts,
                const std::vector<bool>& wanted) {
  Point point(wanted.size());
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (!counts(axes[a].of)) continue;
    if (std::ranges::none_of(axes[a].parts, [&](const DotAxis::Part& part) { return wanted[part.dim]; })) continue;
    Index rest = indices[a];
    for (std::size_t p = axes[a].parts.size(); p-- > 0;) {
      const DotAxis::Part& part = axes[a].parts[p];
      Index own = rest;
      if (p > 0) std::tie(rest, own) = b.divmod(rest, part.extent);
      point[part.dim] = point[part.dim] + own * part.factor;
    }
  }
  return point;
}

bool holds(const hlo::Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); }

// What an index of an operand is made of: a dimension of the result, or of the list of contracted ones, with its stride; or the
// group that a feature of the result belongs to.
struct DimTerm {
  bool summed = false;
  std::size_t dim = 0;
  std::int64_t stride = 1, start = 0;
  std::int64_t of_group = 0;  // not 0: so many features are a group
};
using OperandDims = std::vector<std::vector<DimTerm>>;

OperandDims dot_operand_dims(const Instruction& dot, std::int64_t number) {
  const auto& d = dot.attr<hlo::DotAttr>();
  const hlo::Dims& batch = number == 0 ? d.lhs_batch : d.rhs_batch;
  const hlo::Dims& contracting = number == 0 ? d.lhs_contracting : d.rhs_contracting;
  const std::int64_t rank = dot.operand(number)->shape().rank();
  std::size_t next = d.lhs_batch.size();
  if (number == 1)
    next = static_cast<std::size_t>(dot.shape().rank() - rank) + d.rhs_contracting.size() + d.rhs_batch.size();
  OperandDims dims(static_cast<std::size_t>(rank));
  for (std::size_t k = 0; k < batch.size(); ++k) dims[static_cast<std::size_t>(batch[k])] = {{false, k}};
  for (std::size_t k = 0; k < contracting.size(); ++k) dims[static_cast<std::size_t>(contracting[k])] = {{true, k}};
  for (std::int64_t x = 0; x < rank; ++x)
    if (!holds(batch, x) && !holds(contracting, x)) dims[static_cast<std::size_t>(x)] = {{false, next++}};
  return dims;
}

// Contracted are the positions of the kernel, then the input's features (hlo-ops 8.4). A group of output features has input
// features, or batches, of its own.
OperandDims convolution_operand_dims(const Instruction& convolution, std::int64_t number) {
  const auto& c = convolution.attr<hlo::ConvolutionAttr>();
  const auto u = [](std::int64_t d) { return static_cast<std::size_t>(d); };
  OperandDims dims(u(convolution.operand(number)->shape().rank()));
  const DimTerm feature{true, c.window.size()};
  if (number == 0) {
    dims[u(c.dims.input_batch)] = {{false, u(c.dims.output_batch)}};
    dims[u(c.dims.input_feature)] = {feature};
    const std::int64_t in_group = hlo::features_in_group(convolution);
    const auto group = [&](std::int64_t stride) { return DimTerm{false, u(c.dims.output_feature), stride, 0, in_group}; };
    if (c.feature_groups > 1) dims[u(c.dims.input_feature)].push_back(group(convolution.operand(1)->shape().dim(c.dims.kernel_input)));
    if (c.batch_groups > 1) dims[u(c.dims.input_batch)].push_back(group(convolution.shape().dim(c.dims.output_batch)));
  } else {
    dims[u(c.dims.kernel_output)] = {{false, u(c.dims.output_feature)}};
    dims[u(c.dims.kernel_input)] = {feature};
  }
  for (std::size_t s = 0; s < c.window.size(); ++s) {
    const hlo::WindowDim& w = c.window[s];
    if (number == 0)
      dims[u(c.dims.input_spatial[s])] = {{false, u(c.dims.output_spatial[s]), w.stride}, {true, s, w.rhs_dilate}};
    else
      dims[u(c.dims.kernel_spatial[s])] = {{true, s, w.reversal ? -1 : 1, w.reversal ? w.size - 1 : 0}};
  }
  return dims;
}

OperandDims operand_dims(const Instruction& dot, std::int64_t number) {
  return dot.opcode() == Opcode::Dot ? dot_operand_dims(dot, number) : convolution_operand_dims(dot, number);
}

// Sizes of the contracted dimensions, in the order of their list.
std::vector<std::int64_t> contracted_sizes(const Instruction& dot) {
  std::vector<std::int64_t> sizes;
  if (dot.opcode() == Opcode::Dot) {
    for (const std::int64_t d : dot.attr<hlo::DotAttr>().lhs_contracting) sizes.push_back(dot.operand(0)->shape().dim(d));
    return sizes;
  }
  const auto& c = dot.attr<hlo::ConvolutionAttr>();
  for (const hlo::WindowDim& w : c.window) sizes.push_back(w.size);
  sizes.push_back(dot.operand(1)->shape().dim(c.dims.kernel_input));
  return sizes;
}

// Where an element at the dot's point ends up.
Point moved(Builder& b, const std::vector<const Instruction*>& moves, Point point) {
  for (const Instruction* i : moves) {
    const Shape& from = i->operand(0)->shape();
    if (i->opcode() == Opcode::Transpose) {
      Point to;
      for (const std::int64_t d : i->dimensions()) to.push_back(point[static_cast<std::size_t>(d)]);
      point = std::move(to);
    } else {
      point = b.delinearise(Builder::linearise(point, from.dims()), i->shape().dims());
    }
  }
  return point;
}

}  // namespace

DotElements::DotElements(Builder& builder, const DotFusion& fusion, const Places& places)
    : b_(builder),
      fusion_(fusion),
      places_(places),
      elements_(builder, [this](std::int64_t n, const ShapeIndex& leaf, const Point& point, Value mask) -> Expected<Value> {
        return b_.load(operand_place(*fusion_.fusion, places_, n, leaf), point, mask);
      }) {
  if (!fusion.lies_in_panels(0) && !fusion.lies_in_panels(1)) return;
  elements_.stand_in = [this](const Instruction& source, const Point& point, Value mask) -> Expected<Value> {
    return b_.load(place_before(fusion_, places_, source), point, mask);
  };
}

Point DotElements::operand_point(std::int64_t number, const std::vector<DotAxis>& axes, const AxisIndices& indices) {
  const Instruction& dot = *fusion_.dot;
  const OperandDims dims = operand_dims(dot, number);
  std::vector<bool> of_result(static_cast<std::size_t>(dot.shape().rank()));
  for (const auto& terms : dims)
    for (const DimTerm& t : terms)
      if (!t.summed && t.of_group == 0) of_result[t.dim] = true;
  const std::vector<bool> all_summed(contracted_sizes(dot).size(), true), all_free(of_result.size(), true);
  const Point free = dot_point(b_, axes, indices, is_free, of_result),
              batch = dot_point(b_, axes, indices, is_batch, all_free),
              summed = dot_point(b_, axes, indices, is_summed, all_summed);
  const auto place = [&](const DimTerm& t) {
    if (t.of_group != 0) return b_.divmod(batch[t.dim], t.of_group).first;
    return t.summed ? summed[t.dim] : free[t.dim];
  };
  Point point;
  for (const auto& terms : dims) {
    Index index;
    for (const DimTerm& t : terms) index = index + place(t) * t.stride + t.start;
    point.push_back(index);
  }
  return point;
}

Expected<Value> DotElements::operand(std::int64_t number, const std::vector<DotAxis>& axes, const AxisIndices& indices,
                                     Value mask) {
  const Point point = operand_point(number, axes, indices);
  if (number == 0 && fusion_.staged != nullptr)
    return b_.load_linear(static_cast<int>(b_.kernel().arguments.size()),
                          Builder::linearise(point, fusion_.staged->shape().dims()) + stage_, fusion_.sum_type, mask);
  const auto at = [&] { return elements_.at(*fusion_.dot->operand(number), point); };
  const Value v = TRY(mask == kNoValue ? at() : elements_.masked(mask, at));
  return b_.type(v) == fusion_.sum_type ? v : b_.line(Opcode::Convert, fusion_.sum_type, {v});
}

Expected<Value> DotElements::word(std::int64_t number, const std::vector<DotAxis>& axes, const AxisIndices& indices) {
  AxisIndices first = indices;
  first.back() = first.back() * 4;
  const Value v = b_.load_word(*place_of_operand(fusion_, places_, number), operand_point(number, axes, first));
  if (v == kNoValue) return fail(Code::Internal, "the words of ", fusion_.dot->name(), " do not lie as its strides say");
  return v;
}

Value DotElements::of_panels(std::int64_t number, const Index& index) {
  const Instruction& source = *fusion_.sources[static_cast<std::size_t>(number)];
  const Place place = place_before(fusion_, places_, source);
  const DType type = fusion_.byte_steps > 0 ? fusion_.sum_type : source.shape().dtype();
  Value v = b_.load_linear(place.argument, index + place.byte_offset / byte_width(type), type);
  if (fusion_.byte_steps > 0) return v;
  std::vector<DType> types = {fusion_.sum_type};  // that it goes through, last first
  for (const Instruction* i = fusion_.dot->operand(number); i != &source; i = i->operand(0)) types.push_back(i->shape().dtype());
  for (std::size_t t = types.size(); t-- > 0;)
    if (b_.type(v) != types[t]) v = b_.line(Opcode::Convert, types[t], {v});
  return v;
}

Expected<Value> DotElements::staged(const Point& point) {
  const Value v = TRY(elements_.at(*fusion_.staged, point));
  return b_.type(v) == fusion_.sum_type ? v : b_.line(Opcode::Convert, fusion_.sum_type, {v});
}

// Integers wrap, which a conversion from a float would not do.
Value DotElements::as_result(Value sum) {
  const DType type = fusion_.dot->shape().dtype();
  if (is_integral(type) && is_floating(b_.type(sum))) sum = b_.line(Opcode::Convert, DType::S32, {sum});
  return b_.type(sum) == type ? sum : b_.line(Opcode::Convert, type, {sum});
}

Expected<Value> DotElements::lhs(const std::vector<DotAxis>& axes, const AxisIndices& indices, Value mask) {
  return operand(0, axes, indices, mask);
}
Expected<Value> DotElements::rhs(const std::vector<DotAxis>& axes, const AxisIndices& indices, Value mask) {
  return operand(1, axes, indices, mask);
}

Expected<> DotElements::store(const std::vector<DotAxis>& axes, const AxisIndices& indices, Value sum, Value mask) {
  const Instruction& dot = *fusion_.dot;
  const std::vector<bool> all(static_cast<std::size_t>(dot.shape().rank()), true);
  const Point point = dot_point(b_, axes, indices, is_free, all);
  const Value value = as_result(sum);
  std::vector<Value> values;
  const auto compute = [&]() -> Expected<> {
    elements_.remember(dot, point, {}, value);
    for (const DotFusion::Root& root : fusion_.roots) {
      const Value v = TRY(elements_.at(*root.value, point));
      values.push_back(v);
    }
    return {};
  };
  TRY(mask == kNoValue ? compute() : elements_.masked(mask, compute));
  for (std::size_t r = 0; r < values.size(); ++r)
    b_.store(places_.results[r], moved(b_, fusion_.roots[r].moves, point), values[r], mask);
  return {};
}

// --- Loops ---------------------------------------------------------------------------------------------------------

std::int64_t DotProblem::sum_extent() const {
  std::int64_t extent = 1;
  for (std::size_t a = rhs_axis + 1; a < axes.size(); ++a) extent *= axes[a].extent;
  return extent;
}

namespace {

// What one element touches, along a list of axes.
struct Trial {
  std::vector<std::vector<std::int64_t>> strides;  // of each access, by axis
  std::vector<std::vector<std::int64_t>> splits;   // wanted, by axis
  std::vector<bool> opaque;                        // used other than in addresses, by axis
  bool linear = true;                              // no access depends on anything but axes and what no loop changes
  std::int64_t num_lines = 0;
};

enum class What { Lhs, Rhs, Results };

Expected<Trial> try_element(What what, const DotFusion& fusion, const Places& places, const std::vector<DotAxis>& axes) {
  Builder b("trial");
  Findings findings;
  b.findings = &findings;
  DotElements elements(b, fusion, places);
  std::vector<Value> variables;
  AxisIndices indices;
  for (const DotAxis& axis : axes) {
    variables.push_back(b.begin_loop(0, axis.extent));
    b.set_shapeable(variables.back());
    indices.push_back(index_of(variables.back()));
  }
  if (what == What::Results) {
    TRY(elements.store(axes, indices, b.define(fusion.sum_type)));
  } else {
    TRY(what == What::Lhs ? elements.lhs(axes, indices) : elements.rhs(axes, indices));
  }
  Trial trial;
  const bool any_moves = std::ranges::any_of(findings.accesses, [](const auto& x) { return !x.terms.empty(); });
  for (const Findings::Access& access : findings.accesses) {
    if (access.terms.empty() && any_moves) continue;  // read once: the start of a slice
    auto& strides = trial.strides.emplace_back(axes.size());
    for (const Index::Term& t : access.terms) {
      const auto at = std::ranges::find(variables, t.value);
      if (at != variables.end())
        strides[static_cast<std::size_t>(at - variables.begin())] = t.coefficient;
      else if (!b.is_invariant(t.value))
        trial.linear = false;
    }
  }
  for (const Value v : variables) {
    trial.splits.push_back(findings.splits[v]);
    trial.opaque.push_back(findings.opaque.contains(v));
  }
  trial.num_lines = findings.num_lines;
  return trial;
}

struct Trials {
  Trial lhs, rhs, results;
  auto all() const { return std::array{&lhs, &rhs, &results}; }
};

// To which operands a dimension of the result belongs.
DotAxis::Of axis_of(const Instruction& dot, std::int64_t dim) {
  if (dot.opcode() == Opcode::Convolution)
    return dim == dot.attr<hlo::ConvolutionAttr>().dims.output_feature ? DotAxis::Of::Rhs : DotAxis::Of::Lhs;
  const auto& d = dot.attr<hlo::DotAttr>();
  if (dim < std::ssize(d.lhs_batch)) return DotAxis::Of::Batch;
  return dim < dot.operand(0)->shape().rank() - std::ssize(d.lhs_contracting) ? DotAxis::Of::Lhs : DotAxis::Of::Rhs;
}

std::vector<DotAxis> single_axes(const Instruction& dot) {
  std::vector<DotAxis> axes;
  const auto add = [&](DotAxis::Of of, std::int64_t dim, std::int64_t extent) {
    if (extent != 1) axes.push_back({of, {{static_cast<std::size_t>(dim), 1, extent}}, extent});
  };
  const std::int64_t in_group = dot.opcode() == Opcode::Convolution ? hlo::features_in_group(dot) : 0;
  for (std::int64_t r = 0; r < dot.shape().rank(); ++r) {
    const DotAxis::Of of = axis_of(dot, r);
    const std::int64_t groups = of == DotAxis::Of::Rhs && in_group > 0 ? dot.shape().dim(r) / in_group : 1;
    if (groups > 1) axes.push_back({DotAxis::Of::Batch, {{static_cast<std::size_t>(r), in_group, groups}}, groups});
    add(of, r, dot.shape().dim(r) / groups);
  }
  const std::vector<std::int64_t> sums = contracted_sizes(dot);
  for (std::size_t k = 0; k < sums.size(); ++k) add(DotAxis::Of::Sum, static_cast<std::int64_t>(k), sums[k]);
  return axes;
}

// Cuts an axis in two where an address would else need a division. Says whether it did.
bool split_one(std::vector<DotAxis>& axes, const Trials& trials) {
  for (std::size_t a = 0; a < axes.size(); ++a) {
    std::int64_t divisor = 0;
    for (const Trial* t : trials.all())
      for (const std::int64_t d : t->splits[a])
        if (d > 1 && d < axes[a].extent && axes[a].extent % d == 0) divisor = std::max(divisor, d);
    if (divisor == 0) continue;
    const DotAxis::Part whole = axes[a].parts[0];
    DotAxis inner = axes[a];
    axes[a].extent /= divisor;
    axes[a].parts[0] = {whole.dim, whole.factor * divisor, axes[a].extent};
    inner.extent = divisor;
    inner.parts[0] = {whole.dim, whole.factor, divisor};
    axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(a) + 1, inner);
    return true;
  }
  return false;
}

bool mergeable(const std::vector<DotAxis>& axes, const Trials& trials, std::size_t outer, std::size_t inner) {
  if (outer == inner || axes[outer].of != axes[inner].of) return false;
  return std::ranges::all_of(trials.all(), [&](const Trial* t) {
    return !t->opaque[outer] && !t->opaque[inner] &&
           std::ranges::all_of(t->strides, [&](const auto& s) { return s[outer] == s[inner] * axes[inner].extent; });
  });
}

void merge(std::vector<DotAxis>& axes, Trials& trials, std::size_t outer, std::size_t inner) {
  DotAxis& into = axes[inner];
  into.parts.insert(into.parts.begin(), axes[outer].parts.begin(), axes[outer].parts.end());
  into.extent *= axes[outer].extent;
  const auto drop = [&](auto& list) { list.erase(list.begin() + static_cast<std::ptrdiff_t>(outer)); };
  drop(axes);
  for (Trial* t : {&trials.lhs, &trials.rhs, &trials.results}) {
    for (auto& s : t->strides) drop(s);
    drop(t->opaque);
    drop(t->splits);
  }
}

bool merge_one(std::vector<DotAxis>& axes, Trials& trials) {
  for (std::size_t outer = 0; outer < axes.size(); ++outer)
    for (std::size_t inner = 0; inner < axes.size(); ++inner)
      if (mergeable(axes, trials, outer, inner)) {
        merge(axes, trials, outer, inner);
        return true;
      }
  return false;
}

DotOperand operand_of(const Trial& trial, const Instruction& operand, DType sum_type) {
  DotOperand o;
  // A load and at most two conversions, say of a bf16 parameter.
  const bool cheap = trial.num_lines <= 1 || operand.opcode() == Opcode::Convert ||
                     (trial.num_lines <= 2 && operand.shape().dtype() != sum_type);
  o.plain = trial.linear && trial.strides.size() == 1 && trial.num_lines <= 3 && cheap &&
            std::ranges::none_of(trial.opaque, [](bool x) { return x; });
  o.narrow = trial.num_lines > 1;
  return o;
}

// The axis to go by lanes or rows: the one along which the first result lies dense, else the longest that counts: up to
// `enough`, from where on the one whose elements lie nearest.
std::size_t main_axis(const std::vector<DotAxis>& axes, DotAxis::Of of, std::int64_t enough) {
  std::size_t best = axes.size();
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (axes[a].of != of) continue;
    const auto rank = [&](const DotAxis& x) {
      return std::tuple(x.out == 1 && x.extent >= 8, std::min(x.extent, enough), x.extent < enough ? 0 : -x.out);
    };
    if (best == axes.size() || rank(axes[a]) > rank(axes[best])) best = a;
  }
  return best;
}

DotProblem arranged(std::vector<DotAxis> axes, std::int64_t enough) {
  DotProblem problem;
  DotAxis lhs, rhs;
  lhs.of = DotAxis::Of::Lhs;
  rhs.of = DotAxis::Of::Rhs;
  for (DotAxis* wanted : {&lhs, &rhs}) {
    const std::size_t at = main_axis(axes, wanted->of, enough);
    if (at == axes.size()) continue;
    *wanted = axes[at];
    axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at));
  }
  std::vector<DotAxis> sums;
  for (const DotAxis& a : axes) (a.of == DotAxis::Of::Sum ? sums : problem.axes).push_back(a);
  if (sums.empty()) sums.push_back({DotAxis::Of::Sum, {}, 1});
  // The densest is summed innermost.
  std::ranges::stable_sort(sums, std::ranges::greater(), [](const DotAxis& a) { return std::abs(a.lhs) + std::abs(a.rhs); });
  problem.lhs_axis = problem.axes.size();
  problem.rhs_axis = problem.lhs_axis + 1;
  problem.axes.push_back(lhs);
  problem.axes.push_back(rhs);
  problem.axes.insert(problem.axes.end(), sums.begin(), sums.end());
  return problem;
}

// Lines of the operand's last dimensions, as many of them as the outer axes' strides are multiples of.
DotStage stage_of(const DotProblem& p, const Instruction& pad) {
  DotStage stage;
  const hlo::Dims& dims = pad.shape().dims();
  const auto moves_by = [&](std::int64_t line) {
    for (std::size_t a = 0; a < p.lhs_axis; ++a)
      if (p.axes[a].lhs % line != 0) return false;
    return true;
  };
  stage.line = 1;
  stage.first_dim = dims.size();
  while (stage.first_dim > 0 && moves_by(stage.line * dims[stage.first_dim - 1])) stage.line *= dims[--stage.first_dim];
  std::int64_t span = 1;
  for (std::size_t a = p.lhs_axis; a < p.axes.size(); ++a) span += p.axes[a].lhs * (p.axes[a].extent - 1);
  stage.lines = (span - 1) / stage.line + 1;
  stage.axis = p.lhs_axis;
  for (std::size_t a = 0; a < p.lhs_axis; ++a)
    if (p.axes[a].of == DotAxis::Of::Lhs) stage.axis = a;
  if (stage.axis < p.lhs_axis) stage.step = p.axes[stage.axis].lhs / stage.line;
  return stage;
}

}  // namespace

Expected<DotProblem> analyse_dot(const DotFusion& fusion, const Places& places) {
  std::vector<DotAxis> axes = single_axes(*fusion.dot);
  Trials trials;
  constexpr int kMaxSplits = 12;
  for (int round = 0; round < kMaxSplits; ++round) {
    trials.lhs = TRY(try_element(What::Lhs, fusion, places, axes));
    trials.rhs = TRY(try_element(What::Rhs, fusion, places, axes));
    trials.results = TRY(try_element(What::Results, fusion, places, axes));
    if (!split_one(axes, trials)) break;
  }
  const DotOperand lhs = operand_of(trials.lhs, *fusion.dot->operand(0), fusion.sum_type);
  const DotOperand rhs = operand_of(trials.rhs, *fusion.dot->operand(1), fusion.sum_type);
  while (merge_one(axes, trials)) {
  }
  for (std::size_t a = 0; a < axes.size(); ++a) {
    if (lhs.plain) axes[a].lhs = trials.lhs.strides[0][a];
    if (rhs.plain) axes[a].rhs = trials.rhs.strides[0][a];
    axes[a].out = trials.results.strides.back()[a];
  }
  // Images, lines and places in a line are axes of one kind: a row of registers of neighbours is long enough.
  constexpr std::int64_t kEnoughPlaces = 8, kAll = std::numeric_limits<std::int64_t>::max();
  const bool is_dot = fusion.dot->opcode() == Opcode::Dot;
  DotProblem problem = arranged(std::move(axes), is_dot ? kAll : kEnoughPlaces);
  problem.lhs = lhs;
  problem.rhs = rhs;
  problem.lhs.ready = fusion.lies_in_panels(0);
  problem.rhs.ready = fusion.lies_in_panels(1);
  problem.epilogue_lines = trials.results.num_lines;
  if (fusion.staged != nullptr && lhs.plain) problem.stage = stage_of(problem, *fusion.staged);
  return problem;
}

}  // namespace hloom::kernels

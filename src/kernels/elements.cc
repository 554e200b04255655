#include "kernels/elements.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "hlo/narrow_float.h"
#include "hlo/panels.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

std::string memo_key(int context, const Instruction& i, const Point& point, const ShapeIndex& leaf, Value mask) {
  std::string key = std::to_string(context) + ":" + std::to_string(i.id()) + "@" + std::to_string(mask);
  for (const std::int64_t l : leaf) key += "." + std::to_string(l);
  for (const Index& index : point) {
    key += '[' + std::to_string(index.offset);
    for (const Index::Term& t : index.terms)
      key += '+' + std::to_string(t.value) + '*' + std::to_string(t.coefficient);
  }
  return key;
}

Error no_element_form(const Instruction& i) {
  return fail(Code::Unimplemented, i.name(), ": no kernel yet for ", i.opcode(), " in ", i.shape());
}

}  // namespace

Expected<Value> Elements::at(const Instruction& i, const Point& point, const ShapeIndex& leaf) {
  const std::string key = memo_key(context_, i, point, leaf, mask_);
  if (const Value known = b_.recall(key); known != kNoValue) return known;
  const Value v = TRY(make(i, point, leaf));
  b_.remember(key, v);
  return v;
}

void Elements::remember(const Instruction& i, const Point& point, const ShapeIndex& leaf, Value v) {
  b_.remember(memo_key(context_, i, point, leaf, mask_), v);
}

// No default: each opcode must be decided here.
Expected<Value> Elements::make(const Instruction& i, const Point& point, const ShapeIndex& leaf) {
  if (at_hand)
    if (const std::optional<Value> v = at_hand(i, point, mask_)) return *v;
  if (stand_in && !hlo::panels_of(i).empty()) return stand_in(i, point, mask_);
  switch (i.opcode()) {
    case Opcode::Parameter: return parameter_(i.parameter_number(), leaf, point, mask_);
    case Opcode::Constant: return constant(i, point);
    case Opcode::Iota: return convert(b_.affine(point[static_cast<std::size_t>(i.iota_dimension())]), i.shape().dtype());
    case Opcode::Broadcast: return broadcast(i, point);
    case Opcode::Reshape: return reshape(i, point);
    case Opcode::Bitcast: return bitcast(i, point);
    case Opcode::BitcastConvert: return bitcast_convert(i, point);
    case Opcode::Transpose: {
      Point from(point.size());
      for (std::size_t d = 0; d < point.size(); ++d)
        from[static_cast<std::size_t>(i.dimensions()[d])] = point[d];
      return at(*i.operand(0), from);
    }
    case Opcode::Reverse: {
      Point from = point;
      for (const std::int64_t d : i.dimensions()) {
        Index& x = from[static_cast<std::size_t>(d)];
        x = x * -1 + (i.shape().dim(d) - 1);
      }
      return at(*i.operand(0), from);
    }
    case Opcode::Slice: {
      const auto& s = i.attr<hlo::SliceAttr>();
      Point from = point;
      for (std::size_t d = 0; d < point.size(); ++d) from[d] = point[d] * s.strides[d] + s.starts[d];
      return at(*i.operand(0), from);
    }
    case Opcode::Concatenate: return concatenate(i, point);
    case Opcode::Pad: return pad(i, point);
    case Opcode::DynamicSlice: return dynamic_slice(i, point);
    case Opcode::DynamicUpdateSlice: return dynamic_update_slice(i, point);
    case Opcode::Gather: return gather(i, point);
    case Opcode::Reduce: return reduce(i, point, leaf.empty() ? 0 : leaf[0]);
    case Opcode::ReduceWindow: return reduce_window(i, point, leaf.empty() ? 0 : leaf[0]);
    case Opcode::Dot: return dot(i, point);
    case Opcode::Convolution: return convolution(i, point);
    case Opcode::RngBitGenerator: return rng_bits(i, point, leaf.empty() ? 0 : leaf[0]);
    case Opcode::Tuple: {
      HLOOM_CHECK(!leaf.empty());
      return at(*i.operand(leaf[0]), point, ShapeIndex(leaf.begin() + 1, leaf.end()));
    }
    case Opcode::GetTupleElement: {
      ShapeIndex inner = {i.tuple_index()};
      inner.insert(inner.end(), leaf.begin(), leaf.end());
      return at(*i.operand(0), point, inner);
    }
    case Opcode::OptBarrier:
    case Opcode::Copy:
    case Opcode::Domain: return at(*i.operand(0), point, leaf);
    case Opcode::AddDependency: return at(*i.operand(0), point, leaf);
    case Opcode::Map: {
      std::vector<Value> arguments;
      for (const Instruction* operand : i.operands()) {
        const Value v = TRY(at(*operand, point));
        arguments.push_back(v);
      }
      const std::vector<Value> results = TRY(apply(*i.to_apply(), arguments));
      return results[0];
    }
    case Opcode::Call:
    case Opcode::Fusion: {
      Elements inner(b_, [&](std::int64_t n, const ShapeIndex& l, const Point& p, Value) { return at(*i.operand(n), p, l); });
      inner.fold_reduces = fold_reduces;
      inner.mask_ = mask_;
      return inner.at(*i.called(0)->root(), point, leaf);
    }
    case Opcode::Abs: case Opcode::Acos: case Opcode::Acosh: case Opcode::Add: case Opcode::And: case Opcode::Asin:
    case Opcode::Asinh: case Opcode::Atan: case Opcode::Atan2: case Opcode::Atanh: case Opcode::Cbrt: case Opcode::Ceil:
    case Opcode::Clamp: case Opcode::Compare: case Opcode::Complex: case Opcode::Convert: case Opcode::Cosh:
    case Opcode::Cosine: case Opcode::CountLeadingZeros: case Opcode::Divide: case Opcode::Erf:
    case Opcode::Exponential: case Opcode::ExponentialMinusOne: case Opcode::Floor: case Opcode::Imag:
    case Opcode::IsFinite: case Opcode::Log: case Opcode::LogPlusOne: case Opcode::Logistic: case Opcode::Maximum:
    case Opcode::Minimum: case Opcode::Mulhi: case Opcode::Multiply: case Opcode::Negate: case Opcode::Not:
    case Opcode::Or: case Opcode::Popcnt: case Opcode::Power: case Opcode::Real: case Opcode::ReducePrecision:
    case Opcode::Remainder: case Opcode::RoundNearestAfz: case Opcode::RoundNearestEven: case Opcode::Rsqrt:
    case Opcode::Select: case Opcode::ShiftLeft: case Opcode::ShiftRightArithmetic: case Opcode::ShiftRightLogical:
    case Opcode::Sign: case Opcode::Sine: case Opcode::Sinh: case Opcode::Sqrt: case Opcode::StochasticConvert:
    case Opcode::Subtract: case Opcode::Tan: case Opcode::Tanh: case Opcode::Xor: return elementwise(i, point);
    case Opcode::AfterAll: case Opcode::AllGather: case Opcode::AllGatherDone: case Opcode::AllGatherStart:
    case Opcode::AllReduce: case Opcode::AllReduceDone: case Opcode::AllReduceStart: case Opcode::AllToAll:
    case Opcode::AsyncDone: case Opcode::AsyncStart: case Opcode::AsyncUpdate: case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference: case Opcode::BatchNormTraining: case Opcode::Cholesky:
    case Opcode::CollectiveBroadcast: case Opcode::CollectivePermute: case Opcode::CollectivePermuteDone:
    case Opcode::CollectivePermuteStart: case Opcode::CollectiveReduce: case Opcode::Conditional:
    case Opcode::CopyDone: case Opcode::CopyStart: case Opcode::CustomCall: case Opcode::DynamicReshape:
    case Opcode::Fft: case Opcode::GetDimensionSize: case Opcode::Infeed: case Opcode::Outfeed:
    case Opcode::PartitionId: case Opcode::RaggedAllToAll: case Opcode::RaggedDot: case Opcode::Recv:
    case Opcode::RecvDone: case Opcode::ReduceScatter: case Opcode::ReplicaId: case Opcode::Rng:
    case Opcode::RngGetAndUpdateState: case Opcode::ScaledDot: case Opcode::Scan: case Opcode::Scatter:
    case Opcode::SelectAndScatter: case Opcode::Send: case Opcode::SendDone: case Opcode::SetDimensionSize:
    case Opcode::Shuffle: case Opcode::Sort: case Opcode::Topk: case Opcode::TriangularSolve: case Opcode::While:
      return no_element_form(i);
  }
  return no_element_form(i);
}

Expected<std::vector<Value>> Elements::apply(const hlo::Computation& computation, const std::vector<Value>& arguments) {
  // Applied to other values each time, so without the memo of points.
  const Instruction& root = *computation.root();
  std::unordered_map<const Instruction*, Value> values;
  for (const Instruction* i : computation.post_order()) {
    if (i->opcode() == Opcode::Parameter) {
      values[i] = arguments[static_cast<std::size_t>(i->parameter_number())];
      continue;
    }
    if (i->opcode() == Opcode::Tuple) continue;
    std::vector<Value> operands;
    for (const Instruction* operand : i->operands()) operands.push_back(values[operand]);
    const Value v = TRY(scalar(*i, operands));
    values[i] = v;
  }
  std::vector<Value> results;
  if (root.opcode() == Opcode::Tuple)
    for (const Instruction* e : root.operands()) results.push_back(values[e]);
  else
    results.push_back(values[&root]);
  return results;
}

// --- Scalars, compares, conversions --------------------------------------------------------------------------------

Value Elements::compare(hlo::Direction direction, Value a, Value b, hlo::Comparison type) {
  Line line;
  line.opcode = Opcode::Compare;
  line.operands = {a, b};
  line.compare = {direction, type};
  return b_.line(std::move(line), DType::Pred);
}

Value Elements::select(Value p, Value t, Value f) {
  return b_.line(Opcode::Select, b_.kernel().type(t), {p, t, f});
}

Value Elements::convert(Value v, DType type) {
  return b_.kernel().type(v) == type ? v : b_.line(Opcode::Convert, type, {v});
}

Value Elements::in_range(const Index& index, std::int64_t lo, std::int64_t hi) {
  const Range r = b_.range(index);
  Value mask = kNoValue;
  const auto require = [&](Value p) {
    mask = mask == kNoValue ? p : b_.line(Opcode::And, DType::Pred, {mask, p});
  };
  if (r.lo < lo) require(compare(hlo::Direction::Ge, b_.affine(index), b_.constant_index(lo)));
  if (r.hi >= hi) require(compare(hlo::Direction::Lt, b_.affine(index), b_.constant_index(hi)));
  return mask;
}

// One op on values that are there already.
Expected<Value> Elements::scalar(const Instruction& i, const std::vector<Value>& operands) {
  const DType type = i.shape().dtype();
  switch (i.opcode()) {
    case Opcode::Compare: {
      Line line;
      line.opcode = Opcode::Compare;
      line.operands = operands;
      line.compare = i.attr<hlo::CompareAttr>();
      return b_.line(std::move(line), DType::Pred);
    }
    case Opcode::ReducePrecision: {
      Line line;
      line.opcode = Opcode::ReducePrecision;
      line.operands = operands;
      line.reduce_precision = i.attr<hlo::ReducePrecisionAttr>();
      return b_.line(std::move(line), type);
    }
    case Opcode::Constant: return constant(i, {});
    case Opcode::Convert: return convert(operands[0], type);
    case Opcode::Copy:
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Broadcast:
    case Opcode::Transpose: 
      if (i.shape().rank() != 0) return no_element_form(i);
      // Of these only a bitcast gives another type.
      return b_.type(operands[0]) == type ? operands[0] : b_.line(Opcode::BitcastConvert, type, {operands[0]});
    case Opcode::BitcastConvert: return b_.line(Opcode::BitcastConvert, type, operands);
    case Opcode::Call:
    case Opcode::Fusion:
    case Opcode::Map: {
      const std::vector<Value> results = TRY(apply(*i.called(0), operands));
      if (results.size() != 1) return no_element_form(i);
      return results[0];
    }
    default:
      if (!hlo::is_elementwise(i.opcode())) return no_element_form(i);
      return b_.line(i.opcode(), type, operands);
  }
}

Expected<Value> Elements::elementwise(const Instruction& i, const Point& point) {
  std::vector<Value> operands;
  for (const Instruction* operand : i.operands()) {
    // select's predicate and clamp's bounds may be scalars.
    const Point from = operand->shape().rank() == 0 ? Point() : point;
    const Value v = TRY(at(*operand, from));
    operands.push_back(v);
  }
  return scalar(i, operands);
}

Expected<Value> Elements::constant(const Instruction& i, const Point& point) {
  const hlo::Literal& literal = i.literal();
  if (!hlo::is_splat(literal) || literal.bytes().empty())
    return fail(Code::Unimplemented, i.name(), ": a constant array inside a kernel");
  std::uint64_t words[2] = {0, 0};
  const auto width = static_cast<std::size_t>(byte_width(literal.dtype()));
  std::memcpy(words, literal.bytes().data(), width);
  static_cast<void>(point);
  return b_.constant(literal.dtype(), words[0], words[1]);
}

// --- Movement ------------------------------------------------------------------------------------------------------

Expected<Value> Elements::broadcast(const Instruction& i, const Point& point) {
  Point from;
  for (const std::int64_t d : i.dimensions()) from.push_back(point[static_cast<std::size_t>(d)]);
  return at(*i.operand(0), from);
}

namespace {

// Both shapes cut into the smallest groups of equal products: [first, last) of each.
struct Group {
  std::size_t a0, a1, b0, b1;
};
std::vector<Group> common_groups(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  std::vector<Group> groups;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    Group g{i, i, j, j};
    std::int64_t x = 1, y = 1;
    do {
      if (g.a1 < a.size() && (x <= y || g.b1 == b.size()))
        x *= a[g.a1++];
      else if (g.b1 < b.size())
        y *= b[g.b1++];
      else
        break;
    } while (x != y);
    // Ones that follow belong to the group they trail.
    while (g.a1 < a.size() && a[g.a1] == 1 && g.a1 > g.a0) ++g.a1;
    while (g.b1 < b.size() && b[g.b1] == 1 && g.b1 > g.b0) ++g.b1;
    i = g.a1;
    j = g.b1;
    groups.push_back(g);
  }
  return groups;
}

}  // namespace

// Point of the operand of a row-major reshape.
static Point reshape_point(Builder& b, const Point& point, const std::vector<std::int64_t>& to,
                           const std::vector<std::int64_t>& from) {
  Point result(from.size());
  for (const Group& g : common_groups(to, from)) {
    const std::vector<std::int64_t> to_dims(to.begin() + static_cast<std::ptrdiff_t>(g.a0),
                                            to.begin() + static_cast<std::ptrdiff_t>(g.a1));
    const std::vector<std::int64_t> from_dims(from.begin() + static_cast<std::ptrdiff_t>(g.b0),
                                              from.begin() + static_cast<std::ptrdiff_t>(g.b1));
    const Point part(point.begin() + static_cast<std::ptrdiff_t>(g.a0),
                     point.begin() + static_cast<std::ptrdiff_t>(g.a1));
    const Point moved = b.delinearise(Builder::linearise(part, to_dims), from_dims);
    std::copy(moved.begin(), moved.end(), result.begin() + static_cast<std::ptrdiff_t>(g.b0));
  }
  return result;
}

Expected<Value> Elements::reshape(const Instruction& i, const Point& point) {
  return at(*i.operand(0), reshape_point(b_, point, i.shape().dims(), i.operand(0)->shape().dims()));
}

// The buffer is reinterpreted: physical dimensions, most major first, are those of a row-major reshape.
Expected<Value> Elements::bitcast(const Instruction& i, const Point& point) {
  const Shape& to = i.shape();
  const Shape& from = i.operand(0)->shape();
  if (byte_width(to.dtype()) != byte_width(from.dtype()) || !to.layout().is_plain() || !from.layout().is_plain())
    return no_element_form(i);
  const auto physical = [](const Shape& s) {
    std::vector<std::int64_t> order(s.layout().minor_to_major.rbegin(), s.layout().minor_to_major.rend());
    return order;
  };
  const auto pick = [](const auto& values, const std::vector<std::int64_t>& order) {
    std::remove_cvref_t<decltype(values)> picked;
    for (const std::int64_t d : order) picked.push_back(values[static_cast<std::size_t>(d)]);
    return picked;
  };
  const auto to_order = physical(to), from_order = physical(from);
  const Point moved =
      reshape_point(b_, pick(point, to_order), pick(to.dims(), to_order), pick(from.dims(), from_order));
  Point result(moved.size());
  for (std::size_t n = 0; n < moved.size(); ++n) result[static_cast<std::size_t>(from_order[n])] = moved[n];
  const Value v = TRY(at(*i.operand(0), result));
  return to.dtype() == from.dtype() ? v : b_.line(Opcode::BitcastConvert, to.dtype(), {v});
}

namespace {
DType unsigned_of_width(int bits) {
  switch (bits) {
    case 1: return DType::U1;
    case 2: return DType::U2;
    case 4: return DType::U4;
    case 8: return DType::U8;
    case 16: return DType::U16;
    case 32: return DType::U32;
    default: return DType::U64;
  }
}
}  // namespace

// Bits as an unsigned integer of the same width; pred counts as 8.
Expected<Value> Elements::bitcast_convert(const Instruction& i, const Point& point) {
  const DType to = i.shape().dtype(), from = i.operand(0)->shape().dtype();
  const auto width = [](DType t) { return t == DType::Pred ? 8 : bit_width(t); };
  const int v = width(to), w = width(from);
  if (v == w) {
    const Value x = TRY(at(*i.operand(0), point));
    return b_.line(Opcode::BitcastConvert, to, {x});
  }
  if (is_complex(to) || is_complex(from)) return no_element_form(i);
  const DType narrow = unsigned_of_width(std::min(v, w)), wide = unsigned_of_width(std::max(v, w));
  const auto bits = [&](Value x, DType t, DType as) { return t == as ? x : b_.line(Opcode::BitcastConvert, as, {x}); };
  if (w > v) {  // part of a wide element: the last coordinate says which, low bits first
    const Point outer(point.begin(), point.end() - 1);
    Value x = TRY(at(*i.operand(0), outer));
    x = bits(x, from, wide);
    const Value part = convert(b_.affine(point.back() * v), wide);
    const Value shifted = b_.line(Opcode::ShiftRightLogical, wide, {x, part});
    const Value low = convert(shifted, narrow);
    return to == narrow ? low : b_.line(Opcode::BitcastConvert, to, {low});
  }
  Value whole = b_.constant(wide, 0);
  for (int part = 0; part < v / w; ++part) {
    Point from_point = point;
    from_point.push_back(Index{part, {}});
    Value x = TRY(at(*i.operand(0), from_point));
    x = convert(bits(x, from, narrow), wide);
    const Value shift = b_.constant(wide, static_cast<std::uint64_t>(part * w));
    whole = b_.line(Opcode::Or, wide, {whole, b_.line(Opcode::ShiftLeft, wide, {x, shift})});
  }
  return to == wide ? whole : b_.line(Opcode::BitcastConvert, to, {whole});
}

void Elements::want_cut(const Index& index, std::int64_t boundary) {
  if (!b_.findings->may_cut) return;
  // The term that the boundary falls between multiples of: the others stay below one multiple.
  for (const Index::Term& t : index.terms) {
    if (!b_.may_shape(t.value)) continue;
    Index rest = index;
    std::erase_if(rest.terms, [&](const Index::Term& r) { return r.value == t.value; });
    rest.offset = 0;
    const Range r = b_.range(rest);
    const std::int64_t distance = boundary - index.offset;
    // Of a stride alone, the first at or behind the boundary.
    if (t.coefficient > 0 && r.lo == 0 && r.hi == 0)
      b_.findings->cuts[t.value].push_back((distance + (distance > 0 ? t.coefficient - 1 : 0)) / t.coefficient);
    else if (t.coefficient > 0 && r.lo >= 0 && r.hi < t.coefficient && distance % t.coefficient == 0)
      b_.findings->cuts[t.value].push_back(distance / t.coefficient);
    // Falling: index ≥ boundary where v ≤ distance / coefficient; the cut is one above.
    else if (t.coefficient < 0 && r.lo == 0 && r.hi == 0 && t.coefficient == -1)
      b_.findings->cuts[t.value].push_back(-distance + 1);
  }
}

Expected<Value> Elements::concatenate(const Instruction& i, const Point& point) {
  const auto d = static_cast<std::size_t>(i.dimension(0));
  const Range r = b_.range(point[d]);
  struct Piece {
    const Instruction* operand;
    std::int64_t from, to;
  };
  std::vector<Piece> pieces;
  std::int64_t offset = 0;
  for (const Instruction* operand : i.operands()) {
    const std::int64_t size = operand->shape().dim(static_cast<std::int64_t>(d));
    if (size > 0 && offset + size > r.lo && offset <= r.hi) pieces.push_back({operand, offset, offset + size});
    offset += size;
  }
  if (pieces.empty()) pieces.push_back({i.operand(0), 0, 1});  // an empty range of an empty array
  if (pieces.size() > 1 && b_.findings) {
    const std::size_t before = b_.findings->cuts.size();
    for (std::size_t n = 1; n < pieces.size(); ++n) want_cut(point[d], pieces[n].from);
    if (b_.findings->cuts.size() > before || !b_.findings->cuts.empty()) return b_.constant(i.shape().dtype(), 0);
  }
  Value result = kNoValue;
  for (const Piece& piece : pieces) {
    Point from = point;
    from[d] = point[d] + -piece.from;
    const Value mask = pieces.size() == 1 ? kNoValue : in_range(point[d], piece.from, piece.to);
    const auto element = [&] { return at(*piece.operand, from); };
    const Value v = TRY(mask == kNoValue ? element() : masked(mask, element));
    result = result == kNoValue ? v : select(mask == kNoValue ? in_range(point[d], piece.from, piece.to) : mask, v, result);
  }
  return result;
}

Expected<Value> Elements::pad(const Instruction& i, const Point& point) {
  const auto& dims = i.attr<hlo::PadAttr>().dims;
  const Shape& inner = i.operand(0)->shape();
  Point from = point;
  Value mask = kNoValue;
  bool outside = false, cut = false;
  const auto require = [&](Value p) {
    if (p != kNoValue) mask = mask == kNoValue ? p : b_.line(Opcode::And, DType::Pred, {mask, p});
  };
  for (std::size_t d = 0; d < point.size(); ++d) {
    const std::int64_t step = dims[d].interior + 1, size = inner.dim(static_cast<std::int64_t>(d));
    Index x = point[d] + -dims[d].low;
    if (step > 1) {
      // Nonnegative for the division; what is added is taken off the quotient again.
      const std::int64_t lift = std::max<std::int64_t>(0, (dims[d].low + step - 1) / step) * step;
      auto [quotient, remainder] = b_.divmod(x + lift, step);
      const Range r = b_.range(remainder);
      if (r.lo > 0) outside = true;
      if (r.lo == 0 && r.hi > 0) {
        if (b_.findings) {
          const std::size_t before = b_.findings->cuts.size();
          want_cut(remainder, 1);
          cut = cut || b_.findings->cuts.size() > before || !b_.findings->cuts.empty();
        }
        require(compare(hlo::Direction::Eq, b_.affine(remainder), b_.constant_index(0)));
      }
      x = quotient + -(lift / step);
    }
    const Range r = b_.range(x);
    if (r.hi < 0 || r.lo >= size) outside = true;
    if (!outside && b_.findings && (r.lo < 0 || r.hi >= size)) {
      if (r.lo < 0) want_cut(x, 0);
      if (r.hi >= size) want_cut(x, size);
      cut = cut || !b_.findings->cuts.empty();
    }
    from[d] = x;
  }
  if (outside) return at(*i.operand(1), {});
  if (cut) return b_.constant(i.shape().dtype(), 0);
  for (std::size_t d = 0; d < point.size(); ++d)
    require(in_range(from[d], 0, inner.dim(static_cast<std::int64_t>(d))));
  if (mask == kNoValue) return at(*i.operand(0), from);
  const Value inside = TRY(masked(mask, [&] { return at(*i.operand(0), from); }));
  const Value padding = TRY(at(*i.operand(1), {}));
  return select(mask, inside, padding);
}

// An index operand as S64, unsigned ones too large for it at the top. Under a mask that is false it is 0.
Expected<Value> Elements::index_value(const Instruction& i, const Point& point) {
  Value v = TRY(at(i, point));
  if (i.shape().dtype() == DType::U64)
    v = b_.line(Opcode::Minimum, DType::U64, {v, b_.constant(DType::U64, static_cast<std::uint64_t>(INT64_MAX))});
  return convert(v, DType::S64);
}

Expected<Point> Elements::starts(const Instruction& i, std::int64_t first, const Shape& whole,
                                 const std::vector<std::int64_t>& window) {
  Point result(window.size());
  const bool vector_form = i.num_operands() == first + 1 && i.operand(first)->shape().rank() == 1;
  for (std::size_t d = 0; d < window.size(); ++d) {
    const std::int64_t top = whole.dim(static_cast<std::int64_t>(d)) - window[d];
    if (top == 0) continue;
    const Instruction& operand = *i.operand(vector_form ? first : first + static_cast<std::int64_t>(d));
    const Point point = vector_form ? Point{Index{static_cast<std::int64_t>(d), {}}} : Point();
    Value v = TRY(index_value(operand, point));
    v = b_.line(Opcode::Minimum, DType::S64, {v, b_.constant_index(top)});
    v = b_.line(Opcode::Maximum, DType::S64, {v, b_.constant_index(0)});
    b_.set_range(v, {0, top});
    result[d] = index_of(v);
  }
  return result;
}

Expected<Value> Elements::dynamic_slice(const Instruction& i, const Point& point) {
  Point from = TRY(starts(i, 1, i.operand(0)->shape(), i.shape().dims()));
  for (std::size_t d = 0; d < point.size(); ++d) from[d] = from[d] + point[d];
  return at(*i.operand(0), from);
}

// Out of place: the update where the point lies in the window, else the base.
Expected<Value> Elements::dynamic_update_slice(const Instruction& i, const Point& point) {
  const Shape& update = i.operand(1)->shape();
  const Point start = TRY(starts(i, 2, i.shape(), update.dims()));
  Point from(point.size());
  Value mask = kNoValue;
  for (std::size_t d = 0; d < point.size(); ++d) {
    from[d] = point[d] + start[d] * -1;
    const Value p = in_range(from[d], 0, update.dim(static_cast<std::int64_t>(d)));
    if (p != kNoValue) mask = mask == kNoValue ? p : b_.line(Opcode::And, DType::Pred, {mask, p});
  }
  if (mask == kNoValue) return at(*i.operand(1), from);
  const Value inside = TRY(masked(mask, [&] { return at(*i.operand(1), from); }));
  const Value base = TRY(at(*i.operand(0), point));
  return select(mask, inside, base);
}

Expected<Value> Elements::gather(const Instruction& i, const Point& point) {
  const auto& g = i.attr<hlo::GatherAttr>();
  const Shape& operand = i.operand(0)->shape();
  Point batch, window;
  for (std::size_t d = 0; d < point.size(); ++d) {
    const bool offset = std::ranges::find(g.offset_dims, static_cast<std::int64_t>(d)) != g.offset_dims.end();
    (offset ? window : batch).push_back(point[d]);
  }
  Point from(static_cast<std::size_t>(operand.rank()));
  for (std::size_t k = 0; k < g.start_index_map.size(); ++k) {
    Point at_index = batch;
    if (g.index_vector_dim < i.operand(1)->shape().rank())
      at_index.insert(at_index.begin() + static_cast<std::ptrdiff_t>(g.index_vector_dim),
                      Index{static_cast<std::int64_t>(k), {}});
    const std::int64_t d = g.start_index_map[k];
    const std::int64_t top = operand.dim(d) - g.slice_sizes[static_cast<std::size_t>(d)];
    if (top == 0) continue;
    Value v = TRY(index_value(*i.operand(1), at_index));
    v = b_.line(Opcode::Minimum, DType::S64, {v, b_.constant_index(top)});
    v = b_.line(Opcode::Maximum, DType::S64, {v, b_.constant_index(0)});
    b_.set_range(v, {0, top});
    from[static_cast<std::size_t>(d)] = index_of(v);
  }
  for (std::size_t j = 0; j < g.operand_batching_dims.size(); ++j) {
    std::int64_t d = g.start_indices_batching_dims[j];
    if (d > g.index_vector_dim) --d;
    from[static_cast<std::size_t>(g.operand_batching_dims[j])] = batch[static_cast<std::size_t>(d)];
  }
  std::size_t w = 0;
  for (std::int64_t d = 0; d < operand.rank(); ++d) {
    const auto in = [&](const hlo::Dims& dims) { return std::ranges::find(dims, d) != dims.end(); };
    if (in(g.collapsed_slice_dims) || in(g.operand_batching_dims)) continue;
    auto& x = from[static_cast<std::size_t>(d)];
    x = x + window[w++];
  }
  return at(*i.operand(0), from);
}

}  // namespace hloom::kernels

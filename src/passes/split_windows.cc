// A window of m×n elements is a window of n over windows of m: m + n operations for each element instead of m·n. Along one
// dimension a window of a·b elements is one of b, a elements apart, over windows of a; what is left of another size is
// combined at the end. Windows in between begin with the reducer's identity, the last with the initial value.
#include "passes/split_windows.h"

#include <algorithm>
#include <cmath>

#include "hlo/identity.h"
#include "hlo/reduce_order.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

using hlo::WindowDim;

constexpr std::int64_t kMostElements = 50;  // of a window of several dimensions that stays
constexpr std::int64_t kLongest = 24;       // and of one
constexpr std::int64_t kLeastResult = 1 << 10;

bool is_one(const WindowDim& w) { return w == WindowDim(); }

// The operation, or Tuple if windows must stay as they are.
Opcode combiner(const Instruction& i) {
  if (i.num_operands() != 2 || !i.shape().is_array()) return Opcode::Tuple;
  const DType type = i.shape().dtype();
  if (i.operand(0)->shape().dtype() != type || i.operand(1)->shape().dtype() != type) return Opcode::Tuple;
  const Opcode op = hlo::reducer_op(*i.to_apply());
  if (op == Opcode::Tuple || !hlo::has_identity(op, hlo::accumulator(op, type))) return Opcode::Tuple;
  // A product may leave the range of floats on one way and not on another.
  return op == Opcode::Multiply && is_floating(type) ? Opcode::Tuple : op;
}

class Splitter {
 public:
  Splitter(const Instruction& i, Opcode combine) : make_(i), combine_(combine), type_(hlo::accumulator(combine, i.shape().dtype())) {
    reducer_ = add_combiner(i.module(), combine, type_);
  }

  Instruction* split(const Instruction& i) {
    hlo::Window window = i.attr<hlo::WindowAttr>().window;
    Instruction* x = make_.convert(i.operand(0), type_);
    Instruction* identity = make_.identity(combine_, type_);
    Instruction* initial = make_.convert(i.operand(1), type_);
    // Strides first: less is left to do.
    std::vector<std::size_t> dims;
    for (std::size_t d = 0; d < window.size(); ++d)
      if (!is_one(window[d])) dims.push_back(d);
    std::ranges::stable_sort(dims, std::ranges::greater(), [&](std::size_t d) { return window[d].stride; });
    for (const std::size_t d : dims) x = along(x, d, window[d], d == dims.back() ? initial : identity, identity);
    return make_.convert(x, i.shape().dtype());
  }

 private:
  static std::int64_t places(std::int64_t size, const WindowDim& w) {
    const std::int64_t holes = size == 0 ? 0 : (size - 1) * w.lhs_dilate + 1;
    const std::int64_t span = (w.size - 1) * w.rhs_dilate + 1, room = holes + w.pad_low + w.pad_high;
    return room < span ? 0 : (room - span) / w.stride + 1;
  }

  Instruction* one(Instruction* x, std::size_t d, const WindowDim& w, Instruction* initial) {
    Dims sizes = x->shape().dims();
    sizes[d] = places(sizes[d], w);
    Instruction* result = make_.op(Opcode::ReduceWindow, Shape::array(type_, sizes), {x, initial});
    auto& window = result->mutable_attr<hlo::WindowAttr>().window;
    window.assign(sizes.size(), WindowDim());
    window[d] = w;
    result->set_called({reducer_});
    return result;
  }

  Instruction* along(Instruction* x, std::size_t d, const WindowDim& w, Instruction* initial, Instruction* identity) {
    const std::int64_t size = x->shape().dim(static_cast<std::int64_t>(d)), results = places(size, w);
    if (w.size <= kLongest || w.lhs_dilate != 1 || results == 0) return one(x, d, w, initial);
    const auto inner = static_cast<std::int64_t>(std::sqrt(static_cast<double>(w.size)));
    const std::int64_t outer = w.size / inner, whole = inner * outer, apart = inner * w.rhs_dilate;
    // Windows of `inner` wherever one of those of windows has one.
    WindowDim first{.size = inner, .stride = 1, .pad_low = w.pad_low, .rhs_dilate = w.rhs_dilate};
    const std::int64_t wanted = (results - 1) * w.stride + (outer - 1) * apart + 1;
    first.pad_high = wanted - size - w.pad_low + (inner - 1) * w.rhs_dilate;
    const WindowDim second{.size = outer, .stride = w.stride, .rhs_dilate = apart};
    Instruction* result = along(along(x, d, first, identity, identity), d, second, initial, identity);
    if (whole == w.size) return result;
    WindowDim rest = w;
    rest.size = w.size - whole;
    rest.pad_low = w.pad_low - whole * w.rhs_dilate;
    return make_.binary(combine_, result, along(x, d, rest, identity, identity));
  }

  Make make_;
  Opcode combine_;
  DType type_;
  hlo::Computation* reducer_ = nullptr;
};

// As many as the dimension is long, or nearly: a running fold, which each element continues.
bool is_running(const WindowDim& w, std::int64_t size) { return w.size * w.rhs_dilate > size / 2; }

bool wanted(const Instruction& i) {
  const hlo::Window& window = i.attr<hlo::WindowAttr>().window;
  if (combiner(i) == Opcode::Tuple || i.shape().num_elements() < kLeastResult) return false;
  double elements = 1;
  bool several = false, is_long = false;
  for (std::size_t d = 0; d < window.size(); ++d) {
    if (window[d].size == 1) continue;
    const std::int64_t size = i.operand(0)->shape().dim(static_cast<std::int64_t>(d));
    if (window[d].size > kLongest && is_running(window[d], size)) return false;
    several = several || elements > 1;
    elements *= static_cast<double>(window[d].size);
    is_long = is_long || (window[d].size > kLongest && window[d].lhs_dilate == 1);
  }
  return is_long || (several && elements > kMostElements);
}

}  // namespace

Expected<Changed> split_windows(hlo::Module& module) {
  return expand(module, Opcode::ReduceWindow, [](Instruction& i) -> Expected<Instruction*> {
    return wanted(i) ? Splitter(i, combiner(i)).split(i) : nullptr;
  });
}

}  // namespace hloom::passes

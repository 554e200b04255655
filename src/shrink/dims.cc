// Smaller dimensions: one size becomes another wherever it stands.
#include <algorithm>
#include <set>

#include "hlo/infer_shape.h"
#include "shrink/step.h"

namespace hloom::shrink {
namespace {

struct Change {
  std::int64_t from, to;
  std::int64_t operator()(std::int64_t n) const { return n == from ? to : n; }
  void operator()(Dims& dims) const {
    for (std::int64_t& n : dims) n = (*this)(n);
  }
};

Shape changed(const Change& change, Shape shape) {
  if (shape.is_tuple()) {
    for (Shape& e : shape.elements()) e = changed(change, std::move(e));
    return shape;
  }
  for (std::int64_t d = 0; d < shape.rank(); ++d) shape.set_dim(d, change(shape.dim(d)));
  return shape;
}

void change_slice(const Change& change, Instruction& i) {
  auto& s = i.mutable_attr<hlo::SliceAttr>();
  for (std::size_t d = 0; d < s.limits.size(); ++d) {
    const std::int64_t n = i.operand(0)->shape().dim(static_cast<std::int64_t>(d));
    // Of a dimension that changed, the same distance from its end.
    if (n != change.to || s.limits[d] <= n) continue;
    const std::int64_t less = s.limits[d] - n;
    s.limits[d] = n;
    s.starts[d] = s.starts[d] == 0 ? 0 : std::clamp<std::int64_t>(s.starts[d] - less, 0, n);
  }
}

// A window over a whole dimension, padded so that it begins outside, stays one.
void change_window(const Change& change, hlo::Window& window) {
  for (hlo::WindowDim& w : window) {
    if (w.size != change.from) continue;
    w.size = change.to;
    for (std::int64_t* pad : {&w.pad_low, &w.pad_high})
      if (*pad == change.from - 1) *pad = change.to - 1;
  }
}

void change_attributes(const Change& change, Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Slice: return change_slice(change, i);
    case Opcode::DynamicSlice: return change(i.mutable_attr<hlo::DynamicSliceAttr>().sizes);
    case Opcode::Gather: return change(i.mutable_attr<hlo::GatherAttr>().slice_sizes);
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter: return change_window(change, i.mutable_attr<hlo::WindowAttr>().window);
    case Opcode::Convolution: return change_window(change, i.mutable_attr<hlo::ConvolutionAttr>().window);
    case Opcode::Fft: return change(i.mutable_attr<hlo::FftAttr>().length);
    default: return;
  }
}

// The one dimension of a reshape's result that takes what its operand lost.
void fit_reshape(Instruction& i) {
  Shape shape = i.shape();
  const std::int64_t want = i.operand(0)->shape().num_elements(), have = shape.num_elements();
  if (want == have || have == 0) return;
  for (std::int64_t d = 0; d < shape.rank(); ++d) {
    const std::int64_t rest = have / std::max<std::int64_t>(1, shape.dim(d));
    if (shape.dim(d) == 0 || rest == 0 || want % rest != 0) continue;
    shape.set_dim(d, want / rest);
    i.set_shape(shape);
    return;
  }
}

bool change_instruction(const Change& change, Instruction& i) {
  if (i.opcode() == Opcode::Constant) {
    if (!i.shape().is_array()) return true;
    const Shape shape = changed(change, i.shape());
    i.mutable_attr<hlo::ConstantAttr>().literal = cut(i.literal(), shape.dims());
    i.set_shape(shape);
    return true;
  }
  i.set_shape(changed(change, i.shape()));
  change_attributes(change, i);
  if (i.opcode() == Opcode::Reshape) fit_reshape(i);
  if (i.opcode() == Opcode::Parameter || i.opcode() == Opcode::While || i.opcode() == Opcode::Conditional) return true;
  auto shape = hlo::infer_shape(i);
  if (!shape) return false;
  if (!compatible(*shape, i.shape())) i.set_shape(*std::move(shape));
  return true;
}

bool change_program(const Change& change, Program& program) {
  for (Computation& c : program.module->computations())
    for (Instruction* i : c.post_order())
      if (!change_instruction(change, *i)) return false;
  std::size_t leaf = 0;
  if (program.has_arguments)
    for (const Instruction* p : program.module->entry()->parameters())
      for (const Shape* shape : leaves(p->shape())) {
        Literal& argument = program.arguments[leaf++];
        if (shape->is_array()) argument = cut(argument, shape->dims());
      }
  return true;
}

}  // namespace

Steps smaller_dims(const Program& program) {
  std::set<std::int64_t, std::greater<>> sizes;
  for (const Computation& c : program.module->computations())
    for (const Instruction& i : c.instructions())
      for (const Shape* leaf : leaves(i.shape())) sizes.insert(leaf->dims().begin(), leaf->dims().end());
  Steps steps;
  for (const std::int64_t n : sizes)
    for (const std::int64_t less : std::set<std::int64_t>{1, 2, n / 2, n - 1})
      if (less > 0 && less < n)
        steps.push_back({"dimensions of " + std::to_string(n) + " are " + std::to_string(less),
                         [change = Change{n, less}](Program& p) { return change_program(change, p); }});
  return steps;
}

}  // namespace hloom::shrink

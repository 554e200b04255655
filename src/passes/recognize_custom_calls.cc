#include "passes/recognize_custom_calls.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "interp/custom_calls.h"
#include "interp/ducc_fft.h"
#include "interp/interpret.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

using hlo::Literal;

constexpr std::int64_t kKnownElements = 1024;  // of a value that is computed here
constexpr int kKnownDepth = 16;

Shape row_major(Shape shape) {
  for (Shape& e : shape.elements()) e = row_major(std::move(e));
  return shape.is_array() ? Shape::array(shape.dtype(), shape.dims()) : shape;
}

Instruction* plain(Make& make, Instruction* i) {
  return row_major(i->shape()) == i->shape() ? i : make.op(Opcode::Copy, row_major(i->shape()), {i});
}

bool is_top_k(const Instruction& i) {
  if (i.num_operands() != 1 || !i.shape().is_tuple() || i.shape().elements().size() != 2) return false;
  const Shape& values = i.shape().element(0);
  const Shape& indices = i.shape().element(1);
  return values.is_array() && values.rank() > 0 && indices.dtype() == DType::S32 && same_dims(values, indices) &&
         i.operand(0)->shape().rank() == values.rank() && i.operand(0)->shape().dtype() == values.dtype();
}

Expected<Instruction*> top_k(Instruction& i) {
  if (!is_top_k(i)) return nullptr;
  const bool largest = TRY(interp::takes_largest(i));
  const Shape& values = i.shape().element(0);
  Make make(i);
  Instruction* top = make.op(Opcode::Topk, row_major(i.shape()), {plain(make, i.operand(0))});
  top->mutable_attr<hlo::TopKAttr>().k = values.dim(values.rank() - 1);
  top->mutable_attr<hlo::TopKAttr>().largest = largest;
  return top;
}

// The first elements of the sorted arrays: of what may be approximate, the exact.
Expected<Instruction*> approx_top_k(Instruction& i) {
  const std::int64_t dimension = TRY(interp::approx_top_k_dimension(i));
  Make make(i);
  const std::int64_t arrays = i.num_operands() / 2;
  std::vector<Instruction*> operands;
  std::vector<Shape> shapes;
  for (std::int64_t k = 0; k < arrays; ++k) {
    operands.push_back(plain(make, i.operand(k)));
    shapes.push_back(operands.back()->shape());
  }
  Instruction* sorted = make.op(Opcode::Sort, arrays == 1 ? shapes[0] : Shape::tuple(shapes), operands);
  sorted->set_dimensions({dimension});
  sorted->mutable_attr<hlo::SortAttr>().stable = true;
  sorted->set_called({i.called(0)});
  std::vector<Instruction*> results;
  for (std::int64_t k = 0; k < arrays; ++k) {
    const Shape& shape = i.shape().is_tuple() ? i.shape().element(k) : i.shape();
    hlo::SliceAttr first;
    first.starts.assign(shape.dims().size(), 0);
    first.limits = shape.dims();
    first.strides.assign(shape.dims().size(), 1);
    results.push_back(make.slice(arrays == 1 ? sorted : make.element(sorted, k), first));
  }
  return i.shape().is_tuple() ? make.tuple(results) : results[0];
}

// The value of what depends on constants alone.
Expected<Literal> known_value(const Instruction& i, int depth = 0) {
  const bool moves = hlo::is_elementwise(i.opcode()) || is(&i, Opcode::Broadcast) || is(&i, Opcode::Concatenate) ||
                     is(&i, Opcode::Iota) || is(&i, Opcode::Reshape) || is(&i, Opcode::Slice);
  if (is(&i, Opcode::Constant)) return i.literal();
  if (!moves || depth == kKnownDepth || !i.shape().is_array() || i.shape().num_elements() > kKnownElements)
    return fail(Code::InvalidArgument, "operand ", i.name(), " must be known before the program runs");
  std::vector<Literal> operands;
  for (const Instruction* operand : i.operands()) operands.push_back(TRY(known_value(*operand, depth + 1)));
  return interp::evaluate_instruction(i, operands);
}

Literal number(DType type, double value) {
  Literal literal(Shape::scalar(type));
  if (type == DType::F64)
    literal.mutable_data<double>()[0] = value;
  else
    literal.mutable_data<float>()[0] = static_cast<float>(value);
  return literal;
}

// Both parts of each element.
Instruction* times(Make& make, Instruction* a, double factor) {
  const DType type = real_type(a->shape().dtype());
  Instruction* f = make.splat(number(type, factor), a->shape().dims());
  if (!is_complex(a->shape().dtype())) return make.binary(Opcode::Multiply, a, f);
  const Shape part = Shape::array(type, a->shape().dims());
  Instruction* real = make.binary(Opcode::Multiply, make.op(Opcode::Real, part, {a}), f);
  Instruction* imag = make.binary(Opcode::Multiply, make.op(Opcode::Imag, part, {a}), f);
  return make.op(Opcode::Complex, a->shape(), {real, imag});
}

Expected<Instruction*> transform(Instruction& i) {
  const auto what = interp::read_ducc_fft(i, [&](std::int64_t k) { return known_value(*i.operand(k)); });
  if (!what) return fail(what.error().code(), i.name(), ": ", what.error().message());
  Make make(i);
  Instruction* fft = make.op(Opcode::Fft, row_major(i.shape()), {plain(make, i.operand(1))});
  fft->mutable_attr<hlo::FftAttr>() = what->attr;
  return what->factor == 1 ? fft : times(make, fft, what->factor);
}

Expected<Instruction*> recognized(Instruction& i) {
  const std::string& target = i.attr<hlo::CustomCallAttr>().target;
  if (target == "TopK") return top_k(i);
  if (target == "ApproxTopK") return approx_top_k(i);
  if (interp::is_ducc_fft(target)) return transform(i);
  return nullptr;
}

}  // namespace

Expected<Changed> recognize_custom_calls(hlo::Module& module) {
  return expand(module, Opcode::CustomCall, recognized);
}

}  // namespace hloom::passes

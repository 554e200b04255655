#include "base/try.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/scalar_function.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::Opcode;

// A scalar operand of clamp as an array of the result's size.
Literal spread(const Literal& scalar, const Shape& shape) {
  Shape wide = shape;
  wide.set_dtype(scalar.dtype());
  Literal result(std::move(wide));
  fill(result.mutable_bytes().data(), result.num_elements(), scalar.bytes().data(), byte_width(scalar.dtype()));
  return result;
}

}  // namespace

Expected<Value> elementwise(const Call& call) {
  const bool is_select = call.instruction.opcode() == Opcode::Select;
  if (is_select && call.array(0).shape().is_scalar())
    return call.operands[call.array(0).data<std::uint8_t>()[0] ? 1 : 2];
  const Kernel kernel = kernel_of(call.instruction);
  if (kernel.function == nullptr)
    return fail(Code::Unimplemented, call.instruction.name(), ": ", call.instruction.opcode(), " of ", kernel.type,
                " has no meaning");
  Literal result(call.shape);
  std::vector<Literal> spreads;
  std::vector<const std::byte*> in;
  spreads.reserve(call.operands.size());
  for (const Value& operand : call.operands) {
    const Literal* array = &operand.array();
    if (array->shape().is_scalar() && !call.shape.is_scalar())
      array = &spreads.emplace_back(spread(*array, call.shape));
    in.push_back(array->bytes().data());
  }
  kernel(result.mutable_bytes().data(), in.data(), result.num_elements());
  return Value(std::move(result));
}

Expected<Value> map(const Call& call) {
  ScalarFunction& function = call.machine.scalar_function(*call.instruction.to_apply());
  Literal result(call.shape);
  std::vector<const std::byte*> in;
  for (const Value& operand : call.operands) in.push_back(operand.array().bytes().data());
  std::byte* out[] = {result.mutable_bytes().data()};
  TRY(function(out, in.data(), result.num_elements()));
  return Value(std::move(result));
}

}  // namespace hloom::interp

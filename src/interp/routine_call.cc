// Custom calls that library/ does: the same routines as in compiled programs, on arrays in the layouts that they ask for.

#include <cstring>

#include "base/try.h"
#include "hlo/buffer_shapes.h"
#include "interp/ops.h"
#include "library/custom_call.h"
#include "library/lapack.h"

namespace hloom::interp {
namespace {

using hlo::CustomCallAttr;
using hlo::Literal;

void append_leaves(const Value& value, std::vector<Literal>& to) {
  if (!value.is_tuple()) return to.push_back(value.array());
  for (const Value& element : value.elements()) append_leaves(element, to);
}

Shape with_layout(Shape shape) {
  shape = hlo::without_buffers(std::move(shape));
  if (shape.is_array() && !shape.has_layout()) shape.set_layout(Layout::descending(shape.rank()));
  return shape;
}

// Bytes between neighbours of each dimension.
Dims strides_of(const Shape& shape) {
  Dims strides(shape.dims().size());
  std::int64_t stride = byte_width(shape.dtype());
  for (const std::int64_t d : shape.layout().minor_to_major) {
    strides[static_cast<std::size_t>(d)] = stride;
    stride *= shape.dim(d);
  }
  return strides;
}

// Copies between row-major elements and those in the shape's layout.
void move_elements(const Shape& shape, const std::byte* from, std::byte* to, bool into_layout) {
  const Dims strides = strides_of(shape);
  const auto width = static_cast<std::size_t>(byte_width(shape.dtype()));
  Dims at(strides.size());
  for (std::int64_t n = 0; n < shape.num_elements(); ++n) {
    std::size_t place = 0;
    for (std::size_t d = 0; d < at.size(); ++d) place += static_cast<std::size_t>(at[d] * strides[d]);
    const std::size_t plain = static_cast<std::size_t>(n) * width;
    std::memcpy(to + (into_layout ? place : plain), from + (into_layout ? plain : place), width);
    for (std::size_t d = at.size(); d-- > 0;) {
      if (++at[d] < shape.dim(static_cast<std::int64_t>(d))) break;
      at[d] = 0;
    }
  }
}

std::optional<std::int64_t> scalar_of(const Literal& literal) {
  const bool whole = is_integral(literal.dtype()) || literal.dtype() == DType::Pred;
  if (!whole || literal.shape().rank() != 0) return std::nullopt;
  return element_as_int64(literal, 0);
}

library::CustomCallProblem problem_of(const Call& call, const std::vector<Literal>& operands) {
  const auto& attr = call.instruction.attr<CustomCallAttr>();
  library::CustomCallProblem p;
  p.target = attr.target;
  p.instruction = call.instruction.name();
  p.backend_config = call.instruction.annotations().backend_config;
  const auto& words = call.instruction.annotations().frontend_attributes;
  if (const auto message = words.find("error_message"); message != words.end()) p.message = message->second;
  for (std::int64_t k = 0; k < call.num_operands(); ++k) {
    const Shape& shape = attr.operand_layouts ? (*attr.operand_layouts)[static_cast<std::size_t>(k)] : call.instruction.operand(k)->shape();
    for (const Shape* leaf : leaves(shape)) p.operands.push_back(with_layout(*leaf));
  }
  for (const Shape* leaf : leaves(call.shape)) p.results.push_back(with_layout(*leaf));
  for (const Literal& operand : operands) p.scalars.push_back(operand.shape().is_array() ? scalar_of(operand) : std::nullopt);
  return p;
}

Value assemble(const Shape& shape, std::vector<Literal>& flat, std::size_t& at) {
  if (!shape.is_tuple()) return Value(std::move(flat[at++]));
  std::vector<Value> elements;
  for (const Shape& e : shape.elements()) elements.push_back(assemble(e, flat, at));
  return Value::tuple(std::move(elements));
}

Expected<> want_plain(const Call& call, const std::vector<Shape>& shapes) {
  for (const Shape& s : shapes)
    if (s.is_array() && !s.layout().is_plain())
      return fail(Code::Unimplemented, call.instruction.name(), ": tiled or packed arrays, as in ", to_string(s));
  return {};
}

// A layout says where elements lie, not what they are.
Expected<> set_layouts(const Call& call, library::CustomCallProblem& problem) {
  const auto layouts = library::lapack_layouts(problem);
  if (!layouts) return wrong(call, layouts.error().message());
  for (std::size_t k = 0; k < problem.operands.size(); ++k) problem.operands[k].set_layout(layouts->operands[k]);
  for (std::size_t k = 0; k < problem.results.size(); ++k) problem.results[k].set_layout(layouts->results[k]);
  return {};
}

}  // namespace

Expected<Value> routine_call(const Call& call) {
  std::vector<Literal> operands;
  for (const Value& operand : call.operands) append_leaves(operand, operands);
  library::CustomCallProblem problem = problem_of(call, operands);
  if (library::is_lapack(problem.target)) TRY(set_layouts(call, problem));
  TRY(want_plain(call, problem.operands));
  TRY(want_plain(call, problem.results));
  const auto named = [&](const Error& error) { return fail(error.code(), call.instruction.name(), ": ", error.message()); };
  const Expected<library::RoutinePlan> plan = library::plan_custom_call(problem);
  if (!plan) return named(plan.error());

  std::vector<base::AlignedBytes> memory;
  std::vector<void*> from, to;
  const auto room = [&](const Shape& shape) {
    memory.emplace_back(shape.is_array() ? shape.num_elements() * byte_width(shape.dtype()) : 0);
    return memory.back().data();
  };
  for (std::size_t k = 0; k < operands.size(); ++k) {
    from.push_back(room(problem.operands[k]));
    if (problem.operands[k].is_array())
      move_elements(problem.operands[k], operands[k].bytes().data(), static_cast<std::byte*>(from.back()), true);
  }
  for (const Shape& shape : problem.results) to.push_back(room(shape));
  const Expected<> done = library::run(*plan, from, to);
  if (!done) return named(done.error());

  std::vector<Literal> results;
  for (std::size_t k = 0; k < problem.results.size(); ++k) {
    results.emplace_back(problem.results[k]);
    if (problem.results[k].is_array())
      move_elements(problem.results[k], static_cast<const std::byte*>(to[k]), results.back().mutable_bytes().data(), false);
  }
  std::size_t at = 0;
  return assemble(call.shape, results, at);
}

}  // namespace hloom::interp

#include "compiler/execute_literals.h"

#include "base/aligned_bytes.h"
#include "base/fail.h"
#include "base/try.h"
#include "compiler/layout_bytes.h"

namespace hloom::compiler {
namespace {

void append_leaves(const Shape& shape, std::vector<Shape>& to) {
  for (const Shape* leaf : leaves(shape)) to.push_back(*leaf);
}

Expected<> check_arguments(std::span<const Shape> parameters, std::span<const hlo::Literal> arguments) {
  if (arguments.size() != parameters.size())
    return fail(Code::InvalidArgument, "the program takes ", parameters.size(), " arrays, found ", arguments.size());
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (!compatible(arguments[i].shape(), parameters[i]))
      return fail(Code::InvalidArgument, "argument ", i, ": is ", to_string(arguments[i].shape(), false),
                  ", the program takes ", to_string(parameters[i], false));
  return {};
}

std::vector<base::AlignedBytes> memory_for(std::span<const Shape> shapes) {
  std::vector<base::AlignedBytes> memory;
  for (const Shape& shape : shapes) memory.emplace_back(shape.size_bytes());
  return memory;
}

std::vector<std::span<std::byte>> spans_of(std::vector<base::AlignedBytes>& memory) {
  std::vector<std::span<std::byte>> spans;
  for (base::AlignedBytes& m : memory) spans.push_back(m.bytes());
  return spans;
}

}  // namespace

std::vector<Shape> parameter_leaves(const hlo::Module& module) {
  std::vector<Shape> shapes;
  for (const hlo::Instruction* p : module.entry()->parameters()) append_leaves(p->shape(), shapes);
  return shapes;
}

std::vector<Shape> result_leaves(const hlo::Module& module) {
  std::vector<Shape> shapes;
  append_leaves(module.entry()->root()->shape(), shapes);
  return shapes;
}

Expected<std::vector<hlo::Literal>> execute_literals(const runtime::Executor& executor,
                                                     std::span<const Shape> parameters, std::span<const Shape> results,
                                                     std::span<const hlo::Literal> arguments, runtime::ThreadPool& pool,
                                                     const runtime::RunOptions& options) {
  TRY(check_arguments(parameters, arguments));
  std::vector<base::AlignedBytes> inputs = memory_for(parameters), outputs = memory_for(results);
  for (std::size_t i = 0; i < arguments.size(); ++i)
    if (parameters[i].is_array()) store_literal(arguments[i], parameters[i], inputs[i].bytes());
  TRY(executor.execute(spans_of(inputs), spans_of(outputs), pool, options));
  std::vector<hlo::Literal> values;
  for (std::size_t i = 0; i < results.size(); ++i)
    values.push_back(results[i].is_array() ? load_literal(results[i], outputs[i].bytes()) : hlo::Literal(results[i]));
  return values;
}

}  // namespace hloom::compiler

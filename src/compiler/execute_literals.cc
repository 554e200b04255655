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

/// Parameters and results of one run.
class Memory {
 public:
  Memory(std::span<const Shape> parameters, std::span<const Shape> results, std::span<const hlo::Literal> arguments) {
    for (std::size_t i = 0; i < parameters.size(); ++i) {
      inputs_.push_back(allocate(parameters[i]));
      if (parameters[i].is_array()) store_literal(arguments[i], parameters[i], inputs_.back());
    }
    for (const Shape& shape : results) outputs_.push_back(allocate(shape));
  }

  std::span<const std::span<std::byte>> inputs() const { return inputs_; }
  std::span<const std::span<std::byte>> outputs() const { return outputs_; }

  std::vector<hlo::Literal> values(std::span<const Shape> results) const {
    std::vector<hlo::Literal> values;
    for (std::size_t i = 0; i < results.size(); ++i)
      values.push_back(results[i].is_array() ? load_literal(results[i], outputs_[i]) : hlo::Literal(results[i]));
    return values;
  }

 private:
  std::span<std::byte> allocate(const Shape& shape) { return memory_.emplace_back(shape.size_bytes()).bytes(); }

  std::vector<base::AlignedBytes> memory_;  // its blocks stay where they are
  std::vector<std::span<std::byte>> inputs_, outputs_;
};

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
  Memory memory(parameters, results, arguments);
  TRY(executor.execute(memory.inputs(), memory.outputs(), pool, options));
  return memory.values(results);
}

Expected<std::vector<std::vector<hlo::Literal>>> execute_literals(
    const runtime::Devices& devices, std::span<const Shape> parameters, std::span<const Shape> results,
    std::span<const std::vector<hlo::Literal>> arguments, const runtime::RunOptions& options,
    std::chrono::milliseconds timeout) {
  std::vector<Memory> memory;
  for (const std::vector<hlo::Literal>& of_device : arguments) {
    TRY(check_arguments(parameters, of_device));
    memory.emplace_back(parameters, results, of_device);
  }
  std::vector<runtime::DeviceValues> values;
  for (const Memory& of_device : memory) values.push_back({of_device.inputs(), of_device.outputs()});
  TRY(devices.execute(values, options, timeout));
  std::vector<std::vector<hlo::Literal>> all;
  for (const Memory& of_device : memory) all.push_back(of_device.values(results));
  return all;
}

}  // namespace hloom::compiler

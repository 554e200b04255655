#include "compiler/execute_literals.h"

#include "base/fail.h"
#include "base/try.h"
#include "compiler/layout_bytes.h"
#include "runtime/buffer_runs.h"
#include "runtime/process_allocator.h"

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

Expected<std::vector<Buffer>> buffers_of(std::span<const Shape> parameters, std::span<const hlo::Literal> arguments) {
  TRY(check_arguments(parameters, arguments));
  std::vector<Buffer> buffers;
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    buffers.push_back(TRY(Buffer::allocate(parameters[i].size_bytes())));
    if (parameters[i].is_array()) store_literal(arguments[i], parameters[i], buffers.back().mutable_bytes());
  }
  return buffers;
}

std::vector<hlo::Literal> literals_of(std::span<const Shape> shapes, std::span<const Buffer> buffers) {
  std::vector<hlo::Literal> values;
  for (std::size_t i = 0; i < shapes.size(); ++i)
    values.push_back(shapes[i].is_array() ? load_literal(shapes[i], buffers[i].bytes()) : hlo::Literal(shapes[i]));
  return values;
}

/// Parameters and results of one device, each in memory of its own.
class Memory {
 public:
  static Expected<Memory> create(std::span<const Shape> parameters, std::span<const Shape> results,
                                 std::span<const hlo::Literal> arguments) {
    Memory memory;
    memory.parameters_ = TRY(buffers_of(parameters, arguments));
    for (Buffer& parameter : memory.parameters_) memory.inputs_.push_back(parameter.mutable_bytes());
    for (const Shape& shape : results) {
      memory.results_.push_back(TRY(Buffer::allocate(shape.size_bytes())));
      memory.outputs_.push_back(memory.results_.back().mutable_bytes());
    }
    return memory;
  }

  runtime::DeviceValues values() const { return {inputs_, outputs_}; }
  std::span<const Buffer> results() const { return results_; }

 private:
  std::vector<Buffer> parameters_, results_;
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
  std::vector<Buffer> args = TRY(buffers_of(parameters, arguments));
  for (Buffer& arg : args) arg = donate(std::move(arg));  // as users do who need them no more
  const runtime::BufferRuns runs(executor, runtime::process_allocator());
  const Results buffers = TRY(runs.run(args, pool, options));
  return literals_of(results, std::span(buffers.begin(), buffers.size()));
}

Expected<std::vector<std::vector<hlo::Literal>>> execute_literals(
    const runtime::Devices& devices, std::span<const Shape> parameters, std::span<const Shape> results,
    std::span<const std::vector<hlo::Literal>> arguments, const runtime::RunOptions& options,
    std::chrono::milliseconds timeout) {
  std::vector<Memory> memory;
  for (const std::vector<hlo::Literal>& of_device : arguments)
    memory.push_back(TRY(Memory::create(parameters, results, of_device)));
  std::vector<runtime::DeviceValues> values;
  for (const Memory& of_device : memory) values.push_back(of_device.values());
  TRY(devices.execute(values, options, timeout));
  std::vector<std::vector<hlo::Literal>> all;
  for (const Memory& of_device : memory) all.push_back(literals_of(results, of_device.results()));
  return all;
}

}  // namespace hloom::compiler

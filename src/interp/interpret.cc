#include "interp/interpret.h"

#include <optional>
#include <utility>

#include "base/fail.h"
#include "base/thread.h"
#include "base/try.h"
#include "interp/fabric.h"
#include "interp/machine.h"

namespace hloom::interp {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Literal;

std::vector<Value> values_of(std::span<const Literal> literals) {
  return std::vector<Value>(literals.begin(), literals.end());
}

Expected<> check_arguments(const Computation& computation, std::span<const Literal> arguments) {
  const auto& parameters = computation.parameters();
  if (arguments.size() != parameters.size())
    return fail(Code::InvalidArgument, computation.name(), ": takes ", parameters.size(), " arguments, found ",
                arguments.size());
  for (std::size_t i = 0; i < parameters.size(); ++i)
    if (!compatible(arguments[i].shape(), parameters[i]->shape()))
      return fail(Code::InvalidArgument, computation.name(), ": argument ", i, " is ",
                  to_string(arguments[i].shape(), false), ", expected ", to_string(parameters[i]->shape(), false));
  return {};
}

Expected<Literal> run(Machine& machine, const Computation& computation, std::span<const Literal> arguments) {
  TRY(check_arguments(computation, arguments));
  const Value result = TRY(machine.run(computation, values_of(arguments)));
  return to_literal(result, computation.root()->shape());
}

// What a device's thread runs. Its values are gone before the turn passes on.
void run_device(const hlo::Module& module, std::span<const Literal> arguments, const Options& options, Place place,
                Fabric& fabric, std::optional<Expected<Literal>>& result) {
  fabric.enter(place.device);
  {
    Machine machine(options, place, &fabric);
    result = run(machine, *module.entry(), arguments);
  }
  fabric.leave(place.device, !*result);
}

// The error that came first by itself, not for want of others.
Expected<std::vector<Literal>> collected(std::vector<std::optional<Expected<Literal>>>& results) {
  const Error* error = nullptr;
  for (const auto& result : results)
    if (!*result && (error == nullptr || error->code() == Code::Aborted)) error = &result->error();
  if (error != nullptr) return *error;
  std::vector<Literal> values;
  for (auto& result : results) values.push_back(std::move(**result));
  return values;
}

}  // namespace

Expected<Literal> interpret(const hlo::Module& module, std::span<const Literal> arguments, const Options& options) {
  Machine machine(options, Place(), nullptr);
  return run(machine, *module.entry(), arguments);
}

Expected<std::vector<Literal>> interpret_devices(const hlo::Module& module,
                                                 std::span<const std::vector<Literal>> arguments,
                                                 const Options& options) {
  const std::int64_t n = options.replicas * options.partitions;
  HLOOM_CHECK(n > 0 && n == static_cast<std::int64_t>(arguments.size()));
  std::vector<std::optional<Expected<Literal>>> results(arguments.size());
  Fabric fabric(n);
  std::vector<base::Thread> threads;
  for (std::int64_t k = 0; k < n; ++k) {
    const auto at = static_cast<std::size_t>(k);
    auto thread = base::Thread::start("device", [&, at, k] {
      run_device(module, arguments[at], options, Place{k, options.replicas, options.partitions}, fabric, results[at]);
    });
    if (thread) {
      threads.push_back(std::move(*thread));
      continue;
    }
    results[at] = fail(Code::ResourceExhausted, "device ", k, ": the system has no thread for it");
    fabric.leave(k, true);
  }
  for (base::Thread& thread : threads) thread.join();
  return collected(results);
}

Expected<Literal> evaluate_instruction(const Instruction& instruction, std::span<const Literal> operands,
                                       const Options& options) {
  HLOOM_CHECK(operands.size() == instruction.operands().size());
  Machine machine(options, Place(), nullptr);
  std::vector<Value> values = values_of(operands);
  const Value result = TRY(machine.evaluate(instruction, values));
  return to_literal(result, instruction.shape());
}

Expected<Literal> evaluate_computation(const Computation& computation, std::span<const Literal> arguments,
                                       const Options& options) {
  Machine machine(options, Place(), nullptr);
  return run(machine, computation, arguments);
}

}  // namespace hloom::interp

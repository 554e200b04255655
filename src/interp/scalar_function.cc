#include "interp/scalar_function.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <unordered_map>

#include "base/try.h"
#include "interp/index.h"
#include "interp/machine.h"

namespace hloom::interp {
namespace {

using hlo::Instruction;
using hlo::Opcode;

bool is_pass_through(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Broadcast:
    case Opcode::OptBarrier:
    case Opcode::Domain: return i.shape().is_scalar();
    default: return false;
  }
}

}  // namespace

ScalarFunction::ScalarFunction(Machine& machine, const hlo::Computation& computation)
    : machine_(machine), computation_(computation) {
  std::vector<std::size_t> arguments;
  for (const Instruction* parameter : computation.parameters()) {
    parameter_types_.push_back(parameter->shape().dtype());
    arguments.push_back(registers_.size());
    registers_.emplace_back();
  }
  for (const Shape* leaf : leaves(computation.root()->shape())) result_types_.push_back(leaf->dtype());
  flat_ = flatten(computation, std::move(arguments), results_) && results_.size() == result_types_.size();
  if (flat_) set_parameters_aside();
  if (!flat_) results_.resize(result_types_.size());
  pointers_.resize(registers_.size());
  for (std::size_t r = 0; r < registers_.size(); ++r) pointers_[r] = registers_[r].data();
}

std::size_t ScalarFunction::new_register(DType type) {
  registers_.emplace_back(static_cast<std::size_t>(kLanes * byte_width(type)));
  return registers_.size() - 1;
}

// Appends the kernels of a computation whose parameters are in these registers. False if it has instructions of
// other kinds.
bool ScalarFunction::flatten(const hlo::Computation& computation, std::vector<std::size_t> arguments,
                             std::vector<std::size_t>& results) {
  // A tuple is the registers of its elements.
  std::unordered_map<const Instruction*, std::vector<std::size_t>> values;
  for (const Instruction* i : computation.post_order()) {
    std::vector<std::size_t> operands;
    for (const Instruction* operand : i->operands())
      operands.insert(operands.end(), values[operand].begin(), values[operand].end());
    std::vector<std::size_t>& value = values[i];
    if (i->opcode() == Opcode::Parameter) {
      value = {arguments[static_cast<std::size_t>(i->parameter_number())]};
      if (!i->shape().is_scalar()) return false;
    } else if (i->opcode() == Opcode::Tuple) {
      for (const Shape& element : i->shape().elements())
        if (!element.is_scalar()) return false;
      value = operands;
    } else if (i->opcode() == Opcode::GetTupleElement) {
      value = {operands[static_cast<std::size_t>(i->tuple_index())]};
    } else if (i->opcode() == Opcode::Call || i->opcode() == Opcode::Fusion) {
      if (operands.size() != i->operands().size()) return false;
      if (!flatten(*i->called(0), operands, value)) return false;
    } else {
      const auto result = flatten_instruction(*i, operands);
      if (!result) return false;
      value = {*result};
    }
  }
  results = values[computation.root()];
  return true;
}

std::optional<std::size_t> ScalarFunction::flatten_instruction(const Instruction& i,
                                                               const std::vector<std::size_t>& operands) {
  if (!i.shape().is_scalar()) return std::nullopt;
  if (i.opcode() == Opcode::Constant) {
    const std::size_t result = new_register(i.shape().dtype());
    fill(registers_[result].data(), kLanes, i.literal().bytes().data(), byte_width(i.shape().dtype()));
    return result;
  }
  if (operands.size() != i.operands().size() || operands.size() > 4) return std::nullopt;
  for (const Instruction* operand : i.operands())
    if (!operand->shape().is_scalar()) return std::nullopt;
  if (is_pass_through(i)) return operands[0];
  const Kernel kernel = kernel_of(i);
  if (kernel.function == nullptr) return std::nullopt;
  const std::size_t result = new_register(i.shape().dtype());
  steps_.push_back({kernel, operands, result});
  return result;
}

// A result that is a parameter gets a register of its own: where it is written may be where another parameter is.
void ScalarFunction::set_parameters_aside() {
  for (std::size_t r = 0; r < results_.size(); ++r) {
    if (results_[r] >= parameter_types_.size()) continue;
    const DType type = result_types_[r];
    const std::size_t copy = new_register(type);
    steps_.push_back({{copy_operation(type), type, DType::Invalid, type, nullptr}, {results_[r]}, copy});
    results_[r] = copy;
  }
}

Expected<> ScalarFunction::operator()(std::byte* const* out, const std::byte* const* in, std::int64_t n) {
  if (!flat_) return run_machine(out, in, n);
  for (std::int64_t begin = 0; begin < n; begin += kLanes) run_kernels(out, in, begin, std::min(kLanes, n - begin));
  return {};
}

void ScalarFunction::run_kernels(std::byte* const* out, const std::byte* const* in, std::int64_t begin,
                                 std::int64_t n) {
  for (std::size_t p = 0; p < parameter_types_.size(); ++p)
    pointers_[p] = in[p] + begin * byte_width(parameter_types_[p]);
  for (const Step& step : steps_) {
    std::array<const std::byte*, 4> operands{};
    for (std::size_t k = 0; k < step.operands.size(); ++k) operands[k] = pointers_[step.operands[k]];
    step.kernel(registers_[step.result].data(), operands.data(), n);
  }
  for (std::size_t r = 0; r < results_.size(); ++r) {
    const std::int64_t width = byte_width(result_types_[r]);
    std::memcpy(out[r] + begin * width, pointers_[results_[r]], static_cast<std::size_t>(n * width));
  }
}

Expected<> ScalarFunction::run_machine(std::byte* const* out, const std::byte* const* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<Value> arguments;
    for (std::size_t p = 0; p < parameter_types_.size(); ++p) {
      const std::int64_t width = byte_width(parameter_types_[p]);
      hlo::Literal scalar(computation_.parameter(static_cast<std::int64_t>(p))->shape());
      std::memcpy(scalar.mutable_bytes().data(), in[p] + i * width, static_cast<std::size_t>(width));
      arguments.emplace_back(std::move(scalar));
    }
    const Value value = TRY(machine_.run(computation_, std::move(arguments)));
    const hlo::Literal literal = to_literal(value, computation_.root()->shape());
    const std::vector<const hlo::Literal*> results = hlo::leaves(literal);
    for (std::size_t r = 0; r < results.size(); ++r)
      std::memcpy(out[r] + i * byte_width(result_types_[r]), results[r]->bytes().data(), results[r]->bytes().size());
  }
  return {};
}

bool ScalarFunction::is_plain_add() const {
  const Instruction& root = *computation_.root();
  if (!flat_ || root.opcode() != Opcode::Add || parameter_types_.size() != 2) return false;
  const Instruction *a = computation_.parameter(0), *b = computation_.parameter(1);
  return (root.operand(0) == a && root.operand(1) == b) || (root.operand(0) == b && root.operand(1) == a);
}

}  // namespace hloom::interp

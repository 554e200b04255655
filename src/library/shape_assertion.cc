#include "library/shape_assertion.h"

#include <cstring>
#include <memory>

#include "base/fail.h"
#include "base/run_status.h"

namespace hloom::library {
namespace {

// What the descriptor points to.
struct Assertion {
  std::string message;
  std::vector<DType> types;  // of the integers
};

std::string number(DType type, const void* at) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, at, static_cast<std::size_t>(byte_width(type)));
  if (!is_signed(type)) return std::to_string(bits);
  const int above = 64 - 8 * static_cast<int>(byte_width(type));
  return std::to_string(static_cast<std::int64_t>(bits << above) >> above);
}

// The message with numbers in place of `{k}`; other braces stay.
std::string filled(const Assertion& assertion, void* const* integers) {
  std::string text = assertion.message;
  for (std::size_t k = 0; k < assertion.types.size(); ++k) {
    const std::string mark = "{" + std::to_string(k) + "}", value = number(assertion.types[k], integers[k]);
    for (std::size_t at = text.find(mark); at != std::string::npos; at = text.find(mark, at + value.size()))
      text.replace(at, mark.size(), value);
  }
  return text;
}

// Buffers: descriptor, status, the pred, integers.
void check(void* const* buffers, std::int64_t block, std::int64_t, void*) {
  if (*static_cast<const std::uint8_t*>(buffers[2]) != 0) return;
  const Assertion* assertion;
  std::memcpy(&assertion, buffers[0], sizeof(assertion));
  base::report_failure(*static_cast<base::RunStatus*>(buffers[1]), block,
                       fail(Code::InvalidArgument, filled(*assertion, buffers + 3)));
}

bool is_scalar(const Shape& shape) { return shape.is_array() && shape.rank() == 0; }

}  // namespace

Expected<RoutinePlan> plan_shape_assertion(const CustomCallProblem& problem) {
  Assertion assertion{problem.message.empty() ? "a size is not what the program asks for" : problem.message, {}};
  const std::vector<Shape>& operands = problem.operands;
  bool good = !operands.empty() && is_scalar(operands[0]) && operands[0].dtype() == DType::Pred && problem.results.empty();
  for (std::size_t k = 1; k < operands.size(); ++k) {
    good = good && is_scalar(operands[k]) && is_integral(operands[k].dtype());
    assertion.types.push_back(operands[k].dtype());
  }
  if (!good) return fail(Code::InvalidArgument, "shape_assertion takes a pred and integers, and gives nothing");
  const auto kept = std::make_shared<const Assertion>(std::move(assertion));
  const Assertion* address = kept.get();
  Routine r;
  r.function = check;
  r.arguments = {{Argument::Kind::Descriptor}, {Argument::Kind::Status}};
  for (std::int64_t k = 0; k < std::ssize(operands); ++k) r.arguments.push_back({Argument::Kind::Operand, k});
  r.descriptor = base::AlignedBytes(std::as_bytes(std::span(&address, 1)));
  RoutinePlan plan;
  plan.calls.push_back(std::move(r));
  plan.keeps = kept;
  return plan;
}

}  // namespace hloom::library

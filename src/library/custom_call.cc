#include "library/custom_call.h"

#include <cstring>

#include "base/fail.h"
#include "base/try.h"
#include "library/attributes.h"
#include "library/ffi.h"
#include "library/host_transfer.h"
#include "library/lapack.h"
#include "library/shape_assertion.h"

namespace hloom::library {
namespace {

// AllocateBuffer's result may hold anything; zeros are the same each time.
void clear_result(void* const* buffers, std::int64_t, std::int64_t, void*) {
  std::int64_t bytes;
  std::memcpy(&bytes, buffers[0], sizeof(bytes));
  std::memset(buffers[1], 0, static_cast<std::size_t>(bytes));
}

Expected<RoutinePlan> plan_allocate_buffer(const CustomCallProblem& problem) {
  if (problem.results.size() != 1 || !problem.results[0].is_array())
    return fail(Code::InvalidArgument, "AllocateBuffer gives one array");
  const std::int64_t bytes = problem.results[0].size_bytes();
  RoutinePlan plan;
  if (bytes == 0) return plan;
  Routine r;
  r.function = clear_result;
  r.arguments = {{Argument::Kind::Descriptor}, {Argument::Kind::Result}};
  r.descriptor = base::AlignedBytes(std::as_bytes(std::span(&bytes, 1)));
  plan.calls.push_back(std::move(r));
  return plan;
}

}  // namespace

Expected<RoutinePlan> plan_custom_call(CustomCallProblem problem) {
  const bool lapack = is_lapack(problem.target);
  const std::shared_ptr<const ffi::Handler> handler = lapack ? nullptr : handler_of(problem.target);
  if (problem.backend_config.starts_with('{')) {
    auto attributes = parse_attributes(problem.backend_config);
    // A handler may read the text in a way of its own.
    if (!attributes && handler == nullptr) return attributes.error();
    if (attributes) problem.attributes = *std::move(attributes);
    if (const auto message = problem.attributes.text("error_message")) problem.message = *message;
  }
  if (lapack) return plan_lapack(problem);
  if (handler != nullptr) return plan_handler(std::move(problem), handler);
  if (const auto transfer = host_transfer(problem.target, problem.attributes, problem.operands, problem.results))
    return plan_host_transfer(*transfer, problem.operands, problem.results);
  if (problem.target == "AllocateBuffer") return plan_allocate_buffer(problem);
  if (problem.target == "shape_assertion") return plan_shape_assertion(problem);
  return fail(Code::Unimplemented, "nobody knows the custom call target ", problem.target,
              "; hloom::ffi::register_handler() takes yours");
}

}  // namespace hloom::library

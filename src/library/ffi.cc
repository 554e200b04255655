#include "library/ffi.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <mutex>
#include <new>

#include "base/fail.h"
#include "base/run_status.h"
#include "library/lapack.h"

namespace hloom {
namespace {

struct Registry {
  std::mutex mutex;
  std::map<std::string, std::shared_ptr<const ffi::Handler>, std::less<>> handlers;
};

// Never destroyed: programs may run while the process ends.
Registry& registry() {
  static Registry& all = *new Registry;
  return all;
}

// Targets whose meaning is fixed (docs/custom-calls.md).
bool is_own(std::string_view target) {
  constexpr std::array<std::string_view, 18> kOwn = {
      "Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint", "annotate_device_placement", "MoveToHost",
      "MoveToDevice", "PinToDevice", "PinToDeviceSram", "TopK", "ApproxTopK", "ducc_fft", "dynamic_ducc_fft", "shape_assertion",
      "AllocateBuffer", "Pin", "Unpin", "CreateBuffer"};
  return std::ranges::find(kOwn, target) != kOwn.end() || target.starts_with("xla.sdy.") || target.starts_with("hloom.") || library::is_lapack(target);
}

}  // namespace

namespace ffi {

Expected<> register_handler(std::string target, Handler handler) {
  if (target.empty() || !handler) return fail(Code::InvalidArgument, "a handler and a target that it serves are needed");
  if (is_own(target)) return fail(Code::AlreadyExists, "the target ", target, " is hloom's own");
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto [at, added] = all.handlers.emplace(std::move(target), std::make_shared<const Handler>(std::move(handler)));
  if (!added) return fail(Code::AlreadyExists, "the target ", at->first, " has a handler");
  return {};
}

bool unregister_handler(std::string_view target) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.handlers.find(target);
  if (found == all.handlers.end()) return false;
  all.handlers.erase(found);
  return true;
}

}  // namespace ffi

namespace library {
namespace {

// What the descriptor points to.
struct HandlerCall {
  CustomCallProblem problem;
  std::shared_ptr<const ffi::Handler> handler;
};

// The scratch holds the buffers, so that a run allocates nothing here.
void call_handler(void* const* pointers, std::int64_t, std::int64_t, void* scratch) {
  const HandlerCall* call;
  std::memcpy(&call, pointers[0], sizeof(call));
  const CustomCallProblem& p = call->problem;
  const std::size_t operands = p.operands.size(), results = p.results.size();
  auto* buffers = static_cast<ffi::Buffer*>(scratch);
  for (std::size_t i = 0; i < operands + results; ++i) {
    const Shape& shape = i < operands ? p.operands[i] : p.results[i - operands];
    new (buffers + i) ffi::Buffer(shape, shape.is_array() ? pointers[2 + i] : nullptr);
  }
  const ffi::Call seen{p.target, p.instruction, {buffers, operands}, {buffers + operands, results}, p.attributes, p.backend_config};
  const Expected<> done = (*call->handler)(seen);
  if (!done) base::report_failure(*static_cast<base::RunStatus*>(pointers[1]), 0, done.error());
}

}  // namespace

std::shared_ptr<const ffi::Handler> handler_of(std::string_view target) {
  Registry& all = registry();
  const std::lock_guard<std::mutex> lock(all.mutex);
  const auto found = all.handlers.find(target);
  return found == all.handlers.end() ? nullptr : found->second;
}

RoutinePlan plan_handler(CustomCallProblem problem, std::shared_ptr<const ffi::Handler> handler) {
  const auto call = std::make_shared<const HandlerCall>(HandlerCall{std::move(problem), std::move(handler)});
  Routine r;
  r.function = call_handler;
  r.arguments = {{Argument::Kind::Descriptor}, {Argument::Kind::Status}};
  for (std::int64_t i = 0; i < std::ssize(call->problem.operands); ++i) r.arguments.push_back({Argument::Kind::Operand, i});
  for (std::int64_t i = 0; i < std::ssize(call->problem.results); ++i) r.arguments.push_back({Argument::Kind::Result, i});
  const HandlerCall* address = call.get();
  r.descriptor = base::AlignedBytes(std::as_bytes(std::span(&address, 1)));
  r.scratch_bytes = static_cast<std::int64_t>(sizeof(ffi::Buffer) * (r.arguments.size() - 2));
  RoutinePlan plan;
  plan.calls.push_back(std::move(r));
  plan.keeps = call;
  return plan;
}

}  // namespace library
}  // namespace hloom

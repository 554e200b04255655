#include "library/check_size.h"

#include <cstring>

#include "base/fail.h"
#include "base/run_status.h"

namespace hloom::library {
namespace {

// Buffers: status, size, least, most, result.
void check_size(void* const* buffers, std::int64_t block, std::int64_t, void*) {
  std::int32_t size = 0, least = 0, most = 0;
  std::memcpy(&size, buffers[1], sizeof(size));
  std::memcpy(&least, buffers[2], sizeof(least));
  std::memcpy(&most, buffers[3], sizeof(most));
  if (size < least || size > most) {
    base::report_failure(*static_cast<base::RunStatus*>(buffers[0]), block,
                         fail(Code::InvalidArgument, "size ", size, " is not in [", least, ", ", most, "]"));
    size = least;
  }
  std::memcpy(buffers[4], &size, sizeof(size));
}

}  // namespace

RoutinePlan plan_check_size() {
  using Kind = Argument::Kind;
  RoutinePlan plan;
  plan.calls.emplace_back();
  plan.calls[0].function = check_size;
  plan.calls[0].arguments = {{Kind::Status, 0}, {Kind::Operand, 0}, {Kind::Operand, 1}, {Kind::Operand, 2}, {Kind::Result, 0}};
  return plan;
}

}  // namespace hloom::library

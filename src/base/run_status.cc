#include "base/run_status.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "base/fail.h"

namespace hloom::base {

void report_failure(RunStatus& status, std::int64_t block, const Error& error) {
  const std::atomic_ref<std::int32_t> lock(status.lock);
  while (lock.exchange(1, std::memory_order_acquire) != 0) {}
  if (status.code == 0 || block < status.block) {
    status.code = static_cast<std::int32_t>(error.code());
    status.block = block;
    status.message_bytes = std::min<std::int64_t>(std::ssize(error.message()), sizeof(status.message));
    std::memcpy(status.message, error.message().data(), static_cast<std::size_t>(status.message_bytes));
  }
  lock.store(0, std::memory_order_release);
}

void report_outside(RunStatus* status, const char* what, std::int64_t what_bytes, std::int64_t block,
                    std::int64_t element) {
  const std::string_view text(what, static_cast<std::size_t>(what_bytes));
  report_failure(*status, block, fail(Code::Internal, text, ": there is no element ", element));
}

Error take_failure(RunStatus& status, std::string_view who) {
  Error error = fail(static_cast<Code>(status.code), who, ": ",
                     std::string_view(status.message, static_cast<std::size_t>(status.message_bytes)));
  status = RunStatus();
  return error;
}

}  // namespace hloom::base

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

Error take_failure(RunStatus& status, std::string_view who) {
  Error error = fail(static_cast<Code>(status.code), who, ": ",
                     std::string_view(status.message, static_cast<std::size_t>(status.message_bytes)));
  status = RunStatus();
  return error;
}

}  // namespace hloom::base

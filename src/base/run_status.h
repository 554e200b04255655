// How a routine tells, in the middle of a run, that it cannot go on.
#pragma once

#include <cstdint>
#include <string_view>

#include "hloom/error.h"

namespace hloom::base {

/// The error of a run. A run has one; routines that may fail get its address as an argument. All zeros: no error.
struct RunStatus {
  std::int32_t lock = 0;
  std::int32_t code = 0;  ///< 0 while nothing failed
  std::int64_t block = 0; ///< that failed
  std::int64_t message_bytes = 0;
  char message[1000] = {};
};

/// Notes that `block` failed. Of several blocks of one call the first by number stands, so that the error does not depend
/// on threads. A message longer than the slot is cut. Any number of threads may call it.
void report_failure(RunStatus&, std::int64_t block, const Error&);

/// An access outside of an argument, noted by code of a kernel: `what` (text of so many bytes, "stores to y, 8 elements of
/// f32") and the element that it would have touched.
void report_outside(RunStatus* status, const char* what, std::int64_t what_bytes, std::int64_t block,
                    std::int64_t element);

inline bool has_failed(const RunStatus& status) { return status.code != 0; }

/// The error with `who` in front, and the slot is free again. Needs: has_failed(), and no call under way.
Error take_failure(RunStatus&, std::string_view who);

}  // namespace hloom::base

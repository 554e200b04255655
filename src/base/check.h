// Checks of hloom's own promises. They stand in all builds: a fault of ours must never become a wrong value.
#pragma once

namespace hloom::base {

/// Prints the condition with its place and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line);

}  // namespace hloom::base

/// Aborts with the place if `condition` is false. For hloom's own bugs only; wrong input is an Error.
#define HLOOM_CHECK(condition) \
  ((condition) ? static_cast<void>(0) : ::hloom::base::check_failed(#condition, __FILE__, __LINE__))

/// As HLOOM_CHECK, in builds without NDEBUG only: for checks too dear for inner loops.
#ifdef NDEBUG
#define HLOOM_DCHECK(condition) static_cast<void>(sizeof((condition) ? 1 : 0))
#else
#define HLOOM_DCHECK(condition) HLOOM_CHECK(condition)
#endif

// TRY: the value of an Expected, or a return with its error.
#pragma once

#include <utility>

#include "hloom/error.h"

/// `auto x = TRY(f());` takes the value out of an Expected or returns its error from the calling function.
/// Use it as a statement of its own or right after `=`; it is a statement expression of GCC and clang.
#define TRY(...)                                                       \
  __extension__({                                                      \
    auto&& hloom_try_result = (__VA_ARGS__);                           \
    if (!hloom_try_result) return std::move(hloom_try_result).error(); \
    ::hloom::base::unwrap(std::move(hloom_try_result));                \
  })

namespace hloom::base {

template <typename T>
T unwrap(Expected<T>&& expected) {
  if constexpr (!std::is_void_v<T>) return *std::move(expected);
}

template <typename T>
T unwrap(const Expected<T>&& expected) {
  if constexpr (!std::is_void_v<T>) return *expected;
}

}  // namespace hloom::base

// What can go wrong, and how it is told.
//
//   hloom::Expected<int> parsed = parse(text);
//   if (!parsed) return report(parsed.error().message());
//   use(*parsed);
//
// Errors are for wrong input. A fault of hloom itself fails a check and aborts loudly.
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace hloom {

/// Kinds of errors. The numbers are those of PJRT_Error_Code, so that a plugin can cast.
enum class Code : std::int32_t {
  Ok = 0,
  Cancelled = 1,
  Unknown = 2,
  InvalidArgument = 3,
  DeadlineExceeded = 4,
  NotFound = 5,
  AlreadyExists = 6,
  PermissionDenied = 7,
  ResourceExhausted = 8,
  FailedPrecondition = 9,
  Aborted = 10,
  OutOfRange = 11,
  Unimplemented = 12,
  Internal = 13,
  Unavailable = 14,
  DataLoss = 15,
};

/// The code's name as written above.
std::string_view name(Code);

/// One error: a code to act on, and a message for a person that names the instruction or file,
/// what was found, and what was expected.
class [[nodiscard]] Error {
 public:
  Error(Code code, std::string message) : code_(code), message_(std::move(message)) {}

  Code code() const { return code_; }
  const std::string& message() const { return message_; }

 private:
  Code code_;
  std::string message_;
};

/// A value, or the error that came instead; the interface of std::expected<T, Error>.
/// `*x` of an error aborts with the error's message.
template <typename T = void>
class [[nodiscard]] Expected {
 public:
  using value_type = T;

  template <typename U = T>
    requires(!std::is_same_v<std::remove_cvref_t<U>, Expected> && std::is_constructible_v<T, U &&> &&
             !std::is_same_v<std::remove_cvref_t<U>, Error>)
  Expected(U&& value) : state_(std::in_place_index<0>, std::forward<U>(value)) {}
  Expected(Error error) : state_(std::in_place_index<1>, std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }

  T& operator*() & { return get(*this); }
  const T& operator*() const& { return get(*this); }
  T&& operator*() && { return std::move(get(*this)); }
  T* operator->() { return &get(*this); }
  const T* operator->() const { return &get(*this); }
  T& value() & { return get(*this); }
  const T& value() const& { return get(*this); }
  T&& value() && { return std::move(get(*this)); }

  /// Needs: no value.
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  template <typename Self>
  static auto& get(Self& self) {
    if (!self.has_value()) {
      std::fprintf(stderr, "hloom: the value of an error was used: %s\n", self.error().message().c_str());
      std::abort();
    }
    return std::get<0>(self.state_);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Expected<void> {
 public:
  using value_type = void;

  Expected() = default;
  Expected(Error error) : state_(std::move(error)) {}

  bool has_value() const { return state_.index() == 0; }
  explicit operator bool() const { return has_value(); }
  void value() const {}

  /// Needs: no value.
  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<std::monostate, Error> state_;
};

}  // namespace hloom

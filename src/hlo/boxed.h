// An optional that takes one pointer when it is empty.
#pragma once

#include <memory>
#include <utility>

namespace hloom::hlo {

/// As std::optional<T>, with the value on the heap: for what few of many objects have. Copies are deep.
template <typename T>
class Boxed {
 public:
  Boxed() = default;
  Boxed(T value) : held_(std::make_unique<T>(std::move(value))) {}
  Boxed(const Boxed& other) : held_(other.held_ ? std::make_unique<T>(*other.held_) : nullptr) {}
  Boxed(Boxed&&) noexcept = default;
  Boxed& operator=(const Boxed& other) { return *this = Boxed(other); }
  Boxed& operator=(Boxed&&) noexcept = default;
  ~Boxed() = default;

  bool has_value() const { return held_ != nullptr; }
  explicit operator bool() const { return has_value(); }
  /// Needs: a value.
  T& operator*() { return *held_; }
  const T& operator*() const { return *held_; }
  T* operator->() { return held_.get(); }
  const T* operator->() const { return held_.get(); }
  void reset() { held_.reset(); }

  friend bool operator==(const Boxed& a, const Boxed& b) {
    return a.has_value() == b.has_value() && (!a.has_value() || *a == *b);
  }

 private:
  std::unique_ptr<T> held_;
};

}  // namespace hloom::hlo

// One function of hloom, compiled: what is measured is what programs run.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hloom/executable.h"

namespace hloom::measure {

inline constexpr std::int64_t kBlock = 1 << 18;

/// A program on kBlock elements, on the caller's thread. Ends the process where hloom refuses it.
class Compiled {
 public:
  explicit Compiled(const std::string& hlo);
  /// Spans of elements of `in` and `out` in order.
  void run(std::span<const std::span<std::byte>> in, std::span<const std::span<std::byte>> out) const;

 private:
  Executable program_;
};

/// `function` of operands of type `type`.
std::string unary_program(const std::string& function, const std::string& type);
std::string binary_program(const std::string& function, const std::string& type);
/// The same of u16[] that are the bits of `type`: gives the operand and the result as f32, which holds both exactly.
std::string narrow_program(const std::string& function, const std::string& type);

template <class T>
std::span<std::byte> bytes_of(std::vector<T>& values) {
  return std::as_writable_bytes(std::span<T>(values));
}

}  // namespace hloom::measure

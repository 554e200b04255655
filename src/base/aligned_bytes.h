// Bytes of constants and buffers, at addresses that vectors and cache lines like.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>

#include "base/check.h"

namespace hloom::base {

/// Owned, zeroed bytes at a multiple of 64. Moves, and copies only when asked.
class AlignedBytes {
 public:
  static constexpr std::size_t kAlignment = 64;

  AlignedBytes() = default;
  /// Needs: size_bytes >= 0, and that much memory.
  explicit AlignedBytes(std::int64_t size_bytes) : size_bytes_(size_bytes) {
    HLOOM_CHECK(size_bytes >= 0);
    const std::size_t rounded = (static_cast<std::size_t>(size_bytes) + kAlignment - 1) & ~(kAlignment - 1);
    data_.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, rounded)));
    HLOOM_CHECK(data_ != nullptr || rounded == 0);
    if (rounded > 0) std::memset(data_.get(), 0, rounded);
  }
  explicit AlignedBytes(std::span<const std::byte> bytes) : AlignedBytes(static_cast<std::int64_t>(bytes.size())) {
    if (!bytes.empty()) std::memcpy(data_.get(), bytes.data(), bytes.size());
  }

  std::byte* data() { return data_.get(); }
  const std::byte* data() const { return data_.get(); }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() { return {data_.get(), static_cast<std::size_t>(size_bytes_)}; }
  std::span<const std::byte> bytes() const { return {data_.get(), static_cast<std::size_t>(size_bytes_)}; }

 private:
  struct Free {
    void operator()(std::byte* bytes) const { std::free(bytes); }
  };
  std::unique_ptr<std::byte, Free> data_;
  std::int64_t size_bytes_ = 0;
};

}  // namespace hloom::base

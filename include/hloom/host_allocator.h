// Memory of the host for inputs, outputs and staging: aligned, kept warm, with hooks that make it known to a device.
//
//   hloom::HostAllocator allocator;
//   hloom::HostBuffer weights = *allocator.allocate(size_bytes);
//   use(weights.bytes());                            // freed when `weights` goes, on whatever thread
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "hloom/error.h"

namespace hloom {

namespace runtime {
class HostMemory;
}

/// Owns memory of a HostAllocator. May outlive the allocator, and go on any thread.
class HostBuffer {
 public:
  HostBuffer() = default;
  HostBuffer(HostBuffer&& other) noexcept { swap(other); }
  HostBuffer& operator=(HostBuffer&& other) noexcept {
    HostBuffer(std::move(other)).swap(*this);
    return *this;
  }
  ~HostBuffer();

  /// Never null in a buffer that was allocated, and different for each of them, of size 0 as well.
  std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }

 private:
  friend class HostAllocator;
  void swap(HostBuffer& other) {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(memory_, other.memory_);
    std::swap(bin_, other.bin_);
  }

  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
  std::int32_t bin_ = -1;  ///< where it is kept when it is given back
  std::shared_ptr<runtime::HostMemory> memory_;
};

/// Hands out parts of chunks that it takes from the system, and keeps what is given back for the next request: a fresh
/// page costs twenty times a warm one. Chunks of 4 MiB and more ask for huge pages. Up to 1 MiB a request takes memory
/// that its own thread gave back, if there is some of that size, and no other thread waits for it; above, the smallest
/// free block that is large enough. Once the sizes repeat it makes no system call and no heap allocation. Thread-safe.
class HostAllocator {
 public:
  struct Options {
    std::int64_t min_alignment = 64;  ///< a power of two
    /// Called once for each chunk after it is taken from the system, and once before it goes back; never while the
    /// allocator holds a lock. A chunk serves one device. If `map` fails the chunk goes back and allocate() fails.
    /// If `unmap` fails that is logged, and the chunk goes back.
    std::function<Expected<>(std::optional<int> device, std::byte* chunk, std::int64_t size_bytes)> map = {};
    std::function<Expected<>(std::optional<int> device, std::byte* chunk)> unmap = {};
    std::int64_t max_cached_bytes = std::int64_t{1} << 30;  ///< beyond it, chunks without a buffer go back at once
    std::int64_t max_bytes = std::numeric_limits<std::int64_t>::max();  ///< most in buffers at a time, as bytes_in_use
    bool poison_freed = false;                              ///< fill what is given back, to find uses after it
    std::function<void(const std::string&)> log = {};       ///< where failures go that no call can return; else stderr
  };
  struct Request {
    std::int64_t size_bytes = 0;
    std::int64_t alignment = 1;     ///< a power of two, of any size
    int numa_node = -1;             ///< preferred; -1: any. One that does not exist is no error
    std::optional<int> device = {};  ///< whose hooks learn of the memory
  };
  struct Statistics {
    std::int64_t bytes_in_use = 0;       ///< in buffers, rounded up to 64 each
    std::int64_t peak_bytes_in_use = 0;
    std::int64_t bytes_cached = 0;       ///< in chunks, but in no buffer
    std::int64_t num_buffers = 0;
    std::int64_t num_chunks = 0;
    std::int64_t page_faults = 0;        ///< of the whole process so far, whoever touched the page
  };

  HostAllocator() : HostAllocator(Options{}) {}
  explicit HostAllocator(Options options);
  ~HostAllocator();  ///< Chunks go back as soon as no buffer is left in them.
  HostAllocator(const HostAllocator&) = delete;
  HostAllocator& operator=(const HostAllocator&) = delete;

  /// Memory whose content is undefined. Errors: InvalidArgument if the size is negative or too large for an address,
  /// or an alignment is no power of two; ResourceExhausted if the system has no more, or max_bytes would be exceeded;
  /// those of `map`.
  Expected<HostBuffer> allocate(const Request& request);
  Expected<HostBuffer> allocate(std::int64_t size_bytes) { return allocate(Request{.size_bytes = size_bytes}); }

  /// Touches pages beforehand, on the node: the next buffers there, `size_bytes` together, cost no page fault.
  /// Errors: as allocate(); ResourceExhausted as well if the pages cannot all be had at once, and InvalidArgument if
  /// they are more than max_cached_bytes.
  Expected<> warm(std::int64_t size_bytes, int numa_node = -1);

  /// Gives back all chunks without a buffer.
  void trim();
  Statistics statistics() const;

 private:
  std::shared_ptr<runtime::HostMemory> memory_;
};

}  // namespace hloom

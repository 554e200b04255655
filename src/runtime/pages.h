// Memory straight from the system, in whole pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>

#include "hloom/error.h"

namespace hloom::runtime {

inline constexpr std::int64_t kHugePageBytes = std::int64_t{2} << 20;

/// Zeroed, mapped memory. No page is there before it is touched.
class Pages {
 public:
  Pages() = default;
  /// Maps at least `size_bytes` at a multiple of `alignment`, a power of two, and of the page. From 4 MiB up it starts
  /// at a multiple of 2 MiB and asks for huge pages: a first touch costs four times less, and so do TLB misses.
  /// Errors: ResourceExhausted, with the size; InvalidArgument if the size is negative or overflows.
  static Expected<Pages> map(std::int64_t size_bytes, std::int64_t alignment = 64);

  Pages(Pages&& other) noexcept { swap(other); }
  Pages& operator=(Pages&& other) noexcept {
    Pages(std::move(other)).swap(*this);
    return *this;
  }
  ~Pages();

  std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }

 private:
  void swap(Pages& other) {
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
  }

  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
};

/// Asks for the node for all pages of the range that are not there yet. A wish, not a demand: machines with one node, and
/// nodes that are not there, refuse, and plain memory does as well.
void prefer_node(std::span<std::byte>, int node);

/// One more than the highest number in a list of nodes ("0-1", "0,2-3"), the text of /sys/devices/system/node/has_memory;
/// 1 if there is none.
int nodes_of_list(std::string_view);
/// Nodes of memory of this machine.
int num_memory_nodes();

}  // namespace hloom::runtime

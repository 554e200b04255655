#include "runtime/pages.h"

#include <linux/mempolicy.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "runtime/control_groups.h"

namespace hloom::runtime {
namespace {

constexpr std::int64_t kHugeFrom = std::int64_t{4} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 56;  // beyond any address space; sums of two cannot overflow

std::int64_t round_up(std::int64_t value, std::int64_t alignment) { return (value + alignment - 1) & -alignment; }

void unmap(std::byte* from, std::int64_t size_bytes) {
  if (size_bytes > 0) HLOOM_CHECK(munmap(from, static_cast<std::size_t>(size_bytes)) == 0);
}

}  // namespace

Expected<Pages> Pages::map(std::int64_t size_bytes, std::int64_t alignment) {
  HLOOM_CHECK(alignment > 0 && std::has_single_bit(static_cast<std::uint64_t>(alignment)));
  if (size_bytes < 0 || size_bytes > kMaxBytes || alignment > kMaxBytes)
    return fail(Code::InvalidArgument, "cannot map ", size_bytes, " bytes at a multiple of ", alignment);
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const bool huge = size_bytes >= kHugeFrom;
  alignment = std::max(alignment, huge ? kHugePageBytes : page);
  const std::int64_t wanted = round_up(std::max<std::int64_t>(size_bytes, 1), page);
  const std::int64_t whole = wanted + alignment - page;  // has an aligned start within
  void* mapped = mmap(nullptr, static_cast<std::size_t>(whole), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED)
    return fail(Code::ResourceExhausted, "no memory for ", size_bytes, " bytes: ", std::strerror(errno));
  auto* begin = static_cast<std::byte*>(mapped);
  const std::int64_t skip = -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(begin)) & (alignment - 1);
  unmap(begin, skip);
  unmap(begin + skip + wanted, whole - skip - wanted);
  Pages pages;
  pages.data_ = begin + skip;
  pages.size_bytes_ = wanted;
  if (huge) madvise(pages.data_, static_cast<std::size_t>(wanted), MADV_HUGEPAGE);
  return pages;
}

// Whole pages inside the range.
void prefer_node(std::span<std::byte> range, int node) {
  constexpr int kMaxNodes = 1024, kBits = 8 * sizeof(unsigned long);
  if (node < 0 || node >= kMaxNodes) return;
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  const auto begin = round_up(static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(range.data())), page);
  const auto end = static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(range.data() + range.size())) & -page;
  if (begin >= end) return;
  unsigned long nodes[kMaxNodes / kBits] = {};
  nodes[node / kBits] = 1ul << (node % kBits);
  syscall(SYS_mbind, begin, end - begin, MPOL_PREFERRED, nodes, kMaxNodes, 0);
}

int nodes_of_list(std::string_view list) {
  while (!list.empty() && (list.back() < '0' || list.back() > '9')) list.remove_suffix(1);
  list = list.substr(list.find_last_of("-,") + 1);
  int last = 0;
  std::from_chars(list.data(), list.data() + list.size(), last);
  return std::clamp(last, 0, 1023) + 1;
}

int num_memory_nodes() {
  static const int nodes = nodes_of_list(contents("/sys/devices/system/node/has_memory"));
  return nodes;
}

Pages::~Pages() { unmap(data_, size_bytes_); }

}  // namespace hloom::runtime

#include "runtime/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"

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

Pages::~Pages() { unmap(data_, size_bytes_); }

}  // namespace hloom::runtime

#include "runtime/commit.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <cstring>

#include "base/fail.h"
#include "base/try.h"
#include "runtime/control_groups.h"
#include "runtime/memory_limit.h"

namespace hloom::runtime {
namespace {

// The number at the start of the text, or `other` if there is none ("max").
std::int64_t number_or(std::string_view text, std::int64_t other) {
  while (text.starts_with(' ')) text.remove_prefix(1);
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  return problem == std::errc() ? number : other;
}

// The number behind a word that starts a line.
std::int64_t field(const std::string& text, std::string_view word) {
  for (std::size_t at = 0; at != std::string::npos;) {
    if (text.compare(at, word.size(), word) == 0) return number_or(std::string_view(text).substr(at + word.size()), 0);
    at = text.find('\n', at);
    if (at != std::string::npos) ++at;
  }
  return 0;
}

std::int64_t bytes_left(const GroupFolder& group) {
  const std::string& folder = group.path;
  const std::int64_t limit = memory_limit_bytes(group);
  if (limit == kNoMemoryLimit) return kNoMemoryLimit;
  const std::int64_t used =
      number_or(contents(folder + (group.version2 ? "/memory.current" : "/memory.usage_in_bytes")), 0);
  const std::int64_t freeable =
      field(contents(folder + "/memory.stat"), group.version2 ? "inactive_file " : "total_inactive_file ");
  return std::max<std::int64_t>(limit - used + freeable, 0);
}

struct PageRange {
  std::byte* begin;
  std::size_t size_bytes;
};

// All pages that the range touches.
PageRange pages_of(std::span<const std::byte> range) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(range.data()) & -page;
  const auto end = (reinterpret_cast<std::uintptr_t>(range.data()) + range.size() + page - 1) & -page;
  return {reinterpret_cast<std::byte*>(begin), end - begin};
}

// For systems that know no better way: a write to each page that changes nothing, whoever else writes there.
void touch(const PageRange& pages) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  for (std::size_t at = 0; at < pages.size_bytes; at += page)
    std::atomic_ref(reinterpret_cast<unsigned char&>(pages.begin[at])).fetch_or(0, std::memory_order_relaxed);
}

}  // namespace

std::int64_t cgroup_bytes_left(const std::string& root, std::string_view membership) {
  std::int64_t left = kNoMemoryLimit;
  for (const GroupFolder& group : group_folders(root, membership, "memory")) left = std::min(left, bytes_left(group));
  return left;
}

std::int64_t available_bytes() {
  const std::string machine = contents("/proc/meminfo");
  const std::int64_t free = machine.empty() ? kNoMemoryLimit : 1024 * field(machine, "MemAvailable:");
  return std::min(free, cgroup_bytes_left("/sys/fs/cgroup", contents("/proc/self/cgroup")));
}

std::int64_t absent_bytes(std::span<const std::byte> range) {
  if (range.empty()) return 0;
  const auto [begin, size_bytes] = pages_of(range);
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  std::array<unsigned char, 16384> present;
  const std::size_t part_bytes = present.size() * static_cast<std::size_t>(page);
  std::int64_t absent = 0;
  for (std::size_t at = 0; at < size_bytes; at += part_bytes) {
    const std::size_t part = std::min(part_bytes, size_bytes - at);
    if (mincore(begin + at, part, present.data()) != 0) return static_cast<std::int64_t>(size_bytes);
    const auto pages = static_cast<std::ptrdiff_t>(part / static_cast<std::size_t>(page));
    absent += page * std::count_if(present.begin(), present.begin() + pages, [](unsigned char p) { return (p & 1) == 0; });
  }
  return absent;
}

Expected<> check_room(std::span<const std::byte> range) {
  const std::int64_t absent = absent_bytes(range);
  if (absent == 0) return {};
  const std::int64_t available = available_bytes();
  if (absent <= available) return {};
  return fail(Code::ResourceExhausted, "no memory for ", absent, " bytes: ", available, " are left");
}

Expected<> populate(std::span<std::byte> range) {
  if (range.empty()) return {};
  const PageRange pages = pages_of(range);
#if !defined(MADV_POPULATE_WRITE)
  constexpr int MADV_POPULATE_WRITE = 23;
#endif
  if (madvise(pages.begin, pages.size_bytes, MADV_POPULATE_WRITE) == 0) return {};
  if (errno != EINVAL)
    return fail(Code::ResourceExhausted, "no memory for ", range.size(), " bytes: ", std::strerror(errno));
  touch(pages);
  return {};
}

Expected<> commit(std::span<std::byte> range) {
  TRY(check_room(range));
  return populate(range);
}

}  // namespace hloom::runtime

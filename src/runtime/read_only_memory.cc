#include "runtime/read_only_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::runtime {
namespace {

constexpr std::int64_t kLine = 64;
constexpr std::int64_t kMaxShared = std::int64_t{64} << 10;  // larger pieces have pages to themselves

std::int64_t lines(std::int64_t size_bytes) { return std::max((size_bytes + kLine - 1) & -kLine, kLine); }

}  // namespace

Expected<std::span<std::byte>> ReadOnlyMemory::add(std::int64_t size_bytes) {
  const std::int64_t size = lines(size_bytes);
  const auto has_room = [&](const Chunk& c) { return !c.is_protected && c.pages.size_bytes() - c.used_bytes >= size; };
  auto chunk = std::ranges::find_if(chunks_, has_room);
  if (chunk == chunks_.end()) {
    // As much again as there is: a program with few constants takes one page, one with many few chunks.
    Pages pages = TRY(Pages::map(size > kMaxShared ? size : std::max(size, std::min(mapped_bytes(), kMaxShared))));
    chunk = chunks_.insert(chunks_.end(), {std::move(pages)});
  }
  std::byte* const data = chunk->pages.data() + chunk->used_bytes;
  chunk->used_bytes += size;
  return std::span(data, static_cast<std::size_t>(size_bytes));
}

Expected<> ReadOnlyMemory::protect() {
  for (Chunk& chunk : chunks_) {
    if (mprotect(chunk.pages.data(), static_cast<std::size_t>(chunk.pages.size_bytes()), PROT_READ) != 0)
      return fail(Code::ResourceExhausted, "cannot protect ", chunk.pages.size_bytes(),
                  " bytes of constants: ", std::strerror(errno));
    chunk.is_protected = true;
  }
  return {};
}

std::int64_t ReadOnlyMemory::mapped_bytes() const {
  std::int64_t bytes = 0;
  for (const Chunk& chunk : chunks_) bytes += chunk.pages.size_bytes();
  return bytes;
}

}  // namespace hloom::runtime

#include "runtime/host_memory.h"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

// Chunks are cut into blocks at multiples of 64 bytes. A block that is given back joins free neighbours, so a chunk
// without buffers is one block. The hooks of the embedder may take long or call the allocator themselves, so they run
// while the chunk is in no list and the lock is not held.

namespace hloom::runtime {
namespace {

constexpr std::int64_t kGranule = 64;
constexpr std::int64_t kMinChunk = std::int64_t{4} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 55;

std::int64_t round_up(std::int64_t value, std::int64_t alignment) { return (value + alignment - 1) & -alignment; }

bool is_power_of_two(std::int64_t value) { return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)); }

// Bytes from `at` to the next multiple of `alignment`.
std::int64_t padding(const std::byte* at, std::int64_t alignment) {
  return -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at)) & (alignment - 1);
}

// A wish, not a demand: machines with one node, and nodes that are not there, refuse, and plain memory does as well.
void prefer_node(const Pages& pages, int node) {
  constexpr int kMaxNodes = 1024, kBits = 8 * sizeof(unsigned long);
  if (node < 0 || node >= kMaxNodes) return;
  unsigned long nodes[kMaxNodes / kBits] = {};
  nodes[node / kBits] = 1ul << (node % kBits);
  syscall(SYS_mbind, pages.data(), pages.size_bytes(), MPOL_PREFERRED, nodes, kMaxNodes, 0);
}

Expected<> check(const HostAllocator::Request& request, std::int64_t min_alignment) {
  if (!is_power_of_two(request.alignment) || !is_power_of_two(min_alignment))
    return fail(Code::InvalidArgument, "host memory: an alignment must be a power of two, found ",
                is_power_of_two(request.alignment) ? min_alignment : request.alignment);
  if (request.size_bytes < 0 || request.size_bytes > kMaxBytes || request.alignment > kMaxBytes)
    return fail(Code::InvalidArgument, "host memory: cannot have ", request.size_bytes, " bytes at a multiple of ",
                request.alignment);
  return {};
}

}  // namespace

HostMemory::~HostMemory() {
  for (auto& [address, chunk] : chunks_) give_back(std::move(chunk));
}

Expected<std::byte*> HostMemory::allocate(const HostAllocator::Request& request) {
  TRY(check(request, options_.min_alignment));
  const std::int64_t size = round_up(std::max<std::int64_t>(request.size_bytes, 1), kGranule);
  const std::int64_t alignment = std::max({request.alignment, options_.min_alignment, kGranule});
  const Kind kind{request.device, std::max(request.numa_node, -1)};
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (const std::optional<Place> place = find(kind, size, alignment)) return take(*place, size, alignment);
  }
  Chunk made = TRY(make_chunk(kind, size, alignment));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(made.pages.data());
  Chunk& chunk = chunks_.emplace(address, std::move(made)).first->second;
  ++statistics_.num_chunks;
  add_free(chunk, 0, chunk.pages.size_bytes());
  return take({chunk.pages.size_bytes(), &chunk, 0}, size, alignment);
}

// The smallest free block that is large enough, if it can be aligned; else the smallest that is sure to.
std::optional<HostMemory::Place> HostMemory::find(const Kind& kind, std::int64_t size_bytes,
                                                  std::int64_t alignment) const {
  const auto places = free_.find(kind);
  if (places == free_.end()) return std::nullopt;
  for (const std::int64_t wanted : {size_bytes, size_bytes + alignment - kGranule}) {
    const auto place = places->second.lower_bound({wanted, nullptr, 0});
    if (place == places->second.end()) return std::nullopt;
    const auto& [size, chunk, offset] = *place;
    if (size >= size_bytes + padding(chunk->pages.data() + offset, alignment)) return *place;
  }
  return std::nullopt;
}

// Cuts the block in up to three: padding, the buffer, the rest.
std::byte* HostMemory::take(const Place& place, std::int64_t size_bytes, std::int64_t alignment) {
  const auto [whole, chunk, offset] = place;
  const std::int64_t before = padding(chunk->pages.data() + offset, alignment);
  HLOOM_CHECK(before + size_bytes <= whole);
  remove_free(*chunk, offset, whole);
  if (before > 0) add_free(*chunk, offset, before);
  if (whole > before + size_bytes) add_free(*chunk, offset + before + size_bytes, whole - before - size_bytes);
  chunk->blocks[offset + before] = {size_bytes, false};
  ++statistics_.num_buffers;
  statistics_.bytes_in_use += size_bytes;
  statistics_.peak_bytes_in_use = std::max(statistics_.peak_bytes_in_use, statistics_.bytes_in_use);
  return chunk->pages.data() + offset + before;
}

Expected<HostMemory::Chunk> HostMemory::make_chunk(const Kind& kind, std::int64_t size_bytes,
                                                   std::int64_t alignment) const {
  const std::int64_t unit = size_bytes < kMinChunk ? kMinChunk : kHugePageBytes;
  Pages pages = TRY(Pages::map(round_up(size_bytes, unit), alignment));
  Chunk chunk{std::move(pages), kind, {}};
  prefer_node(chunk.pages, kind.second);
  if (options_.map) TRY(options_.map(kind.first, chunk.pages.data(), chunk.pages.size_bytes()));
  return chunk;
}

void HostMemory::add_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes) {
  chunk.blocks[offset] = {size_bytes, true};
  free_[chunk.kind].insert({size_bytes, &chunk, offset});
  statistics_.bytes_cached += size_bytes;
}

void HostMemory::remove_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes) {
  chunk.blocks.erase(offset);
  free_[chunk.kind].erase({size_bytes, &chunk, offset});
  statistics_.bytes_cached -= size_bytes;
}

void HostMemory::free(std::byte* data) {
  std::optional<Chunk> unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::prev(chunks_.upper_bound(reinterpret_cast<std::uintptr_t>(data)));
    Chunk& chunk = at->second;
    const std::int64_t offset = data - chunk.pages.data();
    const auto block = chunk.blocks.find(offset);
    HLOOM_CHECK(block != chunk.blocks.end() && !block->second.free);
    if (options_.poison_freed) std::memset(data, 0xdd, static_cast<std::size_t>(block->second.size_bytes));
    --statistics_.num_buffers;
    statistics_.bytes_in_use -= block->second.size_bytes;
    const std::int64_t joined = join(chunk, offset);
    if (joined == chunk.pages.size_bytes() && statistics_.bytes_cached > options_.max_cached_bytes)
      unused = extract(at);
  }
  if (unused) give_back(*std::move(unused));
}

// Frees the block together with free neighbours; returns the size of all.
std::int64_t HostMemory::join(Chunk& chunk, std::int64_t offset) {
  const auto at = chunk.blocks.find(offset);
  std::int64_t begin = offset, end = offset + at->second.size_bytes;
  const auto next = std::next(at);
  if (next != chunk.blocks.end() && next->second.free) {
    end += next->second.size_bytes;
    remove_free(chunk, next->first, next->second.size_bytes);
  }
  if (at != chunk.blocks.begin() && std::prev(at)->second.free) {
    const auto previous = std::prev(at);
    begin = previous->first;
    remove_free(chunk, begin, previous->second.size_bytes);
  }
  chunk.blocks.erase(offset);
  add_free(chunk, begin, end - begin);
  return end - begin;
}

// Takes a chunk that is one free block out of all lists.
HostMemory::Chunk HostMemory::extract(Chunks::iterator at) {
  remove_free(at->second, 0, at->second.pages.size_bytes());
  Chunk chunk = std::move(at->second);
  chunks_.erase(at);
  --statistics_.num_chunks;
  return chunk;
}

void HostMemory::give_back(Chunk chunk) const {
  if (!options_.unmap) return;
  const Expected<> done = options_.unmap(chunk.kind.first, chunk.pages.data());
  if (done) return;
  const std::string message = "host memory: unmap failed: " + done.error().message();
  if (options_.log) return options_.log(message);
  std::fprintf(stderr, "hloom: %s\n", message.c_str());
}

void HostMemory::trim() {
  std::vector<Chunk> unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto at = chunks_.begin(); at != chunks_.end();) {
      const auto next = std::next(at);
      const Block& first = at->second.blocks.begin()->second;
      if (first.free && first.size_bytes == at->second.pages.size_bytes()) unused.push_back(extract(at));
      at = next;
    }
  }
  for (Chunk& chunk : unused) give_back(std::move(chunk));
}

void HostMemory::close() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    options_.max_cached_bytes = 0;
  }
  trim();
}

HostAllocator::Statistics HostMemory::statistics() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return statistics_;
}

}  // namespace hloom::runtime

#include "runtime/host_memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "runtime/commit.h"

// Chunks are cut into blocks at multiples of 64 bytes. A block that is given back joins free neighbours, so a chunk
// without buffers is one block. A small block does not go back at once but waits in a bin for the next request of its
// size; the bins are emptied before a chunk is asked for, and when more is kept than may be. The hooks of the embedder may take long or call the allocator themselves, so they run
// while the chunk is in no list and the lock is not held.

namespace hloom::runtime {
namespace {

constexpr std::int64_t kGranule = 64;
constexpr std::int64_t kMinChunk = std::int64_t{4} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 55;

std::int64_t round_up(std::int64_t value, std::int64_t alignment) { return (value + alignment - 1) & -alignment; }

// What a buffer counts as and takes: at least one granule, so that each has an address of its own.
std::int64_t granules(std::int64_t size_bytes) { return round_up(std::max<std::int64_t>(size_bytes, 1), kGranule); }

bool is_power_of_two(std::int64_t value) { return value > 0 && std::has_single_bit(static_cast<std::uint64_t>(value)); }

// Bytes from `at` to the next multiple of `alignment`.
std::int64_t padding(const std::byte* at, std::int64_t alignment) {
  return -static_cast<std::int64_t>(reinterpret_cast<std::uintptr_t>(at)) & (alignment - 1);
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

HostMemory::HostMemory(HostAllocator::Options options)
    : options_(std::move(options)), max_cached_bytes_(options_.max_cached_bytes) {
  start_surviving();
}

HostMemory::~HostMemory() {
  stop_surviving();
  for (auto& [address, chunk] : chunks_) {
    chunk.blocks.clear();
    give_back(std::move(chunk));
  }
}

void HostMemory::before_fork() {
  mutex_.lock();
  bins_.lock_all();
}

void HostMemory::after_fork(bool) {
  bins_.unlock_all();
  mutex_.unlock();
}

// The bin that a request is served from. What is for a device or a node, or asks for more than the usual alignment, is
// a block of its own; so is all memory that is poisoned when it goes, since bins write their links there.
std::int32_t HostMemory::bin_of(const HostAllocator::Request& request) const {
  if (request.device || request.numa_node >= 0 || options_.poison_freed) return -1;
  if (request.size_bytes > SizeBins::kMaxBytes || request.alignment > std::max(options_.min_alignment, kGranule))
    return -1;
  return SizeBins::bin_of(std::max<std::int64_t>(request.size_bytes, 1));
}

Expected<> HostMemory::count(std::int64_t size_bytes) {
  const std::int64_t now = bytes_in_use_.fetch_add(size_bytes, std::memory_order_relaxed) + size_bytes;
  if (now > options_.max_bytes) {
    bytes_in_use_.fetch_sub(size_bytes, std::memory_order_relaxed);
    return fail(Code::ResourceExhausted, "host memory: ", size_bytes, " bytes more than the ", now - size_bytes,
                " in use would be over the limit of ", options_.max_bytes);
  }
  std::int64_t peak = peak_bytes_in_use_.load(std::memory_order_relaxed);
  while (peak < now && !peak_bytes_in_use_.compare_exchange_weak(peak, now, std::memory_order_relaxed)) {
  }
  num_buffers_.fetch_add(1, std::memory_order_relaxed);
  return {};
}

void HostMemory::uncount(std::int64_t size_bytes) {
  bytes_in_use_.fetch_sub(size_bytes, std::memory_order_relaxed);
  num_buffers_.fetch_sub(1, std::memory_order_relaxed);
}

Expected<HostMemory::Piece> HostMemory::allocate(const HostAllocator::Request& request) {
  TRY(check(request, options_.min_alignment));
  const std::int64_t size = granules(request.size_bytes);
  const std::int32_t bin = bin_of(request);
  TRY(count(size));
  if (bin >= 0)
    if (std::byte* const kept = bins_.take(bin)) return Piece{kept, bin};
  const Kind kind{request.device, std::max(request.numa_node, -1)};
  Expected<std::byte*> block = allocate_block(kind, bin >= 0 ? SizeBins::bytes_of(bin) : size,
                                              std::max({request.alignment, options_.min_alignment, kGranule}));
  if (block) return Piece{*block, bin};
  uncount(size);
  return block.error();
}

std::byte* HostMemory::take_block(const Kind& kind, std::int64_t size_bytes, std::int64_t alignment) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::optional<Place> place = find(kind, size_bytes, alignment);
  return place ? take(*place, size_bytes, alignment) : nullptr;
}

// Before the system is asked for more, what lies in bins is joined to larger blocks.
Expected<std::byte*> HostMemory::allocate_block(const Kind& kind, std::int64_t size_bytes, std::int64_t alignment) {
  if (std::byte* const block = take_block(kind, size_bytes, alignment)) return block;
  empty_bins();
  if (std::byte* const block = take_block(kind, size_bytes, alignment)) return block;
  Chunk made = TRY(make_chunk(kind, size_bytes, alignment));
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto address = reinterpret_cast<std::uintptr_t>(made.pages.data());
  Chunk& chunk = chunks_.emplace(address, std::move(made)).first->second;
  chunk_bytes_.fetch_add(chunk.pages.size_bytes(), std::memory_order_relaxed);
  free_.try_emplace(kind, &nodes_);
  add_free(chunk, 0, chunk.pages.size_bytes());
  return take({chunk.pages.size_bytes(), &chunk, 0}, size_bytes, alignment);
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
  return chunk->pages.data() + offset + before;
}

Expected<HostMemory::Chunk> HostMemory::make_chunk(const Kind& kind, std::int64_t size_bytes,
                                                   std::int64_t alignment) {
  const std::int64_t unit = size_bytes < kMinChunk ? kMinChunk : kHugePageBytes;
  Pages pages = TRY(Pages::map(round_up(size_bytes, unit), alignment));
  Chunk chunk{std::move(pages), kind, Blocks(&nodes_)};
  prefer_node({chunk.pages.data(), static_cast<std::size_t>(chunk.pages.size_bytes())}, kind.second);
  if (options_.map) TRY(options_.map(kind.first, chunk.pages.data(), chunk.pages.size_bytes()));
  return chunk;
}

void HostMemory::add_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes) {
  chunk.blocks[offset] = {size_bytes, true};
  free_.at(chunk.kind).insert({size_bytes, &chunk, offset});
}

void HostMemory::remove_free(Chunk& chunk, std::int64_t offset, std::int64_t size_bytes) {
  chunk.blocks.erase(offset);
  free_.at(chunk.kind).erase({size_bytes, &chunk, offset});
}

bool HostMemory::has_too_much() const {
  return chunk_bytes_.load(std::memory_order_relaxed) - bytes_in_use_.load(std::memory_order_relaxed) >
         max_cached_bytes_.load(std::memory_order_relaxed);
}

void HostMemory::free(const Piece& piece, std::int64_t size_bytes) {
  const std::int64_t size = granules(size_bytes);
  if (options_.poison_freed) std::memset(piece.data, 0xdd, static_cast<std::size_t>(size));
  uncount(size);
  const bool too_much = has_too_much();
  if (!too_much && piece.bin >= 0 && bins_.give(piece.bin, piece.data)) return;
  if (too_much) empty_bins();
  free_block(piece.data);
}

void HostMemory::empty_bins() {
  for (std::byte* const piece : bins_.drain()) free_block(piece);
}

void HostMemory::free_block(std::byte* data) {
  std::optional<Chunk> unused;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::prev(chunks_.upper_bound(reinterpret_cast<std::uintptr_t>(data)));
    Chunk& chunk = at->second;
    const std::int64_t offset = data - chunk.pages.data();
    const auto block = chunk.blocks.find(offset);
    HLOOM_CHECK(block != chunk.blocks.end() && !block->second.free);
    if (join(chunk, offset) == chunk.pages.size_bytes() && has_too_much()) unused = extract(at);
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
  chunk.blocks.clear();  // its nodes are not for use without the lock
  chunks_.erase(at);
  chunk_bytes_.fetch_sub(chunk.pages.size_bytes(), std::memory_order_relaxed);
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

Expected<> HostMemory::warm(std::int64_t size_bytes, int numa_node) {
  if (size_bytes > max_cached_bytes_.load(std::memory_order_relaxed))
    return fail(Code::InvalidArgument, "host memory: cannot keep ", size_bytes, " bytes warm; at most ",
                options_.max_cached_bytes, " are kept");
  const Piece piece = TRY(allocate({.size_bytes = size_bytes, .numa_node = numa_node}));
  const Expected<> done = commit({piece.data, static_cast<std::size_t>(size_bytes)});
  free(piece, size_bytes);
  return done;
}

void HostMemory::trim() {
  empty_bins();
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
  max_cached_bytes_.store(0, std::memory_order_relaxed);
  bins_.close();
  trim();
}

HostAllocator::Statistics HostMemory::statistics() const {
  HostAllocator::Statistics s;
  s.bytes_in_use = bytes_in_use_.load(std::memory_order_relaxed);
  s.peak_bytes_in_use = peak_bytes_in_use_.load(std::memory_order_relaxed);
  s.bytes_cached = chunk_bytes_.load(std::memory_order_relaxed) - s.bytes_in_use;
  s.num_buffers = num_buffers_.load(std::memory_order_relaxed);
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  s.page_faults = usage.ru_minflt + usage.ru_majflt;
  const std::lock_guard<std::mutex> lock(mutex_);
  s.num_chunks = static_cast<std::int64_t>(chunks_.size());
  return s;
}

}  // namespace hloom::runtime

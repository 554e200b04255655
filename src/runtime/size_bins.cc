#include "runtime/size_bins.h"

#include <atomic>
#include <bit>
#include <new>

#include "base/check.h"

// Sizes in units of 64 bytes: 1, 2, 3, 4, then four for each doubling: 5, 6, 7, 8, 10, 12, 14, 16, 20 …

namespace hloom::runtime {
namespace {

constexpr std::int64_t kUnit = 64;

}  // namespace

std::int32_t SizeBins::bin_of(std::int64_t size_bytes) {
  const auto last = static_cast<std::uint64_t>((size_bytes + kUnit - 1) / kUnit - 1);  // units - 1
  if (last < 4) return static_cast<std::int32_t>(last);
  const int top = static_cast<int>(std::bit_width(last)) - 1;  // last is in [2^top, 2^(top+1)), quarter by quarter
  return static_cast<std::int32_t>(4 * (top - 1) + static_cast<int>((last >> (top - 2)) & 3));
}

std::int64_t SizeBins::bytes_of(std::int32_t bin) {
  if (bin < 4) return (bin + 1) * kUnit;
  const int top = bin / 4 + 1;
  return ((std::int64_t{5} + bin % 4) << (top - 2)) * kUnit;
}

SizeBins::Shard& SizeBins::own() {
  static std::atomic<unsigned> next = 0;
  thread_local const unsigned number = next.fetch_add(1, std::memory_order_relaxed);
  return shards_[number % kShards];
}

std::byte* SizeBins::take(std::int32_t bin) {
  Shard& shard = own();
  const std::lock_guard<std::mutex> lock(shard.mutex);
  Free*& first = shard.first[static_cast<std::size_t>(bin)];
  if (first == nullptr) return nullptr;
  auto* const piece = reinterpret_cast<std::byte*>(first);
  first = first->next;
  shard.bytes -= bytes_of(bin);
  return piece;
}

bool SizeBins::give(std::int32_t bin, std::byte* piece) {
  Shard& shard = own();
  const std::lock_guard<std::mutex> lock(shard.mutex);
  if (shard.closed || shard.bytes + bytes_of(bin) > kMaxShardBytes) return false;
  Free*& first = shard.first[static_cast<std::size_t>(bin)];
  first = new (piece) Free{first};
  shard.bytes += bytes_of(bin);
  return true;
}

std::vector<std::byte*> SizeBins::drain() {
  std::vector<std::byte*> pieces;
  for (Shard& shard : shards_) {
    const std::lock_guard<std::mutex> lock(shard.mutex);
    for (Free*& first : shard.first)
      for (; first != nullptr; first = first->next) pieces.push_back(reinterpret_cast<std::byte*>(first));
    shard.bytes = 0;
  }
  return pieces;
}

void SizeBins::close() {
  for (Shard& shard : shards_) {
    const std::lock_guard<std::mutex> lock(shard.mutex);
    shard.closed = true;
  }
}

void SizeBins::lock_all() {
  for (Shard& shard : shards_) shard.mutex.lock();
}

void SizeBins::unlock_all() {
  for (Shard& shard : shards_) shard.mutex.unlock();
}

}  // namespace hloom::runtime

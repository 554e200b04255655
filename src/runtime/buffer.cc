#include "hloom/buffer.h"

#include <algorithm>

#include "base/check.h"
#include "base/try.h"
#include "runtime/buffer_block.h"
#include "runtime/host_memory.h"
#include "runtime/process_allocator.h"

namespace hloom {

using runtime::BufferBlock;

// Blocks lie in memory of the pool, so that a run that makes buffers allocates nothing on the heap.
Expected<Buffer> Buffer::allocate(HostAllocator& allocator, std::int64_t size_bytes) {
  HostBuffer memory = TRY(allocator.allocate(size_bytes));
  Buffer buffer;
  buffer.block_ = TRY(BufferBlock::make());
  buffer.data_ = memory.data();
  buffer.size_bytes_ = size_bytes;
  buffer.block_->memory = std::move(memory);
  return buffer;
}

Expected<Buffer> Buffer::allocate(std::int64_t size_bytes) {
  return allocate(runtime::process_allocator(), size_bytes);
}

Expected<Buffer> Buffer::copy_of(std::span<const std::byte> bytes) {
  Buffer buffer = TRY(allocate(static_cast<std::int64_t>(bytes.size())));
  std::ranges::copy(bytes, buffer.data_);
  return buffer;
}

Buffer Buffer::with_block(std::span<std::byte> bytes, std::function<void()> release) {
  Buffer buffer;
  buffer.data_ = bytes.data();
  buffer.size_bytes_ = static_cast<std::int64_t>(bytes.size());
  if (!release) return buffer;
  buffer.block_ = *BufferBlock::make();
  buffer.block_->release = std::move(release);
  return buffer;
}

Buffer Buffer::own(HostBuffer memory) {
  const std::span<std::byte> bytes = memory.bytes();
  Buffer buffer = with_block(bytes, [] {});
  buffer.block_->memory = std::move(memory);
  return buffer;
}

Buffer Buffer::borrow(std::span<std::byte> bytes, std::function<void()> release) {
  return with_block(bytes, std::move(release));
}

Buffer Buffer::borrow_immutable(std::span<const std::byte> bytes, std::function<void()> release) {
  // Whoever writes asks is_immutable() first.
  Buffer buffer = with_block({const_cast<std::byte*>(bytes.data()), bytes.size()}, std::move(release));
  buffer.immutable_ = true;
  return buffer;
}

Buffer::Buffer(const Buffer& other)
    : block_(other.block_),
      data_(other.data_),
      size_bytes_(other.size_bytes_),
      immutable_(other.immutable_),
      donated_(other.donated_) {
  if (block_ != nullptr) block_->handles.fetch_add(1, std::memory_order_relaxed);
}

void Buffer::drop() {
  if (block_->handles.fetch_sub(1, std::memory_order_acq_rel) == 1) BufferBlock::destroy(block_);
}

bool Buffer::is_shared() const {
  return block_ != nullptr && block_->handles.load(std::memory_order_acquire) > 1;
}

std::span<std::byte> Buffer::mutable_bytes() {
  HLOOM_CHECK(!immutable_);
  return {data_, static_cast<std::size_t>(size_bytes_)};
}

void Buffer::check_elements(std::size_t size, std::size_t alignment) const {
  HLOOM_CHECK(static_cast<std::size_t>(size_bytes_) % size == 0);
  HLOOM_CHECK(reinterpret_cast<std::uintptr_t>(data_) % alignment == 0);
}

Buffer Buffer::slice(std::int64_t offset_bytes, std::int64_t size_bytes) const {
  HLOOM_CHECK(offset_bytes >= 0 && size_bytes >= 0 && offset_bytes <= size_bytes_ - size_bytes);
  Buffer part = *this;
  part.data_ += offset_bytes;
  part.size_bytes_ = size_bytes;
  return part;
}

}  // namespace hloom

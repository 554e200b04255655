#include "hloom/host_allocator.h"

#include "base/try.h"
#include "runtime/host_memory.h"
#include "runtime/process_allocator.h"

namespace hloom {

HostBuffer::~HostBuffer() {
  if (memory_ != nullptr) memory_->free({data_, bin_}, size_bytes_);
}

HostAllocator::HostAllocator(Options options) : memory_(std::make_shared<runtime::HostMemory>(std::move(options))) {}

HostAllocator::~HostAllocator() { memory_->close(); }

Expected<HostBuffer> HostAllocator::allocate(const Request& request) {
  HostBuffer buffer;
  const runtime::HostMemory::Piece piece = TRY(memory_->allocate(request));
  buffer.data_ = piece.data;
  buffer.bin_ = piece.bin;
  buffer.size_bytes_ = request.size_bytes;
  buffer.memory_ = memory_;
  return buffer;
}

Expected<> HostAllocator::warm(std::int64_t size_bytes, int numa_node) {
  return memory_->warm(size_bytes, numa_node);
}

void HostAllocator::trim() { memory_->trim(); }

HostAllocator::Statistics HostAllocator::statistics() const { return memory_->statistics(); }

HostAllocator& runtime::process_allocator() {
  static HostAllocator& allocator = *new HostAllocator;
  return allocator;
}

}  // namespace hloom

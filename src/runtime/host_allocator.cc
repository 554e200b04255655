#include "hloom/host_allocator.h"

#include "base/try.h"
#include "runtime/host_memory.h"

namespace hloom {

HostBuffer::~HostBuffer() {
  if (memory_ != nullptr) memory_->free(data_);
}

HostAllocator::HostAllocator(Options options) : memory_(std::make_shared<runtime::HostMemory>(std::move(options))) {}

HostAllocator::~HostAllocator() { memory_->close(); }

Expected<HostBuffer> HostAllocator::allocate(const Request& request) {
  HostBuffer buffer;
  buffer.data_ = TRY(memory_->allocate(request));
  buffer.size_bytes_ = request.size_bytes;
  buffer.memory_ = memory_;
  return buffer;
}

void HostAllocator::trim() { memory_->trim(); }

HostAllocator::Statistics HostAllocator::statistics() const { return memory_->statistics(); }

}  // namespace hloom

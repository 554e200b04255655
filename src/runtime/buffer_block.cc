#include "runtime/buffer_block.h"

#include <memory>
#include <new>
#include <utility>

#include "base/try.h"
#include "runtime/process_allocator.h"

namespace hloom::runtime {

Expected<BufferBlock*> BufferBlock::make() {
  HostBuffer room = TRY(process_allocator().allocate(sizeof(BufferBlock)));
  auto* block = new (room.data()) BufferBlock;
  block->self = std::move(room);
  return block;
}

void BufferBlock::destroy(BufferBlock* block) {
  const HostBuffer self = std::move(block->self);
  if (block->release) block->release();
  std::destroy_at(block);
}

}  // namespace hloom::runtime

#include "jit/mapped_file.h"

#include <sys/mman.h>

namespace hloom::jit {

MappedFile::MappedFile(int descriptor, std::int64_t size_bytes) {
  const auto size = static_cast<std::size_t>(size_bytes);
  void* data = size == 0 ? MAP_FAILED : ::mmap(nullptr, size, PROT_READ, MAP_SHARED, descriptor, 0);
  if (data != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(data), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

}  // namespace hloom::jit

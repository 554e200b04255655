// A file as memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hloom::jit {

/// The bytes of a file, mapped to be read: all processes that map it have the same pages, and the system may take pages
/// back that it can read again. Begins at a multiple of the page.
class MappedFile {
 public:
  /// Of an open file, which may be closed then. No bytes where the system refuses, or there are none.
  MappedFile(int descriptor, std::int64_t size_bytes);
  MappedFile(const MappedFile&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::span<const std::byte> bytes_;
};

}  // namespace hloom::jit

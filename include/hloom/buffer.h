// Arrays that a program reads and gives.
//
//   std::vector<hloom::Buffer> args = {weights, hloom::donate(std::move(cache)), hloom::Buffer::borrow_immutable(token)};
//   hloom::Expected<hloom::Results> results = program->run(args);
//   if (!results) return report(results.error());
//   cache = std::move((*results)[0]);  // the donated memory, updated; what is not held serves the next run
//
// A Buffer is a handle of some bytes. Copies of it, and slices, are handles of the same bytes; the last one that goes
// gives them back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "hloom/error.h"
#include "hloom/host_allocator.h"

namespace hloom {

class Executable;

namespace runtime {
struct BufferBlock;
struct ResultState;
class BufferRuns;
class ResultPool;
}  // namespace runtime

/// A handle of bytes: dense, in the layout that the program gives the array. Different handles may be used by different
/// threads; one handle, as any value, by one at a time.
class Buffer {
 public:
  /// No bytes.
  Buffer() = default;

  /// Memory of the process's pool, at a multiple of 64, whose content is undefined.
  /// Errors: InvalidArgument if the size is negative; ResourceExhausted if there is no memory.
  static Expected<Buffer> allocate(std::int64_t size_bytes);
  static Expected<Buffer> copy_of(std::span<const std::byte>);
  /// Takes over memory of an allocator.
  static Buffer own(HostBuffer);
  /// Memory of the caller's at any address that suits the element, which no run copies. It stays until `release`, which
  /// is called once, when the last handle goes, on that handle's thread; without it, as long as there is a handle.
  static Buffer borrow(std::span<std::byte>, std::function<void()> release = {});
  /// The same for memory that is never written. To donate it is no error: it is copied, and the report says why.
  static Buffer borrow_immutable(std::span<const std::byte>, std::function<void()> release = {});

  Buffer(const Buffer&);
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(const Buffer& other) { return *this = Buffer(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    Buffer(std::move(other)).swap(*this);
    return *this;
  }
  ~Buffer() {
    if (block_ != nullptr) drop();
  }

  const std::byte* data() const { return data_; }
  std::int64_t size_bytes() const { return size_bytes_; }
  std::span<const std::byte> bytes() const { return {data_, static_cast<std::size_t>(size_bytes_)}; }
  /// Needs: not immutable.
  std::span<std::byte> mutable_bytes();
  /// The bytes as elements. Needs: whole elements, at an address that suits them.
  template <typename T>
  std::span<const T> as() const {
    check_elements(sizeof(T), alignof(T));
    return {reinterpret_cast<const T*>(data_), static_cast<std::size_t>(size_bytes_) / sizeof(T)};
  }

  bool is_immutable() const { return immutable_; }
  bool is_donated() const { return donated_; }
  /// Whether other handles, slices among them, have the same memory. Always false of memory borrowed without `release`.
  bool is_shared() const;

  /// A handle of a part. Needs: the part lies within. Keeps the whole memory.
  Buffer slice(std::int64_t offset_bytes, std::int64_t size_bytes) const;

 private:
  friend Buffer donate(Buffer&&);
  friend class runtime::BufferRuns;

  static Buffer with_block(std::span<std::byte>, std::function<void()> release);
  static Expected<Buffer> allocate(HostAllocator&, std::int64_t size_bytes);
  void drop();
  void check_elements(std::size_t size, std::size_t alignment) const;
  void swap(Buffer& other) {
    std::swap(block_, other.block_);
    std::swap(data_, other.data_);
    std::swap(size_bytes_, other.size_bytes_);
    std::swap(immutable_, other.immutable_);
    std::swap(donated_, other.donated_);
  }

  runtime::BufferBlock* block_ = nullptr;  ///< counts the handles; null: nothing to give back
  std::byte* data_ = nullptr;
  std::int64_t size_bytes_ = 0;
  bool immutable_ = false;
  bool donated_ = false;
};

/// The handle for a run that may write results in its memory. The run takes it, whether it can use it or not.
inline Buffer donate(Buffer&& buffer) {
  Buffer donated = std::move(buffer);
  donated.donated_ = true;
  return donated;
}

/// What became of a donated argument.
struct Donation {
  std::int64_t parameter = 0;  ///< leaf
  std::int64_t result = -1;    ///< leaf that lies in its memory; -1: none
  std::string_view reason;     ///< why none does; empty if one does
};

/// The results of a run, a leaf each (tuples depth first). A result may be moved or copied out; the memory of those that
/// nobody holds any more serves later runs.
class Results {
 public:
  Results() = default;
  Results(Results&& other) noexcept { swap(other); }
  Results& operator=(Results&& other) noexcept {
    Results(std::move(other)).swap(*this);
    return *this;
  }
  ~Results();

  std::size_t size() const { return buffers().size(); }
  Buffer& operator[](std::size_t i) { return buffers()[i]; }
  const Buffer& operator[](std::size_t i) const { return buffers()[i]; }
  Buffer* begin() { return buffers().data(); }
  Buffer* end() { return buffers().data() + size(); }
  const Buffer* begin() const { return buffers().data(); }
  const Buffer* end() const { return buffers().data() + size(); }

  /// Of the arguments that were donated, in order.
  std::span<const Donation> donations() const;

 private:
  friend class runtime::BufferRuns;
  void swap(Results& other) {
    std::swap(pool_, other.pool_);
    std::swap(state_, other.state_);
  }
  std::span<Buffer> buffers() const;

  std::shared_ptr<runtime::ResultPool> pool_;
  runtime::ResultState* state_ = nullptr;  ///< owned; goes back to the pool
};

}  // namespace hloom

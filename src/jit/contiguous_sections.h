// One block of memory for the machine code of a program: code, then constants, then variables.
//
//   ContiguousSections sections;
//   TRY(sections.reserve({.code = {4000, 16}, .read_only = {64, 64}}));
//   std::byte* code = TRY(sections.carve(Section::Code, 3000, 16));
//   ... write it ...
//   TRY(sections.finalise());   // code can run now, and can no longer be written
//
// The order and the one block are what references within 2 GiB, image-relative ones included, rely on.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hloom/error.h"

namespace hloom::jit {

/// The parts of a block, in the order of their addresses.
enum class Section : std::uint8_t { Code, ReadOnly, ReadWrite };
inline constexpr std::size_t kNumSections = 3;
std::string_view name(Section);

/// What may be done with pages. There is no writable and executable.
enum class Access : std::uint8_t { None, ReadWrite, ReadExecute, ReadOnly };

/// Where address space comes from; tests put one that fails here.
class Mapper {
 public:
  virtual ~Mapper() = default;
  /// `size_bytes` of address space (a multiple of the page) without access. Errors: ResourceExhausted.
  virtual Expected<std::byte*> map(std::int64_t size_bytes) = 0;
  /// Errors: ResourceExhausted, PermissionDenied.
  virtual Expected<> protect(std::byte* from, std::int64_t size_bytes, Access) = 0;
  /// Asks for huge pages; may do nothing.
  virtual void advise_huge(std::byte* from, std::int64_t size_bytes) = 0;
  virtual void unmap(std::byte* from, std::int64_t size_bytes) = 0;
};

/// The system's mmap, mprotect, madvise and munmap. Lives as long as the process.
Mapper& system_mapper();
std::int64_t page_size();

/// One block for one program. Not thread-safe.
class ContiguousSections {
 public:
  /// Bytes that will be carved from a section, padding between its pieces included, and the largest alignment of them.
  struct Size {
    std::int64_t bytes = 0;
    std::int64_t alignment = 1;
  };
  struct Sizes {
    Size code, read_only, read_write;
  };
  struct Statistics {
    std::int64_t reserved_bytes = 0;  ///< address space, guard pages included
    std::int64_t writable_pages = 0;  ///< now writable
    std::array<std::int64_t, kNumSections> carved_bytes{};  ///< by section, padding included
    std::int64_t protect_calls = 0;   ///< since construction
  };

  explicit ContiguousSections(Mapper& mapper = system_mapper()) : mapper_(&mapper) {}
  ContiguousSections(ContiguousSections&&) noexcept;
  ContiguousSections& operator=(ContiguousSections&&) noexcept;
  ~ContiguousSections() { release(); }

  /// Takes one block, a page without access before and after it. All of it is writable until finalise().
  /// A block whose code exceeds 1 MiB starts on a 2 MiB boundary and asks for huge pages there.
  /// Errors: FailedPrecondition if there is a block; InvalidArgument if a size is negative or overflows, or an
  /// alignment is no power of two or exceeds the page; those of the mapper, which leave no block behind.
  Expected<> reserve(const Sizes&);

  /// The next `size_bytes` of a section, zeroed, at a multiple of `alignment`.
  /// Errors: FailedPrecondition if there is no block or it is finalised; InvalidArgument as reserve();
  ///         ResourceExhausted if the section has less left.
  Expected<std::byte*> carve(Section, std::int64_t size_bytes, std::int64_t alignment);

  /// Makes code executable and read-only data read-only; both can no longer be written. Once for each block.
  /// Errors: FailedPrecondition; those of the mapper, after which the block is only good for release().
  Expected<> finalise();

  /// Gives the block back. reserve() may follow. Nothing happens without a block.
  void release();

  /// First byte of a section. Needs: a block.
  std::byte* begin(Section section) const { return parts_[static_cast<std::size_t>(section)].begin; }
  bool reserved() const { return block_ != nullptr; }
  Statistics statistics() const;

 private:
  enum class State : std::uint8_t { Empty, Writable, Final, Failed };
  struct Part {
    std::byte* begin = nullptr;
    std::int64_t size_bytes = 0;  ///< a multiple of the page
    std::int64_t used_bytes = 0;
  };
  Expected<> protect(Section, Access);
  Expected<> map_block(std::int64_t interior_bytes, std::int64_t alignment);

  Mapper* mapper_;
  State state_ = State::Empty;
  std::byte* block_ = nullptr;  ///< the mapping, guard pages included
  std::int64_t block_bytes_ = 0;
  std::int64_t protect_calls_ = 0;
  std::array<Part, kNumSections> parts_{};
};

}  // namespace hloom::jit

#include "jit/contiguous_sections.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::jit {
namespace {

constexpr std::int64_t kHugePage = std::int64_t{2} << 20;
constexpr std::int64_t kHugeCode = std::int64_t{1} << 20;
constexpr std::int64_t kMaxBytes = std::int64_t{1} << 31;  // small code model: all within 2 GiB

int protection(Access access) {
  switch (access) {
    case Access::None: return PROT_NONE;
    case Access::ReadWrite: return PROT_READ | PROT_WRITE;
    case Access::ReadExecute: return PROT_READ | PROT_EXEC;
    case Access::ReadOnly: return PROT_READ;
  }
  return PROT_NONE;
}

Error system_error(std::string_view what, std::int64_t size_bytes) {
  const int number = errno;
  const Code code = number == EACCES || number == EPERM ? Code::PermissionDenied : Code::ResourceExhausted;
  return fail(code, what, " of ", size_bytes, " bytes for machine code: ", std::strerror(number));
}

class SystemMapper final : public Mapper {
 public:
  Expected<std::byte*> map(std::int64_t size_bytes) override {
    void* at = mmap(nullptr, static_cast<std::size_t>(size_bytes), PROT_NONE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at == MAP_FAILED) return system_error("mmap", size_bytes);
    return static_cast<std::byte*>(at);
  }
  Expected<> protect(std::byte* from, std::int64_t size_bytes, Access access) override {
    if (mprotect(from, static_cast<std::size_t>(size_bytes), protection(access)) != 0)
      return system_error("mprotect", size_bytes);
    return {};
  }
  void advise_huge(std::byte* from, std::int64_t size_bytes) override {
    madvise(from, static_cast<std::size_t>(size_bytes), MADV_HUGEPAGE);
  }
  void unmap(std::byte* from, std::int64_t size_bytes) override {
    munmap(from, static_cast<std::size_t>(size_bytes));
  }
};

std::int64_t round_up(std::int64_t value, std::int64_t alignment) { return (value + alignment - 1) & -alignment; }

std::uintptr_t address(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); }

Expected<> check_size(Section section, std::int64_t bytes, std::int64_t alignment) {
  if (bytes < 0 || bytes > kMaxBytes)
    return fail(Code::InvalidArgument, name(section), " section: ", bytes, " bytes; expected 0 to 2^31");
  if (alignment <= 0 || !std::has_single_bit(static_cast<std::uint64_t>(alignment)) || alignment > page_size())
    return fail(Code::InvalidArgument, name(section), " section: alignment ", alignment,
                "; expected a power of two up to the page size, ", page_size());
  return {};
}

}  // namespace

std::string_view name(Section section) {
  switch (section) {
    case Section::Code: return "code";
    case Section::ReadOnly: return "read-only";
    case Section::ReadWrite: return "read-write";
  }
  return "?";
}

Mapper& system_mapper() {
  static SystemMapper mapper;
  return mapper;
}

std::int64_t page_size() {
  static const std::int64_t size = sysconf(_SC_PAGESIZE);
  return size;
}

ContiguousSections::ContiguousSections(ContiguousSections&& other) noexcept : mapper_(other.mapper_) {
  *this = std::move(other);
}

ContiguousSections& ContiguousSections::operator=(ContiguousSections&& other) noexcept {
  if (this == &other) return *this;
  release();
  mapper_ = other.mapper_;
  state_ = std::exchange(other.state_, State::Empty);
  block_ = std::exchange(other.block_, nullptr);
  block_bytes_ = std::exchange(other.block_bytes_, 0);
  protect_calls_ = other.protect_calls_;
  parts_ = std::exchange(other.parts_, {});
  return *this;
}

Expected<> ContiguousSections::reserve(const Sizes& sizes) {
  if (state_ != State::Empty) return fail(Code::FailedPrecondition, "machine code: memory is reserved already");
  const std::array<Size, kNumSections> wanted{sizes.code, sizes.read_only, sizes.read_write};
  std::int64_t total = 0;
  for (std::size_t i = 0; i < kNumSections; ++i) {
    TRY(check_size(static_cast<Section>(i), wanted[i].bytes, wanted[i].alignment));
    total += round_up(wanted[i].bytes, page_size());
  }
  if (total > kMaxBytes)
    return fail(Code::ResourceExhausted, "machine code: ", total, " bytes; one program may have 2^31");
  const bool huge = wanted[0].bytes > kHugeCode;
  TRY(map_block(total, huge ? kHugePage : page_size()));
  std::byte* from = reinterpret_cast<std::byte*>(
      round_up(static_cast<std::int64_t>(address(block_)) + page_size(), huge ? kHugePage : page_size()));
  std::byte* next = from;
  for (std::size_t i = 0; i < kNumSections; ++i) {
    parts_[i] = {next, round_up(wanted[i].bytes, page_size()), 0};
    next += parts_[i].size_bytes;
  }
  if (total == 0) return {};
  ++protect_calls_;
  Expected<> writable = mapper_->protect(from, total, Access::ReadWrite);
  if (!writable) {
    release();
    return writable;
  }
  if (huge) mapper_->advise_huge(from, parts_[0].size_bytes);
  return {};
}

// The block has a guard page at each end, and room to start the interior at a multiple of `alignment`.
Expected<> ContiguousSections::map_block(std::int64_t interior_bytes, std::int64_t alignment) {
  const std::int64_t bytes = interior_bytes + 2 * page_size() + (alignment - page_size());
  block_ = TRY(mapper_->map(bytes));
  block_bytes_ = bytes;
  state_ = State::Writable;
  return {};
}

Expected<std::byte*> ContiguousSections::carve(Section section, std::int64_t size_bytes, std::int64_t alignment) {
  if (state_ != State::Writable)
    return fail(Code::FailedPrecondition, "machine code: no writable memory to take from");
  TRY(check_size(section, size_bytes, alignment));
  Part& part = parts_[static_cast<std::size_t>(section)];
  const std::int64_t from = round_up(part.used_bytes, alignment);
  if (from + size_bytes > part.size_bytes)
    return fail(Code::ResourceExhausted, name(section), " section: ", size_bytes, " bytes asked for, ",
                std::max<std::int64_t>(part.size_bytes - from, 0), " of ", part.size_bytes, " left");
  part.used_bytes = from + size_bytes;
  return part.begin + from;
}

Expected<> ContiguousSections::protect(Section section, Access access) {
  const Part& part = parts_[static_cast<std::size_t>(section)];
  if (part.size_bytes == 0) return {};
  ++protect_calls_;
  return mapper_->protect(part.begin, part.size_bytes, access);
}

Expected<> ContiguousSections::finalise() {
  if (state_ != State::Writable) return fail(Code::FailedPrecondition, "machine code: nothing to finalise");
  state_ = State::Failed;
  TRY(protect(Section::Code, Access::ReadExecute));
  TRY(protect(Section::ReadOnly, Access::ReadOnly));
  // Processors with incoherent instruction caches must hear of new code; on x86 this is nothing.
  const Part& code = parts_[0];
  __builtin___clear_cache(reinterpret_cast<char*>(code.begin),
                          reinterpret_cast<char*>(code.begin + code.size_bytes));
  state_ = State::Final;
  return {};
}

void ContiguousSections::release() {
  if (block_ != nullptr) mapper_->unmap(block_, block_bytes_);
  block_ = nullptr;
  block_bytes_ = 0;
  parts_ = {};
  state_ = State::Empty;
}

ContiguousSections::Statistics ContiguousSections::statistics() const {
  Statistics result;
  result.reserved_bytes = block_bytes_;
  result.protect_calls = protect_calls_;
  for (std::size_t i = 0; i < kNumSections; ++i) {
    result.carved_bytes[i] = parts_[i].used_bytes;
    const bool writable = state_ == State::Writable || (state_ == State::Final && i == 2);
    if (writable) result.writable_pages += parts_[i].size_bytes / page_size();
  }
  return result;
}

}  // namespace hloom::jit

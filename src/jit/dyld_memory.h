// RuntimeDyld's memory on ContiguousSections, for objects that JITLink does not link: COFF.
//
//   ContiguousSections sections;
//   DyldCode code = TRY(DyldCode::load(object, sections, externals));
//   void* f = TRY(code.lookup("f"));
#pragma once

#include <llvm/ExecutionEngine/RTDyldMemoryManager.h>
#include <llvm/ExecutionEngine/RuntimeDyld.h>

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/aligned_bytes.h"
#include "hloom/error.h"
#include "jit/code.h"
#include "jit/contiguous_sections.h"
#include "jit/object.h"

namespace hloom::jit {

/// A section of an object and where it lies.
struct PlacedSection {
  std::string name;
  Section kind;
  const std::byte* begin;
  std::int64_t size_bytes;
};

/// Whether code lies before read-only data, and that before what is written, all within 2 GiB, as image-relative
/// references want it. Errors: FailedPrecondition, naming two sections that do not.
Expected<> check_order(std::span<const PlacedSection>);

/// The adapter. LLVM ends the process where it gets no memory, so what fails here gives memory of another kind, and
/// check() says so: nothing of it may be relocated or run. `sections` must outlive it. One object each.
class DyldMemory final : public llvm::RTDyldMemoryManager {
 public:
  DyldMemory(ContiguousSections& sections, std::span<const Symbol> externals);

  bool needsToReserveAllocationSpace() override { return true; }
  void reserveAllocationSpace(std::uintptr_t code_bytes, llvm::Align code_align, std::uintptr_t read_only_bytes,
                              llvm::Align read_only_align, std::uintptr_t read_write_bytes,
                              llvm::Align read_write_align) override;
  std::uint8_t* allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned id, llvm::StringRef name) override;
  std::uint8_t* allocateDataSection(std::uintptr_t size, unsigned alignment, unsigned id, llvm::StringRef name,
                                    bool read_only) override;
  std::uint64_t getSymbolAddress(const std::string& name) override;
  void registerEHFrames(std::uint8_t*, std::uint64_t, std::size_t) override {}
  void deregisterEHFrames() override {}
  bool finalizeMemory(std::string* message) override;

  /// Errors: the first of ContiguousSections; those of check_order().
  Expected<> check() const;
  std::span<const PlacedSection> placed() const { return placed_; }

 private:
  std::uint8_t* allocate(Section, std::uintptr_t size, unsigned alignment, llvm::StringRef name);

  ContiguousSections& sections_;
  std::unordered_map<std::string, void*> externals_;
  std::vector<PlacedSection> placed_;
  std::optional<Error> error_;
  std::vector<base::AlignedBytes> elsewhere_;  ///< given where there was none
};

/// An object, linked. Lives as long as its sections.
class DyldCode {
 public:
  /// Loads an object of ELF or COFF into sections that are reserved for it. What it refers to must be among the
  /// externals: those of known_symbols() are not called as Windows calls.
  /// Errors: InvalidArgument if it is no object; those of DyldMemory::check(), before anything is relocated; NotFound,
  ///         naming it, if a symbol is unresolved; those of ContiguousSections::finalise().
  static Expected<DyldCode> load(const Object&, ContiguousSections& sections, std::span<const Symbol> externals);

  /// Errors: NotFound.
  Expected<void*> lookup(std::string_view name) const;
  std::span<const PlacedSection> placed() const { return memory_->placed(); }

 private:
  DyldCode() = default;

  std::unique_ptr<DyldMemory> memory_;
  std::unique_ptr<llvm::RuntimeDyld> linker_;
};

}  // namespace hloom::jit

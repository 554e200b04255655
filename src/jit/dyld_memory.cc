#include "jit/dyld_memory.h"

#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <utility>

#include "base/fail.h"
#include "base/try.h"
#include "jit/llvm_error.h"

namespace hloom::jit {
namespace {

std::int64_t alignment_of(llvm::Align alignment) { return static_cast<std::int64_t>(alignment.value()); }

std::int64_t bytes_of(std::uintptr_t size) { return static_cast<std::int64_t>(size); }

}  // namespace

Expected<> check_order(std::span<const PlacedSection> placed) {
  constexpr std::int64_t kReach = std::int64_t{1} << 31;
  for (const PlacedSection& a : placed)
    for (const PlacedSection& b : placed) {
      if (a.size_bytes == 0 || b.size_bytes == 0) continue;
      const auto from = reinterpret_cast<std::intptr_t>(a.begin), to = reinterpret_cast<std::intptr_t>(b.begin);
      if (a.kind < b.kind && from + a.size_bytes > to)
        return fail(hloom::Code::FailedPrecondition, "section ", a.name, " (", name(a.kind), ") does not lie before ",
                    b.name, " (", name(b.kind), ")");
      if (to + b.size_bytes - from >= kReach)
        return fail(hloom::Code::FailedPrecondition, "sections ", a.name, " and ", b.name, " are 2 GiB apart");
    }
  return {};
}

DyldMemory::DyldMemory(ContiguousSections& sections, std::span<const Symbol> externals) : sections_(sections) {
  for (const Symbol& symbol : externals) externals_.emplace(symbol.name, symbol.address);
}

void DyldMemory::reserveAllocationSpace(std::uintptr_t code_bytes, llvm::Align code_align,
                                        std::uintptr_t read_only_bytes, llvm::Align read_only_align,
                                        std::uintptr_t read_write_bytes, llvm::Align read_write_align) {
  // The sizes leave no room to align the first piece.
  const auto size = [](std::uintptr_t bytes, llvm::Align alignment) {
    return ContiguousSections::Size{bytes_of(bytes) + alignment_of(alignment), alignment_of(alignment)};
  };
  const Expected<> reserved = sections_.reserve({size(code_bytes, code_align), size(read_only_bytes, read_only_align),
                                                 size(read_write_bytes, read_write_align)});
  if (!reserved && !error_) error_ = reserved.error();
}

std::uint8_t* DyldMemory::allocate(Section kind, std::uintptr_t size, unsigned alignment, llvm::StringRef section) {
  const Expected<std::byte*> memory = sections_.carve(kind, bytes_of(size), alignment == 0 ? 1 : alignment);
  if (memory) {
    placed_.push_back({section.str(), kind, *memory, bytes_of(size)});
    return reinterpret_cast<std::uint8_t*>(*memory);
  }
  if (!error_) error_ = memory.error();
  elsewhere_.emplace_back(bytes_of(size) + 1);
  return reinterpret_cast<std::uint8_t*>(elsewhere_.back().data());
}

std::uint8_t* DyldMemory::allocateCodeSection(std::uintptr_t size, unsigned alignment, unsigned,
                                              llvm::StringRef section) {
  return allocate(Section::Code, size, alignment, section);
}

std::uint8_t* DyldMemory::allocateDataSection(std::uintptr_t size, unsigned alignment, unsigned,
                                              llvm::StringRef section, bool read_only) {
  return allocate(read_only ? Section::ReadOnly : Section::ReadWrite, size, alignment, section);
}

std::uint64_t DyldMemory::getSymbolAddress(const std::string& symbol) {
  const auto found = externals_.find(symbol);
  return found == externals_.end() ? 0 : reinterpret_cast<std::uint64_t>(found->second);
}

bool DyldMemory::finalizeMemory(std::string* message) {
  const Expected<> done = sections_.finalise();
  if (!done && message != nullptr) *message = done.error().message();
  return !done;
}

Expected<> DyldMemory::check() const {
  if (error_) return *error_;
  return check_order(placed_);
}

Expected<DyldCode> DyldCode::load(const Object& object, ContiguousSections& sections,
                                  std::span<const Symbol> externals) {
  const llvm::MemoryBufferRef bytes({object.bytes.data(), object.bytes.size()}, object.name);
  auto file = llvm::object::ObjectFile::createObjectFile(bytes);
  if (!file) return from_llvm(hloom::Code::InvalidArgument, "object " + object.name, file.takeError());
  DyldCode code;
  code.memory_ = std::make_unique<DyldMemory>(sections, externals);
  code.linker_ = std::make_unique<llvm::RuntimeDyld>(*code.memory_, *code.memory_);
  code.linker_->loadObject(**file);
  if (code.linker_->hasError())
    return fail(hloom::Code::InvalidArgument, "object ", object.name, ": ", code.linker_->getErrorString().str());
  TRY(code.memory_->check());
  code.linker_->resolveRelocations();
  if (code.linker_->hasError())
    return fail(hloom::Code::NotFound, "object ", object.name, ": ", code.linker_->getErrorString().str());
  TRY(sections.finalise());
  return code;
}

Expected<void*> DyldCode::lookup(std::string_view name) const {
  const llvm::JITEvaluatedSymbol symbol = linker_->getSymbol({name.data(), name.size()});
  if (!symbol) return fail(hloom::Code::NotFound, "no function '", name, "' in the code");
  return reinterpret_cast<void*>(symbol.getAddress());
}

}  // namespace hloom::jit

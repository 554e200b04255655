#include "jit/debugger.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/Object/ELFTypes.h>

#include <cstdint>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

// GCC 12 believes that the moved-from pass function is read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

// What GDB looks for, by name: it breaks in the function, and reads the entry that the descriptor calls relevant.
// The names are hidden, so that another compiler in the process, with a lock of its own, keeps a list of its own.
extern "C" {

struct jit_code_entry {
  jit_code_entry* next_entry;
  jit_code_entry* prev_entry;
  const char* symfile_addr;
  std::uint64_t symfile_size;
};

struct jit_descriptor {
  std::uint32_t version;
  std::uint32_t action_flag;
  jit_code_entry* relevant_entry;
  jit_code_entry* first_entry;
};

__attribute__((visibility("hidden"))) jit_descriptor __jit_debug_descriptor = {1, 0, nullptr, nullptr};

__attribute__((visibility("hidden"), noinline)) void __jit_debug_register_code() { asm volatile("" ::: "memory"); }
}

namespace hloom::jit {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
using Elf = llvm::object::ELF64LE;

constexpr std::uint32_t kRegister = 1, kUnregister = 2;

std::mutex& list_lock() {
  static std::mutex lock;
  return lock;
}

void tell(jit_code_entry& entry, std::uint32_t action) {
  __jit_debug_descriptor.relevant_entry = &entry;
  __jit_debug_descriptor.action_flag = action;
  __jit_debug_register_code();
}

/// A copy of an object file, in GDB's list while it lives.
class Entry {
 public:
  explicit Entry(std::vector<char> bytes) : bytes_(std::move(bytes)) {
    const std::lock_guard<std::mutex> lock(list_lock());
    jit_code_entry*& first = __jit_debug_descriptor.first_entry;
    entry_ = {first, nullptr, bytes_.data(), bytes_.size()};
    if (first != nullptr) first->prev_entry = &entry_;
    first = &entry_;
    tell(entry_, kRegister);
  }
  Entry(const Entry&) = delete;
  ~Entry() {
    const std::lock_guard<std::mutex> lock(list_lock());
    if (entry_.next_entry != nullptr) entry_.next_entry->prev_entry = entry_.prev_entry;
    (entry_.prev_entry != nullptr ? entry_.prev_entry->next_entry : __jit_debug_descriptor.first_entry) =
        entry_.next_entry;
    tell(entry_, kUnregister);
  }

 private:
  std::vector<char> bytes_;
  jit_code_entry entry_{};
};

// Writes into the copy where each section lies. LLVM has read the same file before, so the headers are sound.
void set_addresses(std::vector<char>& bytes, jitlink::LinkGraph& graph) {
  auto* header = reinterpret_cast<Elf::Ehdr*>(bytes.data());
  auto* sections = reinterpret_cast<Elf::Shdr*>(bytes.data() + header->e_shoff);
  const char* names = bytes.data() + sections[header->e_shstrndx].sh_offset;
  for (unsigned i = 0; i < header->e_shnum; ++i)
    if (const jitlink::Section* section = graph.findSectionByName(names + sections[i].sh_name))
      sections[i].sh_addr = jitlink::SectionRange(*section).getStart().getValue();
}

class Debugger final : public orc::ObjectLinkingLayer::Plugin {
 public:
  void notifyMaterializing(orc::MaterializationResponsibility& object, jitlink::LinkGraph&,
                           jitlink::JITLinkContext&, llvm::MemoryBufferRef input) override {
    copies_[&object] = {input.getBufferStart(), input.getBufferEnd()};
  }
  void modifyPassConfig(orc::MaterializationResponsibility& object, jitlink::LinkGraph&,
                        jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.push_back([this, &object](jitlink::LinkGraph& graph) {
      auto copy = copies_.extract(&object);
      if (copy.empty()) return llvm::Error::success();
      set_addresses(copy.mapped(), graph);
      entries_.push_back(std::make_unique<Entry>(std::move(copy.mapped())));
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility& object) override {
    copies_.erase(&object);
    return llvm::Error::success();
  }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  std::map<orc::MaterializationResponsibility*, std::vector<char>> copies_;
  std::vector<std::unique_ptr<Entry>> entries_;
};

}  // namespace

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_debugger_support() { return std::make_shared<Debugger>(); }

}  // namespace hloom::jit

// JITLink's memory on ContiguousSections: all objects of a program packed in one slab.
#pragma once

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>

#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "hloom/error.h"
#include "jit/contiguous_sections.h"

namespace hloom::jit {

/// Links in two steps, so that one reservation of the exact size and three changes of protection do for a program of
/// any number of objects. First each object that asks for memory waits. Then place() knows all sizes, reserves the
/// slab and lets the objects go on; they write their content and relocate. After seal() the code can run.
/// The linker must run on the thread that calls place(). `sections` must outlive the slab.
class Slab final : public llvm::jitlink::JITLinkMemoryManager {
 public:
  explicit Slab(ContiguousSections& sections) : sections_(sections) {}

  /// The objects waiting for place().
  std::vector<llvm::jitlink::LinkGraph*> waiting() const;
  /// Gives all waiting objects their memory. Errors: those of ContiguousSections; the objects then fail to link.
  Expected<> place();
  /// Fails all waiting objects for a reason that the caller reports.
  void abandon(std::string_view reason);
  /// Makes code executable, constants read-only.
  Expected<> seal() { return sections_.finalise(); }

  void allocate(const llvm::jitlink::JITLinkDylib*, llvm::jitlink::LinkGraph&, OnAllocatedFunction) override;
  /// Runs what the object registered for its end. Its memory goes with the slab.
  void deallocate(std::vector<FinalizedAlloc>, OnDeallocatedFunction) override;

 private:
  struct Waiting {
    llvm::jitlink::LinkGraph* graph;
    std::unique_ptr<llvm::jitlink::BasicLayout> layout;
    OnAllocatedFunction resume;
  };
  class InFlight;
  Expected<> reserve(std::vector<Waiting>&);

  ContiguousSections& sections_;
  std::vector<Waiting> waiting_;
};

}  // namespace hloom::jit

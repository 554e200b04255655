#include "jit/slab.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <llvm/ExecutionEngine/Orc/Shared/AllocationActions.h>
#include <llvm/ExecutionEngine/Orc/Shared/MemoryFlags.h>

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "base/try.h"

namespace hloom::jit {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;
using llvm::BitmaskEnumDetail::operator&;

using EndActions = std::vector<orc::shared::WrapperFunctionCall>;

Section section_of(const orc::AllocGroup& group) {
  const orc::MemProt protection = group.getMemProt();
  if ((protection & orc::MemProt::Exec) != orc::MemProt::None) return Section::Code;
  if ((protection & orc::MemProt::Write) != orc::MemProt::None) return Section::ReadWrite;
  return Section::ReadOnly;
}

std::int64_t bytes_of(const jitlink::BasicLayout::Segment& segment) {
  return static_cast<std::int64_t>(segment.ContentSize + segment.ZeroFillSize);
}

std::int64_t alignment_of(const jitlink::BasicLayout::Segment& segment) {
  return static_cast<std::int64_t>(segment.Alignment.value());
}

llvm::Error to_llvm(std::string_view message) {
  return llvm::make_error<llvm::StringError>(std::string(message), llvm::inconvertibleErrorCode());
}

}  // namespace

// An object that has its memory and is being relocated. Protection comes later, for the whole slab.
class Slab::InFlight final : public InFlightAlloc {
 public:
  explicit InFlight(jitlink::LinkGraph& graph) : graph_(graph) {}

  void finalize(OnFinalizedFunction done) override {
    llvm::Expected<EndActions> actions = orc::shared::runFinalizeActions(graph_.allocActions());
    if (!actions) return done(actions.takeError());
    done(FinalizedAlloc(orc::ExecutorAddr::fromPtr(new EndActions(std::move(*actions)))));
  }
  void abandon(OnAbandonedFunction done) override { done(llvm::Error::success()); }

 private:
  jitlink::LinkGraph& graph_;
};

std::vector<jitlink::LinkGraph*> Slab::waiting() const {
  std::vector<jitlink::LinkGraph*> graphs;
  for (const Waiting& object : waiting_) graphs.push_back(object.graph);
  return graphs;
}

void Slab::allocate(const jitlink::JITLinkDylib*, jitlink::LinkGraph& graph, OnAllocatedFunction resume) {
  waiting_.push_back({&graph, std::make_unique<jitlink::BasicLayout>(graph), std::move(resume)});
}

// Sums the sizes just as carve() will place them.
Expected<> Slab::reserve(std::vector<Waiting>& objects) {
  std::array<ContiguousSections::Size, kNumSections> sizes;
  for (const Waiting& object : objects) {
    for (const auto& [group, segment] : object.layout->segments()) {
      ContiguousSections::Size& size = sizes[static_cast<std::size_t>(section_of(group))];
      const std::int64_t alignment = alignment_of(segment);
      size.bytes = ((size.bytes + alignment - 1) & -alignment) + bytes_of(segment);
      size.alignment = std::max(size.alignment, alignment);
    }
  }
  TRY(sections_.reserve({sizes[0], sizes[1], sizes[2]}));
  for (const Waiting& object : objects) {
    for (auto& [group, segment] : object.layout->segments()) {
      std::byte* memory = TRY(sections_.carve(section_of(group), bytes_of(segment), alignment_of(segment)));
      segment.Addr = orc::ExecutorAddr::fromPtr(memory);
      segment.WorkingMem = reinterpret_cast<char*>(memory);
    }
  }
  return {};
}

Expected<> Slab::place() {
  std::vector<Waiting> objects = std::exchange(waiting_, {});
  Expected<> reserved = reserve(objects);
  for (Waiting& object : objects) {
    if (!reserved) {
      object.resume(to_llvm(reserved.error().message()));
    } else if (llvm::Error error = object.layout->apply()) {
      object.resume(std::move(error));
    } else {
      object.resume(std::make_unique<InFlight>(*object.graph));
    }
  }
  return reserved;
}

void Slab::abandon(std::string_view reason) {
  for (Waiting& object : std::exchange(waiting_, {})) object.resume(to_llvm(reason));
}

void Slab::deallocate(std::vector<FinalizedAlloc> objects, OnDeallocatedFunction done) {
  llvm::Error error = llvm::Error::success();
  for (FinalizedAlloc& object : objects) {
    const std::unique_ptr<EndActions> actions(object.release().toPtr<EndActions*>());
    error = llvm::joinErrors(std::move(error), orc::shared::runDeallocActions(*actions));
  }
  done(std::move(error));
}

}  // namespace hloom::jit

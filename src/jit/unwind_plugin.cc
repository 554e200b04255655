#include "jit/unwind_plugin.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>

// GCC 12 believes that the moved-from pass function is read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace hloom::jit {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;

class UnwindPlugin final : public orc::ObjectLinkingLayer::Plugin {
 public:
  explicit UnwindPlugin(UnwindTables& tables) : tables_(tables) {}

  // LLVM has put the zero length behind the section, as for all ELF objects.
  void modifyPassConfig(orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                        jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.push_back([this](jitlink::LinkGraph& graph) {
      const jitlink::Section* section = graph.findSectionByName(".eh_frame");
      if (section == nullptr || section->empty()) return llvm::Error::success();
      tables_.add(jitlink::SectionRange(*section).getStart().toPtr<void*>());
      return llvm::Error::success();
    });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  UnwindTables& tables_;
};

}  // namespace

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_unwind_plugin(UnwindTables& tables) {
  return std::make_shared<UnwindPlugin>(tables);
}

}  // namespace hloom::jit

#include "jit/perf_map.h"

#include <llvm/ExecutionEngine/JITLink/JITLink.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>
#include <string>

// GCC 12 believes that the moved-from pass function is read.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"

namespace hloom::jit {
namespace {

namespace jitlink = llvm::jitlink;
namespace orc = llvm::orc;

class PerfMap final : public orc::ObjectLinkingLayer::Plugin {
 public:
  void modifyPassConfig(orc::MaterializationResponsibility&, jitlink::LinkGraph&,
                        jitlink::PassConfiguration& passes) override {
    passes.PostFixupPasses.push_back([](jitlink::LinkGraph& graph) { return append(graph); });
  }
  llvm::Error notifyFailed(orc::MaterializationResponsibility&) override { return llvm::Error::success(); }
  llvm::Error notifyRemovingResources(orc::JITDylib&, orc::ResourceKey) override {
    return llvm::Error::success();
  }
  void notifyTransferringResources(orc::JITDylib&, orc::ResourceKey, orc::ResourceKey) override {}

 private:
  static llvm::Error append(jitlink::LinkGraph& graph) {
    const std::string path = "/tmp/perf-" + std::to_string(getpid()) + ".map";
    std::FILE* file = std::fopen(path.c_str(), "ae");
    if (file == nullptr) return llvm::createStringError("cannot append to " + path);
    for (const jitlink::Symbol* symbol : graph.defined_symbols())
      if (symbol->isCallable() && symbol->hasName())
        std::fprintf(file, "%" PRIx64 " %" PRIx64 " %s\n", symbol->getAddress().getValue(), symbol->getSize(),
                     (*symbol->getName()).str().c_str());
    std::fclose(file);
    return llvm::Error::success();
  }
};

}  // namespace

std::shared_ptr<orc::ObjectLinkingLayer::Plugin> make_perf_map() { return std::make_shared<PerfMap>(); }

}  // namespace hloom::jit

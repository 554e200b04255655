#include "cli/version.h"

namespace hloom::cli {

std::string version_text() {
  return "hloom " HLOOM_VERSION
         "\nreads: HLO text, .kernel, .npz, .npy"
         "\ncode generator: LLVM " HLOOM_LLVM_VERSION
         "\nnot in this build: HloModuleProto, StableHLO, collectives in compiled code";
}

}  // namespace hloom::cli

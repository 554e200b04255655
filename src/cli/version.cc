#include "cli/version.h"

#include "library/lapack_library.h"

namespace hloom::cli {

std::string version_text() {
  return "hloom " HLOOM_VERSION
         "\nreads: HLO text, .kernel, .npz, .npy"
         "\ncode generator: LLVM " HLOOM_LLVM_VERSION
         "\n" + library::lapack_version() +
         "\nnot in this build: HloModuleProto, StableHLO, collectives in compiled code";
}

}  // namespace hloom::cli

// Which processor to compile for, and LLVM's code generator for it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/target.h"
#include "hloom/error.h"

namespace llvm {
class TargetMachine;
}

namespace hloom::jit {

/// This machine's processor with all its features. Found once; any thread may ask.
const base::Target& host_target();

/// The processor LLVM calls `cpu`, of this machine's architecture, with the features that name implies and this
/// machine's cache sizes. Errors: InvalidArgument if LLVM knows no such processor.
Expected<base::Target> target_named(std::string_view cpu);

/// target_named(), or host_target() if no name is given.
Expected<base::Target> target_or_host(std::string_view cpu);

/// The instructions that code for the target may use: features as LLVM names them, with commas, sorted.
/// Errors: InvalidArgument if LLVM lacks the target.
Expected<std::string> required_features(const base::Target&);
/// Those of them that this machine's processor lacks, listed for people; empty: none.
std::string missing_features(std::string_view required);

/// Whether this machine's processor has all that the target's has.
/// Errors: FailedPrecondition, naming the target and each feature that is missing.
Expected<> check_runs_here(const base::Target&);

/// How much the code generator does: 0 is three times as fast to compile and up to 60 % slower to run.
enum class Level : std::uint8_t { None = 0, Less = 1, Default = 2 };

/// A code generator: small code model, position independent, no contraction of floating point, full vector width.
/// One thread may use it at a time. Cost: about 0.1 ms. Errors: InvalidArgument if LLVM lacks the target.
Expected<std::unique_ptr<llvm::TargetMachine>> make_target_machine(const base::Target& target = host_target(),
                                                                   Level level = Level::Default);

}  // namespace hloom::jit

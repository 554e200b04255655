// Machine code of LLVM modules, as object files.
//
//   auto machine = TRY(jit::make_target_machine());
//   jit::Object object = TRY(jit::compile_object(*module, *machine));
//   jit::Code code = TRY(jit::Code::link({std::move(object)}, {}));
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "hloom/error.h"
#include "jit/object.h"
#include "jit/target.h"

namespace llvm {
class LLVMContext;
class Module;
}  // namespace llvm

namespace hloom::jit {

class DiskCache;

/// Generates code for a module: IR passes run none but those of code generation. Sets the module's triple and data
/// layout, and its functions nounwind. ELF objects have unwind tables, for walks of the stack. The module's IR is used up: drop it after.
/// Needs: IR that verifies (checked in builds without NDEBUG). Thread-safe for distinct contexts and machines.
/// Cost: 1.3 ms and 0.5 to 3 ms a kernel, so about 10 kernels a module. Errors: Internal, with LLVM's words.
Expected<Object> compile_object(llvm::Module&, llvm::TargetMachine&);

/// As compile_object(), but gives assembly text.
Expected<std::string> emit_assembly(llvm::Module&, llvm::TargetMachine&);

/// Builds one module in the given context.
using BuildModule = std::function<Expected<std::unique_ptr<llvm::Module>>(llvm::LLVMContext&)>;

/// Builds and compiles modules on up to `num_threads` threads, the caller's included; `objects[i]` is of `modules[i]`,
/// whatever the number of threads. Each module has a context of its own, each thread a code generator.
/// Needs: modules that may be built at the same time.
/// What `cache` has is not compiled, what it lacks is put there; null: none.
/// Errors: the error of the first module in order that failed, after the ones under way have ended.
Expected<std::vector<Object>> compile_objects(const std::vector<BuildModule>& modules, int num_threads,
                                              const base::Target& target = host_target(),
                                              Level level = Level::Default, DiskCache* cache = nullptr);

}  // namespace hloom::jit

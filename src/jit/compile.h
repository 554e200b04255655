// Kernels to machine code.
//
//   auto code = TRY(jit::compile(kernels, {.threads = 2}));
//   base::KernelFunction add = TRY(jit::kernel_function(*code, "fusion.2"));
//   add(buffers, 0, blocks, scratch);
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/kernel_abi.h"
#include "hloom/error.h"
#include "jit/code.h"
#include "jit/object.h"
#include "jit/target.h"
#include "kernels/kernel.h"

namespace hloom::jit {

class DiskCache;

/// Where the code of kernels came from; those that differ in name only count once.
struct CompileReport {
  std::int64_t kernels = 0;
  std::int64_t from_memory = 0, from_disk = 0;  ///< the rest was compiled
};

struct CompileOptions {
  int threads = 1;                 ///< that compile at the same time, the caller's included
  Level level = Level::Default;
  std::string cpu = {};            ///< as LLVM names it; empty: this machine's
  bool perf = false;               ///< see LinkOptions
  bool debugger = false;           ///< then no cache is used: debuggers read names in objects
  DiskCache* cache = nullptr;      ///< where code may be found, and is left; null: none
  CompileReport* report = nullptr; ///< filled in if it is there
  std::vector<Symbol> externals = {};  ///< what kernels call: emit::kForkJoin, if there are Call statements
};

/// Compiles and links the kernels. Those that differ in nothing but their name are compiled once, in the whole process
/// as long as memory_cache.h keeps them.
/// Needs: kernels that kernels::verify() accepts, with names that differ.
/// Errors: InvalidArgument if there is no such processor; FailedPrecondition if this machine lacks what it has; Unimplemented, naming kernel and op; those of Code::link().
/// Cost: about 2 ms a kernel, divided by the threads.
Expected<std::shared_ptr<Code>> compile(std::span<const kernels::Kernel> kernels, const CompileOptions& = {});

/// The same for kernels that come one after the other: each is compiled on other threads while the next is planned, and
/// linked while later ones are compiled. The code does not depend on that.
class KernelCompiler {
 public:
  /// Errors: InvalidArgument, FailedPrecondition as compile() has them.
  static Expected<std::unique_ptr<KernelCompiler>> create(CompileOptions);
  ~KernelCompiler();  ///< Ends what is under way.

  /// Takes a copy. Where many wait, the caller compiles one first.
  void add(const kernels::Kernel&);
  /// Once, at the end. Errors: those of compile().
  Expected<std::shared_ptr<Code>> finish();

 private:
  struct Impl;
  explicit KernelCompiler(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

/// The function of a compiled kernel, which lives as long as the code. Errors: NotFound.
Expected<base::KernelFunction> kernel_function(const Code&, std::string_view kernel);

/// What compile() makes of the kernels, each in a module of its own: LLVM's IR, and assembly text.
Expected<std::string> show_llvm(std::span<const kernels::Kernel> kernels, const CompileOptions& = {});
Expected<std::string> show_asm(std::span<const kernels::Kernel> kernels, const CompileOptions& = {});

}  // namespace hloom::jit

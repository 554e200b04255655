// From a module to a program that runs.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "buffers/assignment.h"
#include "compiler/memory_limits.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "jit/compile.h"
#include "kernels/kernel.h"
#include "passes/run.h"
#include "runtime/program.h"

namespace hloom::compiler {

struct Options {
  int threads = 0;           ///< 0: as many as the process may use; for compiling, and the most workers of a step
  std::string cpu;           ///< that code is made for, as LLVM names it; empty: this machine's
  std::string cache_folder;  ///< where code is kept for later processes (jit/disk_cache.h); empty: nowhere
  bool users_cache = false;    ///< in the user's own cache folder instead, if that can be used
  bool regions = true;       ///< false: a step for each instruction, so that each can be observed
  bool taps = false;         ///< a result for each instruction in a kernel (fusion/taps.h); trip counts are not used
  /// Runs are checked (checked_run.h): a step for each instruction, and bytes between values that nobody is to touch.
  bool check_memory = false;
  bool check_bounds = false;  ///< kernels look at each access, and end the run with one outside of its argument
  bool generate_code = true; ///< false: stop before LLVM, to show stages
  MemoryDemands memory;      ///< what the plan of the memory must keep to
  bool perf = false;         ///< tell perf and GDB the kernels' names
  bool verify_each = false;  ///< verify after each pass
  /// Called after each stage that changed something: a name that sorts (`07-fold-transpose.hlo`) and the text.
  std::function<void(const std::string& name, const std::string& text)> dump;
  std::vector<passes::PassTime>* pass_times = nullptr;
  /// For tests: changes the kernels before code is made of them.
  std::function<void(std::vector<kernels::Kernel>&)> change_kernels;
};

/// A compiled program with all that was decided on the way.
struct Compiled {
  std::unique_ptr<hlo::Module> module;  ///< after the last stage
  buffers::Assignment assignment;
  std::vector<kernels::Kernel> kernels;
  std::shared_ptr<jit::Code> code;      ///< null without generate_code
  jit::CompileReport code_report;       ///< where it came from
  std::vector<std::string> cache_problems;  ///< of the folder, a line each
  runtime::Program program;
  bool check_memory = false;            ///< as the options said
  /// The instructions that each step runs, in the order in which observers count steps.
  std::vector<std::vector<const hlo::Instruction*>> step_instructions;
  std::vector<std::pair<std::string, double>> stage_seconds;
};

/// Runs all stages. Needs: a verified module.
/// Errors: Unimplemented, naming the instruction, if it has no kernel; those of DiskCache::open(), check_demands(), of jit::compile() and
/// of the stages.
Expected<Compiled> compile(std::unique_ptr<hlo::Module>, const Options& = {});

}  // namespace hloom::compiler

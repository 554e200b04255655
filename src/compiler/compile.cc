// The whole story in one function.
#include "compiler/compile.h"

#include <chrono>

#include "base/try.h"
#include "compiler/accept.h"
#include "compiler/build_program.h"
#include "compiler/fit_layouts.h"
#include "compiler/lend_scratch.h"
#include "compiler/pack_constants.h"
#include "compiler/routines.h"
#include "emit/symbol_name.h"
#include "fusion/fuse.h"
#include "fusion/regions.h"
#include "fusion/taps.h"
#include "jit/compile.h"
#include "jit/disk_cache.h"
#include "jit/target.h"
#include "passes/pipeline.h"
#include "runtime/cpus.h"
#include "runtime/float_mode.h"
#include "runtime/fork_join.h"
#include "runtime/memory_limit.h"
#include "text/print.h"

namespace hloom::compiler {
namespace {

constexpr std::int64_t kGuardBytes = 64;  // between values, where memory is checked

/// Numbers dumps and times stages.
class Stages {
 public:
  Stages(Compiled& compiled, const Options& options) : c_(compiled), options_(options) {}

  void dump(const std::string& name) {
    if (options_.dump) dump_text(name + ".hlo", text::print(*c_.module));
  }
  void dump_text(const std::string& name, const std::string& text) {
    const std::string number = std::to_string(number_++);
    options_.dump((number.size() < 2 ? "0" : "") + number + "-" + name, text);
  }
  void finished(const char* stage) {
    const auto now = std::chrono::steady_clock::now();
    c_.stage_seconds.emplace_back(stage, std::chrono::duration<double>(now - since_).count());
    since_ = now;
  }

 private:
  Compiled& c_;
  const Options& options_;
  int number_ = 0;
  std::chrono::steady_clock::time_point since_ = std::chrono::steady_clock::now();
};

Expected<std::shared_ptr<jit::DiskCache>> open_cache(const Options& options) {
  const std::string folder = options.users_cache ? jit::default_cache_folder() : options.cache_folder;
  if (folder.empty() || !options.generate_code) return nullptr;
  auto cache = jit::DiskCache::open(folder);
  if (!cache && options.users_cache) return nullptr;  // nobody named it
  return cache;
}

}  // namespace

Expected<Compiled> compile(std::unique_ptr<hlo::Module> module, const Options& wanted) {
  Options options = wanted;
  options.regions &= !options.check_memory;
  const std::shared_ptr<jit::DiskCache> cache = TRY(open_cache(options));
  const runtime::DefaultFloatMode mode;  // constants are folded as they would be computed
  Compiled c;
  c.module = std::move(module);
  c.check_memory = options.check_memory;
  Stages stages(c, options);
  stages.dump("parsed");
  TRY(accept(*c.module));

  passes::RunOptions run;
  run.verify = options.verify_each;
  run.times = options.pass_times;
  if (options.dump)
    run.dump = [&](const passes::Pass& pass, const hlo::Module&) { stages.dump(std::string(pass.name)); };
  TRY(passes::run_standard(*c.module, run));
  TRY(fit_layouts(*c.module));
  TRY(accept_layouts(*c.module));
  stages.finished("passes");

  // From here on every instruction that computes is a fusion.
  TRY(fusion::fuse(*c.module));
  if (options.taps) fusion::add_taps(*c.module);
  const base::Target target = TRY(jit::target_or_host(options.cpu));
  TRY(pack_constants(*c.module, target));
  TRY(passes::run_placement(*c.module, run));  // new fusions as well, before memory is shared out by spaces
  TRY(note_workspaces(*c.module));
  stages.dump("fusions");
  stages.finished("fusion");

  // From here on the order is the schedule, and nothing that writes a value may be added or removed.
  MemoryDemands demands = options.memory;
  if (demands.limit_bytes == 0 && options.generate_code) demands.limit_bytes = runtime::memory_limit_bytes();
  // Watched runs and taps go step by step.
  c.assignment = TRY(buffers::assign(*c.module, {.start_copies = !options.taps && !options.check_memory,
                                                 .place = {.guard_bytes = options.check_memory ? kGuardBytes : 0,
                                                           .concurrency_bytes = demands.concurrency_bytes,
                                                           .limit_bytes = demands.limit_bytes}}));
  TRY(check_demands(c.assignment, demands));
  if (options.regions) fusion::mark_regions(*c.module);
  stages.dump("buffers");
  stages.finished("buffers");

  jit::CompileOptions jit_options;
  jit_options.threads = options.threads > 0 ? options.threads : runtime::available_cpus();
  jit_options.cpu = options.cpu;
  jit_options.externals = {{std::string(emit::kForkJoin), reinterpret_cast<void*>(&runtime::fork_join)}};
  jit_options.cache = cache.get();
  jit_options.report = &c.code_report;
  jit_options.perf = options.perf;
  jit_options.debugger = options.perf;
  std::unique_ptr<jit::KernelCompiler> compiler;
  if (options.generate_code) compiler = TRY(jit::KernelCompiler::create(std::move(jit_options)));

  // Code is made of kernels while others are planned, unless they are to be changed first.
  const bool at_once = compiler != nullptr && !options.change_kernels;
  TRY(build_program(c, options, cache.get(), [&](const kernels::Kernel& kernel) {
    if (at_once) compiler->add(kernel);
  }));
  if (!options.check_memory) lend_scratch(c, options.threads > 0 ? options.threads : runtime::available_cpus());
  if (options.change_kernels) options.change_kernels(c.kernels);
  stages.finished("kernels");
  if (compiler == nullptr) return c;
  if (!at_once)
    for (const kernels::Kernel& kernel : c.kernels) compiler->add(kernel);
  c.code = TRY(compiler->finish());
  if (cache != nullptr) c.cache_problems = cache->problems();
  TRY(link_program(c));
  stages.finished("code");
  return c;
}

}  // namespace hloom::compiler

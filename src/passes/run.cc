#include "passes/run.h"

#include <algorithm>
#include <chrono>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/verify.h"
#include "passes/tidy_fusions.h"

namespace hloom::passes {
namespace {

void record(std::vector<PassTime>& times, const Pass& pass, Changed changed, double seconds) {
  auto row = std::ranges::find(times, &pass, &PassTime::pass);
  if (row == times.end()) row = times.insert(row, PassTime{.pass = &pass});
  ++row->runs;
  row->changes += any(changed);
  row->seconds += seconds;
}

Expected<Changed> timed(const Pass& pass, hlo::Module& module, const RunOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  auto changed = pass.function(module);
  if (!changed) return changed;
  if (any(*changed)) tidy_fusions(module);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (options.times != nullptr) record(*options.times, pass, *changed, took.count());
  return changed;
}

}  // namespace

Expected<Changed> run(const Pass& pass, hlo::Module& module, const RunOptions& options) {
  module.sort();  // passes rely on callees coming first
  const std::uint64_t before = options.check_changed ? hlo::fingerprint(module) : 0;
  const Changed changed = TRY(timed(pass, module, options));
  if (options.check_changed) HLOOM_CHECK((hlo::fingerprint(module) != before) == any(changed));
  if (!any(changed)) return changed;
  if (options.verify) {
    const Expected<> verified = hlo::check_module(module);
    if (!verified)
      return fail(Code::Internal, "after pass ", pass.name, " the module is wrong: ", verified.error().message());
  }
  if (options.dump) options.dump(pass, module);
  return changed;
}

Expected<Changed> run_to_fixed_point(std::span<const Pass* const> passes, hlo::Module& module, int max_rounds,
                                     const RunOptions& options) {
  auto result = Changed::No;
  // A pass has nothing to do while all since its last run, itself included, left the module as it was.
  std::size_t quiet = 0;
  for (int round = 0; round < max_rounds; ++round) {
    for (const Pass* pass : passes) {
      if (quiet == passes.size()) return result;
      const Changed changed = TRY(run(*pass, module, options));
      result |= changed;
      quiet = any(changed) ? 0 : quiet + 1;
    }
  }
  return result;
}

}  // namespace hloom::passes

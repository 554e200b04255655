#include "compiler/agreement.h"

#include <cstring>

#if defined(__SSE2__)
#include <xmmintrin.h>
#endif

#include "arrays/compare.h"
#include "base/aligned_bytes.h"
#include "base/fail.h"
#include "base/try.h"
#include "compiler/check.h"
#include "compiler/exact_results.h"
#include "compiler/execute_literals.h"
#include "compiler/layout_bytes.h"
#include "runtime/devices.h"
#include "runtime/executor.h"

namespace hloom::compiler {
namespace {

using hlo::Literal;
using Values = std::vector<Literal>;
using ByDevice = std::vector<Values>;
using Found = std::optional<std::string>;

/// A caller's own floating point mode while it lives: denormals are flushed and taken for zero, rounding is to zero.
class OddFloatMode {
 public:
#if defined(__SSE2__)
  OddFloatMode() : before_(_mm_getcsr()) { _mm_setcsr(kOdd); }
  ~OddFloatMode() { _mm_setcsr(before_); }
  /// Whether the mode is still the caller's; flags of exceptions may have been raised.
  bool is_kept() const { return (_mm_getcsr() & ~kFlags) == (kOdd & ~kFlags); }

 private:
  static constexpr unsigned kFlags = 0x3f, kOdd = 0x1f80 | 0x8000 | 0x0040 | 0x6000;
  unsigned before_;
#else
  bool is_kept() const { return true; }
#endif
};

/// Runs with donated parameters in the memory of their results.
Expected<Values> run_donated(const runtime::Executor& executor, std::span<const Shape> parameters,
                             std::span<const Shape> results, std::span<const Literal> arguments,
                             runtime::ThreadPool& pool) {
  std::vector<base::AlignedBytes> inputs, outputs;
  std::vector<std::span<std::byte>> input_spans, output_spans;
  for (std::size_t p = 0; p < parameters.size(); ++p) {
    inputs.emplace_back(parameters[p].size_bytes());
    input_spans.push_back(inputs.back().bytes());
    if (parameters[p].is_array()) store_literal(arguments[p], parameters[p], input_spans.back());
  }
  for (const Shape& r : results) {
    outputs.emplace_back(r.size_bytes());
    output_spans.push_back(outputs.back().bytes());
  }
  for (const runtime::Alias& a : executor.program().aliases)
    output_spans[static_cast<std::size_t>(a.result)] = input_spans[static_cast<std::size_t>(a.parameter)];
  TRY(executor.execute(input_spans, output_spans, pool));
  Values values;
  for (std::size_t r = 0; r < results.size(); ++r)
    values.push_back(results[r].is_array() ? load_literal(results[r], output_spans[r]) : Literal(results[r]));
  return values;
}

// Bit for bit, but for what a NaN looks like.
Found differs_from(const Values& got, const Values& want, const std::string& how) {
  const arrays::Tolerance same = arrays::Tolerance::exact();
  const auto difference = arrays::compare_results(got, want, {&same, 1});
  if (!difference) return std::nullopt;
  return how + ": " + *difference;
}

std::string on_device(std::size_t k, const ByDevice& all) {
  return all.size() == 1 ? "" : " on device " + std::to_string(k);
}

Found differs_from(const ByDevice& got, const ByDevice& want, const std::string& how) {
  for (std::size_t k = 0; k < got.size(); ++k)
    if (Found found = differs_from(got[k], want[k], how + on_device(k, got))) return found;
  return std::nullopt;
}

Found differs_from_exact(const ByDevice& got, const ExactResults& want, const std::string& how) {
  std::vector<arrays::Tolerance> tolerances;
  for (const bool exact : want.exact)
    tolerances.push_back(exact ? arrays::Tolerance::exact() : arrays::Tolerance::none());
  for (std::size_t k = 0; k < got.size() && !tolerances.empty(); ++k) {
    const auto difference = arrays::compare_results(got[k], want.values[k], tolerances);
    if (difference) return how + on_device(k, got) + ", against interpreted: " + *difference;
  }
  return std::nullopt;
}

}  // namespace

Agreement::Agreement(AgreementOptions options) : options_(options) {
  for (int n = 1; n <= options_.max_threads; ++n) pools_.push_back(std::make_unique<runtime::ThreadPool>(n));
}
Agreement::~Agreement() = default;

Expected<ByDevice> Agreement::run(const runtime::Executor& executor, const Borders& borders, const ByDevice& arguments,
                                  runtime::ThreadPool& pool) const {
  if (arguments.size() == 1)
    return ByDevice{TRY(execute_literals(executor, borders.parameters, borders.results, arguments[0], pool))};
  const runtime::Devices devices(executor, pool.num_threads());
  return execute_literals(devices, borders.parameters, borders.results, arguments, {}, std::chrono::seconds(30));
}

Expected<Found> Agreement::compiled_difference(const hlo::Module& module, const ByDevice& arguments, bool regions,
                                               ByDevice& first) const {
  const std::string how = regions ? "in regions" : "step by step";
  Options compile_options;
  compile_options.regions = regions;
  compile_options.threads = 1;
  compile_options.verify_each = true;
  Compiled compiled = TRY(compile(module.clone(), compile_options));
  const Borders borders{parameter_leaves(*compiled.module), result_leaves(*compiled.module)};
  const auto executor = TRY(runtime::Executor::create(std::move(compiled.program)));
  for (const auto& pool : pools_) {
    const std::string on = how + " on " + std::to_string(pool->num_threads()) + " threads";
    ByDevice got = TRY(run(*executor, borders, arguments, *pool));
    if (first.empty()) first = got;
    if (Found found = differs_from(got, first, on)) return found;
  }
  if (!executor->program().aliases.empty() && arguments.size() == 1) {
    const Values got = TRY(run_donated(*executor, borders.parameters, borders.results, arguments[0], *pools_.back()));
    if (Found found = differs_from(got, first[0], how + " with donated memory")) return found;
  }
  if (!options_.float_modes) return Found();
  const OddFloatMode mode;
  Expected<ByDevice> got = run(*executor, borders, arguments, *pools_.back());
  if (!got) return got.error();
  if (!mode.is_kept()) return Found("the caller's floating point mode is not as before");
  return differs_from(*got, first, how + " in another floating point mode");
}

Expected<Found> Agreement::difference(const hlo::Module& module, std::span<const Literal> arguments) const {
  return difference(module, ByDevice{Values(arguments.begin(), arguments.end())});
}

Expected<Found> Agreement::difference(const hlo::Module& module, const ByDevice& arguments) const {
  const ExactResults want = TRY(exact_results(module, arguments, options_.max_interpreter_steps));
  ByDevice first;
  Found found = TRY(compiled_difference(module, arguments, true, first));
  if (!found) found = differs_from_exact(first, want, "compiled");
  if (!found && options_.steps) found = TRY(compiled_difference(module, arguments, false, first));
  if (!found && options_.float_modes) {
    const OddFloatMode mode;
    ByDevice odd;
    const Expected<Found> in_mode = compiled_difference(module, arguments, true, odd);
    if (!in_mode) return in_mode.error();
    found = differs_from(odd, first, "compiled in another floating point mode");
  }
  if (found || !options_.instructions) return found;
  const CheckReport report = TRY(check_devices(module.clone(), arguments));
  if (!report.differences.empty())
    found = "check: " + to_string(report.differences[0]);
  return found;
}

}  // namespace hloom::compiler

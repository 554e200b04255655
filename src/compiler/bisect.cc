#include "compiler/bisect.h"

#include "arrays/compare.h"
#include "base/try.h"
#include "compiler/exact_results.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "runtime/devices.h"
#include "runtime/executor.h"
#include "runtime/threads.h"

namespace hloom::compiler {
namespace {

using hlo::Literal;
using Values = std::vector<Literal>;
using ByDevice = std::vector<Values>;

Expected<ByDevice> interpreted(const hlo::Module& module, std::span<const Values> arguments) {
  std::vector<Values> of_device;
  for (const Values& leaves : arguments) of_device.push_back(arguments_of(module, leaves));
  interp::Options options;
  options.replicas = module.config().replica_count;
  options.partitions = module.config().num_partitions;
  ByDevice values;
  for (const Literal& result : TRY(interp::interpret_devices(module, of_device, options)))
    for (Values& own = values.emplace_back(); const Literal* leaf : hlo::leaves(result)) own.push_back(*leaf);
  return values;
}

// The first difference, with its device where there are several.
std::optional<std::string> compare(const ByDevice& got, const ByDevice& want, std::span<const arrays::Tolerance> tolerances) {
  for (std::size_t k = 0; k < got.size(); ++k) {
    const auto difference = arrays::compare_results(got[k], want[k], tolerances);
    if (difference) return got.size() == 1 ? *difference : "device " + std::to_string(k) + ": " + *difference;
  }
  return std::nullopt;
}

// "07-fold-transpose.hlo" → "fold-transpose (stage 07)".
std::string stage_name(const std::string& file) {
  const std::size_t dash = file.find('-'), dot = file.rfind('.');
  if (dash == std::string::npos || dot == std::string::npos) return file;
  return file.substr(dash + 1, dot - dash - 1) + " (stage " + file.substr(0, dash) + ")";
}

}  // namespace

Expected<Bisection> bisect(const hlo::Module& module, std::span<const StageText> stages,
                           std::span<const Values> arguments) {
  const ByDevice want = TRY(interpreted(module, arguments));
  const arrays::Tolerance exact = arrays::Tolerance::exact();
  Bisection result;
  for (const StageText& stage : stages) {
    const auto after = TRY(read_program(stage.second, {.file_name = stage.first}));
    const ByDevice got = TRY(interpreted(*after, arguments));
    ++result.stages;
    const auto difference = compare(got, want, {&exact, 1});
    if (!difference) continue;
    result.stage = stage.first;
    result.message = *difference;
    return result;
  }
  return result;
}

Expected<Bisection> bisect_passes(const hlo::Module& module, std::span<const Values> arguments, const Options& given) {
  std::vector<StageText> stages;
  Options options = given;
  options.dump = [&](const std::string& name, const std::string& text) {
    if (name.ends_with(".hlo")) stages.emplace_back(stage_name(name), text);
  };
  Compiled compiled = TRY(compile(module.clone(), options));
  Bisection result = TRY(bisect(module, stages, arguments));
  if (!result.stage.empty()) return result;
  ++result.stages;
  const std::vector<Shape> parameters = parameter_leaves(*compiled.module), results = result_leaves(*compiled.module);
  const auto executor = TRY(runtime::Executor::create(std::move(compiled.program)));
  const runtime::Devices devices(*executor, runtime::process_pool().num_threads());
  const ByDevice got = TRY(execute_literals(devices, parameters, results, arguments));
  const ExactResults want = TRY(exact_results(module, arguments));
  std::vector<arrays::Tolerance> tolerances;
  for (const bool exact : want.exact)
    tolerances.push_back(exact ? arrays::Tolerance::exact() : arrays::Tolerance::none());
  const auto difference = tolerances.empty() ? std::nullopt : compare(got, want.values, tolerances);
  if (!difference) return result;
  result.stage = "kernels and code";
  result.message = *difference;
  return result;
}

}  // namespace hloom::compiler

#include "compiler/bisect.h"

#include "arrays/compare.h"
#include "base/try.h"
#include "compiler/exact_results.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "runtime/executor.h"

namespace hloom::compiler {
namespace {

using hlo::Literal;
using Values = std::vector<Literal>;

Expected<Values> interpreted(const hlo::Module& module, std::span<const Literal> arguments) {
  const Literal result = TRY(interp::interpret(module, arguments_of(module, arguments)));
  Values values;
  for (const Literal* leaf : hlo::leaves(result)) values.push_back(*leaf);
  return values;
}

// "07-fold-transpose.hlo" → "fold-transpose (stage 07)".
std::string stage_name(const std::string& file) {
  const std::size_t dash = file.find('-'), dot = file.rfind('.');
  if (dash == std::string::npos || dot == std::string::npos) return file;
  return file.substr(dash + 1, dot - dash - 1) + " (stage " + file.substr(0, dash) + ")";
}

}  // namespace

Expected<Bisection> bisect(const hlo::Module& module, std::span<const StageText> stages,
                           std::span<const Literal> arguments) {
  const Values want = TRY(interpreted(module, arguments));
  const arrays::Tolerance exact = arrays::Tolerance::exact();
  Bisection result;
  for (const StageText& stage : stages) {
    const auto after = TRY(read_program(stage.second, {.file_name = stage.first}));
    const Values got = TRY(interpreted(*after, arguments));
    ++result.stages;
    const auto difference = arrays::compare_results(got, want, {&exact, 1});
    if (!difference) continue;
    result.stage = stage.first;
    result.message = *difference;
    return result;
  }
  return result;
}

Expected<Bisection> bisect_passes(const hlo::Module& module, std::span<const Literal> arguments, const Options& given) {
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
  const Values got = TRY(execute_literals(*executor, parameters, results, arguments));
  const ExactResults want = TRY(exact_results(module, arguments));
  std::vector<arrays::Tolerance> tolerances;
  for (const bool exact : want.exact)
    tolerances.push_back(exact ? arrays::Tolerance::exact() : arrays::Tolerance::none());
  const auto difference = got.empty() ? std::nullopt : arrays::compare_results(got, want.values, tolerances);
  if (!difference) return result;
  result.stage = "kernels and code";
  result.message = *difference;
  return result;
}

}  // namespace hloom::compiler

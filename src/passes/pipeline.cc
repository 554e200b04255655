#include "passes/pipeline.h"

#include <array>

#include "base/check.h"
#include "base/try.h"
#include "passes/all.h"

namespace hloom::passes {
namespace {

// 8 rounds: nests of loops and branches are undone by one level a round at worst.
constexpr int kMaxRounds = 8;

const Pass* named(std::string_view name) {
  const Pass* pass = pass_named(name);
  HLOOM_CHECK(pass != nullptr);
  return pass;
}

Expected<Changed> run_all(std::span<const std::string_view> names, hlo::Module& module, const RunOptions& options) {
  auto changed = Changed::No;
  for (const std::string_view name : names) {
    const Changed one = TRY(run(*named(name), module, options));
    changed |= one;
  }
  return changed;
}

// What no later stage has a form for. A scheduled module gets them too, where it stands.
Expected<Changed> run_expansions(hlo::Module& module, const RunOptions& options) {
  constexpr std::array<std::string_view, 17> kExpansions = {
      "expand-tiles",
      "expand-transfers",  // before layouts are settled: it asks for row-major ones
      "expand-buffers",
      "clear-layouts",  // of a scheduled module: what packs and tiles
      "remove-markers",
      "recognize-custom-calls",
      "expand-structure",
      "expand-async",
      "expand-collectives",
      "open-fusions",
      "expand-dynamic-sizes",  // from here on all sizes are known
      "expand-batch-norm",
      "expand-narrow-matrices",
      "expand-ragged-dot",
      "expand-scaled-dot",
      "expand-rng",
      "expand-scan"};
  return run_all(kExpansions, module, options);
}

// What kernels, routines and steps ask of the instructions that they do, whoever chose the layouts and the schedule.
Expected<Changed> run_demands(hlo::Module& module, const RunOptions& options) {
  constexpr std::array<std::string_view, 2> kDemands = {"lift-constants", "fetch-ahead"};
  return run_all(kDemands, module, options);
}

}  // namespace

Expected<Changed> run_placement(hlo::Module& module, const RunOptions& options) {
  constexpr std::array<std::string_view, 2> kPlacement = {"separate-memory-spaces", "propagate-memory-space"};
  return run_all(kPlacement, module, options);
}

std::span<const Pass* const> standard() {
  static const std::array kStandard = {
      named("inline-calls"),  // first, so that all else sees through calls; again, for branches that were inlined
      named("remove-dead"),
      named("simplify-tuples"),
      named("cse"),  // before the loops: leaves that start equal are the same instruction
      named("shrink-loops"),
      named("simplify-loops"),
      named("simplify-conditionals"),
      named("simplify-algebra"),
      named("simplify-movement"),
      named("fold-constants"),
      named("simplify-indices"),
      named("remove-dead"),
  };
  return kStandard;
}

Expected<Changed> run_standard(hlo::Module& module, const RunOptions& options) {
  const Changed expanded = TRY(run_expansions(module, options));
  if (module.config().is_scheduled) {
    const Changed fitted = TRY(run_demands(module, options));
    const Changed placed = TRY(run_placement(module, options));
    return expanded | fitted | placed;
  }
  constexpr std::array<std::string_view, 13> kLast = {"remove-barriers",
                                                     "simplify-tuples",
                                                     "remove-dead",  // what is dead must not count for layouts
                                                     "simplify-convolutions",
                                                     "remove-dead",  // kernels that were reversed
                                                     "pad-convolutions",
                                                     "split-windows",
                                                     "assign-layouts",
                                                     "split-reduces",
                                                     "shorten-sorts",
                                                     "bitcast-reshapes",
                                                     "cse",
                                                     "remove-dead"};
  const Changed settled = TRY(run_to_fixed_point(standard(), module, kMaxRounds, options));
  const Changed ended = TRY(run_all(kLast, module, options));
  const Changed fitted = TRY(run_demands(module, options));
  const Changed placed = TRY(run_placement(module, options));
  return expanded | settled | ended | fitted | placed;
}

}  // namespace hloom::passes

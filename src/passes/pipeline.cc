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

}  // namespace

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
  if (module.config().is_scheduled) return Changed::No;
  constexpr std::array<std::string_view, 3> kFirst = {"clear-layouts", "remove-markers", "recognize-custom-calls"};
  constexpr std::array<std::string_view, 5> kLast = {"remove-barriers", "simplify-tuples", "bitcast-reshapes", "cse",
                                                     "remove-dead"};
  auto changed = TRY(run_all(kFirst, module, options));
  const Changed settled = TRY(run_to_fixed_point(standard(), module, kMaxRounds, options));
  const Changed ended = TRY(run_all(kLast, module, options));
  return changed | settled | ended;
}

}  // namespace hloom::passes

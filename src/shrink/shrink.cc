#include "shrink/shrink.h"

#include <array>

#include "hlo/verify.h"
#include "shrink/step.h"

namespace hloom::shrink {
namespace {

using Propose = Steps (*)(const Program&);

// What cuts most comes first.
constexpr std::array<Propose, 7> kProposals = {fewer_dead,   fewer_results,   simpler_control, replaced_instructions,
                                               smaller_dims, smaller_numbers, plainer_border};

class Shrinker {
 public:
  Shrinker(Program program, const HasFault& has_fault, const Options& options)
      : result_{std::move(program)}, has_fault_(has_fault), options_(options) {}

  Result run() {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Propose propose : kProposals) changed = try_all(propose) || changed;
    }
    result_.is_minimal = result_.tries < options_.max_tries;
    return std::move(result_);
  }

 private:
  // After a step that worked the next ones of the same kind are those of the smaller program, from the same place on.
  bool try_all(Propose propose) {
    bool changed = false;
    Steps steps = propose(result_.program);
    for (std::size_t k = 0; k < steps.size() && result_.tries < options_.max_tries;) {
      if (!attempt(steps[k])) {
        ++k;
        continue;
      }
      changed = true;
      steps = propose(result_.program);
    }
    return changed;
  }

  bool attempt(const Step& step) {
    Program candidate = copy(result_.program);
    std::unordered_set<std::string> dead = dead_instructions(*candidate.module);
    if (!step.apply(candidate)) return false;
    if (step.removes_dead) dead.clear();
    clean(candidate, dead);
    if (cost(candidate) >= cost(result_.program) || !hlo::check_module(*candidate.module)) return false;
    ++result_.tries;
    if (!has_fault_(candidate)) return false;
    result_.program = std::move(candidate);
    if (options_.progress) options_.progress(result_.program, step.what);
    return true;
  }

  Result result_;
  const HasFault& has_fault_;
  const Options& options_;
};

}  // namespace

Result shrink(Program program, const HasFault& has_fault, const Options& options) {
  return Shrinker(std::move(program), has_fault, options).run();
}

}  // namespace hloom::shrink

#include "passes/rewrite.h"

#include "passes/liveness.h"

namespace hloom::passes {
namespace {

// A rule that undoes another's work would go on for ever.
constexpr int kMaxSteps = 64;

class Walk {
 public:
  Walk(hlo::Computation& computation, const Rule& rule) : computation_(computation), rule_(rule) {}

  // Applies the rule to `i`, to what replaces it, and to what was made on the way.
  void settle(hlo::Instruction* i) {
    for (; steps_ < kMaxSteps; ++steps_) {
      const std::int64_t before = computation_.num_instructions();
      hlo::Instruction* with = rule_(*i);
      if (with == nullptr) return;
      changed_ = Changed::Yes;
      settle_new(before, with);
      if (with == i) continue;
      HLOOM_CHECK(compatible(i->shape(), with->shape()));
      computation_.replace_uses(i, with);
      i = with;
    }
  }
  void start() { steps_ = 0; }
  Changed changed() const { return changed_; }

 private:
  // Those appended since there were `before` instructions, `except` aside, which the caller settles.
  void settle_new(std::int64_t before, const hlo::Instruction* except) {
    std::vector<hlo::Instruction*> made;
    const auto all = computation_.instructions();
    for (std::int64_t n = before; n < computation_.num_instructions(); ++n)
      if (&all[static_cast<std::size_t>(n)] != except) made.push_back(&all[static_cast<std::size_t>(n)]);
    for (hlo::Instruction* i : made) {
      ++steps_;
      settle(i);
    }
  }

  hlo::Computation& computation_;
  const Rule& rule_;
  int steps_ = 0;
  Changed changed_ = Changed::No;
};

Changed rewrite(hlo::Computation& computation, const Rule& rule, Liveness& liveness) {
  liveness.mark(computation);
  Walk walk(computation, rule);
  for (hlo::Instruction* i : computation.post_order()) {
    // An earlier replacement may have taken its last user.
    if (!liveness.is_live(*i) || (i->users().empty() && !i->is_root())) continue;
    walk.start();
    walk.settle(i);
  }
  return walk.changed();
}

}  // namespace

Changed rewrite(hlo::Computation& computation, const Rule& rule) {
  Liveness liveness(computation.module());
  return rewrite(computation, rule, liveness);
}

Changed rewrite(hlo::Module& module, const Rule& rule) {
  auto changed = Changed::No;
  Liveness liveness(module);
  std::vector<hlo::Computation*> computations;  // rules may add some
  for (hlo::Computation& computation : module.computations()) computations.push_back(&computation);
  for (hlo::Computation* computation : computations) changed |= rewrite(*computation, rule, liveness);
  return changed;
}

}  // namespace hloom::passes

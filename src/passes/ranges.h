// Between which numbers the elements of integer arrays lie.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hloom::passes {

/// All elements are at least `low` and at most `high`.
struct Range {
  std::int64_t low = 0, high = 0;
  bool operator==(const Range&) const = default;
};

/// Bounds for the integers and preds of a module, through arithmetic that cannot wrap, into branches, and around loops:
/// a leaf of a loop's state is bounded by what goes in, what an iteration makes of it, and the constants with which the
/// condition compares it. Holds for the module as it was. Cost: linear, times 5 for loop bodies.
class Ranges {
 public:
  explicit Ranges(const hlo::Module&);
  /// Nothing, if it is no array of integers or preds, or nothing narrower than u64 is known.
  std::optional<Range> of(const hlo::Instruction*) const;

 private:
  enum class Loops : bool { AsTheyAre, Inside };
  void analyze(const hlo::Computation&, Loops);
  void analyze_loop(const hlo::Instruction& loop);
  void bind(const hlo::Instruction& parameter, std::int64_t leaf, std::optional<Range>);
  std::optional<Range> compute(const hlo::Instruction&) const;
  std::optional<Range> compute_element(const hlo::Instruction&) const;

  std::unordered_map<const hlo::Computation*, std::vector<hlo::Instruction*>> callers_;
  std::unordered_map<const hlo::Instruction*, Range> known_;
  /// Of each parameter that is a tuple, its leaves.
  std::unordered_map<const hlo::Instruction*, std::vector<std::optional<Range>>> leaves_;
};

}  // namespace hloom::passes

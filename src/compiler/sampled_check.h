// One instruction against the interpreter, all of it or a sample.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "compiler/box_values.h"

namespace hloom::compiler {

class SampledCheck {
 public:
  /// What is known is asked from several threads at once. `budget`: see CheckOptions::work.
  SampledCheck(const BoxValues::Known&, const BoxValues::IsKnown&, double budget);

  struct Result {
    std::int64_t elements = 0, of = 0;   ///< compared, and there
    std::optional<std::string> problem;  ///< the first, by box
    bool skipped = false;                ///< too large to interpret, and has no parts
  };
  /// The compiled value of the instruction: a box of each of its arrays, or all of it.
  using Shown = std::function<hlo::Literal(const Box*)>;
  /// Compares as much as the budget lets. The same `seed` chooses the same boxes. Uses the process' threads.
  /// Errors: the interpreter's.
  Expected<Result> check(const hlo::Instruction&, const Shown&, std::uint64_t seed);

 private:
  std::vector<Box> boxes(const hlo::Instruction&, std::uint64_t seed);
  static Expected<Result> check_box(BoxValues&, const hlo::Instruction&, const Box* box, const Shown&);

  const double budget_;
  std::vector<BoxValues> values_;  ///< one a thread
};

}  // namespace hloom::compiler

// Runs passes, and does for all alike what is not a rewrite.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "passes/pass.h"

namespace hloom::passes {

/// What one pass cost in all its runs.
struct PassTime {
  const Pass* pass;
  int runs = 0, changes = 0;
  double seconds = 0;
};

struct RunOptions {
  /// Verifies the module after each pass that changed it.
  bool verify = false;
  /// Checks that `Changed` says what the fingerprint says: a breach aborts. For tests: it costs two hashes of the
  /// module.
  bool check_changed = false;
  /// Called after each pass that changed the module.
  std::function<void(const Pass&, const hlo::Module&)> dump;
  /// Gets a row for each pass that ran.
  std::vector<PassTime>* times = nullptr;
};

/// Runs a pass, and brings instructions and computations in order after it.
/// Errors: the pass's; Internal, naming the pass, if the module does not verify after it.
Expected<Changed> run(const Pass&, hlo::Module&, const RunOptions& = {});

/// Runs the passes in turn until none of them changes anything, at most `max_rounds` times each.
Expected<Changed> run_to_fixed_point(std::span<const Pass* const>, hlo::Module&, int max_rounds,
                                     const RunOptions& = {});

}  // namespace hloom::passes

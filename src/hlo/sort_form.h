// What of a sort a fusion gives: all, or a few of each line.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace hloom::hlo {

/// A sort or topk behind the root of a fused computation.
struct SortForm {
  const Instruction* sort = nullptr;
  /// For each result the operand that it has elements of; -1: their positions (of a topk).
  std::vector<std::int64_t> results;
  std::int64_t dimension = 0;
  std::int64_t first = 0;  ///< of the sorted line: 0, or they end with it
  std::int64_t kept = 0;   ///< elements of a line that are results
};

/// The root is a sort or topk, or one or several slices of a sort's results, which keep equally many of the first elements of each
/// line, or of the last, and all lines. Nothing for any other root.
std::optional<SortForm> sort_form(const Instruction& root);

/// The sort that a slice, of a sort or of one of its results, cuts, and which elements it keeps, as the only result; nothing if it keeps others than
/// the first or last of all lines.
std::optional<SortForm> sliced_sort(const Instruction& slice);

}  // namespace hloom::hlo

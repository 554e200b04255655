// What a comparator of a sort orders by, where that can be told: lexicographic total orders.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "hlo/module.h"

namespace hloom::hlo {

/// One number that elements are ordered by: an element of one operand, as the total order of its type has it.
struct SortKey {
  std::int64_t operand = 0;
  bool descending = false;
  bool zeros_equal = false;  ///< -0 counts as 0
  bool nans_equal = false;   ///< every NaN counts as a positive one
  bool operator==(const SortKey&) const = default;
};

/// The keys of a sort, the first the one that counts most: its comparator compares an operand's two elements, or such
/// comparisons one after the other where those before found equals, as JAX writes them. Nothing for other comparators,
/// among them partial orders of floats.
/// Needs: a sort or topk.
std::optional<std::vector<SortKey>> sort_keys(const Instruction&);

}  // namespace hloom::hlo

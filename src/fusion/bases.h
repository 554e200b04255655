// Arrays that are updated in place, and which kernels may read them.
#pragma once

#include <span>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hloom::fusion {

/// Gives a copy of its own to each update whose base is made wherever it is read (a fill): that is not the array that is
/// updated, though both may have been written as one.
void split_free_bases(hlo::Computation&);

/// The bases of the updates of one computation. Refers to its instructions.
class Bases {
 public:
  /// Cost: linear in what `order`, a post order of the computation, holds.
  explicit Bases(const std::vector<hlo::Instruction*>& order);

  /// Whether `i`, inside the kernel of `members` that makes `update` in place, would read an array too late: its own base beside the
  /// window that it writes, or that of another update, which may itself read this one's base: where two write from each other, both
  /// must have read before either writes. Says yes when in doubt. Cost: linear in the members and in a few thousand users.
  bool are_read_late(const hlo::Instruction& i, const hlo::Instruction& update, std::span<hlo::Instruction* const> members) const;

 private:
  bool comes_after(const hlo::Instruction& later, const hlo::Instruction& update) const;

  std::unordered_map<const hlo::Instruction*, std::vector<const hlo::Instruction*>> updates_;  ///< of each base
  std::unordered_map<const hlo::Instruction*, std::size_t> position_;
};

}  // namespace hloom::fusion

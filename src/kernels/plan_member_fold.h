// Folds what the members of a group bring to a collective.
#pragma once

#include <cstdint>
#include <string>

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Each member has an array of `rows` rows, `pitch` elements from one to the next; `columns` elements of each row are
/// folded. Results have rows of `columns` elements, one after the other.
struct MemberFold {
  const hlo::Computation* reducer = nullptr;  ///< of two scalars of `type`
  DType type = DType::Invalid;
  std::int64_t members = 0, results = 1;
  std::int64_t rows = 1, columns = 0, pitch = 0;
};

/// The kernel: arguments are one array for each member in the order of their ranks, then `results` times the result,
/// which is written to each of them. An element is ((x0 ∘ x1) ∘ x2) ∘ …; where the reducer is one operation, floats of
/// less than 32 bits are folded in f32 and rounded once. Blocks are parts of about equal size.
/// Errors: Unimplemented, naming what the reducer holds that has no kernel.
Expected<Kernel> plan_member_fold(const MemberFold&, std::string name);

}  // namespace hloom::kernels

// Sums over rows that a kernel over rows can make beside its own: a norm's gradients by scale and shift.
#pragma once

#include <cstdint>
#include <optional>

#include "fusion/row_space.h"
#include "hlo/module.h"

namespace hloom::fusion {

/// A reduce that folds, for each element of a row, what all rows of a block have there, in the order of rows.
struct ColumnSum {
  const hlo::Instruction* value = nullptr;  ///< has an element for each element of the rows
  std::int64_t blocks = 1;                  ///< into which the rows are cut, as many each: a result for each
  int block_dim = -1;                       ///< of the reduce's operand: which block; -1 if there is one block
};

/// What `reduce` is over the rows of a space whose sums go by lanes: a reduce of a value by the dimensions over rows, or of a
/// bitcast that cuts the outermost of them into blocks and keeps these. None where it folds in another type than its own.
std::optional<ColumnSum> column_sum(const hlo::Instruction& reduce, const RowSpace&);

/// Whether form_rows() put this reduce into a kernel over rows as such: decisions["columns"].
bool is_column_sum(const hlo::Instruction&);

/// Blocks of rows of a fusion with such sums; 0 without.
std::int64_t column_blocks(const hlo::Instruction& fusion);

}  // namespace hloom::fusion

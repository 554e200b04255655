// Grids: as long as their loops, and such that they follow the split of a layout.
#pragma once

#include "hloom/shape.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Parts that a grid is cut into at most.
inline constexpr std::int64_t kMaxParts = 16;

/// Parts that a grid is to have for the layout of a result: those that its outermost dimension (that in memory) is split
/// into; 1 if it is not, or into more than kMaxParts.
std::int64_t parts_of(const Shape& result);

/// Cuts a finished kernel's grid at the block borders next to where the layout of a result splits its outermost dimension,
/// for kernels whose blocks follow that dimension: rows, dots, sorts. Other splits, and grids of fewer blocks than parts, stay
/// even parts.
void follow_split(Kernel&, const Shape& result);

/// Makes a finished kernel's grid as long as that of its shared loops which has most to do, and all others' as long at most:
/// threads get equal ranges of blocks, and where most blocks are empty, most threads have nothing to do. Needs: no cuts. The
/// kernel's block_cost is the caller's to set.
void even_blocks(Kernel&);

}  // namespace hloom::kernels

// Sorting with any comparator, inlined.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// Whether the fusion is one sort or top-k of its parameters, or the first or last elements of one (hlo/sort_form.h).
bool is_sort_fusion(const hlo::Instruction& fusion);

/// A stable merge sort of positions along the dimension for each line, then the operands moved by them. The comparator is
/// part of the kernel; one that is no order gives some order, and ends. Lines are the grid. Top-k keeps the first k positions of a
/// sort by total order, equal ones in their order.
/// Needs: is_sort_fusion. Errors: Unimplemented, naming what the comparator holds that has no kernel.
/// Cost: n·log n comparisons a line.
Expected<Kernel> plan_sort(const hlo::Instruction& fusion);

}  // namespace hloom::kernels

// Copies between arrays with a byte for each element and packed ones.
#pragma once

#include <string>

#include "kernels/builder.h"
#include "kernels/kernel.h"

namespace hloom::kernels {

/// Whether a copy from one shape to the other packs or unpacks.
bool changes_packing(const Shape& from, const Shape& to);

/// Copies argument 0 of shape `from` to argument 1 of shape `to`. Blocks own whole bytes.
/// Needs: changes_packing(), the same type and order of dimensions.
/// Cost: both arrays' bytes once, by vectors of bytes that become vectors of wider words.
Kernel plan_packing(std::string name, const Shape& from, const Shape& to);

/// The same inside a kernel, without a grid.
void plan_packing_into(Builder&, const Place& from, const Place& to);

}  // namespace hloom::kernels

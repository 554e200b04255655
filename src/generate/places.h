// Where arrays lie: memory spaces and splits of layouts.
#pragma once

#include "generate/scope.h"

namespace hloom::generate {

/// Gives the leaf of a shape, perhaps, a memory space or a split.
void draw_place(Random&, Shape& leaf);
/// Gives arrays of computations that run places of their own, and moves some of them to another place and back, by copy or
/// copy-start and copy-done. Values stay.
void draw_places(Draw&);

}  // namespace hloom::generate

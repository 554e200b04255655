// What a layout says of where an array lies, apart from how: its memory space, and the places where it is cut.
#pragma once

#include <string>
#include <vector>

#include "hlo/module.h"
#include "hloom/shape.h"

namespace hloom::passes {

/// All of it: what has one placement lies in one memory space and is cut alike.
struct Placement {
  std::int64_t space = 0;
  std::vector<Layout::Split> splits;
  bool operator==(const Placement&) const = default;
};

/// That of a leaf; the default for what has no layout, as tokens.
Placement placement_of(const Shape& leaf);
/// Gives an array that placement, and leaves the rest of its layout, or the row-major one if it has none. What is no
/// array stays as it is.
void place(Shape& leaf, const Placement&);
/// `shape` with leaf number `leaf` placed so.
Shape placed(Shape shape, std::int64_t leaf, const Placement&);
/// `shape` with its leaves placed as those of `like`. Needs: compatible shapes.
Shape placed_like(Shape shape, const Shape& like);
bool same_placement(const Shape& a, const Shape& b);

/// Whether any array of the module is placed otherwise than by default.
bool has_placements(const hlo::Module&);

/// "memory space 1", "memory space 0, split SC(0:2,4)".
std::string to_string(const Placement&);

}  // namespace hloom::passes

// Parts of arrays: from a place on, so many elements in each dimension.
#pragma once

#include <cstdint>
#include <string>

#include "hlo/attributes.h"
#include "hlo/literal.h"

namespace hloom::compiler {

struct Box {
  hlo::Dims start, size;

  std::int64_t num_elements() const;
  auto operator<=>(const Box&) const = default;
};

/// "[0:4, 7:8]"
std::string to_string(const Box&);

/// All of an array. Needs: an array's shape.
Box whole_box(const Shape& array);
/// `inner` as seen from the first element of `outer`. Needs: inner lies in outer.
Box within(const Box& inner, const Box& outer);
/// The shape of the box of an array, or of each array of a tuple; layouts stay. Needs: arrays of the box's rank.
Shape resized(const Shape&, const hlo::Dims& size);
/// Its elements: of the array, or of each array of a tuple. Cost: the box's size.
hlo::Literal crop(const hlo::Literal&, const Box&);

}  // namespace hloom::compiler

// From work items to the elements they compute.
#pragma once

#include <cstdint>
#include <vector>

#include "hloom/shape.h"
#include "indexing/map.h"

namespace hloom::indexing {

/// The tile map: dimension 0 is a tile in [0, Π ⌈extents/tiles⌉), dimension 1 a place in it in [0, Π tiles), both
/// row-major; results are the element, which the constraints keep inside. Every element is covered once. Needs: as many
/// tiles as extents, all at least 1.
IndexMap tile_map(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& tiles);

/// The elements of an array in the order of its bytes: dimension 0 is a group in [0, groups), dimension 1 an element of
/// it; results are logical coordinates. The last group may have fewer.
struct WorkSplit {
  std::int64_t groups = 1;
  std::int64_t elements_per_group = 1;  ///< contiguous in memory
};
/// Splits an array into about `requested` groups of equal numbers of physically contiguous elements, by its outermost
/// dimensions: the fewest that are put together to reach the number, all inner ones whole. Packed elements (E(n)
/// layouts below 8 bits) are not parted within a byte. Needs: an array, requested >= 1.
WorkSplit split_work(const Shape&, std::int64_t requested);
IndexMap work_map(const Shape&, const WorkSplit&);

}  // namespace hloom::indexing

// Maps that are affine by pieces: pad, concatenate, updates at known places, what rolls.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "indexing/map.h"

namespace hloom::indexing {

/// A list of maps; the box of each is its domain's dimensions. An element outside all boxes reads nothing.
struct PiecewiseMap {
  std::vector<IndexMap> pieces;

  bool reads_nothing() const { return pieces.empty(); }
  bool operator==(const PiecewiseMap&) const = default;
};

/// Without empty pieces and repeated ones, each simplified, in the order of their boxes' low corners.
PiecewiseMap simplified(PiecewiseMap, std::int64_t budget = 10'000);
/// Through a, then b: each piece with each, as far as they meet. Cost: the product of their numbers of pieces.
PiecewiseMap compose(const PiecewiseMap& a, const PiecewiseMap& b, std::int64_t budget = 10'000);
/// One map a line.
std::string to_string(const PiecewiseMap&);

/// What of `box` lies outside `hole`, as disjoint boxes: at most two a dimension. Needs: the same rank.
std::vector<std::vector<Interval>> difference(std::vector<Interval> box, const std::vector<Interval>& hole);

}  // namespace hloom::indexing

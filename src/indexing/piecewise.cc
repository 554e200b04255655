#include "indexing/piecewise.h"

#include <algorithm>

namespace hloom::indexing {

PiecewiseMap simplified(PiecewiseMap map, std::int64_t budget) {
  PiecewiseMap result;
  for (const IndexMap& piece : map.pieces) {
    IndexMap simple = piece.simplified(budget).without_unused();
    if (!simple.is_known_empty() && std::ranges::find(result.pieces, simple) == result.pieces.end())
      result.pieces.push_back(std::move(simple));
  }
  const auto low_corner = [](const IndexMap& piece) {
    std::vector<std::int64_t> corner;
    for (const Interval& i : piece.domain().dimensions) corner.push_back(i.low);
    return corner;
  };
  std::ranges::stable_sort(result.pieces, {}, low_corner);
  return result;
}

PiecewiseMap compose(const PiecewiseMap& a, const PiecewiseMap& b, std::int64_t budget) {
  PiecewiseMap result;
  for (const IndexMap& first : a.pieces)
    for (const IndexMap& second : b.pieces) result.pieces.push_back(compose(first, second, budget));
  return simplified(std::move(result), budget);
}

std::string to_string(const PiecewiseMap& map) {
  std::string text;
  for (const IndexMap& piece : map.pieces) text += to_string(piece) + "\n";
  return text;
}

// Dimension by dimension: what lies below and above the hole is cut off, and the rest goes on.
std::vector<std::vector<Interval>> difference(std::vector<Interval> box, const std::vector<Interval>& hole) {
  for (std::size_t d = 0; d < box.size(); ++d)
    if (intersection(box[d], hole[d]).is_empty()) return {box};
  std::vector<std::vector<Interval>> parts;
  for (std::size_t d = 0; d < box.size(); ++d) {
    const auto cut = [&](Interval part) {
      if (part.is_empty()) return;
      parts.push_back(box);
      parts.back()[d] = part;
    };
    cut({box[d].low, hole[d].low - 1});
    cut({hole[d].high + 1, box[d].high});
    box[d] = intersection(box[d], hole[d]);
  }
  return parts;
}

}  // namespace hloom::indexing

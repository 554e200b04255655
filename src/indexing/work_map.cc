#include "indexing/work_map.h"

#include <algorithm>

#include "base/check.h"

namespace hloom::indexing {
namespace {

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t product(const std::vector<std::int64_t>& sizes) {
  std::int64_t n = 1;
  for (const std::int64_t s : sizes) n *= s;
  return n;
}

// Most major first.
std::vector<std::int64_t> physical_order(const Shape& shape) {
  const Layout layout = shape.has_layout() ? shape.layout() : Layout::descending(shape.rank());
  return {layout.minor_to_major.rbegin(), layout.minor_to_major.rend()};
}

}  // namespace

IndexMap tile_map(const std::vector<std::int64_t>& extents, const std::vector<std::int64_t>& tiles) {
  HLOOM_CHECK(extents.size() == tiles.size());
  std::vector<std::int64_t> counts;
  for (std::size_t d = 0; d < extents.size(); ++d) counts.push_back(divide_up(extents[d], tiles[d]));
  const std::vector<Expr> tile = delinearize(Expr::dimension(0), counts),
                          inside = delinearize(Expr::dimension(1), tiles);
  std::vector<Expr> results;
  std::vector<Constraint> constraints;
  for (std::size_t d = 0; d < extents.size(); ++d) {
    results.push_back(tile[d] * tiles[d] + inside[d]);
    constraints.push_back({results.back(), {0, extents[d] - 1}});
  }
  Domain domain{{{0, product(counts) - 1}, {0, product(tiles) - 1}}, {}, {}};
  return IndexMap(std::move(domain), std::move(results), std::move(constraints)).simplified();
}

WorkSplit split_work(const Shape& shape, std::int64_t requested) {
  HLOOM_CHECK(shape.is_array() && requested >= 1);
  const std::int64_t elements = shape.num_elements();
  if (elements == 0 || shape.rank() == 0) return {1, elements};
  requested = std::min(requested, elements);
  std::int64_t outer = 1, inner = elements;
  for (const std::int64_t d : physical_order(shape)) {
    if (outer >= requested) break;
    outer *= shape.dim(d);
    inner /= shape.dim(d);
  }
  std::int64_t tile = divide_up(outer, requested);
  const std::int64_t bits = shape.has_layout() ? shape.layout().parts().element_bits : 0;
  const std::int64_t per_byte = bits > 0 && bits < 8 ? 8 / bits : 1;
  while (tile * inner % per_byte != 0 && tile < outer) ++tile;
  return {divide_up(outer, tile), tile * inner};
}

IndexMap work_map(const Shape& shape, const WorkSplit& split) {
  const std::vector<std::int64_t> order = physical_order(shape);
  std::vector<std::int64_t> sizes;
  for (const std::int64_t d : order) sizes.push_back(shape.dim(d));
  const Expr linear = Expr::dimension(0) * split.elements_per_group + Expr::dimension(1);
  const std::vector<Expr> physical = delinearize(linear, sizes);
  std::vector<Expr> results(order.size());
  for (std::size_t n = 0; n < order.size(); ++n) results[static_cast<std::size_t>(order[n])] = physical[n];
  Domain domain{{{0, split.groups - 1}, {0, split.elements_per_group - 1}}, {}, {}};
  return IndexMap(std::move(domain), std::move(results), {{linear, {0, shape.num_elements() - 1}}}).simplified();
}

}  // namespace hloom::indexing

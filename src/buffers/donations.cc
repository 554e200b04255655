#include "buffers/donations.h"

#include <algorithm>

#include "buffers/values.h"

namespace hloom::buffers {
namespace {

struct LeafRange {
  std::int64_t first = 0, count = 0;
};

// The leaves at a path.
LeafRange leaves_at(const Shape& shape, const ShapeIndex& index) {
  std::int64_t first = 0;
  const Shape* at = &shape;
  for (const std::int64_t k : index) {
    first += first_leaf(*at, k);
    at = &at->element(k);
  }
  return {first, num_leaves(*at)};
}

const Shape& leaf_at(const Shape& shape, std::int64_t k) { return *leaves(shape)[static_cast<std::size_t>(k)]; }

void add_alias(const hlo::Module& module, const hlo::InputOutputAlias& a, Donations& to) {
  const Shape &parameter = module.entry()->parameter(a.parameter)->shape(), &result = module.entry()->root()->shape();
  const LeafRange from = leaves_at(parameter, a.parameter_index), into = leaves_at(result, a.output);
  for (std::int64_t k = 0; k < std::min(from.count, into.count); ++k) {
    const auto p = static_cast<std::size_t>(to.first_leaf[static_cast<std::size_t>(a.parameter)] + from.first + k);
    to.donated[p] = true;
    // One that may be given up is, where the result lies otherwise: it would be written elsewhere and copied.
    const Shape &before = leaf_at(parameter, from.first + k), &after = leaf_at(result, into.first + k);
    const bool turned = before.dims() == after.dims() && !same_storage(before, after);
    if (a.must_alias || !turned) to.aliased_result[p] = into.first + k;
  }
}

}  // namespace

Donations donations(const hlo::Module& module) {
  Donations result;
  std::int64_t leaf = 0;
  for (const hlo::Instruction* p : module.entry()->parameters()) {
    result.first_leaf.push_back(leaf);
    leaf += num_leaves(p->shape());
  }
  result.donated.resize(static_cast<std::size_t>(leaf));
  result.aliased_result.assign(static_cast<std::size_t>(leaf), -1);
  for (const hlo::InputOutputAlias& a : module.config().aliases) add_alias(module, a, result);
  for (const hlo::BufferDonor& d : module.config().donors) {
    const LeafRange range = leaves_at(module.entry()->parameter(d.parameter)->shape(), d.parameter_index);
    for (std::int64_t k = 0; k < range.count; ++k)
      result.donated[static_cast<std::size_t>(result.first_leaf[static_cast<std::size_t>(d.parameter)] + range.first + k)] =
          true;
  }
  return result;
}

}  // namespace hloom::buffers

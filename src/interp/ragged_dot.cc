// Ragged dot (hlo-ops 8.2): a dot one of whose lhs dimensions is split into groups of given sizes. All three modes are
// one loop over the elements of lhs: each belongs to a group or to none, meets the rhs elements of its batch,
// contracting place and group, and adds to the results of its place.

#include <algorithm>

#include "base/try.h"
#include "interp/contraction.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::DotAttr;
using hlo::Literal;

bool contains(const Dims& list, std::int64_t d) { return std::find(list.begin(), list.end(), d) != list.end(); }

std::int64_t at(const Dims& list, std::int64_t i) { return list[static_cast<std::size_t>(i)]; }

// The group of each element of lhs, -1 for none, as a table with strides along lhs's dimensions.
struct Groups {
  std::vector<std::int64_t> table;
  Strided place;
};

// The lhs dimensions whose coordinates may choose a row of sizes: those of the ragged dimension's kind that stand
// before it, after all batch dimensions.
Dims prefix_of(const DotAttr& attr, const Dims& lhs_free) {
  const std::int64_t ragged = attr.lhs_ragged[0];
  if (contains(attr.lhs_batch, ragged))
    return {attr.lhs_batch.begin(), std::find(attr.lhs_batch.begin(), attr.lhs_batch.end(), ragged)};
  const Dims& kind = contains(attr.lhs_contracting, ragged) ? attr.lhs_contracting : lhs_free;
  Dims prefix = attr.lhs_batch;
  prefix.insert(prefix.end(), kind.begin(), std::find(kind.begin(), kind.end(), ragged));
  return prefix;
}

Expected<Groups> groups_of(const Call& call, const DotAttr& attr, const Dims& lhs_free) {
  const Literal& sizes = call.array(2);
  const Dims& dims = call.dims(0);
  const std::int64_t ragged = attr.lhs_ragged[0], extent = at(dims, ragged), num_groups = sizes.shape().dims().back();
  const Dims prefix = sizes.shape().rank() == 1 ? Dims() : prefix_of(attr, lhs_free);
  if (static_cast<std::int64_t>(prefix.size()) + 1 != sizes.shape().rank())
    return wrong(call, "group sizes of shape ", sizes.shape(), " do not fit the ragged dimension ", ragged);
  Groups groups{{}, {0, Dims(dims.size(), 0)}};
  groups.place.strides[static_cast<std::size_t>(ragged)] = 1;
  std::int64_t step = extent;
  for (std::size_t p = prefix.size(); p-- > 0; step *= sizes.shape().dims()[p])
    groups.place.strides[static_cast<std::size_t>(prefix[p])] = step;
  // As many rows as the prefix has places: with no groups there are still elements, in none.
  for (std::int64_t row = 0; row < step / std::max<std::int64_t>(extent, 1); ++row) {
    std::vector<std::int64_t> line(static_cast<std::size_t>(extent), -1);
    std::int64_t next_place = 0;
    for (std::int64_t g = 0; g < num_groups; ++g) {
      const std::int64_t size = hlo::element_as_int64(sizes, row * num_groups + g);
      if (size < 0 || size > extent - next_place)
        return wrong(call, "group ", g, " has size ", size, "; ", extent - next_place, " of ", extent, " are left");
      std::fill_n(line.begin() + next_place, size, g);
      next_place += size;
    }
    groups.table.insert(groups.table.end(), line.begin(), line.end());
  }
  return groups;
}

// How places of lhs and rhs lie in rhs and in the result.
struct Places {
  Strided rhs, out;                  // along lhs's dimensions
  Dims free_sizes;                   // of rhs's free dimensions
  Strided free_rhs, free_out;        // along them
  std::int64_t rhs_group = 0, out_group = 0;  // strides of the group

  Places(const Call& call, const DotAttr& attr, const Dims& lhs_free) {
    const Dims lhs_dims = call.dims(0), rhs_dims = call.dims(1);
    const Dims rhs_strides = row_major(rhs_dims), out_strides = row_major(call.shape.dims());
    rhs.strides.assign(lhs_dims.size(), 0);
    out.strides.assign(lhs_dims.size(), 0);
    for (const std::int64_t d : attr.rhs_group) rhs_group = at(rhs_strides, d);
    std::size_t o = 0;
    if (contains(attr.lhs_contracting, attr.lhs_ragged[0])) out_group = out_strides[o++];
    const auto pair = [&](const Dims& lhs, const Dims& rhs_of, bool in_result) {
      for (std::size_t i = 0; i < lhs.size(); ++i) {
        if (!rhs_of.empty()) rhs.strides[static_cast<std::size_t>(lhs[i])] = at(rhs_strides, rhs_of[i]);
        if (in_result) out.strides[static_cast<std::size_t>(lhs[i])] = out_strides[o++];
      }
    };
    pair(attr.lhs_batch, attr.rhs_batch, true);
    pair(attr.lhs_contracting, attr.rhs_contracting, false);
    pair(lhs_free, {}, true);
    for (const std::int64_t d :
         other_dims(static_cast<std::int64_t>(rhs_dims.size()), attr.rhs_batch, attr.rhs_contracting, attr.rhs_group)) {
      free_sizes.push_back(at(rhs_dims, d));
      free_rhs.strides.push_back(at(rhs_strides, d));
      free_out.strides.push_back(out_strides[o++]);
    }
  }
};

}  // namespace

Expected<Value> ragged_dot(const Call& call) {
  const auto& attr = call.instruction.attr<DotAttr>();
  const Dims& lhs_dims = call.dims(0);
  const Dims lhs_free = other_dims(static_cast<std::int64_t>(lhs_dims.size()), attr.lhs_batch, attr.lhs_contracting);
  const Groups groups = TRY(groups_of(call, attr, lhs_free));
  const Places places(call, attr, lhs_free);
  return with_wide(call.shape.dtype(), [&]<typename W>(W) {
    const std::vector<W> lhs = widen<W>(call.array(0)), rhs = widen<W>(call.array(1));
    std::vector<W> out(static_cast<std::size_t>(product(call.shape.dims())));
    const Strided lhs_place{0, row_major(lhs_dims)};
    walk<4>(lhs_dims, {lhs_place, places.rhs, places.out, groups.place}, [&](const std::array<std::int64_t, 4>& l) {
      const std::int64_t group = groups.table[static_cast<std::size_t>(l[3])];
      if (group < 0) return;
      const Strided from{l[1] + group * places.rhs_group, places.free_rhs.strides},
          to{l[2] + group * places.out_group, places.free_out.strides};
      walk<2>(places.free_sizes, {from, to}, [&](const std::array<std::int64_t, 2>& r) {
        out[static_cast<std::size_t>(r[1])] +=
            times(lhs[static_cast<std::size_t>(l[0])], rhs[static_cast<std::size_t>(r[0])]);
      });
    });
    return Expected<Value>(Value(rounded(call.shape, out)));
  });
}

}  // namespace hloom::interp

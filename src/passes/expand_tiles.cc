// As its bytes lie in memory an array with tiles is a longer row-major array. Its dimensions, the outermost first, are taken in the layout's
// order. Then each tile splits as many of the innermost into how many tiles there are and the place in one, and puts the places
// innermost; what is short of a whole tile is filled up:
//
//   f32[3,5]{1,0:T(2,4)}: pad to [4,8], reshape to [2,2,2,4], transpose to [2,2 | 2,4]
#include "passes/expand_tiles.h"

#include <algorithm>

#include "base/try.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

bool is_tiled(const Shape& shape) { return shape.is_array() && shape.has_layout() && !shape.layout().parts().tiles.empty(); }

Shape untiled(Shape shape) {
  for (Shape& e : shape.elements()) e = untiled(std::move(e));
  if (!is_tiled(shape)) return shape;
  Layout layout = shape.layout();
  Layout::Extra parts = layout.parts();
  parts.tiles.clear();
  layout.set_parts(std::move(parts));
  shape.set_layout(std::move(layout));
  return shape;
}

// One tile's work on the sizes of an array.
struct Step {
  std::size_t first = 0;   // dimension that the tile begins with
  Dims sizes, padded;      // before
  Dims split;              // quotients and places in turn
  Dims order;              // of `split`: quotients, then places
};

Step step_of(const Dims& sizes, const Layout::Tile& tile) {
  Step s;
  s.first = sizes.size() - tile.size();
  s.sizes = s.padded = sizes;
  Dims places;
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    s.order.push_back(std::ssize(s.split));
    if (d < s.first) {
      s.split.push_back(sizes[d]);
      continue;
    }
    const std::int64_t t = tile[d - s.first], count = (sizes[d] + t - 1) / t;
    s.padded[d] = count * t;
    s.split.push_back(count);
    places.push_back(std::ssize(s.split));
    s.split.push_back(t);
  }
  s.order.insert(s.order.end(), places.begin(), places.end());
  return s;
}

Dims permuted(const Dims& dims, const Dims& order) {
  Dims result;
  for (const std::int64_t d : order) result.push_back(dims[static_cast<std::size_t>(d)]);
  return result;
}

Dims inverse(const Dims& order) {
  Dims result(order.size());
  for (std::size_t k = 0; k < order.size(); ++k) result[static_cast<std::size_t>(order[k])] = static_cast<std::int64_t>(k);
  return result;
}

Dims outermost_first(const Shape& shape) {
  const auto& minor = shape.layout().minor_to_major;
  return Dims(minor.rbegin(), minor.rend());
}

std::vector<Step> steps_of(const Shape& shape) {
  std::vector<Step> steps;
  Dims sizes = permuted(shape.dims(), outermost_first(shape));
  for (const Layout::Tile& tile : shape.layout().parts().tiles) {
    steps.push_back(step_of(sizes, tile));
    sizes = permuted(steps.back().split, steps.back().order);
  }
  return steps;
}

std::int64_t product(const Dims& dims) {
  std::int64_t p = 1;
  for (const std::int64_t d : dims) p *= d;
  return p;
}

// The array as it lies in memory, in one dimension.
Instruction* flat(Make& make, Instruction* i, const Shape& shape) {
  i = make.transpose(i, outermost_first(shape));
  for (const Step& s : steps_of(shape)) {
    std::vector<hlo::PadDim> pad(s.sizes.size());
    for (std::size_t d = 0; d < pad.size(); ++d) pad[d].high = s.padded[d] - s.sizes[d];
    if (s.padded != s.sizes) i = make.pad(i, make.zeros(Shape::scalar(shape.dtype())), pad);
    i = make.transpose(make.reshape(i, s.split), s.order);
  }
  return make.reshape(i, {product(i->shape().dims())});
}

// The other way.
Instruction* shaped(Make& make, Instruction* i, const Shape& shape) {
  const std::vector<Step> steps = steps_of(shape);
  const Dims outer = permuted(shape.dims(), outermost_first(shape));
  i = make.reshape(i, steps.empty() ? outer : permuted(steps.back().split, steps.back().order));
  for (auto s = steps.rbegin(); s != steps.rend(); ++s) {
    i = make.reshape(make.transpose(i, inverse(s->order)), s->padded);
    if (s->padded != s->sizes) i = make.slice(i, {Dims(s->sizes.size(), 0), s->sizes, Dims(s->sizes.size(), 1)});
  }
  return make.transpose(i, inverse(outermost_first(shape)));
}

// Tiles that merge dimensions, or are longer than the array's, are left.
bool is_known(const Shape& shape) {
  std::size_t rank = shape.dims().size();
  for (const Layout::Tile& tile : shape.layout().parts().tiles) {
    if (tile.size() > rank || std::ranges::any_of(tile, [](std::int64_t t) { return t <= 0; })) return false;
    rank += tile.size();
  }
  return shape.layout().parts().element_bits == 0 && shape.layout().parts().tail_padding == 1;
}

std::int64_t places(const Shape& shape) {
  const std::vector<Step> steps = steps_of(shape);
  return steps.empty() ? shape.num_elements() : product(steps.back().split);
}

Expected<Instruction*> opened(Instruction& i) {
  const Shape from = i.operand(0)->shape(), to = i.shape();
  if (!is_tiled(from) && !is_tiled(to)) return nullptr;
  if (!from.is_array() || !to.is_array() || !is_known(from) || !is_known(to)) return nullptr;
  if (byte_width(from.dtype()) != byte_width(to.dtype()) || bit_width(from.dtype()) != bit_width(to.dtype()) || places(from) != places(to))
    return nullptr;
  Make make(i);
  // The operand's elements, whatever its layout.
  Instruction* source = make.op(Opcode::Copy, Shape::array(from.dtype(), from.dims()), {i.operand(0)});
  Instruction* bytes = flat(make, source, from);
  if (from.dtype() != to.dtype()) bytes = make.op(Opcode::BitcastConvert, Shape::array(to.dtype(), bytes->shape().dims()), {bytes});
  return shaped(make, bytes, to);
}

bool binds(const Instruction& i) {
  const bool at_entry = i.parent() == i.module().entry() && (is(&i, Opcode::Parameter) || i.is_root());
  return at_entry || is(&i, Opcode::CustomCall) || is(&i, Opcode::Bitcast);
}

}  // namespace

Expected<Changed> expand_tiles(hlo::Module& module) {
  const auto has_tiles = [](const Instruction& i) {
    return std::ranges::any_of(leaves(i.shape()), [](const Shape* leaf) { return is_tiled(*leaf); });
  };
  bool any_tiles = false;
  for (const hlo::Computation& c : module.computations())
    any_tiles = any_tiles || std::ranges::any_of(c.instructions(), has_tiles);
  if (!any_tiles) return Changed::No;
  auto changed = TRY(expand(module, Opcode::Bitcast, opened));
  for (hlo::Computation& c : module.computations()) {
    for (Instruction& i : c.instructions()) {
      if (binds(i) || !has_tiles(i)) continue;
      i.set_shape(untiled(i.shape()));
      if (is(&i, Opcode::Constant) && i.shape().is_array())
        i.mutable_attr<hlo::ConstantAttr>().literal.set_shape_layout(i.shape().layout());
      changed = Changed::Yes;
    }
    if (any(changed)) c.sort();
  }
  return changed;
}

}  // namespace hloom::passes

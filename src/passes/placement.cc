#include "passes/placement.h"

#include <functional>

namespace hloom::passes {
namespace {

void for_leaves(Shape& shape, const std::function<void(Shape&)>& f) {
  if (!shape.is_tuple()) return f(shape);
  for (Shape& e : shape.elements()) for_leaves(e, f);
}

}  // namespace

Placement placement_of(const Shape& leaf) {
  if (!leaf.is_array() || !leaf.has_layout() || leaf.layout().extra == nullptr) return {};
  return {leaf.layout().memory_space(), leaf.layout().parts().splits};
}

void place(Shape& leaf, const Placement& placement) {
  if (!leaf.is_array() || placement_of(leaf) == placement) return;
  Layout layout = leaf.has_layout() ? leaf.layout() : Layout::descending(leaf.rank());
  Layout::Extra parts = layout.parts();
  parts.memory_space = placement.space;
  parts.splits = placement.splits;
  layout.set_parts(std::move(parts));
  leaf.set_layout(std::move(layout));
}

Shape placed(Shape shape, std::int64_t leaf, const Placement& placement) {
  for_leaves(shape, [&](Shape& s) {
    if (leaf-- == 0) place(s, placement);
  });
  return shape;
}

Shape placed_like(Shape shape, const Shape& like) {
  const std::vector<const Shape*> from = leaves(like);
  std::size_t n = 0;
  for_leaves(shape, [&](Shape& s) { place(s, placement_of(*from[n++])); });
  return shape;
}

bool same_placement(const Shape& a, const Shape& b) {
  const std::vector<const Shape*> x = leaves(a), y = leaves(b);
  for (std::size_t n = 0; n < x.size(); ++n)
    if (x[n]->is_array() && !(placement_of(*x[n]) == placement_of(*y[n]))) return false;
  return true;
}

bool has_placements(const hlo::Module& module) {
  for (const hlo::Computation& c : module.computations())
    for (const hlo::Instruction& i : c.instructions())
      for (const Shape* leaf : leaves(i.shape()))
        if (!(placement_of(*leaf) == Placement())) return true;
  return false;
}

std::string to_string(const Placement& placement) {
  std::string text = "memory space " + std::to_string(placement.space);
  if (placement.splits.empty()) return text;
  text += ", split SC";
  for (const Layout::Split& s : placement.splits) {
    text += "(" + std::to_string(s.dimension) + ":";
    for (std::size_t n = 0; n < s.indices.size(); ++n) text += (n > 0 ? "," : "") + std::to_string(s.indices[n]);
    text += ")";
  }
  return text;
}

}  // namespace hloom::passes

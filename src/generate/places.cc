#include "generate/places.h"

#include <algorithm>
#include <set>

namespace hloom::generate {
namespace {

// Rising cuts inside a dimension.
Layout::Split draw_split(Random& random, const Shape& shape) {
  Layout::Split split;
  split.dimension = random.pick(0, shape.rank() - 1);
  const std::int64_t extent = shape.dim(split.dimension);
  std::set<std::int64_t> cuts;
  for (std::int64_t n = random.pick(1, 4); n > 0 && extent > 1; --n) cuts.insert(random.pick(1, extent - 1));
  split.indices.assign(cuts.begin(), cuts.end());
  return split;
}

// Computations that run step by step: the entry, loops, branches, calls.
std::vector<hlo::Computation*> running(hlo::Module& module) {
  std::vector<hlo::Computation*> all = {module.entry()};
  for (std::size_t n = 0; n < all.size(); ++n)
    for (const Instruction& i : all[n]->instructions())
      if (i.opcode() == Opcode::While || i.opcode() == Opcode::Conditional || i.opcode() == Opcode::Call)
        for (hlo::Computation* callee : i.called())
          if (std::ranges::find(all, callee) == all.end()) all.push_back(callee);
  return all;
}

// What makes an array of its own: others have the places of what they name or carry.
bool has_own_place(const Instruction& i) {
  if (!i.shape().is_array() || i.is_root() || i.users().empty()) return false;
  switch (i.opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::OptBarrier:
    case Opcode::Conditional:
    case Opcode::Call:
    case Opcode::While: return false;
    default: return hlo::kind(i.opcode()) != hlo::OpcodeKind::Collective;
  }
}

Instruction* moved(hlo::Computation& c, Instruction* value, const Shape& to, bool asynchronous) {
  if (!asynchronous) return c.add(Opcode::Copy, to, {value});
  Instruction* start =
      c.add(Opcode::CopyStart, Shape::tuple({to, value->shape(), Shape::scalar(DType::U32)}), {value});
  return c.add(Opcode::CopyDone, to, {start});
}

// To another place, and from there to all that used it.
void move_away_and_back(Random& random, Instruction& value) {
  hlo::Computation& c = *value.parent();
  Shape there = value.shape();
  draw_place(random, there);
  const std::vector<Instruction*> users = value.users();
  Instruction* away = moved(c, &value, there, random.chance(50));
  Instruction* back = moved(c, away, value.shape(), random.chance(50));
  for (Instruction* user : users)
    for (std::int64_t n = 0; n < user->num_operands(); ++n)
      if (user->operand(n) == &value) user->replace_operand(n, back);
}

}  // namespace

void draw_place(Random& random, Shape& leaf) {
  if (!leaf.is_array()) return;
  Layout layout = leaf.layout();
  Layout::Extra parts = layout.parts();
  parts.memory_space = random.of({0, 0, 1, 2, 5, 5});
  parts.splits.clear();
  if (leaf.rank() > 0 && random.chance(40)) {
    Layout::Split split = draw_split(random, leaf);
    if (!split.indices.empty()) parts.splits.push_back(std::move(split));
  }
  layout.set_parts(std::move(parts));
  leaf.set_layout(std::move(layout));
}

void draw_places(Draw& draw) {
  for (hlo::Computation* c : running(*draw.module)) {
    std::vector<Instruction*> all;
    for (Instruction& i : c->instructions())
      if (has_own_place(i)) all.push_back(&i);
    for (Instruction* i : all) {
      if (draw.random.chance(30)) {
        Shape shape = i->shape();
        draw_place(draw.random, shape);
        i->set_shape(std::move(shape));
      }
      if (draw.random.chance(20)) move_away_and_back(draw.random, *i);
    }
    c->sort();
  }
}

}  // namespace hloom::generate

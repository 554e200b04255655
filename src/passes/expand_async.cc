#include "passes/expand_async.h"

#include "base/try.h"
#include "hlo/inline.h"
#include "passes/expand.h"
#include "passes/make.h"
#include "passes/placement.h"

namespace hloom::passes {
namespace {

// (first, second, context …): nobody reads the context.
Instruction* started(Instruction& i, Instruction* first, Instruction* second) {
  Make make(i);
  std::vector<Instruction*> elements = {first, second};
  for (std::size_t k = 2; k < i.shape().elements().size(); ++k) elements.push_back(make.zeros(i.shape().elements()[k]));
  return make.tuple(elements);
}

constexpr std::int64_t kBesideBytes = 64 << 10;  // less is done faster than others are told of it

void note_beside(Instruction& copy) {
  const Shape &to = copy.shape(), &from = copy.operand(0)->shape();
  if (to.is_array() && placement_of(to).space != placement_of(from).space && to.size_bytes() >= kBesideBytes)
    copy.mutable_annotations().decisions["beside"] = "true";
}

Expected<Instruction*> start(Instruction& i) {
  Instruction* operands = Make(i).tuple(i.operands());
  Instruction* done = inline_computation(*i.to_apply(), i.operands(), *i.parent());
  if (is(done, Opcode::Copy) || is(done, Opcode::DynamicSlice)) note_beside(*done);
  return started(i, operands, done);
}

// (destination, source, context …)
Expected<Instruction*> copy_start(Instruction& i) {
  Instruction* copy = Make(i).op(Opcode::Copy, i.shape().element(0), {i.operand(0)});
  note_beside(*copy);
  return started(i, copy, i.operand(0));
}

Expected<Instruction*> same(Instruction& i) { return i.operand(0); }
Expected<Instruction*> result(Instruction& i) { return Make(i).element(i.operand(0), 1); }
Expected<Instruction*> destination(Instruction& i) { return Make(i).element(i.operand(0), 0); }

}  // namespace

Expected<Changed> expand_async(hlo::Module& module) {
  auto changed = TRY(expand(module, Opcode::AsyncStart, start));
  const std::pair<Opcode, Expansion> kRest[] = {{Opcode::AsyncUpdate, same},
                                                {Opcode::AsyncDone, result},
                                                {Opcode::CopyStart, copy_start},
                                                {Opcode::CopyDone, destination}};
  for (const auto& [opcode, expansion] : kRest) {
    const Changed one = TRY(expand(module, opcode, expansion));
    changed |= one;
  }
  return changed;
}

}  // namespace hloom::passes

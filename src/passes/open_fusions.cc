#include "passes/open_fusions.h"

#include <algorithm>
#include <unordered_set>

#include "base/try.h"
#include "hlo/inline.h"
#include "passes/expand.h"

namespace hloom::passes {
namespace {

// What has loops of its own: more than elements at an index.
bool has_own_loops(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Convolution:
    case Opcode::Dot:
    case Opcode::DynamicUpdateSlice:
    case Opcode::ReduceWindow:
    case Opcode::Scatter: return true;
    default: return false;
  }
}

// What is a kernel or routine by itself, or no kernel's at all.
bool stands_alone(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Cholesky:
    case Opcode::CustomCall:
    case Opcode::DynamicReshape:
    case Opcode::Fft:
    case Opcode::Fusion:
    case Opcode::GetDimensionSize:
    case Opcode::GetTupleElement:
    case Opcode::RngBitGenerator:
    case Opcode::SelectAndScatter:
    case Opcode::SetDimensionSize:  // sizes are checked, by no kernel
    case Opcode::Sort:
    case Opcode::Topk:
    case Opcode::TriangularSolve: return true;
    default:
      return hlo::kind(i.opcode()) == hlo::OpcodeKind::Control ||
             hlo::kind(i.opcode()) == hlo::OpcodeKind::Collective ||
             hlo::kind(i.opcode()) == hlo::OpcodeKind::SideEffect;
  }
}

bool is_result(const Instruction& i) {
  return i.is_root() || (i.users().size() == 1 && i.users()[0]->is_root() && is(i.users()[0], Opcode::Tuple));
}

// Whether all that reads a reduce does so once at each of its elements, up to the fusion's results.
bool is_read_in_place(const Instruction& reduce) {
  std::vector<const Instruction*> open = {&reduce};
  std::unordered_set<const Instruction*> seen;
  while (!open.empty()) {
    const Instruction* i = open.back();
    open.pop_back();
    for (const Instruction* u : i->users()) {
      if (is(u, Opcode::Tuple) || !seen.insert(u).second) continue;
      if (!hlo::is_elementwise(u->opcode()) || u->shape().dims() != reduce.shape().dims()) return false;
      open.push_back(u);
    }
  }
  return true;
}

bool is_view(const Instruction& i) {
  return is(&i, Opcode::Parameter) || is(&i, Opcode::Bitcast) || is(&i, Opcode::Reshape) || is(&i, Opcode::Slice) ||
         is(&i, Opcode::Transpose) || is(&i, Opcode::DynamicSlice) || is(&i, Opcode::Constant) ||
         (is(&i, Opcode::Convert) && is_view(*i.operand(0)));
}

// A dot or convolution reads an element often.
bool reads_views(const Instruction& i) {
  return std::ranges::all_of(i.operands(), [](const Instruction* o) { return is_view(*o); });
}

// A kernel that updates a window writes nothing else: what it updates is an array in memory, which it does not read.
bool updates_what_is_given(const Instruction& i) {
  const std::int64_t bases = is(&i, Opcode::DynamicUpdateSlice) ? 1 : is(&i, Opcode::Scatter) ? i.num_operands() / 2 : 0;
  return std::ranges::all_of(i.operands().begin(), i.operands().begin() + bases, [](const Instruction* base) {
    return is(base, Opcode::Parameter) && base->users().size() == 1;
  });
}

bool is_one_kernel(const Instruction& fusion) {
  if (fusion.attr<hlo::FusionAttr>().kind == hlo::FusionKind::Custom) return false;  // it means its computation
  const hlo::Computation& body = *fusion.called(0);
  for (const Instruction& i : body.instructions()) {
    if (stands_alone(i)) return false;
    if (is(&i, Opcode::Reduce) && (i.shape().is_tuple() ? !i.is_root() : !is_read_in_place(i))) return false;
    if (has_own_loops(i) && !(is_result(i) && updates_what_is_given(i))) return false;
    if (is(&i, Opcode::Scatter) && !i.is_root()) return false;
    if ((is(&i, Opcode::Dot) || is(&i, Opcode::Convolution)) && !(i.is_root() && reads_views(i))) return false;
  }
  return true;
}

// By our own fusion stage, in a dump of it.
bool is_made_here(const Instruction& i) { return i.annotations().decisions.contains("kernel"); }

Expected<Instruction*> open(Instruction& i) {
  const hlo::Computation& body = *i.called(0);
  if (is_made_here(i) || is_one_kernel(i)) return nullptr;
  return inline_computation(body, i.operands(), *i.parent());
}

}  // namespace

Expected<Changed> open_fusions(hlo::Module& module) {
  auto changed = Changed::No;
  // Fusions in fusions come out one level at a time.
  for (;;) {
    const Changed one = TRY(expand(module, Opcode::Fusion, open));
    if (!any(one)) return changed;
    changed = one;
  }
}

}  // namespace hloom::passes

#include "compiler/accept.h"

#include <algorithm>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/build_collective.h"
#include "hlo/packing.h"

namespace hloom::compiler {
namespace {

Expected<> accept_leaf(const hlo::Instruction& i, const Shape& leaf) {
  if (leaf.is_token() || leaf.dtype() == DType::Buffer) return {};
  if (!leaf.is_array()) return fail(Code::Unimplemented, i.name(), ": no code yet for values of type ", leaf);
  if (!leaf.element_count())
    return fail(Code::Unimplemented, i.name(), ": no code for sizes that have no bound, as in ", leaf);
  return {};
}

// What names a value in memory space 3, where there are constants alone; else it would be written there.
bool names_a_value(const hlo::Instruction& i) {
  using hlo::Opcode;
  switch (i.opcode()) {
    case Opcode::AddDependency:
    case Opcode::Bitcast:
    case Opcode::Call:
    case Opcode::Constant:
    case Opcode::Domain:
    case Opcode::GetTupleElement:
    case Opcode::OptBarrier:
    case Opcode::Parameter:
    case Opcode::Tuple:
    case Opcode::While: return true;
    default: return false;
  }
}

bool is_for_constants(const Shape& shape) {
  constexpr std::int64_t kConstants = 3;
  return std::ranges::any_of(leaves(shape), [](const Shape* leaf) {
    return leaf->is_array() && leaf->has_layout() && leaf->layout().memory_space() == kConstants;
  });
}

Expected<> accept_constants(const hlo::Instruction& i) {
  const bool is_result = i.is_root() && i.parent() == i.module().entry();
  const hlo::ModuleConfig& config = i.module().config();
  if (is_result && (is_for_constants(i.shape()) || (config.has_entry_layout && is_for_constants(config.entry_result))))
    return fail(Code::InvalidArgument, i.name(),
                ": the program's result is written, and memory space 3 is for constants, which are read only");
  if (is_for_constants(i.shape()) && !names_a_value(i))
    return fail(Code::InvalidArgument, i.name(), ": a ", i.opcode(),
                " writes its result, and memory space 3 is for constants, which are read only");
  return {};
}

}  // namespace

Expected<> accept_layouts(const hlo::Module& module) {
  for (const hlo::Computation& computation : module.computations())
    for (const hlo::Instruction& i : computation.instructions())
      for (const Shape* leaf : leaves(i.shape()))
        if (leaf->is_array() && leaf->has_layout() && !hlo::is_plain_but_for_bits(*leaf))
          return fail(Code::Unimplemented, i.name(), ": no code for tiled or sparse layouts where they bind, as in ",
                      to_string(*leaf), "; known are any order of dimensions, and E(1), E(2), E(4) of sub-byte types");
  return {};
}

Expected<> accept(const hlo::Module& module) {
  const hlo::ModuleConfig& config = module.config();
  const std::int64_t replicas = config.replica_count, partitions = config.num_partitions;
  if (replicas < 1 || partitions < 1 || replicas > kMaxDevices || partitions > kMaxDevices / replicas)
    return fail(Code::Unimplemented, module.name(), ": compiled programs run on 1 to ", kMaxDevices,
                " devices, this one on ", replicas, " replicas x ", partitions, " partitions");
  for (const hlo::Computation& computation : module.computations())
    for (const hlo::Instruction& i : computation.instructions()) {
      for (const Shape* leaf : leaves(i.shape())) TRY(accept_leaf(i, *leaf));
      TRY(accept_constants(i));
    }
  return {};
}

}  // namespace hloom::compiler

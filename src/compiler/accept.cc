#include "compiler/accept.h"

#include "base/fail.h"
#include "base/try.h"
#include "compiler/build_collective.h"
#include "hlo/packing.h"

namespace hloom::compiler {
namespace {

// Arena, collective arena (the plain one so far), mapped host memory, constants, host offload.
bool is_known_space(std::int64_t space) { return space >= 0 && space <= 5 && space != 4; }

Expected<> accept_leaf(const hlo::Instruction& i, const Shape& leaf) {
  if (leaf.is_token()) return {};
  if (!leaf.is_array()) return fail(Code::Unimplemented, i.name(), ": no code yet for values of type ", leaf);
  if (!leaf.element_count())
    return fail(Code::Unimplemented, i.name(), ": no code for sizes that have no bound, as in ", leaf);
  if (!leaf.has_layout()) return {};
  if (const std::int64_t space = leaf.layout().memory_space(); !is_known_space(space))
    return fail(Code::InvalidArgument, i.name(), ": memory space ", space,
                " has no meaning here; known are 0, 1, 2, 3 and 5");
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
    for (const hlo::Instruction& i : computation.instructions())
      for (const Shape* leaf : leaves(i.shape())) TRY(accept_leaf(i, *leaf));
  return {};
}

}  // namespace hloom::compiler

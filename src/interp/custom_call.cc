// The custom calls that are something else by another name (hlo-ops 15.2).

#include <string_view>

#include "base/try.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::CustomCallAttr;
using hlo::Opcode;

// Annotations and requests that do not change the value.
bool is_marker(std::string_view target) {
  for (const std::string_view known : {"Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape", "LayoutConstraint",
                                       "annotate_device_placement", "MoveToHost", "MoveToDevice"})
    if (target == known) return true;
  return target.starts_with("xla.sdy.");
}

Expected<Value> forward(const Call& call) {
  const auto n = static_cast<std::size_t>(call.num_operands());
  const bool many = call.shape.is_tuple() && n != 1;
  const std::size_t results = many ? call.shape.elements().size() : 1;
  bool same = n == results;
  for (std::size_t i = 0; i < n && same; ++i)
    same = compatible(call.instruction.operand(static_cast<std::int64_t>(i))->shape(),
                      many ? call.shape.elements()[i] : call.shape);
  if (!same)
    return fail(Code::Unimplemented, call.instruction.name(), ": ", call.instruction.attr<CustomCallAttr>().target,
                " that changes shapes needs a partitioner");
  return many ? tuple(call) : Expected<Value>(call.operands[0]);
}

// (size, least, most): what an expansion puts around a size at run time.
Expected<Value> check_size(const Call& call) {
  const std::int64_t size = hlo::element_as_int64(call.array(0), 0);
  const std::int64_t least = hlo::element_as_int64(call.array(1), 0), most = hlo::element_as_int64(call.array(2), 0);
  if (size < least || size > most) return wrong(call, "size ", size, " is not in [", least, ", ", most, "]");
  return call.operands[0];
}

// Without a comparator the largest come first; one that compares by < asks for the smallest.
Expected<bool> takes_largest(const Call& call) {
  const std::string& config = call.instruction.annotations().backend_config;
  if (config.find("largest = false") != std::string::npos) return false;
  if (call.instruction.called().empty()) return true;
  const hlo::Instruction& root = *call.instruction.called(0)->root();
  if (root.opcode() == Opcode::Compare) {
    const hlo::Direction direction = root.attr<hlo::CompareAttr>().direction;
    if (direction == hlo::Direction::Gt || direction == hlo::Direction::Ge) return true;
    if (direction == hlo::Direction::Lt || direction == hlo::Direction::Le) return false;
  }
  return fail(Code::Unimplemented, call.instruction.name(), ": TopK by the comparator ",
              call.instruction.called(0)->name());
}

}  // namespace

Expected<Value> custom_call(const Call& call) {
  const std::string& target = call.instruction.attr<CustomCallAttr>().target;
  if (is_marker(target)) return forward(call);
  if (target == "hloom.check_size") return check_size(call);
  if (target == "TopK") {
    const bool largest = TRY(takes_largest(call));
    return top_k(call.array(0), call.shape.element(0).dims().back(), largest, call.shape);
  }
  return routine_call(call);
}

}  // namespace hloom::interp

// Custom calls and aliasing tables of instructions: H724, H719 and H720 for fusions and asynchronous starts.
#include <set>

#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

void check_layout_constraints(const Instruction& i, const CustomCallAttr& call, Report& report) {
  if (!call.operand_layouts) return;
  if (static_cast<std::int64_t>(call.operand_layouts->size()) != i.num_operands())
    return report.add("H724", i, "operand_layout_constraints has ", call.operand_layouts->size(), " shapes for ",
                      i.num_operands(), " operands");
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    const Shape& wanted = (*call.operand_layouts)[static_cast<std::size_t>(k)];
    if (!compatible(wanted, i.operand(k)->shape()))
      report.add("H724", i, "operand ", k, " is ", i.operand(k)->shape(), ", its layout constraint ", wanted);
    else if (wanted.is_array() && !wanted.has_layout())
      report.add("H724", i, "the layout constraint of operand ", k, " has no layout");
  }
}

// A call target with a fixed meaning for buffers.
void check_buffer_target(const Instruction& i, const std::string& target, Report& report) {
  const auto held = [](const Shape& s) { return s.dtype() == DType::Buffer ? &s.element(0) : nullptr; };
  const bool one = i.num_operands() == 1;
  bool good = true;
  if (target == "Pin") good = one && held(i.shape()) && compatible(*held(i.shape()), i.operand(0)->shape());
  if (target == "Unpin")
    good = one && held(i.operand(0)->shape()) && compatible(*held(i.operand(0)->shape()), i.shape());
  if (target == "CreateBuffer") good = i.num_operands() == 0 && held(i.shape());
  if (!good) report.add("H726", i, target, " does not take these operands and give ", i.shape());
}

}  // namespace

void verify_aliasing(const Instruction& i, const std::vector<Aliasing>& aliasing, std::string_view code,
                     Report& report) {
  std::set<ShapeIndex> outputs;
  for (const Aliasing& a : aliasing) {
    const bool has_operand = a.operand >= 0 && a.operand < i.num_operands();
    const Shape* from = has_operand ? subshape(i.operand(a.operand)->shape(), a.operand_index) : nullptr;
    const Shape* to = subshape(i.shape(), a.output);
    if (from == nullptr || to == nullptr) {
      report.add(code, i, "output_to_operand_aliasing names a place that is not there");
    } else {
      // Pin and Unpin join a buffer and the array that it holds.
      const auto inner = [](const Shape* s) { return s->dtype() == DType::Buffer ? &s->element(0) : s; };
      if (!compatible(*inner(from), *inner(to)))
        report.add(code, i, "output_to_operand_aliasing joins ", *to, " and ", *from, ", must be equal");
      if (!outputs.insert(a.output).second) report.add(code, i, "output_to_operand_aliasing names an output twice");
    }
  }
}

void verify_custom_call(const Instruction& i, Report& report) {
  if (const auto* fusion = i.attributes().get_if<FusionAttr>())
    return verify_aliasing(i, fusion->aliasing, "H719", report);
  if (const auto* async = i.attributes().get_if<AsyncAttr>(); async != nullptr && i.shape().is_tuple()) {
    // Output paths are those of the start's whole tuple.
    if (i.opcode() == Opcode::AsyncStart) verify_aliasing(i, async->aliasing, "H720", report);
    return;
  }
  const auto* call = i.attributes().get_if<CustomCallAttr>();
  if (call == nullptr) return;
  if (call->target.empty()) report.add("H724", i, "has no custom_call_target");
  check_layout_constraints(i, *call, report);
  verify_aliasing(i, call->aliasing, "H724", report);
  check_buffer_target(i, call->target, report);
}

}  // namespace hloom::hlo

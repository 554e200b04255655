#include "compiler/routines.h"

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "library/fft.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Opcode;

const Instruction& routine_of(const Instruction& step) {
  return step.opcode() == Opcode::Fusion ? *step.called(0)->root() : step;
}

bool is_row_major(const Shape& shape) {
  return !shape.has_layout() || shape.layout().minor_to_major == Layout::descending(shape.rank()).minor_to_major;
}

// Arrays of programs with a schedule have the layouts that were chosen for another compiler.
Expected<> want_row_major(const Instruction& i) {
  for (const Instruction* operand : i.operands())
    if (!is_row_major(operand->shape()))
      return fail(Code::Unimplemented, i.name(), ": ", i.opcode(), " takes row-major arrays, found ", to_string(operand->shape()));
  if (!is_row_major(i.shape()))
    return fail(Code::Unimplemented, i.name(), ": ", i.opcode(), " gives row-major arrays, not ", to_string(i.shape()));
  return {};
}

library::FftKind kind_of(hlo::FftType type) {
  switch (type) {
    case hlo::FftType::Fft: return library::FftKind::Forward;
    case hlo::FftType::Ifft: return library::FftKind::Inverse;
    case hlo::FftType::Rfft: return library::FftKind::RealForward;
    case hlo::FftType::Irfft: return library::FftKind::RealInverse;
  }
  return library::FftKind::Forward;
}

library::FftProblem fft_problem(const Instruction& i) {
  const auto& attr = i.attr<hlo::FftAttr>();
  const Shape& from = i.operand(0)->shape();
  return {kind_of(attr.type), real_type(from.dtype()) == DType::F64, from.dims(), attr.length};
}

Expected<std::int64_t> workspace_bytes(const Instruction& step) {
  const Instruction& i = routine_of(step);
  if (i.opcode() == Opcode::Fft) return library::fft_workspace_bytes(fft_problem(i));
  const library::RoutinePlan plan = TRY(plan_routine(step));
  return plan.workspace_bytes;
}

}  // namespace

bool is_routine(const Instruction& step) {
  if (step.opcode() == Opcode::CustomCall) return true;
  if (step.opcode() != Opcode::Fusion || step.attr<hlo::FusionAttr>().kind != hlo::FusionKind::Custom) return false;
  const Opcode root = routine_of(step).opcode();
  return root == Opcode::Fft;
}

Expected<library::RoutinePlan> plan_routine(const Instruction& step) {
  const Instruction& i = routine_of(step);
  switch (i.opcode()) {
    case Opcode::Fft:
      TRY(want_row_major(i));
      return library::plan_fft(fft_problem(i));
    case Opcode::CustomCall:
      return fail(Code::Unimplemented, i.name(), ": no code yet for the custom call target ",
                  i.attr<hlo::CustomCallAttr>().target);
    default: break;
  }
  return fail(Code::Unimplemented, i.name(), ": no routine for ", i.opcode(), " of ", i.shape());
}

Expected<> note_workspaces(hlo::Module& module) {
  for (hlo::Computation& c : module.computations())
    for (Instruction& i : c.instructions()) {
      if (!is_routine(i)) continue;
      const std::int64_t bytes = TRY(workspace_bytes(i));
      if (bytes > 0) i.mutable_annotations().decisions["workspace_bytes"] = std::to_string(bytes);
    }
  return {};
}

}  // namespace hloom::compiler

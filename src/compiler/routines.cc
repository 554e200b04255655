#include "compiler/routines.h"

#include <algorithm>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "compiler/build_collective.h"
#include "compiler/convolution_problem.h"
#include "compiler/sort_problem.h"
#include "hlo/sort_form.h"
#include "library/check_size.h"
#include "library/custom_call.h"
#include "library/dense.h"
#include "library/fft.h"
#include "passes/dynamic_reshape.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Opcode;

const Instruction& root_of(const Instruction& step) {
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

Expected<> want_one_type(const Instruction& i) {
  for (const Instruction* operand : i.operands())
    if (operand->shape().dtype() != i.shape().dtype())
      return fail(Code::Unimplemented, i.name(), ": ", i.opcode(), " of ", operand->shape().dtype(), " and ", i.shape().dtype());
  return {};
}

Expected<library::RoutinePlan> named(const Instruction& i, Expected<library::RoutinePlan> plan) {
  if (!plan) return fail(plan.error().code(), i.name(), ": ", plan.error().message());
  return plan;
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

// The value of a scalar operand that is known now.
std::optional<std::int64_t> scalar_of(const Instruction& operand) {
  const bool whole = operand.shape().is_array() && operand.shape().rank() == 0 &&
                     (is_integral(operand.shape().dtype()) || operand.shape().dtype() == DType::Pred);
  if (operand.opcode() != Opcode::Constant || !whole) return std::nullopt;
  return element_as_int64(operand.literal(), 0);
}

}  // namespace

library::CustomCallProblem custom_call_problem(const Instruction& i) {
  library::CustomCallProblem p;
  p.target = i.attr<hlo::CustomCallAttr>().target;
  p.instruction = i.name();
  p.backend_config = i.annotations().backend_config;
  const auto& words = i.annotations().frontend_attributes;
  if (const auto message = words.find("error_message"); message != words.end()) p.message = message->second;
  for (const Instruction* operand : i.operands()) {
    for (const Shape* leaf : leaves(operand->shape())) p.operands.push_back(*leaf);
    if (num_leaves(operand->shape()) == 1) p.scalars.push_back(scalar_of(*operand));
    else p.scalars.resize(p.operands.size());
  }
  for (const Shape* leaf : leaves(i.shape())) p.results.push_back(*leaf);
  return p;
}

namespace {

std::int64_t batch_of(const Shape& matrices) {
  std::int64_t batch = 1;
  for (std::int64_t d = 0; d < matrices.rank() - 2; ++d) batch *= matrices.dim(d);
  return batch;
}

library::CholeskyProblem cholesky_problem(const Instruction& i) {
  return {i.shape().dtype(), batch_of(i.shape()), i.shape().dims().back(), i.attr<hlo::CholeskyAttr>().lower};
}

library::TriangularProblem triangular_problem(const Instruction& i) {
  using Form = library::TriangularProblem::Form;
  const auto& attr = i.attr<hlo::TriangularSolveAttr>();
  const Shape& b = i.shape();
  const Form form = attr.transpose_a == hlo::Transposition::None        ? Form::Plain
                    : attr.transpose_a == hlo::Transposition::Transpose ? Form::Transposed
                                                                        : Form::Adjoint;
  return {b.dtype(), batch_of(b), b.dim(b.rank() - 2), b.dims().back(), attr.left_side, attr.lower, attr.unit_diagonal, form};
}

Expected<library::RoutinePlan> plan_of(const Instruction& step) {
  const Instruction& i = routine_of(step);
  switch (i.opcode()) {
    case Opcode::Fft:
      TRY(want_row_major(i));
      return library::plan_fft(fft_problem(i));
    case Opcode::Cholesky:
      TRY(want_row_major(i));
      return named(i, library::plan_cholesky(cholesky_problem(i)));
    case Opcode::TriangularSolve:
      TRY(want_row_major(i));
      TRY(want_one_type(i));
      return named(i, library::plan_triangular_solve(triangular_problem(i)));
    case Opcode::Convolution: return library::plan_convolution(convolution_problem(i));
    case Opcode::Sort:
    case Opcode::Topk:
      if (const auto problem = sort_problem(root_of(step))) return library::plan_sort(*problem);
      break;
    case Opcode::CustomCall:
      if (i.attr<hlo::CustomCallAttr>().target == passes::kCheckSize) return library::plan_check_size();
      return named(i, library::plan_custom_call(custom_call_problem(i)));
    default: break;
  }
  return fail(Code::Unimplemented, i.name(), ": no routine for ", i.opcode(), " of ", i.shape());
}

Expected<std::int64_t> workspace_bytes(const Instruction& step) {
  const Instruction& i = routine_of(step);
  if (i.opcode() == Opcode::Fft) return library::fft_workspace_bytes(fft_problem(i));
  const library::RoutinePlan plan = TRY(plan_routine(step));
  return plan.workspace_bytes;
}

}  // namespace

const Instruction& routine_of(const Instruction& step) {
  const auto form = hlo::sort_form(root_of(step));
  return form ? *form->sort : root_of(step);
}

bool is_routine(const Instruction& step) {
  if (step.opcode() == Opcode::CustomCall) return !is_device_transfer(step);
  if (step.opcode() != Opcode::Fusion || step.attr<hlo::FusionAttr>().kind != hlo::FusionKind::Custom) return false;
  const Instruction& root = routine_of(step);
  const auto is_parameter = [](const Instruction* operand) { return read_by_routine(*operand).opcode() == Opcode::Parameter; };
  if (!std::ranges::all_of(root.operands(), is_parameter)) return false;
  return root.opcode() == Opcode::Fft || root.opcode() == Opcode::Cholesky || root.opcode() == Opcode::TriangularSolve ||
         is_rare_convolution(root) || sort_problem(root_of(step)).has_value();
}

const Instruction& read_by_routine(const Instruction& operand) {
  const bool sliced = operand.opcode() == Opcode::Slice && operand.users().size() == 1 && is_rare_convolution(*operand.users()[0]);
  return sliced ? *operand.operand(0) : operand;
}

Expected<library::RoutinePlan> plan_routine(const Instruction& step) { return plan_of(step); }

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

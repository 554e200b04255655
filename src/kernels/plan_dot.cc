#include "kernels/plan_dot.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/try.h"
#include "kernels/dot_builder.h"
#include "kernels/dot_form.h"
#include "kernels/dot_problem.h"
#include "kernels/follow_split.h"

namespace hloom::kernels {
namespace {

// Arguments in order: operands' leaves, results' leaves.
Places add_arguments(Kernel& kernel, const hlo::Instruction& fusion) {
  Places places;
  const auto add = [&](const Shape& shape, std::string name, bool written, std::vector<Place>& to) {
    to.push_back({static_cast<int>(kernel.arguments.size()), 0, shape});
    kernel.arguments.push_back(argument_of(shape, std::move(name), written));
  };
  for (const hlo::Instruction* o : fusion.operands())
    for (const Shape* leaf : leaves(o->shape()))
      add(*leaf, "a" + std::to_string(places.operands.size()), false, places.operands);
  for (const Shape* leaf : leaves(fusion.shape()))
    add(*leaf, "y" + std::to_string(places.results.size()), true, places.results);
  return places;
}

// Arguments whose bytes are read as words too.
void read_as_words(Kernel& kernel, const DotFusion& fusion, const Places& places, const DotProblem& problem) {
  for (const std::int64_t n : {0, 1}) {
    if (!(n == 0 ? problem.lhs : problem.rhs).words) continue;
    Argument& argument = kernel.arguments[static_cast<std::size_t>(place_of_operand(fusion, places, n)->argument)];
    argument.num_elements = argument_bytes(argument);
    argument.type = DType::Invalid;
  }
}

// Multiply-adds count as two; bytes are those of operands and results.
std::int64_t work_of(const DotProblem& problem, const hlo::Instruction& fusion) {
  std::int64_t flops = 2 * problem.sum_extent();
  for (std::size_t a = 0; a <= problem.rhs_axis; ++a) flops *= problem.extent(a);
  std::int64_t bytes = fusion.shape().size_bytes();
  for (const hlo::Instruction* o : fusion.operands()) bytes += o->shape().size_bytes();
  return std::max(flops, bytes);
}

// A short product for each batch and nothing else: lanes belong to the batches, as in any loop over elements.
bool is_elementwise(const hlo::Instruction& dot) {
  if (dot.opcode() != hlo::Opcode::Dot) return false;
  const auto& d = dot.attr<hlo::DotAttr>();
  std::int64_t batches = 1, sum = 1;
  for (const std::int64_t b : d.lhs_batch) batches *= dot.operand(0)->shape().dim(b);
  for (const std::int64_t c : d.lhs_contracting) sum *= dot.operand(0)->shape().dim(c);
  return batches > 1 && dot.shape().num_elements() == batches && sum <= 16;
}

// Blocks of a sum want one loop, and sums that s32 holds or wraps as the result does.
Expected<DotProblem> problem_of(DotFusion& fusion, const Places& places, const VectorUnit& unit) {
  if (unit.has_byte_products && may_sum_bytes(fusion)) {
    DotFusion bytes = fusion;
    sum_as_integers(bytes);
    const DotProblem problem = TRY(analyse_dot(bytes, places));
    if (auto of_bytes = sum_as_bytes(bytes, problem, places)) {
      fusion = bytes;
      return *std::move(of_bytes);
    }
  }
  DotProblem problem = TRY(analyse_dot(fusion, places));
  if (fusion.staged != nullptr && !may_stage(problem, byte_width(fusion.sum_type))) {
    fusion.staged = nullptr;
    problem = TRY(analyse_dot(fusion, places));
  }
  const bool wraps = bit_width(fusion.dot->shape().dtype()) <= 32 || problem.sum_extent() < 1 << 15;
  const bool may_block = problem.axes.size() == problem.rhs_axis + 2 && wraps;
  if (fusion.exact_steps == 0 || may_block) return problem;
  sum_as_integers(fusion);
  return analyse_dot(fusion, places);
}

}  // namespace

VectorUnit vector_unit(const base::Target& target) {
  return {target.vector_bytes, target.vector_registers, target.has_masks, target.has_byte_products};
}

bool is_dot_fusion(const hlo::Instruction& fusion) {
  const hlo::Instruction* dot = find_dot(fusion).dot;
  return dot != nullptr && !is_elementwise(*dot);
}

Expected<Kernel> plan_dot(const hlo::Instruction& fusion, const VectorUnit& unit) {
  DotFusion found = find_dot(fusion);
  HLOOM_CHECK(found.dot != nullptr);
  Builder b(fusion.name());
  const Places places = add_arguments(b.kernel(), fusion);
  const DotProblem problem = TRY(problem_of(found, places, unit));
  read_as_words(b.kernel(), found, places, problem);
  const DotForm form = choose_form(problem, found, unit, fusion.shape().is_array() ? parts_of(fusion.shape()) : 1);
  const std::int64_t blocks = TRY(DotBuilder(b, found, places, problem, form).build());
  Kernel kernel = std::move(b).finish();
  kernel.blocks = blocks;
  kernel.block_cost = work_of(problem, fusion) / blocks;
  if (kernel.scratch_bytes > 0) kernel.scratch_type = found.sum_type;
  // Blocks go over rows from the outside in, or over batches; of a swapped one over columns.
  if (fusion.shape().is_array() && (!form.swapped || problem.num_outer() > 0)) follow_split(kernel, fusion.shape());
  return kernel;
}

Expected<> plan_dot_into(Builder& b, const hlo::Instruction& fusion, const Places& places, const VectorUnit& unit) {
  DotFusion found = find_dot(fusion);
  HLOOM_CHECK(found.dot != nullptr);
  b.forget_loads();
  const DotProblem problem = TRY(problem_of(found, places, unit));
  read_as_words(b.kernel(), found, places, problem);
  const DotForm form = choose_form(problem, found, unit, 0);
  TRY(DotBuilder(b, found, places, problem, form).build());
  return {};
}

}  // namespace hloom::kernels

#include "kernels/plan_dot.h"

#include <algorithm>
#include <string>

#include "base/check.h"
#include "base/try.h"
#include "hlo/panels.h"
#include "kernels/dot_builder.h"
#include "kernels/dot_form.h"
#include "kernels/dot_panels.h"
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
    const DotOperand& operand = n == 0 ? problem.lhs : problem.rhs;
    if (!operand.words && !(operand.ready && fusion.byte_steps > 0)) continue;
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

struct Chosen {
  DotProblem problem;
  DotForm form;
};

// Whether what lies in panels lies as the form reads it: a module may have been compiled for another machine.
bool reads_panels(const DotFusion& fusion, const Chosen& c) {
  for (const std::int64_t n : {0, 1}) {
    if (!fusion.lies_in_panels(n)) continue;
    const auto order = panel_order(c.problem, fusion, c.form, n);
    if (!order || to_string(*order) != hlo::panels_of(*fusion.sources[static_cast<std::size_t>(n)])) return false;
  }
  return true;
}

Expected<Chosen> chosen(DotFusion& fusion, const Places& places, const VectorUnit& unit, std::int64_t parts) {
  DotFusion before = fusion;
  Chosen c;
  c.problem = TRY(problem_of(fusion, places, unit));
  c.form = choose_form(c.problem, fusion, unit, parts);
  if (reads_panels(fusion, c)) return c;
  before.sources = {};
  fusion = before;
  c.problem = TRY(problem_of(fusion, places, unit));
  c.form = choose_form(c.problem, fusion, unit, parts);
  return c;
}

// The fusion's operand that is the source of the dot's, and used for nothing else; -1: none.
std::int64_t sole_operand(const DotFusion& fusion, std::int64_t n) {
  const hlo::Instruction* source = fusion.sources[static_cast<std::size_t>(n)];
  if (source == nullptr || fusion.lies_in_panels(n)) return -1;
  for (const hlo::Instruction* i = source; i != fusion.dot; i = i->users()[0])
    if (i->users().size() != 1) return -1;
  return source->parameter_number();
}

// Whether packing makes the array so much larger that it costs more than it saves.
bool grows(const PanelOrder& order, std::int64_t num_elements) {
  constexpr std::int64_t kLittle = 1 << 14;
  std::int64_t packed = 1;
  for (const std::int64_t d : order.dims()) packed *= d;
  return packed > num_elements + num_elements / 4 + kLittle;
}

// Only rows that a run would copy; and not those that it converts, which would be wider than the array is.
bool may_pack_rows(const DotFusion& fusion, const Chosen& c, const VectorUnit& unit) {
  const DotOperand& rows = c.form.swapped ? c.problem.rhs : c.problem.lhs;
  DotProblem before = c.problem;
  before.lhs.ready = before.rhs.ready = false;
  const DotForm form = choose_form(before, fusion, unit, 1);
  return !rows.narrow && (form.swapped == c.form.swapped ? form.pack_rows : form.pack_lanes);
}

// Panels are read sooner than whatever lies otherwise, but for what comes from memory for a row or two.
bool may_pack_lanes(const Chosen& c, std::int64_t bytes) {
  constexpr std::int64_t kNear = 1 << 20, kFewRows = 2;
  std::int64_t rows = c.problem.extent(c.form.swapped ? c.problem.rhs_axis : c.problem.lhs_axis);
  for (std::size_t a = 0; a < c.problem.lhs_axis; ++a)
    if (c.problem.axes[a].of != DotAxis::Of::Batch) rows *= c.problem.extent(a);
  return c.form.lanes > 1 && (rows > kFewRows || bytes <= kNear);
}

}  // namespace

Expected<std::optional<WantedPanels>> wanted_panels(const hlo::Instruction& fusion, const std::vector<bool>& is_constant, const VectorUnit& unit) {
  constexpr std::int64_t kFewest = 512;  // elements: packed before the call was made
  DotFusion found = find_dot(fusion);
  HLOOM_CHECK(found.dot != nullptr);
  Kernel kernel;
  const Places places = add_arguments(kernel, fusion);
  DotProblem problem;
  for (const std::int64_t n : {0, 1}) {
    const std::int64_t operand = sole_operand(found, n);
    if (operand < 0 || !is_constant[static_cast<std::size_t>(operand)]) continue;
    const std::int64_t num_elements = fusion.operand(operand)->shape().num_elements();
    if (num_elements < kFewest) continue;
    if (problem.axes.empty()) problem = TRY(problem_of(found, places, unit));
    Chosen c{problem, {}};
    (n == 0 ? c.problem.lhs : c.problem.rhs).ready = true;
    c.form = choose_form(c.problem, found, unit, 1);
    const auto order = panel_order(c.problem, found, c.form, n);
    if (!order || grows(*order, num_elements)) continue;
    const bool by_rows = (n == 0) != c.form.swapped;
    if (by_rows ? may_pack_rows(found, c, unit) : may_pack_lanes(c, fusion.operand(operand)->shape().size_bytes())) return WantedPanels{operand, *order};
  }
  return std::optional<WantedPanels>();
}

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
  const auto [problem, form] = TRY(chosen(found, places, unit, fusion.shape().is_array() ? parts_of(fusion.shape()) : 1));
  read_as_words(b.kernel(), found, places, problem);
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
  const auto [problem, form] = TRY(chosen(found, places, unit, 0));
  read_as_words(b.kernel(), found, places, problem);
  TRY(DotBuilder(b, found, places, problem, form).build());
  return {};
}

}  // namespace hloom::kernels

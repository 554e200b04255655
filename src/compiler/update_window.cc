#include "compiler/update_window.h"

#include <algorithm>
#include <unordered_map>

#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "hlo/packing.h"
#include "indexing/plan_window_update.h"
#include "interp/index.h"
#include "interp/index_vectors.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

constexpr double kMostWork = 1e6;  // steps of the interpreter

/// Values of instructions inside a step, as far as they are asked for.
class Inside {
 public:
  Inside(const Instruction& step, const UpdateWindow::OperandValue& operand) : step_(step), operand_(operand) {}

  double work(const Instruction& i) {
    if (i.opcode() == Opcode::Parameter || !seen_.emplace(&i, true).second) return 0;
    double sum = interpreter_work(i);
    for (const Instruction* operand : i.operands()) sum += work(*operand);
    return sum;
  }

  // Operand `n` of the update.
  Expected<Literal> operand_of(const Instruction& update, std::int64_t n) {
    if (&update == &step_) return operand_(n);
    return value(*update.operand(n));
  }
  double work_of(const Instruction& update, std::int64_t n) {
    return &update == &step_ ? 0 : work(*update.operand(n));
  }

 private:
  Expected<Literal> value(const Instruction& i) {
    if (i.opcode() == Opcode::Parameter) return operand_(i.parameter_number());
    if (const auto found = values_.find(&i); found != values_.end()) return found->second;
    std::vector<Literal> operands;
    for (const Instruction* operand : i.operands()) operands.push_back(TRY(value(*operand)));
    Literal result = TRY(interp::evaluate_instruction(i, operands));
    values_.emplace(&i, result);
    return result;
  }

  const Instruction& step_;
  const UpdateWindow::OperandValue& operand_;
  std::unordered_map<const Instruction*, Literal> values_;
  std::unordered_map<const Instruction*, bool> seen_;
};

std::int64_t as_unsigned_limit(const Literal& starts, std::int64_t element, std::int64_t room) {
  const std::int64_t value = hlo::element_as_int64(starts, element);
  return is_unsigned(starts.dtype()) && value < 0 ? room : std::clamp<std::int64_t>(value, 0, room);
}

}  // namespace

UpdateWindow::UpdateWindow(const Shape& array)
    : array_(array),
      minor_to_major_((array.has_layout() ? array.layout() : Layout::descending(array.rank())).minor_to_major),
      strides_(interp::row_major(array.dims())) {}

Expected<std::optional<UpdateWindow>> UpdateWindow::create(const Instruction& step, std::int64_t leaf,
                                                           const OperandValue& value) {
  const Instruction& update = *indexing::window_update(step, leaf);
  const bool is_scatter = update.opcode() == Opcode::Scatter;
  const Shape& array = update.operand(0)->shape();
  if (!hlo::is_plain_but_for_bits(array)) return std::optional<UpdateWindow>();
  const std::int64_t first = is_scatter ? update.num_operands() / 2 : 2;
  const std::int64_t end = is_scatter ? first + 1 : update.num_operands();
  Inside inside(step, value);
  double work = 0;
  for (std::int64_t n = first; n < end; ++n) work += inside.work_of(update, n);
  if (work > kMostWork) return std::optional<UpdateWindow>();
  std::vector<Literal> places;
  for (std::int64_t n = first; n < end; ++n) places.push_back(TRY(inside.operand_of(update, n)));
  UpdateWindow window(array);
  if (is_scatter)
    window.place_scatter(update, places[0]);
  else
    window.place_slice(update, places);
  return std::optional(std::move(window));
}

// One start for each dimension, or all in one array.
void UpdateWindow::place_slice(const Instruction& update, const std::vector<Literal>& starts) {
  const bool in_one = !starts.empty() && starts[0].shape().rank() == 1;
  for (std::int64_t d = 0; d < array_.rank(); ++d) {
    sizes_.push_back(update.operand(1)->shape().dim(d));
    const Literal& from = starts[in_one ? 0 : static_cast<std::size_t>(d)];
    starts_.push_back(as_unsigned_limit(from, in_one ? d : 0, array_.dim(d) - sizes_.back()));
  }
}

// Those that do not lie inside wholly are left out.
void UpdateWindow::place_scatter(const Instruction& scatter, const Literal& indices) {
  is_scatter_ = true;
  const auto& attr = scatter.attr<hlo::ScatterAttr>();
  const hlo::Dims& dims = array_.dims();
  const hlo::Dims& updates = scatter.operand(scatter.num_operands() - 1)->shape().dims();
  const interp::IndexVectors vectors(indices, attr.index_vector_dim, attr.scatter_dims_to_operand_dims,
                                     attr.input_batching_dims, attr.scatter_indices_batching_dims);
  const interp::WindowDims places(static_cast<std::int64_t>(updates.size()), attr.update_window_dims, array_.rank(),
                                  attr.inserted_window_dims, attr.input_batching_dims);
  hlo::Dims sizes(dims.size(), 1);
  for (std::size_t w = 0; w < places.window.size(); ++w)
    sizes[static_cast<std::size_t>(places.operand[w])] = updates[static_cast<std::size_t>(places.window[w])];
  written_.assign(static_cast<std::size_t>(array_.num_elements()), false);
  if (interp::product(updates) == 0) return;
  hlo::Dims batch(vectors.batch_sizes().size(), 0);
  do {
    const hlo::Dims start = vectors.start(batch, dims.size());
    bool inside = true;
    for (std::size_t d = 0; d < dims.size(); ++d) inside &= start[d] >= 0 && start[d] <= dims[d] - sizes[d];
    if (!inside) continue;
    interp::walk<1>(sizes, {{{interp::position(start, strides_), strides_}}},
                    [&](const auto& at) { written_[static_cast<std::size_t>(at[0])] = true; });
  } while (interp::next(batch, vectors.batch_sizes()));
}

// The element that stands there in memory.
bool UpdateWindow::contains(std::int64_t element) const {
  if (element >= array_.num_elements()) return false;
  std::int64_t position = 0;  // row-major
  for (const std::int64_t d : minor_to_major_) {
    const auto k = static_cast<std::size_t>(d);
    const std::int64_t at = element % array_.dim(d);
    element /= array_.dim(d);
    if (!is_scatter_ && (at < starts_[k] || at >= starts_[k] + sizes_[k])) return false;
    position += at * strides_[k];
  }
  return !is_scatter_ || written_[static_cast<std::size_t>(position)];
}

std::int64_t UpdateWindow::end_of_element(std::int64_t byte) const {
  const std::int64_t width = hlo::packed_bits(array_) != 0 ? 1 : byte_width(array_.dtype());
  return (byte / width + 1) * width;
}

bool UpdateWindow::contains_byte(std::int64_t byte) const {
  const int bits = hlo::packed_bits(array_);
  if (bits == 0) return contains(byte / byte_width(array_.dtype()));
  for (std::int64_t e = byte * 8 / bits; e < (byte + 1) * 8 / bits; ++e)
    if (contains(e)) return true;
  return false;
}

}  // namespace hloom::compiler

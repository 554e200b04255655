#include "compiler/box_values.h"

#include <algorithm>
#include <numeric>
#include <random>

#include "base/fail.h"
#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "interp/interpret.h"

namespace hloom::compiler {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

bool has_boxes(const Shape& shape) {
  if (shape.is_array()) return shape.num_elements() > 0 && !shape.has_dynamic_dims();
  if (!shape.is_tuple() || shape.elements().empty()) return false;
  return std::ranges::all_of(shape.elements(), [&](const Shape& e) {
    return e.is_array() && has_boxes(e) && same_dims(e, shape.element(0));
  });
}

double BoxValues::work(const Instruction& i) {
  if (const auto found = work_.find(&i); found != work_.end()) return found->second;
  double steps = interpreter_work(i);
  for (const Instruction* operand : i.operands())
    if (!is_known_(*operand)) steps += work(*operand);
  return work_[&i] = steps;
}

Expected<Literal> BoxValues::of(const Instruction& i, const Box* box) {
  if (box != nullptr && i.shape().is_array() && *box == whole_box(i.shape())) box = nullptr;
  std::pair key{&i, box == nullptr ? std::optional<Box>() : std::optional(*box)};
  if (const auto found = values_.find(key); found != values_.end()) return found->second;
  Literal value = TRY(find(i, box));
  return values_[std::move(key)] = std::move(value);
}

Expected<Literal> BoxValues::find(const Instruction& i, const Box* box) {
  if (auto known = known_(i, box)) return *std::move(known);
  if (i.opcode() == Opcode::Constant) return box == nullptr ? i.literal() : crop(i.literal(), *box);
  if (i.opcode() == Opcode::GetTupleElement) {
    const bool boxed = box != nullptr && has_boxes(i.operand(0)->shape());
    const Literal tuple = TRY(of(*i.operand(0), boxed ? box : nullptr));
    const Literal& element = tuple.elements()[static_cast<std::size_t>(i.tuple_index())];
    return box != nullptr && !boxed ? crop(element, *box) : element;
  }
  const Computed computed = TRY(compute(i, box));
  if (box == nullptr || computed.box == *box) return computed.value;
  return crop(computed.value, computed.box ? within(*box, *computed.box) : *box);
}

Expected<BoxValues::Computed> BoxValues::compute(const Instruction& i, const Box* box) {
  std::optional<Smaller> small;
  if (box != nullptr) small = TRY(smaller(i, *box, [&](std::int64_t k) { return of(*i.operand(k), nullptr); }));
  if (!small && interpreter_work(i) > most_)
    return fail(Code::ResourceExhausted, i.name(), ": too large to interpret, and no part of it can be interpreted alone");
  Computed result;
  for (std::size_t k = 0; k < i.operands().size(); ++k) {
    const SmallerOperand* part = small ? &small->operands[k] : nullptr;
    if (part != nullptr && part->value) {
      result.operands.push_back(*part->value);
    } else {
      result.operands.push_back(TRY(of(*i.operands()[k], part != nullptr && part->box ? &*part->box : nullptr)));
    }
  }
  result.instruction = small ? small->instruction : &i;
  result.value = TRY(interp::evaluate_instruction(*result.instruction, result.operands));
  if (small) {
    result.box = std::move(small->result);
    result.owner = std::move(small->module);
  }
  return result;
}

namespace {

// Extends dimensions as far as they go, one after the other in this order.
hlo::Dims sizes_of(const hlo::Dims& dims, const std::vector<std::size_t>& order, std::int64_t elements) {
  hlo::Dims sizes(dims.size(), 1);
  for (const std::size_t d : order) {
    sizes[d] = std::clamp<std::int64_t>(elements, 1, dims[d]);
    elements /= sizes[d];
  }
  return sizes;
}

}  // namespace

std::vector<Box> sample_boxes(const Shape& array, std::int64_t elements, std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<std::size_t> order(array.dims().size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::reverse(order);
  std::vector<Box> boxes;
  for (std::int64_t n = 0; n < count; ++n) {
    Box box{hlo::Dims(order.size(), 0), sizes_of(array.dims(), order, elements)};
    for (std::size_t d = 0; d < order.size(); ++d) {
      const std::int64_t last = array.dims()[d] - box.size[d];
      box.start[d] = n == 0 ? 0 : n == 1 ? last : static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(last + 1));
    }
    if (std::ranges::find(boxes, box) == boxes.end()) boxes.push_back(std::move(box));
    if (n > 0) std::ranges::shuffle(order, random);
  }
  return boxes;
}

}  // namespace hloom::compiler

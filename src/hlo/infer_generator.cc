// What comes from nothing, and random numbers, hlo-ops 9 and 10.
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

Expected<Shape> infer_iota(const Instruction& i) {
  TRY(want_written_array(i));
  const Shape& s = i.shape();
  const std::int64_t d = i.iota_dimension();
  if (s.rank() < 1 || d < 0 || d >= s.rank()) return wrong(i, "iota_dimension ", d, " is not a dimension of ", s);
  if (s.dtype() == DType::Pred) return wrong(i, "iota gives numbers, not pred");
  return s;
}

Expected<Shape> infer_constant(const Instruction& i) {
  const Shape& held = i.literal().shape();
  if (!i.shape().is_valid()) return held;
  if (!compatible(held, i.shape())) return wrong(i, "holds a literal of ", held, " where ", i.shape(), " is written");
  return i.shape();
}

Expected<Shape> infer_rng(const Instruction& i) {
  TRY(want_written_array(i));
  if (i.num_operands() != 2) return wrong(i, "rng takes two parameters, found ", i.num_operands());
  const DType type = i.shape().dtype();
  for (std::int64_t k = 0; k < 2; ++k)
    if (!compatible(i.operand(k)->shape(), Shape::scalar(type)))
      return wrong(i, "parameter ", k, " must be a scalar of ", type, ", found ", i.operand(k)->shape());
  if (is_complex(type) || (i.attr<RngAttr>().distribution == Distribution::Normal && !is_floating(type)))
    return wrong(i, "this distribution does not give ", type);
  return i.shape();
}

Expected<Shape> infer_rng_bits(const Instruction& i) {
  TRY(want_array(i, 0));
  const Shape& state = i.operand(0)->shape();
  const bool long_state = i.attr<RngBitsAttr>().algorithm != RngAlgorithm::ThreeFry;
  if (state.dtype() != DType::U64 || state.rank() != 1 || !(state.dim(0) == 2 || (long_state && state.dim(0) == 3)))
    return wrong(i, "the state must be u64[2]", long_state ? " or u64[3]" : "", ", found ", state);
  const Shape& s = i.shape();
  if (!s.is_valid()) return wrong(i, "rng-bit-generator needs its shape written");
  if (!s.is_tuple() || s.elements().size() != 2 || !is_integral(s.element(1).dtype()) || !sizes_in_range(s.element(1)))
    return wrong(i, "rng-bit-generator gives state and integers, not ", s);
  return Shape::tuple({with_type(state, state.dtype()), s.element(1)});
}

Expected<Shape> infer_rng_state(const Instruction& i) {
  if (!compatible(i.shape(), Shape::array(DType::U64, {2})))
    return wrong(i, "rng-get-and-update-state gives u64[2], not ", i.shape());
  return i.shape();
}

Expected<Shape> infer_parameter(const Instruction& i) {
  if (!i.shape().is_valid()) return wrong(i, "a parameter needs its shape written");
  return i.shape();
}

}  // namespace

Expected<Shape> infer_generator(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Parameter: return infer_parameter(i);
    case Opcode::Constant: return infer_constant(i);
    case Opcode::Iota: return infer_iota(i);
    case Opcode::PartitionId:
    case Opcode::ReplicaId: return Shape::scalar(DType::U32);
    case Opcode::Rng: return infer_rng(i);
    case Opcode::RngBitGenerator: return infer_rng_bits(i);
    case Opcode::RngGetAndUpdateState: return infer_rng_state(i);
    default: return wrong(i, i.opcode(), " takes something");
  }
}

}  // namespace hloom::hlo

// Collectives, hlo-ops 12.
#include "hlo/infer_rules.h"
#include "hlo/module.h"
#include "hlo/participants.h"
#include "hlo/permute_slices.h"

namespace hloom::hlo {
namespace {

Expected<std::int64_t> only_dimension(const Instruction& i) {
  if (i.dimensions().size() != 1) return wrong(i, i.opcode(), " needs one dimension, found ", i.dimensions().size());
  for (const Instruction* operand : i.operands())
    TRY(want_distinct(i, i.dimensions(), operand->shape().rank(), "dimensions"));
  return i.dimension(0);
}

Expected<> want_some_arrays(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, i.opcode(), " needs an operand");
  return want_arrays(i);
}

std::vector<Shape> same_shapes(const Instruction& i, std::int64_t count) {
  std::vector<Shape> shapes;
  for (std::int64_t k = 0; k < count; ++k)
    shapes.push_back(with_type(i.operand(k)->shape(), i.operand(k)->shape().dtype()));
  return shapes;
}

// Shapes of the gathered operands.
Expected<std::vector<Shape>> gathered(const Instruction& i) {
  TRY(want_some_arrays(i));
  const std::int64_t d = TRY(only_dimension(i));
  const std::int64_t members = TRY(group_size(i));
  std::vector<Shape> shapes = same_shapes(i, i.num_operands());
  for (Shape& s : shapes) {
    if (s.dim(d) == Shape::kUnbounded) continue;
    const auto size = in_range(static_cast<__int128>(s.dim(d)) * members);
    if (!size) return wrong(i, "gathering makes dimension ", d, " larger than 2^63");
    s.set_dim(d, *size);
  }
  return shapes;
}

// The function of two scalars, one for all operands.
Expected<> want_pairwise(const Instruction& i) {
  for (const Instruction* operand : i.operands()) {
    const Shape scalar = Shape::scalar(operand->shape().dtype());
    TRY(want_signature(i, *i.to_apply(), {scalar, scalar}, scalar, /*ignore_precision=*/true));
  }
  return {};
}

Expected<Shape> infer_all_reduce(const Instruction& i) {
  TRY(want_some_arrays(i));
  TRY(want_pairwise(i));
  TRY(group_mode(i));
  return one_or_tuple(same_shapes(i, i.num_operands()));
}

Expected<Shape> infer_reduce_scatter(const Instruction& i) {
  TRY(want_some_arrays(i));
  TRY(want_pairwise(i));
  const std::int64_t d = TRY(only_dimension(i));
  const std::int64_t members = TRY(group_size(i));
  std::vector<Shape> shapes = same_shapes(i, i.num_operands());
  for (Shape& s : shapes) {
    if (members < 1 || s.dim(d) % members != 0)
      return wrong(i, "dimension ", d, " (", s.dim(d), ") must be a multiple of the ", members, " members of a group");
    s.set_dim(d, s.dim(d) / members);
  }
  return one_or_tuple(std::move(shapes));
}

Expected<Shape> infer_all_to_all(const Instruction& i) {
  TRY(want_some_arrays(i));
  const std::int64_t members = TRY(group_size(i));
  std::vector<Shape> shapes = same_shapes(i, i.num_operands());
  if (i.attr<CollectiveAttr>().has_dimension) {
    const std::int64_t d = TRY(only_dimension(i));
    for (const Shape& s : shapes)
      if (members < 1 || s.dim(d) % members != 0)
        return wrong(i, "dimension ", d, " (", s.dim(d), ") must be a multiple of the ", members,
                     " members of a group");
    return one_or_tuple(std::move(shapes));
  }
  if (i.num_operands() != members)
    return wrong(i, "takes a piece for each of the ", members, " members of a group, found ", i.num_operands());
  for (const Shape& s : shapes)
    if (!compatible(s, shapes.front())) return wrong(i, "pieces must be equal, found ", shapes.front(), " and ", s);
  return Shape::tuple(std::move(shapes));
}

// The rooted ones: with a dynamic root the last operand names it.
Expected<Shape> infer_rooted(const Instruction& i) {
  const bool dynamic = i.attr<CollectiveAttr>().has_dynamic_root;
  const std::int64_t data = i.num_operands() - (dynamic ? 1 : 0);
  if (data < 1) return wrong(i, i.opcode(), " needs an operand");
  TRY(want_arrays(i));
  if (dynamic && !is_integral(i.operand(data)->shape().dtype()))
    return wrong(i, "the root must be an integer, found ", i.operand(data)->shape());
  TRY(group_mode(i));
  if (i.opcode() == Opcode::CollectiveReduce)
    for (std::int64_t k = 0; k < data; ++k) {
      const Shape scalar = Shape::scalar(i.operand(k)->shape().dtype());
      TRY(want_signature(i, *i.to_apply(), {scalar, scalar}, scalar, /*ignore_precision=*/true));
    }
  return one_or_tuple(same_shapes(i, data));
}

Expected<Shape> infer_permute(const Instruction& i) {
  if (i.num_operands() < 1) return wrong(i, i.opcode(), " needs an operand");
  if (moves_slices(i)) {
    TRY(permute_slices(i));
    return i.operand(1)->shape();
  }
  TRY(want_arrays(i));
  return one_or_tuple(same_shapes(i, i.num_operands()));
}

Expected<Shape> infer_permute_start(const Instruction& i) {
  const Shape result = TRY(infer_permute(i));
  std::vector<Shape> elements{moves_slices(i) ? i.operand(0)->shape() : result, result};
  // Context words, as written.
  const Shape& written = i.shape();
  if (written.is_tuple())
    for (std::size_t k = 2; k < written.elements().size() && k < 4; ++k) elements.push_back(Shape::scalar(DType::U32));
  return Shape::tuple(std::move(elements));
}

Expected<Shape> infer_ragged_all_to_all(const Instruction& i) {
  TRY(want_arrays(i));
  const Shape &input = i.operand(0)->shape(), &output = i.operand(1)->shape(), &offsets = i.operand(2)->shape();
  if (input.dtype() != output.dtype() || input.rank() != output.rank() || input.rank() < 1)
    return wrong(i, "input ", input, " and output ", output, " must have one type and rank of at least 1");
  for (std::int64_t d = 1; d < input.rank(); ++d)
    if (input.dim(d) != output.dim(d)) return wrong(i, "rows of ", input, " and ", output, " must be equal");
  for (std::int64_t k = 2; k < 6; ++k) {
    const Shape& s = i.operand(k)->shape();
    if (!compatible(s, offsets) || !is_integral(s.dtype()) || s.rank() < 1 || s.rank() > 2)
      return wrong(i, "operand ", k, " must be integers of rank 1 or 2, all of one shape; found ", s);
  }
  const std::int64_t members = TRY(group_size(i));
  if (members < 1 || offsets.dim(0) % members != 0)
    return wrong(i, "offsets ", offsets, " must be a multiple of the ", members, " members of a group");
  return with_type(output, output.dtype());
}

Expected<Shape> infer_done(const Instruction& i, Opcode start, bool is_pair) {
  const Instruction& before = *i.operand(0);
  if (before.opcode() != start) return wrong(i, "the operand must be ", start, ", found ", before.opcode());
  if (!is_pair) return before.shape();
  if (!before.shape().is_tuple() || before.shape().elements().size() < 2)
    return wrong(i, "the operand must be a pair, found ", before.shape());
  return before.shape().element(1);
}

}  // namespace

Expected<Shape> infer_collective(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::AllGather: {
      std::vector<Shape> shapes = TRY(gathered(i));
      return one_or_tuple(std::move(shapes));
    }
    case Opcode::AllGatherStart: {
      std::vector<Shape> shapes = TRY(gathered(i));
      return Shape::tuple({one_or_tuple(same_shapes(i, i.num_operands())), one_or_tuple(std::move(shapes))});
    }
    case Opcode::AllReduce:
    case Opcode::AllReduceStart: return infer_all_reduce(i);
    case Opcode::ReduceScatter: return infer_reduce_scatter(i);
    case Opcode::AllToAll: return infer_all_to_all(i);
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectiveReduce: return infer_rooted(i);
    case Opcode::CollectivePermute: return infer_permute(i);
    case Opcode::CollectivePermuteStart: return infer_permute_start(i);
    case Opcode::RaggedAllToAll: return infer_ragged_all_to_all(i);
    case Opcode::AllGatherDone: return infer_done(i, Opcode::AllGatherStart, true);
    case Opcode::AllReduceDone: return infer_done(i, Opcode::AllReduceStart, false);
    case Opcode::CollectivePermuteDone: return infer_done(i, Opcode::CollectivePermuteStart, true);
    default: return wrong(i, i.opcode(), " is no collective");
  }
}

}  // namespace hloom::hlo

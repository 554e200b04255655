#include "fusion/level_space.h"

#include <algorithm>
#include <bit>

namespace hloom::fusion {

using hlo::Instruction;
using hlo::Opcode;

namespace {

bool moves(const Instruction& i) {
  return i.opcode() == Opcode::Slice || i.opcode() == Opcode::Pad || i.opcode() == Opcode::Concatenate;
}

constexpr std::int64_t kNearBytes = 512 * 1024;  // of lines side by side: they stay in the second cache
constexpr std::int64_t kFewLanes = 4;            // with fewer, instructions do little at once
constexpr std::int64_t kSquare = 16;             // lines that registers turn over at once

// Whether dimension d of the result is another than that of the operand, or lies elsewhere in it.
bool changes(const Instruction& i, std::size_t d) {
  const std::int64_t from = i.operand(0)->shape().dim(static_cast<std::int64_t>(d));
  if (i.opcode() == Opcode::Concatenate) return i.dimension(0) == static_cast<std::int64_t>(d);
  if (i.opcode() == Opcode::Pad) {
    const auto& pad = i.attr<hlo::PadAttr>().dims[d];
    return pad.low != 0 || pad.high != 0 || (pad.interior != 0 && from > 1);
  }
  const auto& s = i.attr<hlo::SliceAttr>();
  return s.starts[d] != 0 || i.shape().dim(static_cast<std::int64_t>(d)) != from;
}

bool is_dense_along(const Shape& shape, std::size_t along) {
  for (const std::int64_t d : shape.layout().minor_to_major)
    if (shape.dim(d) != 1) return static_cast<std::size_t>(d) == along;
  return false;
}

}  // namespace

std::optional<LevelSpace> level_space(const Instruction& i) {
  if (!moves(i)) return {};
  std::optional<LevelSpace> space;
  for (std::size_t d = 0; d < i.shape().dims().size(); ++d) {
    if (!changes(i, d)) continue;
    if (space) return {};
    space = LevelSpace{d, i.shape().dims()};
    space->dims[d] = 0;
  }
  return space;
}

bool moves_along(const Instruction& i, const LevelSpace& space) {
  if (!moves(i) || !lies_in(i.shape(), space)) return false;
  for (std::size_t d = 0; d < space.dims.size(); ++d)
    if (d != space.along && changes(i, d)) return false;
  return true;
}

bool lies_in(const Shape& shape, const LevelSpace& space) {
  if (!shape.is_array() || shape.dims().size() != space.dims.size() || !shape.layout().is_plain()) return false;
  if (shape.num_elements() == 0 || (shape.dtype() != DType::Pred && bit_width(shape.dtype()) < 8)) return false;
  for (std::size_t d = 0; d < space.dims.size(); ++d)
    if (d != space.along && shape.dims()[d] != space.dims[d]) return false;
  return true;
}

bool stays_in_line(const Instruction& user, std::int64_t k, const LevelSpace& space) {
  if (!lies_in(user.shape(), space) || !lies_in(user.operand(k)->shape(), space)) return false;
  if (hlo::is_elementwise(user.opcode())) return user.shape().dims() == user.operand(k)->shape().dims();
  return moves_along(user, space) && (user.opcode() == Opcode::Concatenate || k == 0);
}

bool is_kept_level(const Instruction& i) {
  return i.opcode() != Opcode::Slice &&
         std::ranges::count_if(i.users(), [](const Instruction* user) { return user->opcode() != Opcode::Tuple; }) > 1;
}

LevelLanes level_lanes(const LevelSpace& space, const std::vector<const Instruction*>& members,
                                      const std::vector<const Instruction*>& operands, const Shape& result) {
  LevelLanes chosen;
  chosen.turned = is_dense_along(result, space.along);
  std::int64_t bytes = 0, widest = 1;
  const auto keep = [&](const Instruction& i) {
    bytes += i.shape().dim(static_cast<std::int64_t>(space.along)) * byte_width(i.shape().dtype());
  };
  for (const Instruction* i : members) {
    widest = std::max<std::int64_t>(widest, byte_width(i->shape().dtype()));
    const bool leaves = i->is_root() || std::ranges::any_of(i->users(), [&](const Instruction* u) {
      return u->opcode() == Opcode::Tuple || std::ranges::find(members, u) == members.end();
    });
    if (is_kept_level(*i) || (leaves && chosen.turned)) keep(*i);
  }
  for (const Instruction* o : operands)
    if (chosen.turned && lies_in(o->shape(), space)) keep(*o);
  std::int64_t side_by_side = 1;
  for (const std::int64_t d : result.layout().minor_to_major) {
    chosen.dim = static_cast<std::size_t>(d);
    side_by_side = chosen.dim == space.along ? 1 : result.dim(d);
    if (side_by_side > 1) break;
  }
  const std::int64_t most = std::min(64 / widest, chosen.turned ? kSquare : 64);
  chosen.lanes = std::min(most, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(side_by_side))));
  while (chosen.lanes > kFewLanes && chosen.lanes * bytes > kNearBytes) chosen.lanes /= 2;
  chosen.fits = chosen.lanes >= std::min(kFewLanes, most) && chosen.lanes * bytes <= 2 * kNearBytes;
  return chosen;
}

}  // namespace hloom::fusion

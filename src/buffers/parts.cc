#include "buffers/parts.h"

#include <algorithm>

#include "buffers/steps.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr std::int64_t kLeastBytes = 256;  // less is copied in a few cycles

const Instruction& behind_bitcasts(const Instruction& i) {
  const Instruction* at = &i;
  while (at->opcode() == Opcode::Bitcast) at = at->operand(0);
  return *at;
}

bool is_plain(const Shape& s) { return s.is_array() && s.has_layout() && s.layout().is_plain(); }

bool same_order(const Shape& a, const Shape& b) { return a.dtype() == b.dtype() && (a.rank() < 2 || a.layout().minor_to_major == b.layout().minor_to_major); }

// Dimensions from the slowest on.
std::vector<std::int64_t> slowest_first(const Shape& s) {
  if (s.rank() == 1) return {0};
  const auto& order = s.layout().minor_to_major;
  return {order.rbegin(), order.rend()};
}

std::optional<Parts> concatenated(const Instruction& fusion, const Instruction& concatenate) {
  const Shape& whole = concatenate.shape();
  const std::int64_t along = concatenate.dimensions().front();
  for (const std::int64_t d : slowest_first(whole)) {
    if (d == along) break;
    if (whole.dim(d) != 1) return std::nullopt;
  }
  Parts parts{Parts::Kind::Concatenate, std::vector<std::int64_t>(static_cast<std::size_t>(fusion.num_operands()), -1)};
  std::int64_t offset = 0;
  for (const Instruction* operand : concatenate.operands()) {
    const Instruction& parameter = behind_bitcasts(*operand);
    if (parameter.opcode() != Opcode::Parameter || !same_order(operand->shape(), whole)) return std::nullopt;
    std::int64_t& place = parts.offsets[static_cast<std::size_t>(parameter.parameter_number())];
    if (place >= 0 || !is_plain(parameter.shape())) return std::nullopt;
    place = offset;
    offset += leaf_bytes(operand->shape());
  }
  if (std::ranges::find(parts.offsets, -1) != parts.offsets.end() || offset != leaf_bytes(fusion.shape())) return std::nullopt;
  return parts;
}

std::optional<Parts> sliced(const Instruction& slice) {
  const Instruction& parameter = behind_bitcasts(*slice.operand(0));
  const Shape &whole = slice.operand(0)->shape(), &part = slice.shape();
  if (parameter.opcode() != Opcode::Parameter || !is_plain(parameter.shape()) || !same_order(whole, part)) return std::nullopt;
  const auto& bounds = slice.attr<hlo::SliceAttr>();
  std::int64_t first = 0;
  bool is_cut = false;  // a slower dimension of several is not taken whole, or holds several
  for (const std::int64_t d : slowest_first(whole)) {
    const auto n = static_cast<std::size_t>(d);
    if (bounds.strides[n] != 1 && part.dim(d) > 1) return std::nullopt;
    if (is_cut && part.dim(d) != whole.dim(d)) return std::nullopt;
    is_cut = is_cut || part.dim(d) > 1;
    first = first * whole.dim(d) + bounds.starts[n];
  }
  const std::int64_t element = leaf_bytes(whole) / std::max<std::int64_t>(whole.num_elements(), 1);
  return Parts{Parts::Kind::Slice, {first * element}};
}

}  // namespace

std::optional<Parts> parts_of(const Instruction& i) {
  if (i.opcode() != Opcode::Fusion || !i.shape().is_array() || leaf_bytes(i.shape()) < kLeastBytes) return std::nullopt;
  if (!is_plain(i.shape()) || !i.control_predecessors().empty() || !i.control_successors().empty()) return std::nullopt;
  const Instruction& root = behind_bitcasts(*i.called(0)->root());
  const bool is_one_space = std::ranges::all_of(i.operands(), [&](const Instruction* o) {
    return o->shape().is_array() && space_of(o->shape()) == space_of(i.shape());
  });
  if (!is_one_space || !is_plain(root.shape())) return std::nullopt;
  if (root.opcode() == Opcode::Concatenate) return concatenated(i, root);
  if (root.opcode() == Opcode::Slice && i.num_operands() == 1) return sliced(root);
  return std::nullopt;
}

bool is_free(const Instruction& i) {
  const auto& decisions = i.annotations().decisions;
  const auto found = decisions.find("free");
  return found != decisions.end() && found->second == "yes";
}

void set_free(Instruction& i, bool is_free) { i.mutable_annotations().decisions["free"] = is_free ? "yes" : "no"; }

bool have_parts(const hlo::Module& module) {
  for (const Computation* c : step_computations(module))
    for (const Instruction& i : c->instructions())
      if (parts_of(i)) return true;
  return false;
}

}  // namespace hloom::buffers

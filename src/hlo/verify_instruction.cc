// One instruction: its shape against the inferred one, sizes, layouts: H302, H303, H701, H704, H706 … H718,
// H728 … H730, H734.
#include "hlo/infer_rules.h"
#include "hlo/infer_shape.h"
#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

// The rule that inference checks for an opcode.
std::string_view rule_of(Opcode opcode) {
  switch (opcode) {
    case Opcode::Broadcast: return "H706";
    case Opcode::Transpose:
    case Opcode::Reverse:
    case Opcode::Concatenate: return "H707";
    case Opcode::Reshape:
    case Opcode::DynamicReshape: return "H708";
    case Opcode::Slice:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice: return "H709";
    case Opcode::Pad: return "H710";
    case Opcode::Gather:
    case Opcode::Scatter: return "H711";
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter:
    case Opcode::Convolution: return "H712";
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot: return "H713";
    case Opcode::Iota: return "H714";
    case Opcode::Sort: return "H715";
    case Opcode::Bitcast:
    case Opcode::BitcastConvert: return "H716";
    case Opcode::ReducePrecision:
    case Opcode::Fft:
    case Opcode::TriangularSolve:
    case Opcode::Cholesky:
    case Opcode::Topk: return "H717";
    case Opcode::While:
    case Opcode::Conditional: return "H718";
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone: return "H720";
    case Opcode::CopyStart:
    case Opcode::CopyDone:
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone: return "H721";
    case Opcode::GetDimensionSize:
    case Opcode::SetDimensionSize: return "H728";
    case Opcode::RngBitGenerator: return "H729";
    case Opcode::Domain:
    case Opcode::OptBarrier:
    case Opcode::AddDependency: return "H734";
    default: return kind(opcode) == OpcodeKind::Collective ? "H722" : "H701";
  }
}

bool is_control(Opcode opcode) { return opcode == Opcode::While || opcode == Opcode::Conditional; }

// Bits of the storage fit 63 bits, padding of tiles included.
bool storage_in_range(const Shape& s) {
  const Layout::Extra& p = s.layout().parts();
  __int128 bits = *s.element_count();
  constexpr __int128 kMost = static_cast<__int128>(INT64_MAX);
  for (const Layout::Tile& tile : p.tiles)
    for (const std::int64_t t : tile) {
      if (t > 0) bits *= t;  // a tile pads each of its dimensions to at most its own size
      if (bits > kMost) return false;
    }
  bits += p.tail_padding;
  bits *= p.element_bits > 0 ? p.element_bits : byte_width(s.dtype()) * 8;
  return bits <= kMost && p.metadata_bytes >= 0 && p.metadata_bytes <= INT64_MAX / 2;
}

// Each tile lies on the dimensions that the tiles before it left.
std::string_view tiles_fault(const Shape& s) {
  auto rank = static_cast<std::int64_t>(s.rank());
  for (const Layout::Tile& tile : s.layout().parts().tiles) {
    const std::int64_t combined = std::ranges::count(tile, Layout::kCombine);
    for (const std::int64_t t : tile)
      if (t < 1 && t != Layout::kCombine) return "a tile has a size below 1";
    if (tile.empty() || tile.back() == Layout::kCombine) return "a tile's last dimension is missing or combined";
    if (combined > 0 && static_cast<std::int64_t>(tile.size()) > rank) return "a tile combines more than there is";
    rank += static_cast<std::int64_t>(tile.size()) - 2 * combined;
    if (rank > 4 * Shape::kMaxRank) return "there are too many tiles";
  }
  return {};
}

std::string_view layout_fault(const Shape& s) {
  const Layout& layout = s.layout();
  const Layout::Extra& p = layout.parts();
  std::uint64_t seen = 0;
  for (const std::int64_t d : layout.minor_to_major) {
    if (d < 0 || d >= s.rank() || ((seen >> d) & 1) != 0) return "minor_to_major is not a permutation";
    seen |= 1ull << d;
  }
  if (static_cast<std::int64_t>(layout.minor_to_major.size()) != s.rank()) return "minor_to_major has another rank";
  if (!p.dims.empty() && static_cast<std::int64_t>(p.dims.size()) != s.rank()) return "D(…) has another rank";
  if (const auto fault = tiles_fault(s); !fault.empty()) return fault;
  if (p.tail_padding < 1) return "the tail padding is below 1";
  if (p.element_bits < 0 || p.element_bits > 128) return "the element size is out of range";
  for (const Layout::Split& split : p.splits)
    if (split.dimension < 0 || split.dimension >= s.rank()) return "a split names a dimension that is not there";
  return {};
}

void check_leaf(const Instruction& i, const Shape& s, Report& report) {
  if (!s.is_valid()) return report.add("H701", i, "has no shape");
  if (!s.is_array()) return;
  if (s.rank() > Shape::kMaxRank)
    return report.add("H302", i, "has rank ", s.rank(), ", at most ", Shape::kMaxRank, " are supported");
  if (!sizes_in_range(s)) return report.add("H302", i, "the sizes of ", s, " are negative or beyond 2^63");
  if (!s.element_count()) return report.add("H303", i, s, " has a dimension without bound");
  if (s.has_layout()) {
    if (const auto fault = layout_fault(s); !fault.empty())
      return report.add("H730", i, "layout of ", hloom::to_string(s), ": ", fault);
    if (!storage_in_range(s)) return report.add("H302", i, "the storage of ", s, " is larger than 2^63 bits");
  } else if (report.options().layout_sensitive) {
    report.add("H730", i, s, " has no layout");
  }
}

void check_sizes(const Instruction& i, const Shape& s, Report& report) {
  if (!s.is_tuple() && s.dtype() != DType::Buffer) return check_leaf(i, s, report);
  for (const Shape& e : s.elements()) check_sizes(i, e, report);
}

// Ops whose result has its operands' layout.
bool keeps_layout(Opcode opcode) {
  switch (opcode) {
    case Opcode::Concatenate:
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Pad:
    case Opcode::Reverse:
    case Opcode::Slice: return true;
    default: return kind(opcode) == OpcodeKind::Elementwise;
  }
}

void check_kept_layout(const Instruction& i, Report& report) {
  if (!report.options().layout_sensitive || !keeps_layout(i.opcode()) || !i.shape().has_layout()) return;
  for (const Instruction* operand : i.operands()) {
    const Shape& s = operand->shape();
    if (s.rank() == i.shape().rank() && s.has_layout() &&
        s.layout().minor_to_major != i.shape().layout().minor_to_major)
      report.add("H730", i, "is ", hloom::to_string(i.shape()), ", operand ", operand->name(), " ", hloom::to_string(s),
                 ": ", i.opcode(), " keeps the layout");
  }
}

// Ops that the options may let mix precisions: those whose operands otherwise have one type.
bool wants_one_type(Opcode opcode) {
  switch (opcode) {
    case Opcode::Concatenate:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Pad:
    case Opcode::TriangularSolve: return true;
    default: return kind(opcode) == OpcodeKind::Elementwise && opcode != Opcode::Map;
  }
}

void check_precision(const Instruction& i, Report& report) {
  if (report.options().mixed_precision || !wants_one_type(i.opcode())) return;
  const Instruction* first = nullptr;
  for (const Instruction* operand : i.operands()) {
    const DType type = operand->shape().dtype();
    if (!is_floating(type)) continue;
    if (first == nullptr) first = operand;
    if (type != first->shape().dtype())
      return report.add(rule_of(i.opcode()), i, "mixes ", first->shape().dtype(), " and ", type);
  }
}

// A sharding without what does not count.
Sharding essence(Sharding s) {
  s.metadata.clear();
  for (Sharding& e : s.elements) e = essence(std::move(e));
  return s;
}

void check_loop_shardings(const Instruction& i, Report& report) {
  if (i.opcode() != Opcode::While || !i.annotations().sharding) return;
  const Sharding carried = essence(*i.annotations().sharding);
  for (const Instruction* x : {i.body()->root(), i.body()->parameter(0)})
    if (x->annotations().sharding && essence(*x->annotations().sharding) != carried)
      report.add("H718", i, "its sharding and that of ", x->name(), " differ");
}

}  // namespace

void verify_instruction(const Instruction& i, Report& report) {
  const std::size_t before = report.size();
  check_sizes(i, i.shape(), report);
  if (report.size() != before) return;
  if (auto good = check_form(i); !good) return report.add_error("H701", i, good.error());
  Expected<Shape> inferred = infer_by_rules(i);
  if (!inferred) {
    const bool signature = inferred.error().code() == Code::FailedPrecondition && !is_control(i.opcode());
    return report.add_error(signature ? "H704" : rule_of(i.opcode()), i, inferred.error());
  }
  const auto agrees = report.options().mixed_precision ? compatible_ignoring_precision : compatible;
  if (!agrees(i.shape(), *inferred))
    return report.add("H701", i, "is declared ", i.shape(), ", ", i.opcode(), " gives ", *inferred);
  check_precision(i, report);
  check_kept_layout(i, report);
  check_loop_shardings(i, report);
}

}  // namespace hloom::hlo

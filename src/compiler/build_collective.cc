#include "compiler/build_collective.h"

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "hlo/device_transfers.h"
#include "hlo/participants.h"
#include "kernels/plan_member_fold.h"

namespace hloom::compiler {
namespace {

using collectives::Array;
using collectives::Kind;
using hlo::Instruction;
using hlo::Opcode;

Kind kind_of(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::AllGather:
    case Opcode::AllGatherStart: return Kind::AllGather;
    case Opcode::AllReduce:
    case Opcode::AllReduceStart: return Kind::AllReduce;
    case Opcode::ReduceScatter: return Kind::ReduceScatter;
    case Opcode::AllToAll: return i.attr<hlo::CollectiveAttr>().has_dimension ? Kind::AllToAll : Kind::Exchange;
    case Opcode::CollectiveBroadcast: return Kind::Broadcast;
    case Opcode::CollectiveReduce: return Kind::Reduce;
    case Opcode::RaggedAllToAll: return Kind::Ragged;
    default: return Kind::Permute;
  }
}

bool folds(Kind kind) { return kind == Kind::AllReduce || kind == Kind::ReduceScatter || kind == Kind::Reduce; }

/// A member's piece of a shape along a dimension, as it lies in memory.
struct Piece {
  std::int64_t rows = 1, elements = 1;
};

Piece piece_along(const Shape& shape, std::int64_t dimension) {
  Piece piece;
  bool inside = true;
  for (const std::int64_t d : shape.layout().minor_to_major) {
    (inside ? piece.elements : piece.rows) *= shape.dim(d);
    if (d == dimension) inside = false;
  }
  return piece;
}

bool in_one_layout(const Shape& operand, const Shape& result) {
  return operand.layout().minor_to_major == result.layout().minor_to_major;
}

class CollectiveBuilder {
 public:
  CollectiveBuilder(const Instruction& i, std::int64_t number) : i_(i) {
    c_.operation.name = i.name();
    c_.operation.number = number;
    c_.operation.kind = kind_of(i);
  }

  Expected<BuiltCollective> build() {
    TRY(participants());
    if (c_.operation.kind == Kind::Ragged) return ragged();
    const std::vector<std::int64_t> written = written_leaves(i_);
    const auto* attr = i_.attributes().get_if<hlo::CollectiveAttr>();
    c_.operation.root_is_data = attr != nullptr && attr->has_dynamic_root;
    if (c_.operation.root_is_data) index_type(i_.operand(i_.num_operands() - 1)->shape());
    for (std::size_t a = 0; a < written.size(); ++a)
      TRY(add_array(i_.operand(static_cast<std::int64_t>(a))->shape(),
                    *leaves(i_.shape())[static_cast<std::size_t>(written[a])]));
    return std::move(c_);
  }

 private:
  Expected<> participants() {
    const std::int64_t devices = i_.module().config().replica_count * i_.module().config().num_partitions;
    if (c_.operation.kind != Kind::Permute) {
      collectives::set_groups(c_.operation, TRY(hlo::device_groups(i_)), devices);
      return {};
    }
    HLOOM_CHECK(i_.attr<hlo::PermuteAttr>().slice_sizes.empty());
    collectives::set_pairs(c_.operation, TRY(hlo::device_pairs(i_)), devices);
    return {};
  }

  // Sub-byte ones have a byte each, sign- or zero-extended.
  void index_type(const Shape& shape) {
    c_.operation.index_bytes = byte_width(shape.dtype());
    c_.operation.index_is_signed = is_signed(shape.dtype());
  }

  Expected<BuiltCollective> ragged() {
    const Shape &input = i_.operand(0)->shape(), &output = i_.shape(), &offsets = i_.operand(2)->shape();
    HLOOM_CHECK(in_one_layout(input, output));
    HLOOM_CHECK(offsets.rank() == 1 && input.layout().minor_to_major.back() == 0);
    index_type(offsets);
    collectives::Operation& o = c_.operation;
    o.input_rows = input.dim(0);
    o.output_rows = output.dim(0);
    o.row_bytes = byte_width(input.dtype());
    for (std::int64_t d = 1; d < input.rank(); ++d) o.row_bytes *= input.dim(d);
    o.ragged_entries = offsets.dim(0) / static_cast<std::int64_t>(o.groups[0].size());
    o.arrays.push_back({1, output.size_bytes(), {}});
    return std::move(c_);
  }

  Expected<> add_array(const Shape& operand, const Shape& result) {
    HLOOM_CHECK(in_one_layout(operand, result));
    Piece piece{1, operand.num_elements()};
    const Kind kind = c_.operation.kind;
    if (kind == Kind::AllGather) piece = piece_along(operand, i_.dimension(0));
    if (kind == Kind::ReduceScatter) piece = piece_along(result, i_.dimension(0));
    if (kind == Kind::AllToAll) {
      piece = piece_along(operand, i_.dimension(0));
      piece.elements /= static_cast<std::int64_t>(c_.operation.groups[0].size());
    }
    Array array;
    array.rows = piece.rows;
    array.piece_bytes = piece.elements * byte_width(operand.dtype());
    if (folds(kind)) TRY(add_folds(piece, operand.dtype(), array));
    c_.operation.arrays.push_back(std::move(array));
    return {};
  }

  Expected<> add_folds(const Piece& piece, DType type, Array& array) {
    std::set<std::int64_t> sizes;
    for (const auto& group : c_.operation.groups) sizes.insert(static_cast<std::int64_t>(group.size()));
    for (const std::int64_t members : sizes) {
      if (members == 1) continue;
      kernels::MemberFold fold;
      fold.reducer = i_.to_apply();
      fold.type = type;
      fold.members = members;
      fold.results = c_.operation.kind == Kind::AllReduce ? members : 1;
      fold.rows = piece.rows;
      fold.columns = piece.elements;
      fold.pitch = piece.elements * (c_.operation.kind == Kind::ReduceScatter ? members : 1);
      const std::string name = i_.name() + ".fold" + std::to_string(c_.kernels.size());
      auto kernel = kernels::plan_member_fold(fold, name);
      if (!kernel) return fail(kernel.error().code(), i_.name(), ": ", kernel.error().message());
      array.folds.push_back({members, nullptr, kernel->blocks});
      c_.kernels.push_back(*std::move(kernel));
    }
    return {};
  }

  const Instruction& i_;
  BuiltCollective c_;
};

}  // namespace

bool is_collective(const Instruction& i) { return hlo::has_participants(i.opcode()); }

std::vector<std::int64_t> written_leaves(const Instruction& i) {
  std::int64_t first = 0, count = num_leaves(i.shape());
  if (i.opcode() == Opcode::AllGatherStart || i.opcode() == Opcode::CollectivePermuteStart) {
    first = num_leaves(i.shape().element(0));
    count = num_leaves(i.shape().element(1));
  }
  std::vector<std::int64_t> written;
  for (std::int64_t k = 0; k < count; ++k) written.push_back(first + k);
  return written;
}

bool is_device_transfer(const Instruction& i) {
  if (i.opcode() != Opcode::CustomCall) return false;
  const std::string& target = i.attr<hlo::CustomCallAttr>().target;
  return target == hlo::kSendToDevice || target == hlo::kTakeFromDevice;
}

Expected<collectives::Operation> build_transfer(const Instruction& i, std::int64_t number) {
  const hlo::DeviceTransfer transfer = TRY(hlo::read_device_transfer(i));
  const bool takes = i.attr<hlo::CustomCallAttr>().target == hlo::kTakeFromDevice;
  collectives::Operation operation;
  operation.name = i.name();
  operation.number = number;
  operation.kind = takes ? Kind::Take : Kind::Send;
  operation.mailbox = transfer.mailbox;
  const hlo::ModuleConfig& config = i.module().config();
  collectives::set_transfer(operation, transfer.pairs, config.replica_count * config.num_partitions);
  for (const Shape* leaf : leaves(takes ? i.shape().element(0) : i.operand(0)->shape()))
    operation.arrays.push_back({1, leaf->size_bytes(), {}});
  return operation;
}

Expected<BuiltCollective> build_collective(const Instruction& i, std::int64_t number) {
  return CollectiveBuilder(i, number).build();
}

}  // namespace hloom::compiler

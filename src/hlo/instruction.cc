#include "hlo/instruction.h"

#include <algorithm>

#include "base/check.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

void erase_one(std::vector<Instruction*>& list, const Instruction* value) {
  const auto found = std::find(list.rbegin(), list.rend(), value);
  HLOOM_CHECK(found != list.rend());
  *found = list.back();
  list.pop_back();
}

}  // namespace

void Instruction::replace_operand(std::int64_t i, Instruction* with) {
  Instruction*& slot = operands_[static_cast<std::size_t>(i)];
  erase_one(slot->users_, this);
  slot = with;
  with->users_.push_back(this);
}

void Instruction::append_operand(Instruction* operand) {
  operands_.push_back(operand);
  operand->users_.push_back(this);
}

const std::vector<Instruction*>& Instruction::control_predecessors() const {
  static const std::vector<Instruction*> kNone;
  return links_ ? links_->before : kNone;
}

const std::vector<Instruction*>& Instruction::control_successors() const {
  static const std::vector<Instruction*> kNone;
  return links_ ? links_->after : kNone;
}

void Instruction::add_control_predecessor(Instruction* before) {
  HLOOM_CHECK(before->parent_ == parent_ && before != this);
  const auto& known = control_predecessors();
  if (std::ranges::find(known, before) != known.end()) return;
  if (!links_) links_ = std::make_unique<Links>();
  if (!before->links_) before->links_ = std::make_unique<Links>();
  links_->before.push_back(before);
  before->links_->after.push_back(this);
}

void Instruction::drop_control_edges() {
  if (!links_) return;
  for (Instruction* before : links_->before) erase_one(before->links_->after, this);
  for (Instruction* after : links_->after) erase_one(after->links_->before, this);
  links_->before.clear();
  links_->after.clear();
}

const std::vector<Computation*>& Instruction::called() const {
  static const std::vector<Computation*> kNone;
  return links_ ? links_->called : kNone;
}

void Instruction::set_called(std::vector<Computation*> called) {
  if (!links_ && called.empty()) return;
  if (!links_) links_ = std::make_unique<Links>();
  links_->called = std::move(called);
}

const Annotations& Instruction::annotations() const {
  static const Annotations kNone;
  return annotations_ ? *annotations_ : kNone;
}

Annotations& Instruction::mutable_annotations() {
  if (!annotations_) annotations_ = std::make_unique<Annotations>();
  return *annotations_;
}

bool Instruction::is_root() const { return parent_->root() == this; }
Module& Instruction::module() const { return parent_->module(); }

Attributes attributes_for(Opcode opcode) {
  switch (opcode) {
    case Opcode::Parameter: return ParameterAttr();
    case Opcode::Constant: return ConstantAttr();
    case Opcode::Iota: return IotaAttr();
    case Opcode::GetTupleElement: return TupleElementAttr();
    case Opcode::Compare: return CompareAttr();
    case Opcode::Slice: return SliceAttr();
    case Opcode::DynamicSlice: return DynamicSliceAttr();
    case Opcode::Pad: return PadAttr();
    case Opcode::Reshape: return ReshapeAttr();
    case Opcode::Gather: return GatherAttr();
    case Opcode::Scatter: return ScatterAttr();
    case Opcode::ReduceWindow:
    case Opcode::SelectAndScatter: return WindowAttr();
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot: return DotAttr();
    case Opcode::Convolution: return ConvolutionAttr();
    case Opcode::Sort: return SortAttr();
    case Opcode::Topk: return TopKAttr();
    case Opcode::Scan: return ScanAttr();
    case Opcode::Fft: return FftAttr();
    case Opcode::TriangularSolve: return TriangularSolveAttr();
    case Opcode::Cholesky: return CholeskyAttr();
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormTraining: return BatchNormAttr();
    case Opcode::Rng: return RngAttr();
    case Opcode::RngBitGenerator: return RngBitsAttr();
    case Opcode::RngGetAndUpdateState: return RngStateAttr();
    case Opcode::ReducePrecision: return ReducePrecisionAttr();
    case Opcode::Fusion: return FusionAttr();
    case Opcode::Call: return CallAttr();
    case Opcode::CustomCall: return CustomCallAttr();
    case Opcode::AllGather:
    case Opcode::AllGatherStart:
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectiveReduce:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter: return CollectiveAttr();
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteStart: return PermuteAttr();
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::AsyncDone: return AsyncAttr();
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone: return TransferAttr();
    case Opcode::Infeed:
    case Opcode::Outfeed: return FeedAttr();
    case Opcode::CopyStart: return CopyStartAttr();
    case Opcode::Domain: return DomainAttr();
    case Opcode::Shuffle: return ShuffleAttr();
    default: return Attributes();  // elementwise ops and others that need no words
  }
}

namespace {

bool computation_has_side_effect(const Computation& computation) {
  return std::ranges::any_of(computation.instructions(), [](const Instruction& i) { return has_side_effect(i); });
}

}  // namespace

bool has_side_effect(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Send:
    case Opcode::SendDone:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Rng:
    case Opcode::RngGetAndUpdateState: return true;
    case Opcode::CustomCall:
      if (i.attr<CustomCallAttr>().has_side_effect) return true;
      break;
    case Opcode::AllGatherDone:
    case Opcode::AllReduceDone:
    case Opcode::AsyncDone:
    case Opcode::AsyncUpdate:
    case Opcode::CollectivePermuteDone: return has_side_effect(*i.operand(0));
    default: break;
  }
  if (const auto* collective = i.attributes().get_if<CollectiveAttr>(); collective && collective->channel_id)
    return true;
  if (const auto* permute = i.attributes().get_if<PermuteAttr>(); permute && permute->channel_id) return true;
  return std::ranges::any_of(i.called(), [](const Computation* c) { return computation_has_side_effect(*c); });
}

}  // namespace hloom::hlo

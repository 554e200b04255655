#include "hlo/infer_shape.h"

#include "hlo/infer_rules.h"
#include "hlo/module.h"

namespace hloom::hlo {
namespace {

struct Range {
  std::size_t least, most;
};

// How many computations an opcode calls.
Range num_called(Opcode opcode) {
  switch (opcode) {
    case Opcode::AllReduce:
    case Opcode::AllReduceStart:
    case Opcode::AsyncStart:
    case Opcode::Call:
    case Opcode::CollectiveReduce:
    case Opcode::Fusion:
    case Opcode::Map:
    case Opcode::Reduce:
    case Opcode::ReduceScatter:
    case Opcode::ReduceWindow:
    case Opcode::Scan:
    case Opcode::Scatter:
    case Opcode::Sort: return {1, 1};
    case Opcode::AsyncDone:
    case Opcode::AsyncUpdate: return {0, 1};
    case Opcode::SelectAndScatter:
    case Opcode::While: return {2, 2};
    case Opcode::Conditional: return {1, SIZE_MAX};
    case Opcode::CustomCall: return {0, SIZE_MAX};
    default: return {0, 0};
  }
}

bool has_family(const Instruction& i) {
  const Attributes expected = attributes_for(i.opcode());
  if (expected.empty()) return true;
  bool same = false;
  expected.visit([&]<typename T>(const T&) { same = i.attributes().get_if<T>() != nullptr; });
  return same;
}

}  // namespace

Expected<> check_form(const Instruction& i) {
  const int count = arity(i.opcode());
  if (count >= 0 && i.num_operands() != count)
    return wrong(i, i.opcode(), " expects ", count, " operands, found ", i.num_operands());
  const Range called = num_called(i.opcode());
  if (i.called().size() < called.least || i.called().size() > called.most)
    return wrong(i, i.opcode(), " calls ", i.called().size(), " computations, must be ", called.least);
  for (const Computation* c : i.called())
    if (c == nullptr || c->root() == nullptr || std::ranges::find(c->parameters(), nullptr) != c->parameters().end())
      return wrong(i, "calls a computation without root or with a gap in its parameters");
  if (!has_family(i)) return wrong(i, "carries attributes of another opcode");
  for (const Instruction* operand : i.operands())
    if (!sizes_in_range(operand->shape()))
      return wrong(i, "the sizes of operand ", operand->name(), " (", operand->shape(), ") are out of range");
  return {};
}

Expected<Shape> infer_shape(const Instruction& i) {
  TRY(check_form(i));
  Expected<Shape> inferred = infer_by_rules(i);
  if (inferred) return inferred;
  return Error(Code::InvalidArgument, inferred.error().message());
}

Expected<Shape> infer_by_rules(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Abs:
    case Opcode::Acos:
    case Opcode::Acosh:
    case Opcode::Add:
    case Opcode::And:
    case Opcode::Asin:
    case Opcode::Asinh:
    case Opcode::Atan:
    case Opcode::Atan2:
    case Opcode::Atanh:
    case Opcode::Cbrt:
    case Opcode::Ceil:
    case Opcode::Clamp:
    case Opcode::Compare:
    case Opcode::Complex:
    case Opcode::Convert:
    case Opcode::Copy:
    case Opcode::Cosh:
    case Opcode::Cosine:
    case Opcode::CountLeadingZeros:
    case Opcode::Divide:
    case Opcode::Erf:
    case Opcode::Exponential:
    case Opcode::ExponentialMinusOne:
    case Opcode::Floor:
    case Opcode::Imag:
    case Opcode::IsFinite:
    case Opcode::Log:
    case Opcode::LogPlusOne:
    case Opcode::Logistic:
    case Opcode::Map:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Mulhi:
    case Opcode::Multiply:
    case Opcode::Negate:
    case Opcode::Not:
    case Opcode::Or:
    case Opcode::Popcnt:
    case Opcode::Power:
    case Opcode::Real:
    case Opcode::ReducePrecision:
    case Opcode::Remainder:
    case Opcode::RoundNearestAfz:
    case Opcode::RoundNearestEven:
    case Opcode::Rsqrt:
    case Opcode::Select:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Sign:
    case Opcode::Sine:
    case Opcode::Sinh:
    case Opcode::Sqrt:
    case Opcode::StochasticConvert:
    case Opcode::Subtract:
    case Opcode::Tan:
    case Opcode::Tanh:
    case Opcode::Xor: return infer_elementwise(i);
    case Opcode::Bitcast:
    case Opcode::BitcastConvert:
    case Opcode::Broadcast:
    case Opcode::Concatenate:
    case Opcode::DynamicReshape:
    case Opcode::GetDimensionSize:
    case Opcode::Pad:
    case Opcode::Reshape:
    case Opcode::Reverse:
    case Opcode::SetDimensionSize:
    case Opcode::Shuffle:
    case Opcode::Transpose: return infer_movement(i);
    case Opcode::DynamicSlice:
    case Opcode::DynamicUpdateSlice:
    case Opcode::Slice: return infer_slices(i);
    case Opcode::Gather: return infer_gather(i);
    case Opcode::Scatter: return infer_scatter(i);
    case Opcode::Reduce:
    case Opcode::ReduceWindow:
    case Opcode::Scan:
    case Opcode::SelectAndScatter:
    case Opcode::Sort:
    case Opcode::Topk: return infer_reduction(i);
    case Opcode::Dot:
    case Opcode::RaggedDot:
    case Opcode::ScaledDot: return infer_dot(i);
    case Opcode::Convolution: return infer_convolution(i);
    case Opcode::BatchNormGrad:
    case Opcode::BatchNormInference:
    case Opcode::BatchNormTraining:
    case Opcode::Cholesky:
    case Opcode::Fft:
    case Opcode::TriangularSolve: return infer_linear_algebra(i);
    case Opcode::Constant:
    case Opcode::Iota:
    case Opcode::Parameter:
    case Opcode::PartitionId:
    case Opcode::ReplicaId:
    case Opcode::Rng:
    case Opcode::RngBitGenerator:
    case Opcode::RngGetAndUpdateState: return infer_generator(i);
    case Opcode::AddDependency:
    case Opcode::AfterAll:
    case Opcode::AsyncDone:
    case Opcode::AsyncStart:
    case Opcode::AsyncUpdate:
    case Opcode::Call:
    case Opcode::Conditional:
    case Opcode::Domain:
    case Opcode::Fusion:
    case Opcode::GetTupleElement:
    case Opcode::OptBarrier:
    case Opcode::Tuple:
    case Opcode::While: return infer_control(i);
    case Opcode::CopyDone:
    case Opcode::CopyStart:
    case Opcode::CustomCall:
    case Opcode::Infeed:
    case Opcode::Outfeed:
    case Opcode::Recv:
    case Opcode::RecvDone:
    case Opcode::Send:
    case Opcode::SendDone: return infer_transfer(i);
    case Opcode::AllGather:
    case Opcode::AllGatherDone:
    case Opcode::AllGatherStart:
    case Opcode::AllReduce:
    case Opcode::AllReduceDone:
    case Opcode::AllReduceStart:
    case Opcode::AllToAll:
    case Opcode::CollectiveBroadcast:
    case Opcode::CollectivePermute:
    case Opcode::CollectivePermuteDone:
    case Opcode::CollectivePermuteStart:
    case Opcode::CollectiveReduce:
    case Opcode::RaggedAllToAll:
    case Opcode::ReduceScatter: return infer_collective(i);
  }
  return wrong(i, "has no opcode");
}

}  // namespace hloom::hlo

#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::Opcode;

Expected<Value> unimplemented(const Call& call) {
  return fail(Code::Unimplemented, call.instruction.name(), ": the interpreter does not run ",
              call.instruction.opcode());
}

}  // namespace

// The switch has no default: who adds an opcode is led here.
Expected<Value> dispatch(const Call& c) {
  switch (c.instruction.opcode()) {
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
    case Opcode::Xor: return elementwise(c);
    case Opcode::Map: return map(c);

    case Opcode::Bitcast: return bitcast(c);
    case Opcode::BitcastConvert: return bitcast_convert(c);
    case Opcode::Broadcast: return broadcast(c);
    case Opcode::Concatenate: return concatenate(c);
    case Opcode::DynamicSlice: return dynamic_slice(c);
    case Opcode::DynamicUpdateSlice: return dynamic_update_slice(c);
    case Opcode::Gather: return gather(c);
    case Opcode::Iota: return iota(c);
    case Opcode::Pad: return pad(c);
    case Opcode::Reshape: return reshape(c);
    case Opcode::Reverse: return reverse(c);
    case Opcode::Scatter: return scatter(c);
    case Opcode::Slice: return slice(c);
    case Opcode::Transpose: return transpose(c);

    case Opcode::Reduce: return reduce(c);
    case Opcode::ReduceWindow: return reduce_window(c);
    case Opcode::Scan: return scan(c);
    case Opcode::SelectAndScatter: return select_and_scatter(c);
    case Opcode::Sort: return sort(c);
    case Opcode::Topk: return topk(c);

    case Opcode::BatchNormGrad: return batch_norm_grad(c);
    case Opcode::BatchNormInference: return batch_norm_inference(c);
    case Opcode::BatchNormTraining: return batch_norm_training(c);
    case Opcode::Cholesky: return cholesky(c);
    case Opcode::Convolution: return convolution(c);
    case Opcode::Dot: return dot(c);
    case Opcode::Fft: return fft(c);
    case Opcode::RaggedDot: return ragged_dot(c);
    case Opcode::ScaledDot: return scaled_dot(c);
    case Opcode::TriangularSolve: return triangular_solve(c);

    case Opcode::Rng: return rng(c);
    case Opcode::RngBitGenerator: return rng_bit_generator(c);
    case Opcode::RngGetAndUpdateState: return rng_get_and_update_state(c);

    case Opcode::Constant: return Value(c.instruction.literal());
    case Opcode::Tuple: return tuple(c);
    case Opcode::GetTupleElement: return get_tuple_element(c);
    case Opcode::While: return while_loop(c);
    case Opcode::Conditional: return conditional(c);
    case Opcode::Call:
    case Opcode::Fusion: return call(c);
    case Opcode::AsyncStart: return async_start(c);
    case Opcode::CopyStart: return copy_start(c);
    case Opcode::AfterAll: return Value(hlo::Literal(Shape::token()));
    case Opcode::AddDependency:
    case Opcode::AllReduceDone:
    case Opcode::AsyncUpdate:
    case Opcode::Copy:
    case Opcode::Domain:
    case Opcode::OptBarrier: return c.operands[0];
    case Opcode::AllGatherDone:
    case Opcode::AsyncDone:
    case Opcode::CollectivePermuteDone: return c.operands[0].element(1);
    case Opcode::CopyDone: return c.operands[0].element(0);
    case Opcode::CustomCall: return custom_call(c);

    case Opcode::DynamicReshape: return dynamic_reshape(c);
    case Opcode::GetDimensionSize: return get_dimension_size(c);
    case Opcode::SetDimensionSize: return set_dimension_size(c);

    case Opcode::AllGather: return all_gather(c);
    case Opcode::AllGatherStart: return started(c, all_gather(c));
    case Opcode::AllReduce:
    case Opcode::AllReduceStart: return all_reduce(c);
    case Opcode::AllToAll: return all_to_all(c);
    case Opcode::CollectiveBroadcast: return collective_broadcast(c);
    case Opcode::CollectivePermute: return collective_permute(c);
    case Opcode::CollectivePermuteStart: return started(c, collective_permute(c));
    case Opcode::CollectiveReduce: return collective_reduce(c);
    case Opcode::PartitionId: return partition_id(c);
    case Opcode::RaggedAllToAll: return ragged_all_to_all(c);
    case Opcode::ReduceScatter: return reduce_scatter(c);
    case Opcode::ReplicaId: return replica_id(c);

    case Opcode::Infeed: return infeed(c);
    case Opcode::Outfeed: return outfeed(c);
    case Opcode::Recv: return recv(c);
    case Opcode::RecvDone: return recv_done(c);
    case Opcode::Send: return send(c);
    case Opcode::SendDone: return send_done(c);
    case Opcode::Shuffle: return unimplemented(c);
    case Opcode::Parameter: break;
  }
  return wrong(c, "a parameter has no value of its own");
}

}  // namespace hloom::interp

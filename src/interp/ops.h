// All operations, one function each. Each gives its result for operands that fit the instruction, as the verifier
// has checked; what only shows as it runs is an Error.
#pragma once

#include "base/fail.h"
#include "interp/machine.h"

namespace hloom::interp {

/// The operation of the instruction's opcode: dispatch.cc.
Expected<Value> dispatch(const Call&);

// Elementwise (hlo-ops 4, 5): elementwise.cc
Expected<Value> elementwise(const Call&);
Expected<Value> map(const Call&);

// Movement (hlo-ops 5.4, 6.1): movement.cc, bitcast.cc
Expected<Value> broadcast(const Call&);
Expected<Value> reshape(const Call&);
Expected<Value> transpose(const Call&);
Expected<Value> reverse(const Call&);
Expected<Value> concatenate(const Call&);
Expected<Value> pad(const Call&);
Expected<Value> iota(const Call&);
Expected<Value> copy(const Call&);
Expected<Value> bitcast(const Call&);
Expected<Value> bitcast_convert(const Call&);

// Slices, gather, scatter (hlo-ops 6.2 to 6.4): slices.cc, gather.cc, scatter.cc
Expected<Value> slice(const Call&);
Expected<Value> dynamic_slice(const Call&);
Expected<Value> dynamic_update_slice(const Call&);
Expected<Value> gather(const Call&);
Expected<Value> scatter(const Call&);

// Reductions, windows, ordering (hlo-ops 7): reduce.cc, window.cc, sort.cc, scan.cc
Expected<Value> reduce(const Call&);
Expected<Value> reduce_window(const Call&);
Expected<Value> select_and_scatter(const Call&);
Expected<Value> sort(const Call&);
/// Arrays of one shape as a sort of them along a dimension gives them.
Expected<std::vector<hlo::Literal>> sort_arrays(ScalarFunction& comparator, std::span<const Value> arrays,
                                                std::int64_t dimension);
Expected<Value> topk(const Call&);
/// The k first of each line of the last dimension by value, and where they stood: a topk's result of that shape.
Value top_k(const hlo::Literal& operand, std::int64_t k, bool largest, const Shape& shape);
Expected<Value> scan(const Call&);

// Contractions and transforms (hlo-ops 8): dot.cc, scaled_dot.cc, convolution.cc, fft.cc, linear_algebra.cc,
// batch_norm.cc
Expected<Value> dot(const Call&);
Expected<Value> ragged_dot(const Call&);
Expected<Value> scaled_dot(const Call&);
Expected<Value> convolution(const Call&);
Expected<Value> fft(const Call&);
Expected<Value> triangular_solve(const Call&);
Expected<Value> cholesky(const Call&);
Expected<Value> batch_norm_training(const Call&);
Expected<Value> batch_norm_inference(const Call&);
Expected<Value> batch_norm_grad(const Call&);

// Random numbers (hlo-ops 9): random.cc
Expected<Value> rng(const Call&);
Expected<Value> rng_get_and_update_state(const Call&);
Expected<Value> rng_bit_generator(const Call&);

// Control flow and structure (hlo-ops 10, 11): control.cc
Expected<Value> tuple(const Call&);
Expected<Value> get_tuple_element(const Call&);
Expected<Value> while_loop(const Call&);
Expected<Value> conditional(const Call&);
Expected<Value> call(const Call&);
Expected<Value> async_start(const Call&);
Expected<Value> copy_start(const Call&);
Expected<Value> custom_call(const Call&);  // custom_call.cc
Expected<Value> routine_call(const Call&);  // routine_call.cc
// transfer.cc
Expected<Value> infeed(const Call&);
Expected<Value> outfeed(const Call&);
Expected<Value> send(const Call&);
Expected<Value> send_done(const Call&);
Expected<Value> recv(const Call&);
Expected<Value> recv_done(const Call&);
/// What `infeed` and `outfeed` are after the compiler's passes; nothing if it is another custom call.
std::optional<Expected<Value>> host_transfer(const Call&);
std::optional<Expected<Value>> device_transfer(const Call&);

// Dynamic sizes (hlo-ops 11): dynamic_sizes.cc
Expected<Value> get_dimension_size(const Call&);
Expected<Value> set_dimension_size(const Call&);
Expected<Value> dynamic_reshape(const Call&);
/// Runs an instruction some of whose operands have run-time sizes: on arrays of just these sizes.
Expected<Value> evaluate_dynamic(Machine&, const hlo::Instruction&, std::span<Value> operands);

// Collectives (hlo-ops 12): collective.cc, all_to_all.cc
Expected<Value> partition_id(const Call&);
Expected<Value> replica_id(const Call&);
Expected<Value> all_gather(const Call&);
Expected<Value> all_reduce(const Call&);
Expected<Value> reduce_scatter(const Call&);
Expected<Value> all_to_all(const Call&);
Expected<Value> ragged_all_to_all(const Call&);
Expected<Value> collective_permute(const Call&);
Expected<Value> collective_broadcast(const Call&);
Expected<Value> collective_reduce(const Call&);
/// (operands, results …) of all-gather-start and collective-permute-start.
Expected<Value> started(const Call&, Expected<Value> result);

/// InvalidArgument, beginning with the instruction's name.
template <typename... Parts>
Error wrong(const Call& call, const Parts&... parts) {
  return fail(Code::InvalidArgument, call.instruction.name(), ": ", parts...);
}

}  // namespace hloom::interp

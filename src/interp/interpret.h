// What HLO means, slow and plain: the oracle that everything else is held against.
//
//   Expected<hlo::Literal> result = interp::interpret(module, arguments);
//
// Values follow the specification of each opcode; where it leaves freedom, docs/numerics.md. Operations that IEEE 754
// defines are exact to the bit, functions and sums are computed wider and rounded once.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "hloom/host_transfers.h"

namespace hloom::interp {

/// Told of each instruction after it ran: the device, the instruction, its result. What runs inside an applied scalar
/// function (of a reduce, a sort …) and inside the one call of an elementwise map is not told.
using Observer = std::function<void(std::int64_t device, const hlo::Instruction&, const hlo::Literal& result)>;

/// Told of each instruction before it runs, as an Observer is after; `operands` gives copies of their values.
using BeforeObserver =
    std::function<void(const hlo::Instruction&, const std::function<std::vector<hlo::Literal>()>& operands)>;

struct Options {
  std::int64_t replicas = 1, partitions = 1;
  /// Instructions that may run on one device, those in loops each time; 0 = any number.
  std::int64_t max_steps = 0;
  /// Bytes that one array may have.
  std::int64_t max_array_bytes = std::int64_t{1} << 32;
  /// Sums of floats by reduce, reduce-window, all-reduce and reduce-scatter: in f64, rounded once; if false, in the
  /// element's type, one after the other.
  bool sums_in_f64 = true;
  const Observer* observer = nullptr;
  const BeforeObserver* before = nullptr;
  /// What the program takes from its host and gives to it, by device; empty: that is an error.
  std::span<HostTransfers> hosts = {};
  HostWait host_wait = {};
};

/// Runs the entry computation on one device. Needs: a verified module.
/// Errors: InvalidArgument if arguments do not fit the parameters, or the program contradicts itself as it runs (sizes
/// of
///         a dynamic reshape); Unimplemented, naming the instruction, for transfers between devices and unknown custom calls;
///         FailedPrecondition, DeadlineExceeded, Cancelled where a host transfer cannot be done;
///         ResourceExhausted if max_steps or max_array_bytes is exceeded, or calls nest too deeply.
Expected<hlo::Literal> interpret(const hlo::Module&, std::span<const hlo::Literal> arguments, const Options& = {});

/// Runs the entry on replicas × partitions devices at once; device replica·partitions + partition takes that element of
/// `arguments` and gives that element of the result. The devices take turns: one runs until it waits for others in
/// a collective. Needs: a verified module, as many argument lists as devices.
/// Errors: as above; InvalidArgument if devices wait for each other in different collectives.
Expected<std::vector<hlo::Literal>> interpret_devices(const hlo::Module&,
                                                      std::span<const std::vector<hlo::Literal>> arguments,
                                                      const Options& = {});

/// One instruction on given operand values, on one device; fusions, calls and loops run whole. The result has the
/// instruction's shape. Needs: operands of the operands' shapes (layouts aside); no parameter.
/// Errors: as interpret().
Expected<hlo::Literal> evaluate_instruction(const hlo::Instruction&, std::span<const hlo::Literal> operands,
                                            const Options& = {});

/// One computation on given arguments, by parameter number. Errors: as interpret().
Expected<hlo::Literal> evaluate_computation(const hlo::Computation&, std::span<const hlo::Literal> arguments,
                                            const Options& = {});

}  // namespace hloom::interp

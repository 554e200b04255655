// From a collective instruction to what its participants do.
#pragma once

#include <vector>

#include "collectives/operation.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::compiler {

/// Most devices that a program runs on as threads of one process.
inline constexpr std::int64_t kMaxDevices = 1024;

/// Whether the instruction is one that devices meet in, the start of an asynchronous one included.
bool is_collective(const hlo::Instruction&);

/// Leaves of the result that the collective writes: of a start only those behind its operands and before its context.
std::vector<std::int64_t> written_leaves(const hlo::Instruction& collective);

/// Whether the instruction is a custom call that sends to another device of the program or takes from one.
bool is_device_transfer(const hlo::Instruction&);

/// That custom call as an operation. Needs: is_device_transfer(). Errors: InvalidArgument if it is not as passes make it.
Expected<collectives::Operation> build_transfer(const hlo::Instruction&, std::int64_t number);

struct BuiltCollective {
  collectives::Operation operation;      ///< without the functions of its folds
  std::vector<kernels::Kernel> kernels;  ///< one for each fold of each array, in order
};

/// Groups as devices, arrays as bytes in the layouts of the instruction, a kernel for each size of groups and array
/// that is folded. Needs: is_collective(), what expand_collectives and fit_layouts leave.
/// Errors: InvalidArgument if the groups do not fit the devices; Unimplemented, naming the instruction, for what no kernel can fold.
Expected<BuiltCollective> build_collective(const hlo::Instruction&, std::int64_t number);

}  // namespace hloom::compiler

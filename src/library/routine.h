// What the compiler and the interpreter need to know to call a routine.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "base/aligned_bytes.h"
#include "base/kernel_abi.h"
#include "hloom/error.h"

namespace hloom::library {

/// What a pointer given to a routine points at.
struct Argument {
  enum class Kind : std::uint8_t {
    Descriptor,  ///< Routine::descriptor
    Status,      ///< the run's base::RunStatus
    Device,      ///< an int64: the number of the device that the run is on
    HostPort,    ///< a const HostPort* (host_transfer.h): the run's, or null
    Operand,     ///< leaf `number` of the operands
    Result,      ///< leaf `number` of the results
    Workspace,   ///< byte `number` of RoutinePlan::workspace_bytes, 64-byte aligned, kept from call to call
  };
  Kind kind = Kind::Descriptor;
  std::int64_t number = 0;
  bool operator==(const Argument&) const = default;
};

/// One call: a function with a kernel's signature and all that is known before it runs.
struct Routine {
  base::KernelFunction function = nullptr;
  std::vector<Argument> arguments;  ///< as the function expects them
  base::AlignedBytes descriptor;    ///< sizes, flags, tables; holds no address but of what RoutinePlan::keeps
  std::int64_t blocks = 1;
  std::int64_t block_cost = 1;      ///< instructions, roughly
  std::int64_t scratch_bytes = 0;   ///< for each worker
};

/// The calls that do the work of one instruction, in order.
struct RoutinePlan {
  std::vector<Routine> calls;
  std::int64_t workspace_bytes = 0;
  std::shared_ptr<const void> keeps;  ///< must live as long as the calls may run
};

/// Runs the calls one after the other on this thread, with memory of its own for workspace and scratch.
/// Errors: what a routine reports, without a name in front.
Expected<> run(const RoutinePlan&, const std::vector<void*>& operands, const std::vector<void*>& results);

}  // namespace hloom::library

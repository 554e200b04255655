// What the runtime runs: steps over slices of allocations. All sizes and places are known; nothing is decided in a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/kernel_abi.h"
#include "collectives/operation.h"

namespace hloom::runtime {

/// Memory that slices lie in.
struct Allocation {
  enum class Kind : std::uint8_t {
    Arena,      ///< the run's own; `number` is not used. In memory space 2 it comes from an allocator with hooks
    Parameter,  ///< leaf `number` of the parameters: read only, unless aliased with a result or overwritten
    Result,     ///< leaf `number` of the results
    Constant,   ///< Program::constants[number], read only
    Status,     ///< the run's base::RunStatus, where a call says that it failed; `number` is not used
    Device,     ///< an int64, the run's device; `number` is not used
    HostPort,   ///< the address of the run's library::HostPort, or null; likewise
  };
  Kind kind = Kind::Arena;
  std::int32_t number = 0;
  std::int64_t size_bytes = 0;
  std::int64_t memory_space = 0;  ///< 0, 1, 2, 3 or 5, as in HLO's layouts
};

/// Bytes [offset, offset + size) of Program::allocations[allocation].
struct Slice {
  std::int32_t allocation = 0;
  std::int64_t offset = 0;
  std::int64_t size_bytes = 0;
  bool operator==(const Slice&) const = default;
};

struct Step;
using Steps = std::vector<Step>;

/// Runs a kernel or routine for all blocks of its grid.
struct Call {
  std::string name;
  base::KernelFunction function = nullptr;
  std::vector<Slice> arguments;            ///< operands, then results
  std::int64_t blocks = 1;
  std::int32_t max_workers = 1;            ///< 1: on the calling thread
  std::int64_t scratch_bytes = 0;          ///< for each worker
  Slice scratch_room = {};                 ///< of the arena, free while the call runs: for as many workers as fit; or none
  bool forks = false;                      ///< a region that calls fork_join() (fork_join.h); then max_workers is 1
  std::int64_t forked_scratch_bytes = 0;   ///< the most that it asks of fork_join() for each worker
  std::vector<bool> written = {};          ///< of each argument; empty: all may be
  std::int64_t cost = 0;                   ///< of all blocks; what takes longer has more
  bool ordered = false;                    ///< reads or writes what is no argument: keeps its place among such calls
  std::vector<std::int64_t> cuts = {};     ///< blocks at which parts begin, each for a worker of its own; none: even ones
  /// Of each argument the bytes at which those parts begin, none where they are not one behind the other; or empty.
  std::vector<std::vector<std::int64_t>> split_bytes = {};
  bool may_fail = false;                   ///< reads the status after it, and ends the run with the error that is there
};

/// Copies bytes. The slices have one size, and are the same or apart.
struct Copy {
  Slice from, to;
};

/// Runs `condition`, then `body` if the byte `predicate` is not 0, and again. With `trip_count`, runs `body` so often;
/// then `condition` is empty and `predicate` not read.
struct While {
  Steps condition;
  Slice predicate;
  Steps body;
  std::optional<std::int64_t> trip_count;
};

/// Runs one of the branches. Pred: 0 is branch 1, else branch 0. S32: the branch of that number, the last one if there
/// is none.
struct Conditional {
  Slice selector;
  bool selector_is_pred = true;
  std::vector<Steps> branches;
};

/// Writes the number of the run's replica or partition, a u32.
struct DeviceNumber {
  enum class Of : std::uint8_t { Replica, Partition };
  Of of = Of::Replica;
  Slice to;
};

/// The device's part in Program::collectives[number]. A start says that the operands are ready and goes on; its done
/// waits for the others and works. So what a start reads and writes is not touched until then.
struct Collective {
  enum class Part : std::uint8_t { Whole, Start, Done };
  Part part = Part::Whole;
  std::int32_t number = 0;
  std::vector<Slice> arguments;  ///< operands, then results; of a done, those of its start
};

/// Begins a copy or a call that goes on beside the steps behind it, on a worker that has nothing else to do; what it reads
/// and writes is not touched before its Finish, which stands behind it in the same list of steps. A call has no scratch and
/// cannot fail.
struct Start {
  std::int32_t number = 0;  ///< from 0, no two alike
  std::variant<Copy, Call> of;
};

/// Waits for what the Start of that number began, or does it if nobody has begun.
struct Finish {
  std::int32_t number = 0;
};

struct Step {
  std::variant<Call, Copy, While, Conditional, DeviceNumber, Collective, Start, Finish> of;
};

/// Calls f with each step in the order in which observers count them: a loop or conditional before what it holds.
template <typename StepList, typename F>
void for_each_step(StepList& steps, const F& f) {
  for (auto& step : steps) {
    f(step);
    if (auto* loop = std::get_if<While>(&step.of)) {
      for_each_step(loop->condition, f);
      for_each_step(loop->body, f);
    } else if (auto* conditional = std::get_if<Conditional>(&step.of)) {
      for (auto& branch : conditional->branches) for_each_step(branch, f);
    }
  }
}

/// A parameter or result leaf: what run-time values must look like.
struct Port {
  std::int64_t size_bytes = 0;
  std::int64_t alignment = 1;  ///< the element's: addresses are multiples of it
  bool overwritten = false;    ///< a parameter without an alias whose memory the plan uses for other values as well
};

/// The result's memory may be that of the parameter, which is then overwritten. The plan has the parameter's value in
/// the result's memory from the start: slices of either are the same.
struct Alias {
  std::int32_t result = 0;
  std::int32_t parameter = 0;
};

struct Program {
  std::string name;
  std::vector<Port> parameters;
  std::vector<Port> results;
  std::vector<Alias> aliases;
  std::vector<Allocation> allocations;
  std::vector<std::span<const std::byte>> constants;  ///< each at a multiple of 64
  /// Device replica·partitions + partition runs the steps; all at once, each with its own parameters and results.
  std::int64_t replicas = 1, partitions = 1;
  std::vector<collectives::Operation> collectives;
  Steps steps;
  std::string arena_owners;          ///< who owns the arena's peak, a line each, for errors
  std::shared_ptr<const void> code;             ///< keeps the functions of calls in memory
  std::shared_ptr<const void> constant_memory;  ///< keeps the constants in memory
  std::vector<std::shared_ptr<const void>> kept;  ///< what constants hold the address of
};

inline std::int64_t num_devices(const Program& p) { return p.replicas * p.partitions; }

/// The program as text, a step a line, numbered as observers count them.
std::string to_string(const Program&);

}  // namespace hloom::runtime

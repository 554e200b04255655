// A program made flat: what the executor walks. Internal to runtime/.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "hloom/error.h"
#include "runtime/graph.h"
#include "runtime/program.h"

namespace hloom::runtime {

/// One operation. Steps with others inside become jumps, so that a run needs no stack.
struct Operation {
  enum class Kind : std::uint8_t {
    Inline,       ///< function(pointers, 0, count, scratch)
    Parallel,     ///< the same by `workers`
    Forking,      ///< Inline, within a ForkJoinScope
    Check,        ///< ends the run if the status of the call before it says so
    Copy,         ///< count bytes from the first pointer to the second
    EnterLoop,    ///< iteration 0
    LeaveUnless,  ///< to `target` if the byte at the pointer is 0
    Repeat,       ///< next iteration, to `target`
    RepeatUntil,  ///< next iteration; to `target` unless there were `count`
    SwitchPred,   ///< to targets[target + (byte is 0)]
    SwitchIndex,  ///< to targets[target + s32], of `count`
    Goto,         ///< to `target`
    ReplicaNumber,    ///< u32 to the pointer
    PartitionNumber,
    Graph,            ///< runs graphs[count] and goes to `target`, or does nothing: its operations follow
    Collective,       ///< arrives at, waits for, works in and leaves collectives[target]
    StartCollective,  ///< arrives
    DoneCollective,   ///< the rest
    Start,            ///< Inline, or a Copy without a function, beside what follows; number `target`
    Finish,           ///< waits for number `target`
  };
  Kind kind;
  std::int32_t workers = 1;
  std::int32_t step = 0;          ///< number of the step, in the order of the program's text
  std::int32_t loop = -1;         ///< innermost loop, which counts iterations; -1 outside
  std::uint32_t pointer = 0;      ///< first of its pointers in the table
  std::uint32_t target = 0;
  std::int64_t count = 0;
  base::KernelFunction function = nullptr;
  std::int64_t scratch_stride = 0;  ///< 0: no scratch
  std::uint32_t room = 0;           ///< the pointer in the table to where it may be in the arena
  std::int64_t room_bytes = 0;      ///< 0: nowhere
  std::span<const std::int64_t> cuts = {};  ///< the call's, in the program
};

/// Where a pointer of the table points: into the arena, mapped host memory, a constant, the memory of a port, or to the
/// run's status, the number of its device or the address of its host.
struct TableEntry {
  enum class Base : std::uint8_t { Arena, Host, Constant, Port, Status, Device, HostPort };
  Base base = Base::Arena;
  std::int32_t number = 0;  ///< of the constant, or of the port: parameters first, then results
  std::int64_t offset = 0;
};

inline constexpr std::int64_t kPage = 4096;  ///< where each memory space but 0 begins

/// Bytes of the arena that workers write in parts.
struct TouchedSlice {
  std::int64_t offset = 0, size_bytes = 0;
  std::span<const std::int64_t> cuts = {};  ///< bytes at which parts begin, in the program; empty: even ones
};

struct Layout {
  std::vector<Operation> operations;
  std::vector<std::uint32_t> targets;  ///< of switches
  std::vector<TableEntry> table;
  std::vector<const Step*> steps;      ///< by number; in the program
  std::vector<TableEntry> allocations; ///< where each starts
  std::vector<TouchedSlice> touched;   ///< large ones, apart from each other, in the order in which they are written
  std::vector<Graph> graphs;
  std::size_t most_nodes = 0;          ///< of a graph
  std::int32_t num_loops = 0;
  std::int32_t num_starts = 0;         ///< what may be under way beside the steps
  std::int64_t arena_bytes = 0;        ///< of all memory spaces but that of mapped host memory
  std::int64_t arena_alignment = 1;
  std::int64_t host_bytes = 0;
  std::int64_t forked_stride = 0;      ///< scratch of a worker in fork_join()
  bool forks = false;

  /// Whether the call's scratch on so many threads is in the arena.
  static bool has_room(const Operation& o, std::int32_t num_threads) {
    return o.room_bytes >= o.scratch_stride * std::min(o.workers, num_threads);
  }
  /// Of each worker in a graph that runs on so many threads, beside the arena: enough for any node that has no room in it.
  std::int64_t scratch_stride(const Graph&, std::int32_t num_threads) const;
  /// Bytes of scratch beside the arena for a run on so many threads.
  std::int64_t scratch_bytes(std::int32_t num_threads) const;
};

/// Checks the program and lays it out. `program` must stay where it is.
/// Errors: Internal, naming the step, if a slice is out of its allocation, or a copy's sizes differ or its slices
/// overlap in part, or a number is out of range.
Expected<Layout> lay_out(const Program&);

}  // namespace hloom::runtime

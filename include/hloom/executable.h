// Compile an HLO program for the CPU of this machine, and run it.
//
//   auto program = hloom::Executable::compile(hlo_text);
//   if (!program) return report(program.error());
//   hloom::Expected<hloom::Results> results = program->run(args);  // Buffers in, Buffers out (buffer.h)
//   if (!results) return report(results.error());
//
// Or with all memory the caller's:
//
//   hloom::Expected<> done = program->run_into(inputs, outputs);   // spans of bytes
//
// A program for several devices (replicas, partitions) runs on threads of this process, one for each device:
//
//   std::vector<hloom::DeviceArrays> arrays(program->num_devices());  // what run() takes, for each
//   hloom::Expected<> done = program->run_devices(arrays);
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hloom/buffer.h"
#include "hloom/cancel_token.h"
#include "hloom/error.h"
#include "hloom/host_allocator.h"
#include "hloom/host_transfers.h"
#include "hloom/shape.h"
#include "hloom/worker_pool.h"

namespace hloom {

struct CompileOptions {
  /// Threads that run the program; 0: as many as the process may use. Values do not depend on it. Devices share them
  /// evenly; each has one of its own at least.
  int threads = 0;
  /// Replicas and partitions; 0: as the program says.
  std::int64_t replicas = 0, partitions = 0;
  /// The longest that a device waits for others in a collective before the run fails; 0: for ever.
  std::chrono::milliseconds collective_timeout = std::chrono::minutes(5);
  /// The processor to make code for, as LLVM names it ("haswell"); empty: this machine's. It must have what that one has.
  std::string cpu = {};
  /// A folder where machine code is kept, for this user alone, so that later processes find it; it is made if it is not
  /// there. Code is found by what it depends on: the code generator's input, the processor, LLVM's version. Damaged files
  /// are as absent, the oldest go when there are more than 256 MiB. Empty: nothing is kept.
  std::string cache_folder = {};
  /// Which module of a file that holds several: its name or number from 0. Empty: the only one.
  std::string module = {};
  /// The most bytes that arguments, results, constants and arena may take together; cheap values are made again instead of
  /// being kept to meet it. 0: what the process's control group may have.
  std::int64_t memory_limit_bytes = 0;
  /// Bytes that the arena may take beyond the fewest, within the limit, so that steps that need nothing of each other need not
  /// wait for each other's memory and go on at once. With 0 they do where that costs nothing.
  std::int64_t concurrency_memory_bytes = 0;
  /// Updates that must be in place, by the names of their instructions, as `hloom show --stage=memory` and
  /// MemoryReport::updates have them; present and empty: all. A copied one is FailedPrecondition, with the reason.
  std::optional<std::vector<std::string>> require_in_place = std::nullopt;
  /// The text of a memory budget, as `hloom show --write-budget=FILE` writes it: peak and temporary bytes, and updates that
  /// must be in place. Empty: none.
  std::string memory_budget = {};
  /// Whether MemoryReport::json is filled; for large programs it is long.
  bool memory_json = false;
  /// An earlier MemoryReport::json, or what `hloom show --stage=memory --format=json` wrote: MemoryReport::changes says what
  /// is different now. Empty: none.
  std::string memory_against = {};
  /// Elided constants `{...}` are filled with a fixed pattern instead of being refused.
  bool fill_elided = false;
  /// Threads of the caller's to run on, instead of `threads`, while the program lives; devices beside the first one of a
  /// program for several still have threads of hloom's. Null: hloom's.
  WorkerPool* pool = nullptr;
  /// Where arenas, scratch and results come from, while the program lives. Null: an allocator of the process.
  HostAllocator* allocator = nullptr;
  /// Where what the program itself puts in memory space 2, mapped host memory, comes from, with the hooks that make it
  /// known to a device; while the program lives. Null: `allocator`.
  HostAllocator* host_memory = nullptr;
  /// Runs of the program under way at once, each with an arena; one more waits until one ends, unless it is called
  /// within a run (by a custom call), which would wait for itself. 0: four for each processor. Programs for several
  /// devices have no such limit.
  std::int64_t max_concurrent_runs = 0;
  /// Runs watch what each step does to memory, to find faults of hloom and of custom calls: what it reads is what is meant
  /// to lie there, what it makes is whole and depends on nothing that is over, and it writes nothing else; kernels check
  /// each index. What is wrong ends the run with Internal, naming instruction, source line and memory. Such a run takes
  /// twice the memory and is slow; values are the same. For the command line: `--debug-memory`.
  bool debug_memory = false;
};

struct RunOptions {
  const CancelToken* cancel = nullptr;  ///< null: the run goes to its end
  /// What infeeds, outfeeds and transfers of the program take from and give to, for each device; they outlive the run. Without,
  /// such an instruction ends the run with FailedPrecondition.
  std::span<HostTransfers> hosts = {};
  /// The longest that an instruction waits for its host; then the run ends with DeadlineExceeded. 0: for ever.
  std::chrono::milliseconds host_timeout = std::chrono::minutes(5);
};

/// What was decided about an array that a program updates: written where it is, or copied first.
struct UpdateReport {
  std::string instruction;
  std::string kind;        ///< "window update", "scatter", "loop carry", "donated parameter", "conditional result", …
  bool in_place = false;
  std::int64_t bytes = 0;  ///< copied each time it runs; 0 in place
  std::string reason;      ///< why it is copied, in words to act on; empty in place
  std::int64_t leaf = 0;   ///< of the instruction's result, depth first
  int loops_around = 0;    ///< then the bytes are those of a step of the innermost
  std::string source;      ///< FILE:LINE of the instruction, if the program says
};

/// Memory that is in use when the arena is fullest.
struct OwnerReport {
  std::int64_t bytes = 0;
  std::vector<std::string> values;  ///< that lie there one after the other, or as one
  std::string source;               ///< FILE:LINE of the first, if the program says
};

/// A parameter that the program lets its caller donate (input_output_alias, buffer_donor).
struct DonationReport {
  std::int64_t parameter = 0;  ///< leaf
  std::int64_t result = -1;    ///< leaf that lies in its memory; -1: none
  std::string reason;          ///< why none does; empty if one does
};

/// The memory of one run on one device, known before it.
struct MemoryReport {
  std::int64_t peak_bytes = 0;      ///< arguments, results, constants and the arena's highest point together
  std::int64_t temp_bytes = 0;      ///< the arenas of all memory spaces: neither arguments, results nor constants
  std::int64_t argument_bytes = 0;
  std::int64_t result_bytes = 0;    ///< those in donated arguments count as arguments
  std::int64_t constant_bytes = 0;
  std::int64_t scratch_bytes = 0;   ///< of all workers of all devices
  std::int64_t gap_bytes = 0;       ///< of the arena, that no value uses even at its fullest
  std::string peak_at;              ///< the instruction that works when it is
  std::vector<OwnerReport> owners;  ///< of the arena then, the largest first
  std::vector<UpdateReport> updates;
  std::vector<DonationReport> donations;
  std::string json;                 ///< all of it, as the memory stage has it; empty unless it was asked for
  std::string changes;              ///< bytes, owners of the peak and updates, a line each, against CompileOptions::memory_against
};

/// One device's arrays, as Executable::run_into() takes them.
struct DeviceArrays {
  std::span<const std::span<std::byte>> inputs, outputs;
};

/// A compiled program. It never changes, so any number of threads may call run() at once.
class Executable {
 public:
  /// Compiles the HLO module in `program`. Cost: linear in the text, and LLVM's for each kernel.
  /// Errors: InvalidArgument, with line and column, if the text does not parse or verify;
  ///         Unimplemented, naming the instruction, if an op or an element type has no kernel;
  ///         FailedPrecondition if code is asked for that this machine cannot run, naming what it lacks;
  ///         FailedPrecondition, with the reason, if an update that must be in place is copied;
  ///         ResourceExhausted, with the owners of the peak, if a run takes more than the memory limit or budget;
  ///         PermissionDenied, NotFound if the cache folder cannot be made and written, is a symbolic link, belongs to
  ///         another user, or others may write there; a disk that is full later is no error.
  static Expected<Executable> compile(std::string_view program, const CompileOptions& = {});

  /// Runs the program once, on a leaf of the parameters in each buffer, and gives the results, in memory that earlier
  /// runs have left where there is some. Where an argument is donated and the program aliases a result with it, the
  /// result is written in its memory, if nobody else holds that and it is not immutable; Results::donations() says so,
  /// or why not. After the run donated arguments are empty, the others as before. Calls at the same time have an arena
  /// each. After an error all arguments are there; the content of donated ones is undefined unless nothing has run.
  /// Errors: InvalidArgument if a count, size, address or overlap is wrong, or the program is one for several devices;
  ///         ResourceExhausted, with the owners of its peak, if there is no memory for the arena, or none for results.
  ///         Then nothing has run. Cancelled if the token says so; what a custom call or routine reports.
  Expected<Results> run(std::span<Buffer> args, const RunOptions& = {}) const;

  /// The same in memory of the caller's; returns when all results are written. `inputs[i]` is leaf i of the parameters,
  /// `outputs[i]` leaf i of the result (tuples depth first), dense in the layout that the entry gives it, at any address
  /// that suits the element. An output may be exactly the input whose donation the program asks for, which is then
  /// overwritten; no other overlap. A donated input whose output is elsewhere is copied there first. What the program
  /// calls a buffer_donor is given up: its content is undefined afterwards.
  /// Errors: as run(). After InvalidArgument and ResourceExhausted nothing has run; else outputs are undefined.
  Expected<> run_into(std::span<const std::span<std::byte>> inputs, std::span<const std::span<std::byte>> outputs,
                      const RunOptions& = {}) const;

  /// run_into().
  Expected<> run(std::span<const std::span<std::byte>> inputs, std::span<const std::span<std::byte>> outputs) const {
    return run_into(inputs, outputs);
  }

  /// Runs the program once on all devices, each on a thread of its own, device 0 on the caller's. `arrays[k]` are those
  /// of device k = replica·num_partitions() + partition. Devices may share the memory of inputs that are not donated.
  /// Errors: as run_into(). If one device fails, all stop and the first error is given: DeadlineExceeded, naming the
  ///         instruction and who is missing, if a device waited too long in a collective; InvalidArgument if devices
  ///         wait for each other in vain. Outputs are then undefined; the next run is as any.
  Expected<> run_devices(std::span<const DeviceArrays> arrays, const RunOptions& = {}) const;

  std::int64_t num_replicas() const;
  std::int64_t num_partitions() const;
  std::int64_t num_devices() const { return num_replicas() * num_partitions(); }

  /// Leaves of the parameters and of the result, depth first, with the entry's layouts. A leaf with dynamic dimensions is
  /// an array of its bounds, of which a part counts: behind all leaves of the program there is one more, s32[k], for each
  /// such leaf in order, with the run-time sizes of its k dynamic dimensions. What lies past the sizes of an input does
  /// not matter, of an output it is zero; sizes out of range are InvalidArgument.
  const std::vector<Shape>& parameter_shapes() const;
  const std::vector<Shape>& result_shapes() const;

  /// The parameter leaf that result leaf i may be the same memory as, or -1.
  std::int64_t donated_parameter(std::int64_t result) const;

  MemoryReport memory() const;

  Executable(Executable&&) noexcept;
  Executable& operator=(Executable&&) noexcept;
  ~Executable();

 private:
  struct Impl;  // Owns the machine code; src/compiler/executable.cc has it.
  explicit Executable(std::unique_ptr<Impl>);
  std::unique_ptr<Impl> impl_;
};

}  // namespace hloom

// Compile an HLO program for the CPU of this machine, and run it.
//
//   auto program = hloom::Executable::compile(hlo_text);
//   if (!program) return report(program.error());
//   hloom::Expected<> done = program->run(inputs, outputs);
//   if (!done) return report(done.error());
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hloom/error.h"
#include "hloom/shape.h"

namespace hloom {

struct CompileOptions {
  /// Threads that run the program; 0: as many as the process may use. Values do not depend on it.
  int threads = 0;
  /// Which module of a file that holds several: its name or number from 0. Empty: the only one.
  std::string module;
  /// Elided constants `{...}` are filled with a fixed pattern instead of being refused.
  bool fill_elided = false;
};

/// What was decided about an array that a program updates: written where it is, or copied first.
struct UpdateReport {
  std::string instruction;
  std::string kind;        ///< "window update", "scatter", "loop carry", "donated parameter", "conditional result", …
  bool in_place = false;
  std::int64_t bytes = 0;  ///< copied each time it runs; 0 in place
  std::string reason;      ///< why it is copied, in words to act on; empty in place
};

/// The memory of one run, known before it.
struct MemoryReport {
  std::int64_t peak_bytes = 0;      ///< arguments, results, constants and the arena's highest point together
  std::int64_t temp_bytes = 0;      ///< the arena: neither arguments, results nor constants
  std::int64_t argument_bytes = 0;
  std::int64_t result_bytes = 0;    ///< those in donated arguments count as arguments
  std::int64_t constant_bytes = 0;
  std::int64_t scratch_bytes = 0;   ///< of all workers
  std::vector<UpdateReport> updates;
};

/// A compiled program. It never changes, so any number of threads may call run() at once.
class Executable {
 public:
  /// Compiles the HLO module in `program`. Cost: linear in the text, and LLVM's for each kernel.
  /// Errors: InvalidArgument, with line and column, if the text does not parse or verify;
  ///         Unimplemented, naming the instruction, if an op or an element type has no kernel.
  static Expected<Executable> compile(std::string_view program, const CompileOptions& = {});

  /// Runs the program once; returns when all results are written. `inputs[i]` is leaf i of the parameters, `outputs[i]`
  /// leaf i of the result (tuples depth first), dense in the layout that the entry gives it, at any address that suits
  /// the element. An output may be exactly the input whose donation the program asks for, which is then
  /// overwritten; no other overlap. A donated input whose output is elsewhere is copied there first. Calls at
  /// the same time have an arena each.
  /// Errors: InvalidArgument if a count, size, address or overlap is wrong, ResourceExhausted if there is no memory
  ///         for the arena; then nothing has run.
  Expected<> run(std::span<const std::span<std::byte>> inputs, std::span<const std::span<std::byte>> outputs) const;

  /// Leaves of the parameters and of the result, depth first, with the entry's layouts.
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

// A program's instructions as checked runs go through them: what each reads and writes, and what nobody needs behind it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "buffers/values.h"
#include "compiler/checked_memory.h"
#include "compiler/compile.h"

namespace hloom::compiler {

/// A value, and where it lies.
struct ValuePlace {
  buffers::ValueId value = 0;
  runtime::Slice at;
};

struct CheckedStep;
using CheckedSteps = std::vector<CheckedStep>;

/// An instruction that does something.
struct CheckedStep {
  const hlo::Instruction* instruction = nullptr;
  std::vector<const runtime::Step*> steps;  ///< of the program; a loop's or conditional's is one
  std::vector<ValuePlace> reads, writes;    ///< a loop reads its predicate, which `condition` makes
  runtime::Slice workspace;
  std::vector<buffers::ValueId> ends;       ///< values that nobody needs from here on

  /// A loop: what enters has the loop's names, and what comes back.
  CheckedSteps condition;
  std::vector<CheckedMemory::Rename> enter;
  std::vector<buffers::ValueId> entered;  ///< those that nobody needs but under the loop's names
  /// One for a loop, its body; those of a conditional.
  struct Branch {
    CheckedSteps steps;
    std::vector<CheckedMemory::Rename> leave;
    std::vector<buffers::ValueId> made;  ///< inside: over with the round, or the branch
  };
  std::vector<Branch> branches;
};

/// Everything that a checked run wants to know of a program.
struct CheckedProgram {
  CheckedSteps steps;
  std::vector<ValuePlace> parameters, constants, results;  ///< leaves; those of results in order
  std::vector<std::string> names;                          ///< of values
};

/// Needs: a program compiled with `check_memory`; `program`, which may have been moved out of it, outlives the result.
/// Errors: Internal, naming the instruction, if a step is given memory that is none of what the instruction reads and
///         writes, or runs in another order. Cost: linear, times the depth of loops.
Expected<CheckedProgram> checked_program(const Compiled&, const runtime::Program& program);

}  // namespace hloom::compiler

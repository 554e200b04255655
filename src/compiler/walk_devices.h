// Programs walked step by step, by all devices at once; and what people are told of a step.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/check.h"
#include "compiler/step_walker.h"

namespace hloom::compiler {

/// Compiles for a walk: a step for each kernel, a result for each instruction fused into one.
Expected<Compiled> compile_for_walk(std::unique_ptr<hlo::Module>, const CheckOptions&);

/// Each walker on a thread of its own; they meet in `meeting`, whose devices they were made as. `arguments` by device.
/// Errors: that of the first device that has one; the others then end at their next meeting.
Expected<> walk_devices(std::span<StepWalker* const> walkers, std::span<const std::vector<hlo::Literal>> arguments,
                        collectives::Rendezvous& meeting);

/// Instruction `i` in a step, with its source line and the loops around it.
Difference difference_at(const hlo::Instruction& step, const hlo::Instruction& i, std::string message,
                         const std::vector<LoopPlace>& loops);

}  // namespace hloom::compiler

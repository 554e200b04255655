// Which computations run as steps, and which instructions do nothing but name values again.
#pragma once

#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::buffers {

/// Computations that `i` runs step by step: condition and body, branches, the callee of call and async-start.
/// Fused and applied computations are not steps.
std::vector<hlo::Computation*> step_computations(const hlo::Instruction& i);

/// The computations that run as steps, callers before callees, from the entry.
std::vector<hlo::Computation*> step_computations(const hlo::Module&);

/// Gives each caller its own copy of a computation that several run as steps, so that places in time are unique, and each
/// fusion in them one of its own.
/// Errors: ResourceExhausted if that makes more than 2^16 computations.
Expected<> unshare_steps(hlo::Module&);

/// The instruction computes nothing: its result is (part of) its operands' values, in their memory. Structure,
/// bitcasts, reshapes that keep the bytes in order, barriers, the done halves of asynchronous forms.
bool is_alias(const hlo::Instruction&);

/// Leaves of the result of a start that are its operands' memory, named again: the source of a copy, the first element of
/// what collectives start. `count` is 0 for all others.
struct OperandLeaves {
  std::int64_t first = 0, count = 0;
  bool contain(std::int64_t leaf) const { return leaf >= first && leaf < first + count; }
};
OperandLeaves operand_leaves(const hlo::Instruction&);

/// The start of a collective or a copy that `i` is the done of, at which the work ends; null for all others.
const hlo::Instruction* start_of(const hlo::Instruction& i);

/// A leaf: array, token, opaque handle.
/// Bytes that a leaf takes; 0 for tokens and such.
std::int64_t leaf_bytes(const Shape& leaf);
/// The memory space that its layout says; 0 without a layout.
std::int64_t space_of(const Shape& leaf);
/// The one in whose arena a leaf lies that is written. In space 3 there are constants alone; a copy of one lies in 0.
std::int64_t arena_space(const Shape& leaf);

/// Arena bytes that the instruction asks for while it works: decisions["workspace_bytes"].
std::int64_t workspace_bytes(const hlo::Instruction&);

/// A copy between equal layouts in one memory space: what insert_copies() makes and may remove.
bool is_plain_copy(const hlo::Instruction&);

}  // namespace hloom::buffers

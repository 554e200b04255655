// What becomes one kernel.
#pragma once

#include <string>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::fusion {

struct FuseOptions {
  bool rows = true;  ///< make kernels that go over a row several times, and those by levels
};

/// Makes a fusion instruction of everything that computes, so that what is left in the computations that run (the
/// entry, bodies and conditions of loops, branches, called computations) is fusions, structure (parameters, constants, tuples
/// and their elements, bitcasts of whole buffers, barriers, tokens), control flow, and library or runtime calls.
///
/// First come the kernels over rows (form_rows.h): softmax, norms and their like; then those by levels (form_levels.h): scans.
///
/// Then, walking from users to producers, a producer joins the kernels of all its users where that costs less than writing
/// and reading it: elementwise work and moved indices always into one user, and into several while it is cheap to
/// do again; never into a dot or convolution, which read an element often. A reduce takes its users in if
/// they are elementwise over its result. A producer that has to be written anyway becomes one more result of a user over
/// the same elements, and so does a reduce beside one that goes over the same arrays. Why something was not fused is
/// written on the instruction: decisions["not_fused"].
///
/// Fusions found in the module (an optimized dump) stay as they are.
/// Cost: linear in instructions and edges, but for bounded searches for cycles.
Expected<> fuse(hlo::Module&, const FuseOptions& = {});

/// Whether instructions of this opcode stand for themselves after fuse().
bool is_structural(const hlo::Instruction&);

}  // namespace hloom::fusion

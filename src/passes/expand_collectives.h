#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes collectives of a form that no participant's share has such of one that it has:
/// - a permute of slices into arrays that are there becomes slices, a permute of these and of a word that says whether something came,
///   and updates in place; its start does so at once;
/// - the offsets and sizes of a ragged exchange become rank 1, and those of less than a byte s32, as roots that are data do.
/// Needs: no asynchronous wrappers. Cost: linear. Errors: InvalidArgument for slices that do not fit their arrays, Unimplemented for
/// sizes of slices at a permute of whole arrays.
Expected<Changed> expand_collectives(hlo::Module&);

}  // namespace hloom::passes

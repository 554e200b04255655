// Loops whose carried arrays change places.
#pragma once

#include "hlo/module.h"

namespace hloom::buffers {

/// Some loops need a copy of what they carry in each step: arrays that swap, and arrays that are made anew from
/// themselves, elements of which are read after others are written; or a window that is fetched for the next step beside
/// what reads this one's (with `with_starts`: start_copies() comes later). Two steps (or three, or four, where more
/// arrays go round) in one leave each array where it was. Such a loop runs several steps for each round: one after the other if
/// their number is known and divides so, else each but the first in a branch that asks the condition before, whose
/// other branch gives on what it got and is taken at most once, at the end (decisions["rare_branch"] is its number).
/// A loop is unrolled where planning it so copies at most half as much a step, and only for copies that are large beside
/// the body, if the arena then grows by no more than an eighth. decisions["steps_a_round"] says how many.
/// Needs: unshare_steps() and note_in_place() have seen the module. Cost: for modules with such loops, some more plans.
void unroll_loops(hlo::Module&, bool with_starts);

}  // namespace hloom::buffers

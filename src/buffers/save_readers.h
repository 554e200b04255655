// Bases that are read after they were written over.
#pragma once

#include <vector>

#include "buffers/insert_copies.h"

namespace hloom::buffers {

/// Where an instruction writes in place over a value of its own computation that is read later there, copies the value
/// before, for the later readers, instead of copying the base: the base may then be a loop's leaf that stays where it
/// is, so that one copy is made and not two. Constants, and parameters that are not aliased with a result, are left to
/// insert_copies().
/// Needs: as insert_copies().
std::vector<InPlaceDecision> save_late_readers(hlo::Module&);

}  // namespace hloom::buffers

// Single leaves of tuple values: taking one out, putting another in.
#pragma once

#include <cstdint>
#include <map>

#include "hlo/module.h"

namespace hloom::buffers {

/// New instructions are appended here, in order, so that the caller can put them where they belong.
using Added = std::vector<hlo::Instruction*>;

/// The instruction that is leaf `leaf` of `whole`: an operand of the tuples that make it, or elements taken out.
hlo::Instruction* leaf_of(hlo::Instruction* whole, std::int64_t leaf, Added&);

/// `whole` with some leaves replaced: tuples are made anew as far as needed.
hlo::Instruction* with_leaves(hlo::Instruction* whole, const std::map<std::int64_t, hlo::Instruction*>& replacements,
                              Added&);

}  // namespace hloom::buffers

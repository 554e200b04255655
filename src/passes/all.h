// The table of passes.
#pragma once

#include <span>

#include "passes/pass.h"

namespace hloom::passes {

/// All passes, by name.
std::span<const Pass> all();
/// The pass of that name, or null.
const Pass* pass_named(std::string_view name);

}  // namespace hloom::passes

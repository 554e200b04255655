#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Puts the body of each called computation in the place of its call, composite ones too, innermost first. Left alone
/// are calls on another execution thread, and those whose module would grow beyond `kMaxInlined` instructions. Then no
/// while, conditional or call shares a computation with another: each has copies of its own. Cost: linear in the
/// result. No errors.
Expected<Changed> inline_calls(hlo::Module&);

inline constexpr std::int64_t kMaxInlined = 4'000'000;

}  // namespace hloom::passes

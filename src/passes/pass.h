// What a pass is.
#pragma once

#include <string_view>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::passes {

/// Whether a pass changed the module: exactly whether its fingerprint did.
enum class Changed : bool { No, Yes };

inline Changed operator|(Changed a, Changed b) { return a == Changed::Yes ? a : b; }
inline Changed& operator|=(Changed& a, Changed b) { return a = a | b; }
inline bool any(Changed changed) { return changed == Changed::Yes; }

using PassFunction = Expected<Changed> (*)(hlo::Module&);

/// A row of the table of passes.
struct Pass {
  std::string_view name;  ///< as in --passes=
  PassFunction function;
  std::string_view help;  ///< one line
};

}  // namespace hloom::passes

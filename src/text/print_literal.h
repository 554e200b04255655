// Literals as text (hlo-text 9.3).
#pragma once

#include <string>

#include "hlo/literal.h"

namespace hloom::text {

/// Appends a literal; one of more than ten elements, or a tuple, as `{...}` unless `large`.
void write_literal(std::string& out, const hlo::Literal&, bool large);

}  // namespace hloom::text

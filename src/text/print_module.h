// The header of a module as text (hlo-text 3, 4, 13.2).
#pragma once

#include <string>

#include "hlo/module.h"
#include "text/print.h"

namespace hloom::text {

/// Appends the line `HloModule …` and the source tables, each with an end of line.
void write_header(std::string& out, const hlo::Module&, const PrintOptions&);

}  // namespace hloom::text

// Values of parameters from their leaves.
#pragma once

#include <span>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"

namespace hloom::compiler {

/// The next leaves as a value of this shape; they are taken off the front. Needs: as many leaves as the shape has.
hlo::Literal take_value(const Shape& shape, std::span<const hlo::Literal>& leaves);

/// A value for each parameter of the entry. Needs: as many leaves as the parameters have.
std::vector<hlo::Literal> arguments_of(const hlo::Module&, std::span<const hlo::Literal> leaves);

}  // namespace hloom::compiler

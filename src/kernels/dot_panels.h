// The order in which a dot's kernel reads a constant operand.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/dot_form.h"
#include "kernels/dot_problem.h"
#include "kernels/panel_order.h"

namespace hloom::kernels {

/// The order for operand 0 or 1 of a dot in such a form; none if the form does not go by tiles, or the operand is not an
/// array of whole bytes of which the dot's loops read each element once.
std::optional<PanelOrder> panel_order(const DotProblem&, const DotFusion&, const DotForm&, std::int64_t operand);

}  // namespace hloom::kernels

// Shape inference: the shape of an instruction's result from its operands, attributes and called computations.
#pragma once

#include "hlo/instruction.h"
#include "hloom/error.h"

namespace hloom::hlo {

/// The shape of the result of `i` by the rules of hlo-ops. Where operands do not determine it (parameter, constant,
/// iota, convert, bitcast, reshape, broadcast, custom-call …) the free part comes from i.shape(), which is checked.
/// Layouts: row-major, except that tuples and their elements (tuple, get-tuple-element, while, call …) keep theirs,
/// and shapes taken from i.shape() keep its.
/// Takes any attribute values and any operands; called computations need roots only.
/// Errors: InvalidArgument, naming the instruction, if the count or the shapes of operands, an attribute or the
///         signature of a called computation breaks a rule.
/// Cost: the size of the shapes and attributes involved.
Expected<Shape> infer_shape(const Instruction& i);

}  // namespace hloom::hlo

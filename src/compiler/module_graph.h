// A module as a picture.
#pragma once

#include <string>

#include "hlo/module.h"

namespace hloom::compiler {

/// Graphviz text (`dot -Tsvg`): a box for the entry and for each computation that a loop, a conditional or a call runs,
/// with a dashed arrow from its root to its caller; in it the instructions, an arrow from each operand; a fusion is a box
/// with what it computes. Reducers, comparators and their kin are named on their caller. A tooltip says where in the
/// source an instruction comes from. Bytes that are no printable ASCII come out as `?`. Cost: linear.
std::string module_graph(const hlo::Module&);

}  // namespace hloom::compiler

// From instructions with buffers to kernels and steps.
#pragma once

#include <functional>
#include <vector>

#include "compiler/compile.h"

namespace hloom::jit {
class DiskCache;
}

namespace hloom::compiler {

/// Plans the kernels of all instructions and the steps that call them; calls have no function yet. Fills kernels,
/// program and step_instructions. Large constants are mapped from the cache, if there is one. `planned` is given each kernel
/// as it comes. Errors: Unimplemented, naming the instruction.
Expected<> build_program(Compiled&, const Options&, jit::DiskCache*, const std::function<void(const kernels::Kernel&)>& planned);

/// Gives the calls their functions.
Expected<> link_program(Compiled&);

}  // namespace hloom::compiler

// Constants that dots and convolutions read are packed when a program is compiled.
#pragma once

#include "base/target.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// Makes panels of constants that kernels of dots would pack in each run, or read sooner as panels. Such a fusion reads the panels,
/// a constant of its own shape, and its computation says how the array is made of them, which marks it for the kernel
/// (hlo/panels.h). The constant itself goes if nothing else reads it; if something does and it is large, it stays as it is.
/// Needs: a fused module. Errors: as plan_dot(). Cost: linear in the constants' bytes.
Expected<> pack_constants(hlo::Module&, const base::Target&);

}  // namespace hloom::compiler

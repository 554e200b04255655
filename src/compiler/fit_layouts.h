// Layouts that routines and collectives take, where a program says others.
#pragma once

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// Puts copies before and after what works on arrays in certain layouts only, where it has others: a layout says where elements lie
/// and never what they are. Transforms, factors and solutions take row-major arrays, LAPACK's calls matrices column by column,
/// collectives operand and result in one layout. Other custom calls see the layouts that the program says.
/// Needs: layouts are settled. Errors: InvalidArgument, naming the instruction, if a call of LAPACK is not made as it asks. Cost: linear.
Expected<> fit_layouts(hlo::Module&);

}  // namespace hloom::compiler

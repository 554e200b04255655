// Finds the unwind tables of what is linked.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

#include "jit/unwind.h"

namespace hloom::jit {

/// Adds each object's table to `tables`, which must outlive the plugin.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> make_unwind_plugin(UnwindTables& tables);

}  // namespace hloom::jit

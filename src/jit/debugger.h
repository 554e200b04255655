// Names of compiled functions for GDB.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

namespace hloom::jit {

/// Tells GDB, by the interface for compilers in its manual, of each object linked, until the plugin goes.
/// LLVM's own plugin asks the object's memory manager for memory before it says which object it is for, and never
/// unregisters what it registered.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> make_debugger_support();

}  // namespace hloom::jit

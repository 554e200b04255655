// Names of compiled functions for perf.
#pragma once

#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>

#include <memory>

namespace hloom::jit {

/// Appends the functions of each linked object to /tmp/perf-PID.map, where perf looks for the names of code that lies
/// in no file. An object whose names cannot be written fails to link.
std::shared_ptr<llvm::orc::ObjectLinkingLayer::Plugin> make_perf_map();

}  // namespace hloom::jit

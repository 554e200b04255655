// What an object file depends on, as a number of 256 bits.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/target.h"
#include "jit/target.h"

namespace llvm {
class Module;
}

namespace hloom::jit {

using ObjectKey = std::array<std::uint8_t, 32>;

/// BLAKE3 of the bytes.
ObjectKey digest(std::string_view bytes);

/// 64 hex digits.
std::string to_hex(const ObjectKey&);

/// Of what compile_object() makes of a module: its IR, names included, the target, the level and LLVM's version. Equal in
/// all processes. Cost: that of writing the module as bitcode.
ObjectKey key_of(const llvm::Module&, const base::Target&, Level);

/// Of what is made of a kernel, given without its name (kernels::print()). For one process: the emitter is not in it.
ObjectKey key_of(std::string_view kernel, const base::Target&, Level);

}  // namespace hloom::jit

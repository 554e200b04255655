// A relocatable object file in memory.
#pragma once

#include <string>
#include <vector>

namespace hloom::jit {

/// The bytes of an object file, as a linker takes them, and the name of the module it came from.
struct Object {
  std::string name;
  std::vector<char> bytes;
};

}  // namespace hloom::jit

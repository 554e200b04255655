// A relocatable object file in memory.
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace hloom::jit {

/// The bytes of an object file, as a linker takes them, and the name of the module it came from.
struct Object {
  std::string name;
  std::vector<char> bytes;
};

/// An object that several programs may share, with what one of them calls the function in it.
struct Part {
  std::shared_ptr<const Object> object;
  /// The one function that the object exports is known by these names and by no other; none: all as the object says.
  std::vector<std::string> names = {};
};

}  // namespace hloom::jit

// The bytes of a file of the cache.
#pragma once

#include <string>
#include <string_view>

#include "hloom/error.h"
#include "jit/object.h"
#include "jit/object_key.h"

namespace hloom::jit {

/// The file: a checksum of the rest, a version, the key, the features that the object needs (as
/// required_features() has them), its bytes.
std::string write_entry(const ObjectKey&, std::string_view required_features, const Object&);

/// Errors: DataLoss if it is not just what write_entry() wrote for this key; FailedPrecondition, naming them, if this
/// machine lacks features.
Expected<Object> read_entry(const ObjectKey&, std::string_view file);

}  // namespace hloom::jit

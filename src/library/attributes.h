// backend_config dictionaries of custom calls.
#pragma once

#include <string_view>

#include "hloom/ffi.h"

namespace hloom::library {

/// Reads a dictionary in MLIR's way, `{uplo = 76 : ui8, left = true, name = "x", at = array<i64: 1, 2>, seen}`, or in
/// JSON's. Types behind a colon are dropped; floats may be hexadecimal patterns of the type there. Empty text is no
/// attributes. Errors: InvalidArgument with the place.
Expected<ffi::Attributes> parse_attributes(std::string_view text);

}  // namespace hloom::library

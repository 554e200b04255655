// Single elements of literals.
#pragma once

#include <cstddef>
#include <cstring>

#include "hloom/shape.h"
#include "text/cursor.h"

namespace hloom::text {

/// Reads one element of `type` at the cursor to `out`, which has byte_width(type) bytes.
/// Errors: H103, H105, H106, H405, H410–H413, H501.
using ReadScalar = void (*)(Cursor&, DType type, std::byte* out);

/// The reader for a type of arrays.
ReadScalar scalar_reader(DType);

}  // namespace hloom::text

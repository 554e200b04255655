// Layouts in text (hlo-text 8).
#pragma once

#include "hloom/shape.h"
#include "text/cursor.h"

namespace hloom::text {

/// Reads `{1,0:T(8,128)S(1)}` of an array of this type and rank.
/// Errors: H305 count, H306 order, H307 parts, H308 sparse parts, H309 tiles, H310 element size.
Layout read_layout(Cursor&, DType, std::int64_t rank);

}  // namespace hloom::text

// Literals in text (hlo-text 9).
#pragma once

#include "hlo/literal.h"
#include "text/cursor.h"

namespace hloom::text {

/// Reads a literal of this shape.
/// Errors: H401–H407 structure, H410–H413 values. Cost: linear in the text, whatever the shape claims.
hlo::Literal read_literal(Cursor&, const Shape&);

/// Bytes of one row-major array of this shape that stand for elided elements: small values by position.
/// Needs: an array of a size that can be allocated.
std::vector<std::byte> elided_elements(const Shape&);

}  // namespace hloom::text

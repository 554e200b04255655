// Shapes and layouts in text (hlo-text 7 and 8).
#pragma once

#include "hloom/shape.h"
#include "text/cursor.h"

namespace hloom::text {

/// How a shape without layout is taken, and whether `{}` may be an empty layout.
struct ShapeRules {
  bool fill_layouts = true;   ///< row-major where there is none
  bool empty_layout = false;  ///< inside an instruction, where `{` opens no body
};

/// Whether a shape begins here, rather than a name or an opcode.
bool at_shape(Cursor&);

/// Reads a shape. Errors: H301–H310, H501. The sizes of what it gives fit in 63 bits, in elements and in bytes.
Shape read_shape(Cursor&, ShapeRules);

/// The bytes of a shape, or nothing if they do not fit in 63 bits or a dimension is unbounded (which is no error).
bool sizes_fit(const Shape&);

}  // namespace hloom::text

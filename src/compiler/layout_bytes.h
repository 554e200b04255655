// A literal's elements in the order in which a buffer holds them, and back.
#pragma once

#include <cstddef>
#include <span>

#include "compiler/box.h"
#include "hlo/literal.h"

namespace hloom::compiler {

/// Writes the elements by the layout of `shape`. Needs: a plain or packed layout, as many bytes as the shape has.
void store_literal(const hlo::Literal& literal, const Shape& shape, std::span<std::byte> to);
/// Reads them. The literal has `shape`.
hlo::Literal load_literal(const Shape& shape, std::span<const std::byte> from);
/// Reads a box of them. Cost: its size, but of packed layouts that of all.
hlo::Literal load_box(const Shape& shape, std::span<const std::byte> from, const Box& box);

}  // namespace hloom::compiler

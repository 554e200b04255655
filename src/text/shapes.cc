#include "text/shapes.h"

#include <algorithm>
#include <bit>

#include "text/layouts.h"

namespace hloom::text {

bool at_shape(Cursor& c) {
  if (c.peek() == '(') return true;
  const std::string_view word = c.peek_word();
  if (word.empty()) return false;
  const char next = c.after(word);
  return next == '[' || (word == "b" && next == '(');
}

namespace {

// The stored elements of an array after tiles and padding, or -1 if the number does not fit.
std::int64_t stored_elements(const Shape& shape) {
  const Layout::Extra& p = shape.layout().parts();
  std::vector<std::int64_t> sizes;
  for (auto d = shape.layout().minor_to_major.rbegin(); d != shape.layout().minor_to_major.rend(); ++d)
    sizes.push_back(shape.dim(*d));
  for (const Layout::Tile& tile : p.tiles) {
    std::vector<std::int64_t> inner;
    auto at = sizes.end() - static_cast<std::ptrdiff_t>(tile.size());
    std::int64_t merged = 1;
    std::vector<std::int64_t> outer(sizes.begin(), at);
    for (const std::int64_t t : tile) {
      std::int64_t size = *at++;
      if (__builtin_mul_overflow(size, merged, &size)) return -1;
      if (t == Layout::kCombine) {
        merged = size;
        continue;
      }
      merged = 1;
      outer.push_back(size / t + (size % t != 0));
      inner.push_back(t);
    }
    outer.insert(outer.end(), inner.begin(), inner.end());
    sizes = std::move(outer);
  }
  std::int64_t count = 1;
  for (const std::int64_t s : sizes)
    if (__builtin_mul_overflow(count, s, &count)) return -1;
  const std::int64_t padding = p.tail_padding;
  if (__builtin_add_overflow(count, padding - 1, &count)) return -1;
  return count / padding * padding;
}

// Adds the bytes of `shape` to `total`; false if they do not fit.
bool add_bytes(const Shape& shape, std::int64_t& total) {
  if (!shape.is_array())
    return std::ranges::all_of(shape.elements(), [&](const Shape& e) { return add_bytes(e, total); });
  if (std::ranges::count(shape.dims(), Shape::kUnbounded) != 0) return true;
  if (!shape.element_count()) return false;
  const Layout::Extra& parts = shape.layout().parts();
  const bool plain = shape.layout().extra == nullptr;
  const std::int64_t count = plain ? *shape.element_count() : stored_elements(shape);
  const std::int64_t bits = std::max<std::int64_t>(parts.element_bits, byte_width(shape.dtype()) * 8);
  std::int64_t size = 0;
  return count >= 0 && !__builtin_mul_overflow(count, bits, &size) &&
         !__builtin_add_overflow(size, 7 + 8 * std::min(parts.metadata_bytes, INT64_MAX / 16), &size) &&
         !__builtin_add_overflow(size / 8, total, &total);
}

// The dimensions as they are read, on the stack.
struct ReadDims {
  std::int64_t sizes[Shape::kMaxRank];
  std::size_t rank = 0;
  std::uint64_t dynamic = 0;
};

void read_dimension(Cursor& c, ReadDims& dims) {
  const char* start = c.at();
  if (dims.rank >= static_cast<std::size_t>(Shape::kMaxRank))
    return c.fail("H302", start, words("more than ", Shape::kMaxRank, " dimensions"));
  std::int64_t& size = dims.sizes[dims.rank];
  const std::uint64_t bit = 1ull << dims.rank++;
  if (c.eat('?')) {
    dims.dynamic |= bit;
    size = Shape::kUnbounded;
    return;
  }
  if (c.peek() == '<' && c.eat("<=")) dims.dynamic |= bit;
  size = c.integer("a dimension");
  if (size < 0) c.fail("H302", start, words("dimension ", size, " is negative"));
}

// Whether a `{` here begins a layout: after it stands an integer or ':', or nothing where that is allowed.
bool at_layout(Cursor& c, const ShapeRules& rules, bool scalar) {
  if (c.peek() != '{') return false;
  const char* const start = c.position();
  c.set_position(start + 1);
  const char next = c.peek();
  c.set_position(start);
  return chars::is(next, chars::kDigit) || next == ':' || next == '-' || (next == '}' && rules.empty_layout && scalar);
}

void refuse_layout(Cursor& c, const ShapeRules& rules, const Shape& shape) {
  if (at_layout(c, rules, false)) c.fail("H304", c.at(), words("a ", name(shape.dtype()), " has no layout"));
}

Shape read_array(Cursor& c, const ShapeRules& rules) {
  const char* start = c.at();
  const std::string_view type_name = c.take_word("a shape");
  const auto type = dtype_named(type_name);
  if (!type) {
    c.fail("H301", start, words("'", type_name, "' is not an element type"));
    return {};
  }
  ReadDims read;
  c.list('[', ']', [&] { read_dimension(c, read); });
  if (!c.ok()) return {};
  if (*type == DType::Token || *type == DType::Opaque) {
    Shape shape = *type == DType::Token ? Shape::token() : Shape::opaque();
    if (read.rank != 0) c.fail("H302", start, words("a ", type_name, " has no dimensions"));
    refuse_layout(c, rules, shape);
    return shape;
  }
  const auto rank = static_cast<std::int64_t>(read.rank);
  std::vector<std::int64_t> dims(read.sizes, read.sizes + read.rank);
  const bool has_layout = at_layout(c, rules, rank == 0);
  Shape shape = has_layout ? Shape::array(*type, std::move(dims), read_layout(c, *type, rank))
                           : Shape::array(*type, std::move(dims), {});
  if (!has_layout) {
    if (rules.fill_layouts || rank == 0)
      shape.set_layout(Layout::descending(rank));
    else
      shape.clear_layout();
  }
  for (std::uint64_t dynamic = read.dynamic; dynamic != 0; dynamic &= dynamic - 1)
    shape.set_dynamic_dim(std::countr_zero(dynamic), true);
  if (c.ok() && !sizes_fit(shape)) c.fail("H302", start, "the array has more than 2^63 - 1 bits");
  return shape;
}

Shape read_nested(Cursor& c, const ShapeRules& rules) {
  const Cursor::Depth depth(c);
  const char* start = c.at();
  if (c.peek() == 'b' && c.looking_at("b(")) {
    c.eat('b');
    c.expect('(');
    Shape held = read_nested(c, rules);
    c.expect(')');
    return Shape::buffer(std::move(held));
  }
  if (c.peek() != '(') return read_array(c, rules);
  std::vector<Shape> elements;
  c.list('(', ')', [&] { elements.push_back(read_nested(c, rules)); });
  Shape shape = Shape::tuple(std::move(elements));
  if (c.ok()) refuse_layout(c, rules, shape);
  if (c.ok() && !sizes_fit(shape)) c.fail("H302", start, "the tuple has more than 2^63 - 1 bytes");
  return shape;
}

}  // namespace

bool sizes_fit(const Shape& shape) {
  std::int64_t total = 0;
  return add_bytes(shape, total);
}

Shape read_shape(Cursor& c, ShapeRules rules) { return read_nested(c, rules); }

}  // namespace hloom::text

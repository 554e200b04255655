#include "text/layouts.h"

#include <algorithm>
#include <bit>

#include "text/shapes.h"

namespace hloom::text {
namespace {

using Extra = Layout::Extra;

// The parts in the one order in which they may come.
constexpr std::string_view kParts[] = {"D", "T", "L", "#", "*", "E", "S", "SC", "P", "M"};

// The name of the part at the cursor; empty at the end.
std::string_view peek_part(Cursor& c) {
  if (c.peek() == '#' || c.peek() == '*') return {c.position(), 1};
  return c.peek_word();
}

std::int64_t in_parentheses(Cursor& c, std::int64_t least) {
  c.expect('(');
  const std::int64_t n = c.integer_between("the value of this layout part", least, INT64_MAX);
  c.expect(')');
  return n;
}

DType type_in_parentheses(Cursor& c) {
  c.expect('(');
  const char* at = c.at();
  const std::string_view word = c.take_word("an element type");
  const auto type = dtype_named(word);
  if (!type || !is_integral(*type)) c.fail("H301", at, words("'", word, "' is not an integer type"));
  c.expect(')');
  return type.value_or(DType::Invalid);
}

void read_dim_kinds(Cursor& c, std::int64_t rank, Extra& parts) {
  const char* at = c.at();
  c.list('(', ')', [&] {
    constexpr std::string_view kKinds = "DCSH";
    const std::size_t kind = c.peek() == '\0' ? std::string_view::npos : kKinds.find(c.peek());
    if (kind == std::string_view::npos)
      return c.fail("H307", c.at(), words("expected one of D, C, S, H, found ", c.found()));
    c.set_position(c.position() + 1);
    Layout::Dim dim{static_cast<Layout::DimKind>(kind), true, true};
    if (c.eat('+')) dim.unique = false;
    if (c.eat('~')) dim.ordered = false;
    parts.dims.push_back(dim);
  });
  if (c.ok() && static_cast<std::int64_t>(parts.dims.size()) != rank)
    c.fail("H305", at, words("kinds of ", parts.dims.size(), " dimensions for an array of rank ", rank));
  if (std::ranges::all_of(parts.dims, [](const Layout::Dim& d) { return d == Layout::Dim{}; })) parts.dims.clear();
}

// One tile of an index of `physical` dimensions, which grows by the tile's.
void read_tile(Cursor& c, std::size_t& physical, Extra& parts) {
  const char* at = c.at();
  Layout::Tile tile;
  std::size_t merged = 0;
  c.list('(', ')', [&] {
    const char* entry = c.at();
    if (c.eat('*')) {
      ++merged;
      tile.push_back(Layout::kCombine);
      return;
    }
    const std::int64_t size = c.integer("a tile's dimension");
    if (size <= 0) c.fail("H309", entry, words("a tile's dimension must be positive, not ", size));
    tile.push_back(size);
  });
  if (!c.ok()) return;
  if (tile.empty() || tile.back() == Layout::kCombine)
    return c.fail("H309", at, "a tile ends with a dimension, not with '*'");
  if (tile.size() > physical)
    return c.fail("H309", at, words("a tile of rank ", tile.size(), " for an index of rank ", physical));
  physical += tile.size() - 2 * merged;
  if (physical > 4096) c.fail("H309", at, "too many tiles");
  parts.tiles.push_back(std::move(tile));
}

void read_split(Cursor& c, std::int64_t rank, Extra& parts) {
  c.expect('(');
  const char* at = c.at();
  Layout::Split split;
  split.dimension = c.integer("a dimension");
  if (split.dimension < 0 || split.dimension >= rank)
    c.fail("H307", at, words("dimension ", split.dimension, " of an array of rank ", rank));
  c.expect(':');
  do split.indices.push_back(c.integer("an index"));
  while (c.eat(','));
  c.expect(')');
  parts.splits.push_back(std::move(split));
}

void read_element_bits(Cursor& c, DType type, Extra& parts) {
  const char* at = c.at();
  parts.element_bits = in_parentheses(c, 0);
  constexpr std::int64_t kMost = 128;  // of a c128
  if (parts.element_bits != 0 && (parts.element_bits < bit_width(type) || parts.element_bits > kMost))
    c.fail("H310", at,
           words("elements of ", parts.element_bits, " bits for ", name(type), " of ", std::int64_t{bit_width(type)}));
}

void read_part(Cursor& c, std::size_t part, DType type, std::int64_t rank, Extra& parts) {
  std::size_t physical = static_cast<std::size_t>(rank);
  switch (part) {
    case 0: return read_dim_kinds(c, rank, parts);
    case 1:
      do read_tile(c, physical, parts);
      while (c.peek() == '(');
      return;
    case 2: parts.tail_padding = in_parentheses(c, 1); return;
    case 3: parts.index_type = type_in_parentheses(c); return;
    case 4: parts.pointer_type = type_in_parentheses(c); return;
    case 5: return read_element_bits(c, type, parts);
    case 6: parts.memory_space = in_parentheses(c, 0); return;
    case 7:
      do read_split(c, rank, parts);
      while (c.peek() == '(');
      return;
    case 8:
      c.expect('(');
      parts.physical_shape = to_string(read_shape(c, {.fill_layouts = false}));
      c.expect(')');
      return;
    default: parts.metadata_bytes = in_parentheses(c, 0); return;
  }
}

// What only sparse arrays have, if this one is dense.
void check_dense(Cursor& c, const char* at, const Extra& parts) {
  if (!parts.dims.empty()) return;
  if (parts.index_type != DType::Invalid) return c.fail("H308", at, "'#' (index type) on an array that is dense");
  if (parts.pointer_type != DType::Invalid) return c.fail("H308", at, "'*' (pointer type) on an array that is dense");
  if (!parts.physical_shape.empty()) c.fail("H308", at, "'P' (physical shape) on an array that is dense");
}

void read_parts(Cursor& c, DType type, std::int64_t rank, Layout& layout) {
  const char* start = c.at();
  Extra parts;
  std::size_t next = 0;
  while (c.ok() && c.peek() != '}') {
    const char* at = c.at();
    const std::string_view found = peek_part(c);
    const auto* const known = std::ranges::find(kParts, found);
    const auto part = static_cast<std::size_t>(known - std::begin(kParts));
    if (known == std::end(kParts) || part < next)
      return c.fail("H307", at,
                    words(known == std::end(kParts) ? "unknown layout part " : "layout part out of order: ", c.found(),
                          "; the order is D T L # * E S SC P M"));
    c.set_position(at + found.size());
    next = part + 1;
    read_part(c, part, type, rank, parts);
  }
  if (!c.ok()) return;
  check_dense(c, start, parts);
  layout.set_parts(std::move(parts));
}

}  // namespace

Layout read_layout(Cursor& c, DType type, std::int64_t rank) {
  const char* start = c.at();
  Layout layout;
  c.expect('{');
  layout.minor_to_major.reserve(static_cast<std::size_t>(rank));
  std::uint64_t seen = 0;
  bool permutation = true;
  while (c.ok() && c.peek() != ':' && c.peek() != '}') {
    const std::int64_t d = c.integer("a dimension");
    if (d >= 0 && d < rank && (seen >> d & 1) == 0)
      seen |= 1ull << d;
    else
      permutation = false;
    layout.minor_to_major.push_back(d);
    if (!c.eat(',')) break;
  }
  if (!c.ok()) return layout;
  if (static_cast<std::int64_t>(layout.minor_to_major.size()) != rank)
    c.fail("H305", start,
           words("a layout of ", layout.minor_to_major.size(), " dimensions for an array of rank ", rank));
  else if (!permutation)
    c.fail("H306", start, words("the layout's dimensions are no permutation of 0 … ", rank - 1));
  if (c.eat(':')) read_parts(c, type, rank, layout);
  c.expect('}');
  return layout;
}

}  // namespace hloom::text

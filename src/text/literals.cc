#include "text/literals.h"

#include <algorithm>

#include "hlo/narrow_float.h"
#include "text/scalars.h"

namespace hloom::text {
namespace {

using hlo::Literal;

// Reads the braces of one array. Memory grows with the text, not with what the shape claims.
class ArrayReader {
 public:
  ArrayReader(Cursor& c, const Shape& shape)
      : c_(c),
        shape_(shape),
        width_(static_cast<std::size_t>(byte_width(shape.dtype()))),
        read_(scalar_reader(shape.dtype())) {
    // Two elements need at least three bytes of text.
    const auto most = static_cast<std::size_t>(c.end() - c.position()) / 2 + 2;
    bytes_.resize(std::min(static_cast<std::size_t>(shape.num_elements()), most) * width_);
  }

  Literal read() {
    read_level(0);
    if (!c_.ok()) return {};
    bytes_.resize(used_);
    return Literal::from_bytes(shape_, std::move(bytes_));
  }

 private:
  void read_element() {
    if (used_ + width_ > bytes_.size()) bytes_.resize(bytes_.size() * 2 + width_);
    read_(c_, shape_.dtype(), bytes_.data() + used_);
    used_ += width_;
  }

  void read_level(std::int64_t depth) {
    if (depth == shape_.rank()) return read_scalar();
    if (c_.peek() != '{') return not_a_brace(depth);
    c_.eat('{');
    const std::int64_t size = shape_.dim(depth);
    const bool innermost = depth + 1 == shape_.rank();
    std::int64_t n = 0;
    for (; c_.ok() && c_.peek() != '}'; ++n) {
      if (n == size) return too_many(depth, size);
      index_[depth] = n;
      if (!innermost)
        read_level(depth + 1);
      else if (c_.peek() != '{' && c_.peek() != '.')
        read_element();
      else
        read_scalar();
      c_.eat(',');
    }
    if (n < size && c_.ok()) return too_few(depth, n, size);
    c_.expect('}');
  }

  void read_scalar() {
    if (c_.peek() == '{') return c_.fail("H403", c_.at(), words("'{' nests deeper than the rank, ", shape_.rank()));
    if (c_.peek() == '}') return c_.fail("H406", c_.at(), "unexpected '}' where a value was expected");
    if (c_.looking_at("...")) return misplaced_dots();
    read_element();
  }

  void misplaced_dots() {
    c_.fail("H407", c_.at(), "'...' stands for all elements of a constant and only directly inside its outer braces");
  }

  void not_a_brace(std::int64_t depth) {
    if (c_.looking_at("...")) return misplaced_dots();
    const char next = c_.peek();
    if (next == '(' || next == '-' || chars::is(next, chars::kName) || next == '}')
      return c_.fail(
          "H404", c_.at(),
          words("expected '{' at depth ", depth + 1, " of a literal of rank ", shape_.rank(), ", found ", c_.found()));
    c_.fail_expected("'{'");
  }

  // "at {1,0,…}" for messages: where in the array.
  std::string where(std::int64_t depth) const {
    std::string text = "{";
    for (std::int64_t d = 0; d < depth; ++d) text += words(d == 0 ? "" : ",", index_[d]);
    return text + "}";
  }

  void too_many(std::int64_t depth, std::int64_t size) {
    c_.fail("H402", c_.at(), words("too many elements at ", where(depth), ": dimension ", depth, " has ", size));
  }
  void too_few(std::int64_t depth, std::int64_t found, std::int64_t size) {
    c_.fail("H401", c_.at(),
            words("too few elements at ", where(depth), ": dimension ", depth, " has ", size, ", found ", found));
  }

  Cursor& c_;
  const Shape& shape_;
  std::size_t width_;
  ReadScalar read_;
  std::vector<std::byte> bytes_;
  std::size_t used_ = 0;
  std::int64_t index_[Shape::kMaxRank] = {};
};

std::uint64_t mixed(std::uint64_t i) {
  i = (i ^ (i >> 30)) * 0xBF58476D1CE4E5B9ull;
  i = (i ^ (i >> 27)) * 0x94D049BB133111EBull;
  return i ^ (i >> 31);
}

// The bits of a small value of `type` (not complex) that depends on `i` alone: floats are multiples of 1/4 in
// [-2, 2) where the type has them, integers are in [0, 4), so that they may serve as indices.
std::uint64_t small_value(DType type, std::uint64_t i) {
  const std::uint64_t random = mixed(i + 1);
  if (is_floating(type)) {
    const hlo::FloatFormat& f = hlo::float_format(type);
    if (f.special == hlo::FloatFormat::Special::PowerOfTwo) return 125 + random % 4;
    return hlo::encode_float(f, (static_cast<double>(random % 16) - 8) / 4);
  }
  const int bits = bit_width(type) - (is_signed(type) ? 1 : 0);
  return random % (bits == 0 ? 1 : bits == 1 ? 2 : 4);
}

constexpr std::int64_t kMostElidedBytes = std::int64_t{1} << 32;

Literal fill(Cursor& c, const char* at, const Shape& shape) {
  if (shape.is_tuple()) {
    std::vector<Literal> elements;
    for (const Shape& e : shape.elements()) elements.push_back(fill(c, at, e));
    return Literal::tuple(std::move(elements));
  }
  if (!shape.is_array() || shape.num_elements() > kMostElidedBytes / byte_width(shape.dtype())) {
    c.fail("H407", at, words("a constant of shape ", to_string(shape, false), " is too large to be filled"));
    return {};
  }
  return Literal::from_bytes(shape, elided_elements(shape));
}

// `{...}`, if it stands here.
bool eat_elided(Cursor& c) {
  if (c.peek() != '{') return false;
  const char* const start = c.position();
  c.set_position(start + 1);
  if (c.eat("...") && c.eat('}')) return true;
  c.set_position(start);
  return false;
}

Literal read_elided(Cursor& c, const char* at, const Shape& shape) {
  if (c.options().fill_elided) return fill(c, at, shape);
  c.fail("H407", at,
         "the elements of this constant were left out when the text was written; write it with large constants, or "
         "ask for made-up ones with --fill-elided");
  return {};
}

Literal read_tuple(Cursor& c, const Shape& shape) {
  const Cursor::Depth depth(c);
  std::vector<Literal> elements;
  c.expect('(');
  while (c.ok() && c.peek() != ')') {
    if (elements.size() == shape.elements().size()) {
      c.fail("H402", c.at(), words("too many elements: the tuple has ", elements.size()));
      break;
    }
    elements.push_back(read_literal(c, shape.elements()[elements.size()]));
    c.eat(',');
  }
  if (c.ok() && elements.size() < shape.elements().size())
    c.fail("H401", c.at(),
           words("too few elements: the tuple has ", shape.elements().size(), ", found ", elements.size()));
  c.expect(')');
  return Literal::tuple(std::move(elements));
}

}  // namespace

std::vector<std::byte> elided_elements(const Shape& shape) {
  const DType part = real_type(shape.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  std::vector<std::byte> bytes(static_cast<std::size_t>(shape.num_elements() * byte_width(shape.dtype())));
  for (std::size_t i = 0; i < bytes.size() / width; ++i) {
    const std::uint64_t bits = small_value(part, i);
    std::memcpy(bytes.data() + i * width, &bits, width);
  }
  return bytes;
}

Literal read_literal(Cursor& c, const Shape& shape) {
  const char* at = c.at();
  if (!shape.is_tuple() && !shape.is_array()) {
    c.fail("H413", at, words("there are no literals of type ", name(shape.dtype())));
    return {};
  }
  if (eat_elided(c)) return read_elided(c, at, shape);
  if (shape.is_tuple()) return read_tuple(c, shape);
  if (!shape.element_count()) {
    c.fail("H303", at, words("a literal of shape ", to_string(shape, false), " has no size"));
    return {};
  }
  return ArrayReader(c, shape).read();
}

}  // namespace hloom::text

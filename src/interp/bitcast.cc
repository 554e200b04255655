// The two operations that look at bits: bitcast-convert on elements (hlo-ops 5.4), bitcast on the buffer with its
// layout.

#include <algorithm>
#include <cstring>

#include "base/try.h"
#include "interp/index.h"
#include "interp/ops.h"

namespace hloom::interp {
namespace {

using hlo::Literal;

// Bits of an element where bits are counted: pred is a byte.
int bits_of(DType type) { return type == DType::Pred ? 8 : bit_width(type); }

std::uint64_t mask(int bits) { return ~std::uint64_t{0} >> (64 - bits); }

std::uint64_t read_bits(const std::byte* from, std::int64_t i, DType type) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from + i * byte_width(type), static_cast<std::size_t>(byte_width(type)));
  return bits & mask(bits_of(type));
}

// Sub-byte signed integers are kept sign-extended in their byte.
void write_bits(std::byte* to, std::int64_t i, DType type, std::uint64_t bits) {
  const int unused = 64 - bits_of(type);
  if (is_signed(type)) bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(bits << unused) >> unused);
  std::memcpy(to + i * byte_width(type), &bits, static_cast<std::size_t>(byte_width(type)));
}

// Where in a buffer the elements of an array lie: positions in whole elements, tiles and their padding included.
class Placement {
 public:
  explicit Placement(const Shape& shape) : shape_(shape), layout_(shape.layout()) {
    if (!shape.has_layout()) layout_ = Layout::descending(shape.rank());
  }
  bool is_row_major() const { return layout_.is_descending() && layout_.parts().tiles.empty(); }
  /// Bits from one element to the next.
  int element_bits() const {
    const std::int64_t packed = layout_.parts().element_bits;
    return packed > 0 ? static_cast<int>(packed) : 8 * static_cast<int>(byte_width(shape_.dtype()));
  }
  std::int64_t position_of(const Dims& index) const {
    Dims at, sizes;  // most major dimension first
    for (std::size_t d = layout_.minor_to_major.size(); d-- > 0;) {
      const auto logical = static_cast<std::size_t>(layout_.minor_to_major[d]);
      at.push_back(index[logical]);
      sizes.push_back(shape_.dims()[logical]);
    }
    for (const Layout::Tile& tile : layout_.parts().tiles) split(at, sizes, tile);
    return position(at, row_major(sizes));
  }

 private:
  // The last dimensions become a grid of tiles with a tile's dimensions after it.
  static void split(Dims& at, Dims& sizes, const Layout::Tile& tile) {
    const std::size_t first = sizes.size() - tile.size();
    for (std::size_t t = 0; t < tile.size(); ++t) {
      at.push_back(at[first + t] % tile[t]);
      at[first + t] /= tile[t];
      sizes[first + t] = (sizes[first + t] + tile[t] - 1) / tile[t];
    }
    sizes.insert(sizes.end(), tile.begin(), tile.end());
  }

  const Shape& shape_;
  Layout layout_;
};

bool has_combining_tile(const Shape& shape) {
  for (const Layout::Tile& tile : shape.layout().parts().tiles) {
    if (static_cast<std::int64_t>(tile.size()) > shape.rank()) return true;
    if (std::find(tile.begin(), tile.end(), Layout::kCombine) != tile.end()) return true;
  }
  return false;
}

// The elements' bits as they lie in the buffer, the lowest first; elements of c128 as two.
std::vector<bool> buffer_bits(const Literal& literal, const Shape& shape) {
  const Placement placement(shape);
  const int step = placement.element_bits();
  std::vector<bool> buffer(static_cast<std::size_t>(8 * shape.size_bytes()));
  const std::int64_t width = byte_width(shape.dtype()), count = literal.num_elements();
  const int bits = std::min<int>(step, 8 * static_cast<int>(width));
  Dims index(shape.dims().size(), 0);
  for (std::int64_t i = 0; i < count; ++i, next(index, shape.dims())) {
    const std::int64_t at = placement.position_of(index) * step;
    for (int b = 0; b < bits; ++b) {
      const auto byte = std::to_integer<unsigned>(literal.bytes()[static_cast<std::size_t>(i * width + b / 8)]);
      buffer[static_cast<std::size_t>(at + b)] = ((byte >> (b % 8)) & 1) != 0;
    }
  }
  return buffer;
}

Literal from_buffer(const std::vector<bool>& buffer, const Shape& shape) {
  const Placement placement(shape);
  const int step = placement.element_bits();
  Literal result(shape);
  const auto bytes = result.mutable_bytes();
  const std::int64_t width = byte_width(shape.dtype()), count = result.num_elements();
  const int bits = std::min<int>(step, 8 * static_cast<int>(width));
  Dims index(shape.dims().size(), 0);
  for (std::int64_t i = 0; i < count; ++i, next(index, shape.dims())) {
    const std::int64_t at = placement.position_of(index) * step;
    for (int b = 0; b < bits; ++b)
      if (buffer[static_cast<std::size_t>(at + b)])
        bytes[static_cast<std::size_t>(i * width + b / 8)] |= static_cast<std::byte>(1u << (b % 8));
    if (bit_width(shape.dtype()) < 8 && shape.dtype() != DType::Pred)
      write_bits(bytes.data(), i, shape.dtype(), read_bits(bytes.data(), i, shape.dtype()));
  }
  return result;
}

}  // namespace

Expected<Value> bitcast_convert(const Call& call) {
  const Literal& from = call.array(0);
  const DType source = from.dtype(), target = call.shape.dtype();
  const int wide = bits_of(source), narrow = bits_of(target);
  Literal result(call.shape);
  std::byte* to = result.mutable_bytes().data();
  const std::int64_t count = result.num_elements();
  if (wide > 64 || narrow > 64) {  // c128 to itself
    std::memcpy(to, from.bytes().data(), from.bytes().size());
    return Value(std::move(result));
  }
  for (std::int64_t i = 0; i < count; ++i) {
    std::uint64_t bits = 0;
    if (wide >= narrow) {
      const std::int64_t parts = wide / narrow;
      bits = read_bits(from.bytes().data(), i / parts, source) >> (i % parts * narrow);
    } else {
      for (std::int64_t part = 0; part < narrow / wide; ++part)
        bits |= read_bits(from.bytes().data(), i * (narrow / wide) + part, source) << (part * wide);
    }
    write_bits(to, i, target, bits & mask(narrow));
  }
  return Value(std::move(result));
}

// Byte k of the result's buffer is byte k of the operand's.
Expected<Value> bitcast(const Call& call) {
  const Shape& from = call.instruction.operand(0)->shape();
  const Shape& to = call.instruction.shape();
  if (!from.is_array() || !to.is_array()) return call.operands[0];
  if (has_combining_tile(from) || has_combining_tile(to))
    return fail(Code::Unimplemented, call.instruction.name(),
                ": the interpreter does not know this tiling: ", to_string(from), " to ", to_string(to));
  const bool plain = Placement(from).is_row_major() && Placement(to).is_row_major() &&
                     Placement(from).element_bits() == Placement(to).element_bits() && from.dtype() == to.dtype();
  if (plain) return reshape(call);
  if (from.size_bytes() != to.size_bytes())
    return wrong(call, "a buffer of ", from.size_bytes(), " bytes cannot be one of ", to.size_bytes());
  return Value(from_buffer(buffer_bits(call.array(0), from), to));
}

}  // namespace hloom::interp

// A packed byte and the bytes of its elements are one number each: the second, 2, 4 or 8 bytes long, is made of the
// first by shifts and masks, so that loads and stores are dense on both sides.
#include "kernels/plan_packing.h"

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "hlo/packing.h"

namespace hloom::kernels {

using hlo::Opcode;
using hlo::packed_bits;
using hlo::packed_shift;

namespace {

class Packing {
 public:
  Packing(Builder& b, const Place& from, const Place& to) : b_(b), from_(from), to_(to) {
    packs_ = packed_bits(to.shape) != 0;
    type_ = to.shape.dtype();
    bits_ = packs_ ? packed_bits(to.shape) : packed_bits(from.shape);
    per_byte_ = 8 / bits_;
    word_ = per_byte_ == 2 ? DType::U16 : per_byte_ == 4 ? DType::U32 : DType::U64;
    num_elements_ = to.shape.num_elements();
  }

  // `block`: packed bytes of one block of the grid; 0: no grid.
  void build(std::int64_t block) {
    const std::int64_t bytes = num_elements_ / per_byte_;
    if (bytes > 0) {
      const std::int64_t most = 256 / byte_width(word_), fit = std::bit_ceil(static_cast<std::uint64_t>(bytes));
      const auto lanes = static_cast<int>(std::min(most, fit));
      const Index byte = index_of(b_.begin_loop(0, bytes, lanes > 1 ? lanes : 0, block));
      if (packs_)
        store(to_, byte, pack(load(from_, byte, word_)));
      else
        store(to_, byte, unpack(load(from_, byte, DType::U8)));
      b_.end_loop();
    }
    if (num_elements_ % per_byte_ == 0) return;
    // The last, short byte is the first block's too.
    const Index byte = index_of(b_.begin_loop(0, 1, 0, block > 0 ? 1 : 0)) + bytes;
    last_byte(byte);
    b_.end_loop();
  }

 private:
  Value load(const Place& place, const Index& at, DType type) {
    return b_.load_linear(place.argument, at + place.byte_offset / byte_width(type), type);
  }
  void store(const Place& place, const Index& at, Value v) {
    b_.store_linear(place.argument, at + place.byte_offset / byte_width(b_.type(v)), v);
  }
  Value op(Opcode opcode, Value a, Value b) { return b_.line(opcode, word_, {a, b}); }
  Value op(Opcode opcode, Value a, std::uint64_t b) { return op(opcode, a, b_.constant(word_, b)); }
  Value shifted(Value x, int up) {
    if (up == 0) return x;
    return up > 0 ? op(Opcode::ShiftLeft, x, static_cast<std::uint64_t>(up))
                  : op(Opcode::ShiftRightLogical, x, static_cast<std::uint64_t>(-up));
  }
  Value joined(Value a, Value b) { return a == kNoValue ? b : op(Opcode::Or, a, b); }
  /// `x` in each byte of a word.
  std::uint64_t repeated(std::uint64_t x) const {
    std::uint64_t all = 0;
    for (int k = 0; k < per_byte_; ++k) all |= x << (8 * k);
    return all;
  }

  Value unpack(Value byte) {
    const Value wide = b_.line(Opcode::Convert, word_, {byte});
    Value all = kNoValue;
    for (int k = 0; k < per_byte_; ++k) {
      const Value moved = shifted(wide, 8 * k - packed_shift(k, bits_));
      all = joined(all, op(Opcode::And, moved, ((std::uint64_t{1} << bits_) - 1) << (8 * k)));
    }
    return extended(all);
  }

  // Copies the sign of each byte's element up: 2^8 - 2^bits times the sign, modulo the word.
  Value extended(Value all) {
    const int width = bit_width(type_);
    if (bits_ > width) all = op(Opcode::And, all, repeated((1u << width) - 1));
    if (!is_signed(type_)) return all;
    const Value signs = op(Opcode::And, all, repeated(1u << (width - 1)));
    return op(Opcode::Or, all, op(Opcode::Subtract, shifted(signs, 9 - width), shifted(signs, 1)));
  }

  Value pack(Value word) {
    Value all = kNoValue;
    for (int k = 0; k < per_byte_; ++k) {
      const int shift = packed_shift(k, bits_);
      all = joined(all, op(Opcode::And, shifted(word, shift - 8 * k), ((std::uint64_t{1} << bits_) - 1) << shift));
    }
    return b_.line(Opcode::Convert, DType::U8, {all});
  }

  void last_byte(const Index& byte) {
    const auto rest = static_cast<int>(num_elements_ % per_byte_);
    const auto each = [&](int k) { return byte * per_byte_ + k; };
    if (!packs_) {
      const Value all = unpack(load(from_, byte, DType::U8));
      for (int k = 0; k < rest; ++k) store(to_, each(k), b_.line(Opcode::Convert, DType::U8, {shifted(all, -8 * k)}));
      return;
    }
    Value word = kNoValue;
    for (int k = 0; k < rest; ++k)
      word = joined(word, shifted(b_.line(Opcode::Convert, word_, {load(from_, each(k), DType::U8)}), 8 * k));
    store(to_, byte, pack(word));
  }

  Builder& b_;
  const Place& from_;
  const Place& to_;
  bool packs_ = false;
  DType type_ = DType::Invalid, word_ = DType::Invalid;
  int bits_ = 0, per_byte_ = 0;
  std::int64_t num_elements_ = 0;
};

constexpr std::int64_t kBlockBytes = 16 * 1024;  // packed

}  // namespace

bool changes_packing(const Shape& from, const Shape& to) { return packed_bits(from) != packed_bits(to); }

Kernel plan_packing(std::string name, const Shape& from, const Shape& to) {
  HLOOM_CHECK(changes_packing(from, to) && (packed_bits(from) == 0 || packed_bits(to) == 0));
  HLOOM_CHECK(from.layout().minor_to_major == to.layout().minor_to_major);
  Builder b(std::move(name));
  const auto bytes = [](const Shape& shape, std::string argument, bool written) {
    return Argument{std::move(argument), DType::Invalid, shape.size_bytes(), written, 1, false};
  };
  b.kernel().arguments = {bytes(from, "a0", false), bytes(to, "y0", true)};
  const std::int64_t packed = std::min(from.size_bytes(), to.size_bytes());
  const std::int64_t blocks = std::max<std::int64_t>(1, (packed + kBlockBytes - 1) / kBlockBytes);
  const Place source{0, 0, from}, target{1, 0, to};
  Packing(b, source, target).build(blocks > 1 ? kBlockBytes : 0);
  Kernel kernel = std::move(b).finish();
  kernel.blocks = blocks;
  kernel.block_cost = (from.size_bytes() + to.size_bytes()) / blocks;
  return kernel;
}

void plan_packing_into(Builder& b, const Place& from, const Place& to) {
  b.forget_loads();
  b.forget_stored(to.argument, to.byte_offset, to.byte_offset + to.shape.size_bytes());
  Packing(b, from, to).build(0);
  b.forget_loads();
}

}  // namespace hloom::kernels

// Elements of rng-bit-generator: each is a function of the state and its own place (hlo-ops 9.1).
// Sources: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", 2011 (Threefry, Philox).
#include <algorithm>
#include <array>

#include "base/fail.h"
#include "base/try.h"
#include "kernels/elements.h"

namespace hloom::kernels {

using hlo::Instruction;
using hlo::Opcode;

namespace {

class Words {
 public:
  explicit Words(Builder& b) : b_(b) {}
  Value constant(std::uint32_t v) { return b_.constant(DType::U32, v); }
  Value constant64(std::uint64_t v) { return b_.constant(DType::U64, v); }
  Value op(Opcode o, Value x, Value y) { return b_.line(o, b_.type(x), {x, y}); }
  Value add(Value x, Value y) { return op(Opcode::Add, x, y); }
  Value exclusive(Value x, Value y) { return op(Opcode::Xor, x, y); }
  Value low(Value x) { return b_.line(Opcode::Convert, DType::U32, {x}); }
  Value wide(Value x) { return b_.line(Opcode::Convert, DType::U64, {x}); }
  Value high(Value x) { return low(op(Opcode::ShiftRightLogical, x, constant64(32))); }
  Value join(Value lo, Value hi) {
    return op(Opcode::Or, wide(lo), op(Opcode::ShiftLeft, wide(hi), constant64(32)));
  }
  Value rotate(Value x, std::uint32_t by) {
    return op(Opcode::Or, op(Opcode::ShiftLeft, x, constant(by)), op(Opcode::ShiftRightLogical, x, constant(32 - by)));
  }

  // Threefry-2x32, 20 rounds.
  std::array<Value, 2> threefry(Value key, Value counter) {
    const std::array<Value, 3> ks = {low(key), high(key),
                                     exclusive(exclusive(low(key), high(key)), constant(0x1BD11BDA))};
    static constexpr std::uint32_t kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
    Value x0 = add(low(counter), ks[0]), x1 = add(high(counter), ks[1]);
    for (std::uint32_t g = 1; g <= 5; ++g) {
      for (const std::uint32_t r : kRotations[(g + 1) % 2]) {
        x0 = add(x0, x1);
        x1 = exclusive(rotate(x1, r), x0);
      }
      x0 = add(x0, ks[g % 3]);
      x1 = add(add(x1, ks[(g + 1) % 3]), constant(g));
    }
    return {x0, x1};
  }

  // Philox-4x32, 10 rounds.
  std::array<Value, 4> philox(Value key, Value counter_low, Value counter_high) {
    std::array<Value, 4> x = {low(counter_low), high(counter_low), low(counter_high), high(counter_high)};
    Value k0 = low(key), k1 = high(key);
    for (int round = 0; round < 10; ++round) {
      const Value p = op(Opcode::Multiply, wide(x[0]), constant64(0xD2511F53));
      const Value q = op(Opcode::Multiply, wide(x[2]), constant64(0xCD9E8D57));
      x = {exclusive(exclusive(high(q), x[1]), k0), low(q), exclusive(exclusive(high(p), x[3]), k1), low(p)};
      k0 = add(k0, constant(0x9E3779B9));
      k1 = add(k1, constant(0xBB67AE85));
    }
    return x;
  }

  Value select(Value p, Value t, Value f) { return b_.line(Opcode::Select, b_.type(t), {p, t, f}); }
  Value less(Value x, Value y) {
    Line line;
    line.opcode = Opcode::Compare;
    line.operands = {x, y};
    line.compare = {hlo::Direction::Lt, hlo::Comparison::Unsigned};
    return b_.line(std::move(line), DType::Pred);
  }
  Value equal_index(const Index& index, std::int64_t v) {
    Line line;
    line.opcode = Opcode::Compare;
    line.operands = {b_.affine(index), b_.constant_index(v)};
    line.compare = {hlo::Direction::Eq, hlo::Comparison::Signed};
    return b_.line(std::move(line), DType::Pred);
  }
  Value unsigned_index(const Index& index) { return b_.line(Opcode::Convert, DType::U64, {b_.affine(index)}); }

 private:
  Builder& b_;
};

std::int64_t product(const std::vector<std::int64_t>& dims) {
  std::int64_t n = 1;
  for (const std::int64_t d : dims) n *= d;
  return n;
}

// The dimension along which the two words of a Threefry block lie, and the dims with it halved.
std::pair<std::size_t, std::vector<std::int64_t>> halved(std::vector<std::int64_t> dims) {
  if (dims.empty()) return {0, {1}};
  auto s = std::ranges::find_if(dims, [](std::int64_t d) { return d % 2 == 0; });
  if (s == dims.end()) s = std::ranges::max_element(dims);
  *s = (*s + 1) / 2;
  return {static_cast<std::size_t>(s - dims.begin()), dims};
}

}  // namespace

std::int64_t rng_block_words(const Instruction& i) {
  const bool wide = bit_width(i.shape().element(1).dtype()) == 64;
  if (i.attr<hlo::RngBitsAttr>().algorithm == hlo::RngAlgorithm::ThreeFry) return wide ? 1 : 2;
  return wide ? 2 : 4;
}

Expected<Value> Elements::rng_bits(const Instruction& i, const Point& point, std::int64_t result) {
  Words w(b_);
  const Shape& bits = i.shape().element(1);
  const bool threefry = i.attr<hlo::RngBitsAttr>().algorithm == hlo::RngAlgorithm::ThreeFry;
  const std::int64_t state_size = i.shape().element(0).dim(0);
  const bool wide = bit_width(bits.dtype()) == 64;
  const std::int64_t n = product(bits.dims());
  std::vector<Value> state;
  for (std::int64_t k = 0; k < state_size; ++k) {
    const Value s = TRY(at(*i.operand(0), {Index{k, {}}}));
    state.push_back(s);
  }
  const auto [split, half] = halved(bits.dims());
  std::int64_t used = n;
  if (threefry && !wide) used = product(half);
  if (!threefry) used = wide ? (n + 1) / 2 : (n + 3) / 4;

  if (result == 0) {  // the state after
    const Value low = w.add(state[1], w.constant64(static_cast<std::uint64_t>(used)));
    const Value first = w.select(w.equal_index(point[0], 0), state[0], low);
    if (state_size == 2) return first;
    const Value carry = w.wide(b_.line(Opcode::Convert, DType::U32, {w.less(low, state[1])}));
    return w.select(w.equal_index(point[0], 2), w.add(state[2], carry), first);
  }

  Value word;
  if (threefry) {
    Index linear;
    Value second = kNoValue;
    if (wide) {
      linear = Builder::linearise(point, bits.dims());
    } else {
      Point at_half = point;
      if (at_half.empty()) at_half.push_back(Index{});
      auto [j, parity] = b_.divmod(at_half[split], 2);
      at_half[split] = j;
      linear = Builder::linearise(at_half, half);
      second = w.equal_index(parity, 1);
    }
    const auto x = w.threefry(state[0], w.add(state[1], w.unsigned_index(linear)));
    word = wide ? w.join(x[0], x[1]) : w.select(second, x[1], x[0]);
  } else {
    const std::int64_t per_block = rng_block_words(i);
    auto [block, part] = b_.divmod(Builder::linearise(point, bits.dims()), per_block);
    const Value low = w.add(state[1], w.unsigned_index(block));
    // With two words of state the high half of the counter starts as the key.
    const Value high_start = state_size == 3 ? state[2] : state[0];
    const Value high = w.add(high_start, w.wide(b_.line(Opcode::Convert, DType::U32, {w.less(low, state[1])})));
    const auto x = w.philox(state[0], low, high);
    std::vector<Value> words;
    if (wide)
      words = {w.join(x[0], x[1]), w.join(x[2], x[3])};
    else
      words.assign(x.begin(), x.end());
    word = words.back();
    for (std::size_t k = words.size() - 1; k-- > 0;)
      word = w.select(w.equal_index(part, static_cast<std::int64_t>(k)), words[k], word);
  }
  return convert(word, bits.dtype());
}

}  // namespace hloom::kernels

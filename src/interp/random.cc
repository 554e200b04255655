// Random numbers (hlo-ops 9).

#include <array>
#include <cmath>
#include <cstring>

#include "base/try.h"
#include "interp/element.h"
#include "interp/index.h"
#include "interp/ops.h"
#include "interp/sums.h"

namespace hloom::interp {
namespace {

using hlo::Literal;
using hlo::RngAlgorithm;
using Word = std::uint32_t;
__extension__ using Counter = unsigned __int128;

Word low(std::uint64_t x) { return static_cast<Word>(x); }
Word high(std::uint64_t x) { return static_cast<Word>(x >> 32); }
std::uint64_t pair(Word l, Word h) { return l | static_cast<std::uint64_t>(h) << 32; }
Word rotate_left(Word x, int by) { return x << by | x >> (32 - by); }

// Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", 2011; so philox.
std::array<Word, 2> three_fry(std::uint64_t key, std::uint64_t counter) {
  static constexpr int kRotations[2][4] = {{13, 15, 26, 6}, {17, 29, 16, 24}};
  const Word keys[3] = {low(key), high(key), low(key) ^ high(key) ^ 0x1BD11BDA};
  Word x0 = low(counter) + keys[0], x1 = high(counter) + keys[1];
  for (Word g = 1; g <= 5; ++g) {
    for (const int rotation : kRotations[(g + 1) % 2]) {
      x0 += x1;
      x1 = rotate_left(x1, rotation) ^ x0;
    }
    x0 += keys[g % 3];
    x1 += keys[(g + 1) % 3] + g;
  }
  return {x0, x1};
}

std::array<Word, 4> philox(std::uint64_t key, Counter counter) {
  Word k0 = low(key), k1 = high(key);
  const auto bottom = static_cast<std::uint64_t>(counter), top = static_cast<std::uint64_t>(counter >> 64);
  std::array<Word, 4> x{low(bottom), high(bottom), low(top), high(top)};
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t p = std::uint64_t{0xD2511F53} * x[0], q = std::uint64_t{0xCD9E8D57} * x[2];
    x = {high(q) ^ x[1] ^ k0, low(q), high(p) ^ x[3] ^ k1, low(p)};
    k0 += 0x9E3779B9;
    k1 += 0xBB67AE85;
  }
  return x;
}

// Numbers of at most 64 bits as elements of an integer type: the low bits.
Literal as_integers(const Shape& shape, const std::vector<std::uint64_t>& numbers) { return rounded(shape, numbers); }

struct Drawn {
  std::vector<std::uint64_t> numbers, state;
};

// 64-bit numbers: element i is both words of counter + i. 32-bit ones: the array is halved along a dimension of even
// size (the first; else the largest, with the surplus dropped); the words of counter + i are neighbours along it.
Drawn draw_three_fry(const std::vector<std::uint64_t>& state, const Dims& dims, bool wide) {
  const std::uint64_t key = state[0], counter = state[1];
  const auto count = static_cast<std::uint64_t>(product(dims));
  Drawn drawn{std::vector<std::uint64_t>(count), {key, counter + count}};
  if (wide) {
    for (std::uint64_t i = 0; i < count; ++i) {
      const auto words = three_fry(key, counter + i);
      drawn.numbers[i] = pair(words[0], words[1]);
    }
    return drawn;
  }
  Dims half = dims.empty() ? Dims{1} : dims;
  std::size_t split = 0;
  for (std::size_t d = 1; d < half.size(); ++d)
    if (half[d] > half[split]) split = d;
  for (std::size_t d = half.size(); d-- > 0;)
    if (dims.empty() || dims[d] % 2 == 0) split = d;
  const std::int64_t size = half[split];
  const Dims strides = row_major(half);
  half[split] = (size + 1) / 2;
  const auto halves = static_cast<std::uint64_t>(product(half));
  Dims index(half.size(), 0);
  for (std::uint64_t i = 0; i < halves; ++i, next(index, half)) {
    const auto words = three_fry(key, counter + i);
    for (std::int64_t part = 0; part < 2; ++part) {
      Dims place = index;
      place[split] = 2 * index[split] + part;
      if (place[split] < size)
        drawn.numbers[static_cast<std::size_t>(position(place, strides))] = words[static_cast<std::size_t>(part)];
    }
  }
  drawn.state[1] = counter + halves;
  return drawn;
}

Drawn draw_philox(const std::vector<std::uint64_t>& state, std::int64_t count, bool wide) {
  const bool two_words = state.size() == 2;
  const std::uint64_t key = state[0];
  const Counter start = static_cast<Counter>(two_words ? key : state[2]) << 64 | state[1];
  Drawn drawn;
  Counter counter = start;
  while (static_cast<std::int64_t>(drawn.numbers.size()) < count) {
    const auto x = philox(key, counter++);
    if (wide)
      drawn.numbers.insert(drawn.numbers.end(), {pair(x[0], x[1]), pair(x[2], x[3])});
    else
      drawn.numbers.insert(drawn.numbers.end(), x.begin(), x.end());
  }
  drawn.numbers.resize(static_cast<std::size_t>(count));
  drawn.state = {key, static_cast<std::uint64_t>(counter)};
  if (!two_words) drawn.state.push_back(static_cast<std::uint64_t>(counter >> 64));
  return drawn;
}

// What rng draws: 64-bit words of philox with key 0, two from each counter, from the module's state on, which then is
// behind them. Each device has its own, and all have the same.
class Words {
 public:
  Words(Machine& machine, std::int64_t count) : counter_(machine.rng_state()) {
    machine.rng_state() += static_cast<Counter>((count + 1) / 2);
  }
  std::uint64_t next() {
    if (taken_ % 2 == 0) words_ = philox(0, counter_++);
    return taken_++ % 2 == 0 ? pair(words_[0], words_[1]) : pair(words_[2], words_[3]);
  }
  // In [0, 1).
  double unit() { return std::ldexp(static_cast<double>(next() >> 11), -53); }
  // Box and Muller.
  double normal() {
    const double radius = std::sqrt(-2 * std::log1p(-unit()));
    return radius * std::cos(2 * 3.14159265358979323846 * unit());
  }

 private:
  Counter counter_;
  std::array<Word, 4> words_{};
  std::uint64_t taken_ = 0;
};

// In [a, b); a where that is empty.
Literal uniform_integers(const Call& call) {
  const std::uint64_t a = widen<std::uint64_t>(call.array(0))[0], b = widen<std::uint64_t>(call.array(1))[0];
  const bool empty =
      is_signed(call.shape.dtype()) ? static_cast<std::int64_t>(b) <= static_cast<std::int64_t>(a) : b <= a;
  std::vector<std::uint64_t> numbers(static_cast<std::size_t>(product(call.shape.dims())), a);
  Words words(call.machine, static_cast<std::int64_t>(numbers.size()));
  if (!empty)
    for (std::uint64_t& x : numbers) x = a + words.next() % (b - a);
  return rounded(call.shape, numbers);
}

// The bits of the next smaller float.
std::uint64_t below(std::uint64_t bits, int width) {
  const std::uint64_t sign = std::uint64_t{1} << (width - 1);
  if ((bits & (sign - 1)) == 0) return sign | 1;
  return (bits & sign) != 0 ? bits + 1 : bits - 1;
}

// The largest number of [a, b), or a if there is none.
double last_of(const Literal& a, const Literal& b) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, b.bytes().data(), b.bytes().size());
  bits = below(bits, bit_width(b.dtype()));
  std::vector<std::byte> bytes(b.bytes().size());
  std::memcpy(bytes.data(), &bits, bytes.size());
  return std::max(widen<double>(a)[0], widen<double>(Literal::from_bytes(b.shape(), std::move(bytes)))[0]);
}

Literal floats(const Call& call, bool normal) {
  const double a = widen<double>(call.array(0))[0], b = widen<double>(call.array(1))[0];
  const double last = normal ? 0 : last_of(call.array(0), call.array(1));
  Literal result(call.shape);
  Words words(call.machine, result.num_elements() * (normal ? 2 : 1));
  std::byte* to = result.mutable_bytes().data();
  with_float(call.shape.dtype(), [&](const auto& access) {
    using Exact = typename std::decay_t<decltype(access)>::Exact;
    for (std::int64_t i = 0; i < result.num_elements(); ++i) {
      const double x = normal ? a + b * words.normal() : a + (b - a) * words.unit();
      access.store(to, i, static_cast<Exact>(x));
      // Rounding may reach b, which does not belong to the interval.
      if (!normal && static_cast<double>(access.load(to, i)) >= b) access.store(to, i, static_cast<Exact>(last));
    }
  });
  return result;
}

}  // namespace

Expected<Value> rng_bit_generator(const Call& call) {
  const RngAlgorithm algorithm = call.instruction.attr<hlo::RngBitsAttr>().algorithm;
  const Shape& shape = call.shape.element(1);
  const std::vector<std::uint64_t> state = widen<std::uint64_t>(call.array(0));
  const bool wide = bit_width(shape.dtype()) == 64;
  const Drawn drawn = algorithm == RngAlgorithm::ThreeFry ? draw_three_fry(state, shape.dims(), wide)
                                                          : draw_philox(state, product(shape.dims()), wide);
  std::vector<Literal> results;
  results.push_back(as_integers(call.shape.element(0), drawn.state));
  results.push_back(as_integers(shape, drawn.numbers));
  return tuple_unless_one(std::move(results));
}

Expected<Value> rng(const Call& call) {
  const bool normal = call.instruction.attr<hlo::RngAttr>().distribution == hlo::Distribution::Normal;
  const DType type = call.shape.dtype();
  if (is_floating(type)) return Value(floats(call, normal));
  if (normal || is_complex(type))
    return fail(Code::Unimplemented, call.instruction.name(), ": no such random numbers of ", type);
  return Value(uniform_integers(call));
}

// The 128-bit state, low word first; then it grows by delta. It begins with 1.
Expected<Value> rng_get_and_update_state(const Call& call) {
  Counter& state = call.machine.rng_state();
  const std::vector<std::uint64_t> words{static_cast<std::uint64_t>(state), static_cast<std::uint64_t>(state >> 64)};
  state += static_cast<Counter>(call.instruction.attr<hlo::RngStateAttr>().delta);
  return Value(rounded(call.shape, words));
}

}  // namespace hloom::interp

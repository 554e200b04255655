// Packing against bits taken one by one.
#include "kernels/plan_packing.h"

#include <gtest/gtest.h>

#include <random>

#include "hlo/packing.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

constexpr DType kTypes[] = {DType::Pred, DType::S1, DType::S2, DType::S4,
                            DType::U1,   DType::U2, DType::U4, DType::F4E2M1FN};

Shape packed(DType type, std::int64_t n, int bits) {
  Layout layout = Layout::descending(1);
  Layout::Extra parts;
  parts.element_bits = bits;
  layout.set_parts(parts);
  return Shape::array(type, {n}, layout);
}

using Bytes = std::vector<std::uint8_t>;

/// Elements as they are stored a byte each.
Bytes random_elements(DType type, std::int64_t n, std::mt19937& random) {
  Bytes elements;
  for (std::int64_t i = 0; i < n; ++i) {
    const unsigned low = static_cast<unsigned>(random()) & ((1u << bit_width(type)) - 1);
    const bool negative = is_signed(type) && (low >> (bit_width(type) - 1)) != 0;
    elements.push_back(static_cast<std::uint8_t>(negative ? low | (0xFFu << bit_width(type)) : low));
  }
  return elements;
}

Bytes packed_by_bits(const Bytes& elements, int bits) {
  const auto per_byte = static_cast<std::size_t>(8 / bits);
  Bytes result((elements.size() + per_byte - 1) / per_byte);
  for (std::size_t i = 0; i < elements.size(); ++i)
    for (int b = 0; b < bits; ++b)
      if (((elements[i] >> b) & 1) != 0)
        result[i / per_byte] |= static_cast<std::uint8_t>(1u << (bits * static_cast<int>(i % per_byte) + b));
  return result;
}

/// All blocks, the last first, in memory that is exactly as large as the kernel says.
Bytes run(const Kernel& kernel, Bytes input) {
  Bytes output(static_cast<std::size_t>(argument_bytes(kernel.arguments[1])), 0xA5);
  EXPECT_EQ(static_cast<std::int64_t>(input.size()), argument_bytes(kernel.arguments[0]));
  void* const buffers[] = {input.data(), output.data()};
  for (std::int64_t b = kernel.blocks; b-- > 0;) {
    const auto done = evaluate(kernel, buffers, b, b + 1, nullptr);
    EXPECT_TRUE(done) << done.error().message() << print(kernel);
  }
  return output;
}

void expect_both_ways(DType type, std::int64_t n, int bits, std::mt19937& random) {
  const Shape plain = Shape::array(type, {n}), dense = packed(type, n, bits);
  const Kernel pack = plan_packing("pack", plain, dense), unpack = plan_packing("unpack", dense, plain);
  for (const Kernel* k : {&pack, &unpack}) {
    ASSERT_TRUE(verify(*k)) << verify(*k).error().message() << print(*k);
    ASSERT_TRUE(parse(print(*k)));
  }
  const Bytes elements = random_elements(type, n, random);
  ASSERT_EQ(run(pack, elements), packed_by_bits(elements, bits)) << name(type) << " " << n << " " << bits;
  Bytes from = packed_by_bits(elements, bits);
  ASSERT_EQ(run(unpack, from), elements) << name(type) << " " << n << " " << bits;
  // What stands above an element in its place is nobody's.
  if (bits > bit_width(type)) {
    unsigned above = 0;
    for (int k = 0; k < 8; k += bits) above |= ((1u << bits) - (1u << bit_width(type))) << k;
    for (std::uint8_t& byte : from) byte = static_cast<std::uint8_t>(byte | above);
    ASSERT_EQ(run(unpack, from), elements) << name(type) << " " << n << " " << bits;
  }
}

TEST(Packing, EveryTypeAndLengthBothWays) {
  std::mt19937 random(3);
  for (const DType type : kTypes)
    for (const int bits : {1, 2, 4}) {
      if (bits < bit_width(type)) continue;
      for (std::int64_t n = 1; n < 40; ++n) expect_both_ways(type, n, bits, random);
      for (const std::int64_t n : {255, 1024, 1031}) expect_both_ways(type, n, bits, random);
    }
}

TEST(Packing, BlocksOwnWholeBytes) {
  std::mt19937 random(4);
  for (const int bits : {1, 4}) {
    const std::int64_t n = 3 * 16 * 1024 * 8 / bits - 3;
    EXPECT_EQ(plan_packing("k", packed(DType::S1, n, bits), Shape::array(DType::S1, {n})).blocks, 3);
    expect_both_ways(DType::S1, n, bits, random);
  }
}

}  // namespace
}  // namespace hloom::kernels

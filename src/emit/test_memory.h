// Buffers for a kernel in tests: filled by a seed, fenced, compared.
#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "hlo/narrow_float.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/kernel.h"
#include "kernels/print.h"
#include "kernels/verify.h"

namespace hloom::emit {

/// The bits of an element that its type can have, often one of its ends. `below` bounds 64-bit integers: indices.
inline std::uint64_t random_bits(std::mt19937& random, DType type, std::int64_t below) {
  std::uint64_t bits = (std::uint64_t{random()} << 32) | random();
  if (type == DType::Pred) return bits & 1;
  if (type == DType::S64) return bits % static_cast<std::uint64_t>(below);
  const bool end = random() % 4 == 0;
  if (is_integral(type)) {
    const int width = bit_width(type);
    if (end) bits = (random() % 2 ? 1ull << (width - 1) : ~0ull) + random() % 3 - 1;
    const std::uint64_t high = ~0ull << (width - 1) << 1;
    const bool negative = is_signed(type) && ((bits >> (width - 1)) & 1) != 0;
    return negative ? bits | high : bits & ~high;
  }
  // Floats: half of them of a size that does not overflow at once.
  if (type == DType::F64)
    return end ? bits : std::bit_cast<std::uint64_t>((static_cast<double>(bits >> 11) * 0x1p-50) - 4);
  if (type == DType::F32)
    return end ? bits : std::bit_cast<std::uint32_t>((static_cast<float>(bits >> 40) * 0x1p-21f) - 4);
  if (end) return bits & ((1ull << bit_width(type)) - 1);
  return hlo::encode_float(hlo::float_format(type), (static_cast<double>(bits >> 11) * 0x1p-51) - 2);
}

/// One buffer for each argument, and the scratch.
class TestMemory {
 public:
  /// Elements of S64 lie in [0, below). Argument `shared`, if there is one, begins `shift` bytes into the one before.
  TestMemory(const kernels::Kernel& kernel, unsigned seed, std::int64_t below = 64, int shared = -1,
             std::int64_t shift = 0)
      : kernel_(kernel), scratch_(static_cast<std::size_t>(kernel.scratch_bytes) + 64), shared_(shared), shift_(shift) {
    std::mt19937 random(seed);
    for (const kernels::Argument& a : kernel.arguments) {
      buffers_.emplace_back(static_cast<std::size_t>(2 * kFence + kernels::argument_bytes(a)), kFenceByte);
      fill(a, buffers_.back().data() + kFence, random, below);
    }
  }

  std::vector<void*> pointers() {
    std::vector<void*> result;
    for (std::size_t i = 0; i < buffers_.size(); ++i) result.push_back(buffers_[i].data() + kFence);
    if (shared_ > 0) {
      const auto i = static_cast<std::size_t>(shared_);
      result[i] = static_cast<std::byte*>(result[i - 1]) + shift_;
    }
    return result;
  }
  void* scratch() {
    const auto address = reinterpret_cast<std::uintptr_t>(scratch_.data());
    return scratch_.data() + (64 - address % 64) % 64;
  }

  /// Empty if both hold the same: bits, but any NaN for a NaN where `any_nan`. Else the first difference.
  std::string difference(const TestMemory& other, bool any_nan = true) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto& a = buffers_[i];
      const auto& b = other.buffers_[i];
      const DType type = kernel_.arguments[i].type;
      const auto width = static_cast<std::size_t>(type == DType::Invalid ? 1 : byte_width(real_type(type)));
      for (std::size_t at = 0; at < a.size(); at += width) {
        const std::uint64_t x = bits(a, at, width), y = bits(b, at, width);
        if (x == y || (any_nan && is_nan(type, x) && is_nan(type, y))) continue;
        char text[64];
        std::snprintf(text, sizeof text, " has %llx instead of %llx", static_cast<unsigned long long>(y),
                      static_cast<unsigned long long>(x));
        const auto element = (static_cast<std::int64_t>(at) - kFence) /
                             static_cast<std::int64_t>(width);
        return kernel_.arguments[i].name + "[" + std::to_string(element) + "]" + text;
      }
    }
    return "";
  }

  /// Whether the bytes around some argument differ.
  bool fences_differ(const TestMemory& other) const {
    for (std::size_t i = 0; i < buffers_.size(); ++i) {
      const auto& a = buffers_[i];
      const auto& b = other.buffers_[i];
      if (!std::equal(a.begin(), a.begin() + kFence, b.begin()) || !std::equal(a.end() - kFence, a.end(), b.end() - kFence))
        return true;
    }
    return false;
  }

 private:
  static constexpr std::ptrdiff_t kFence = 256;
  static constexpr std::byte kFenceByte{0xA5};

  static std::uint64_t bits(const std::vector<std::byte>& from, std::size_t at, std::size_t width) {
    std::uint64_t result = 0;
    std::memcpy(&result, from.data() + at, std::min(width, from.size() - at));
    return result;
  }
  static bool is_nan(DType type, std::uint64_t x) {
    const DType part = type == DType::Invalid ? type : real_type(type);
    return part != DType::Invalid && is_floating(part) && hlo::is_nan_bits(hlo::float_format(part), x);
  }
  static void fill(const kernels::Argument& a, std::byte* to, std::mt19937& random, std::int64_t below) {
    const DType part = a.type == DType::Invalid ? DType::U8 : real_type(a.type);
    const auto width = static_cast<std::size_t>(byte_width(part));
    for (std::size_t at = 0; at < static_cast<std::size_t>(kernels::argument_bytes(a)); at += width) {
      const std::uint64_t x = random_bits(random, part, below);
      std::memcpy(to + at, &x, width);
    }
  }

  const kernels::Kernel& kernel_;
  std::vector<std::vector<std::byte>> buffers_;
  std::vector<std::byte> scratch_;
  int shared_;
  std::int64_t shift_;
};

/// Expects that compiled code leaves the memory that the evaluator leaves, for calls of `step` blocks each.
inline void expect_law(const kernels::Kernel& kernel, base::KernelFunction compiled, std::int64_t step, unsigned seed,
                       bool any_nan = true, int shared = -1, std::int64_t shift = 0) {
  TestMemory expected(kernel, seed, 64, shared, shift), got(kernel, seed, 64, shared, shift);
  for (std::int64_t begin = 0; begin < kernel.blocks; begin += step) {
    const std::int64_t end = std::min(begin + step, kernel.blocks);
    const Expected<> done = kernels::evaluate(kernel, expected.pointers().data(), begin, end, expected.scratch());
    ASSERT_TRUE(done) << done.error().message() << "\n" << kernels::print(kernel);
    compiled(got.pointers().data(), begin, end, got.scratch());
  }
  EXPECT_EQ(expected.difference(got, any_nan), "") << "seed " << seed << "\n" << kernels::print(kernel);
}

/// Verifies and compiles the kernels, and expects the law of each for every split of its blocks.
inline void expect_laws(const std::vector<kernels::Kernel>& kernels, bool any_nan = true, int shared = -1,
                        std::int64_t shift = 0, const std::string& cpu = "") {
  for (const kernels::Kernel& kernel : kernels) {
    const Expected<> verified = kernels::verify(kernel);
    ASSERT_TRUE(verified) << verified.error().message() << "\n" << kernels::print(kernel);
  }
  const auto code = jit::compile(kernels, {.threads = 2, .cpu = cpu});
  ASSERT_TRUE(code) << code.error().message();
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const base::KernelFunction f = *jit::kernel_function(**code, kernels[i].name);
    for (std::int64_t step = 1; step <= kernels[i].blocks; ++step)
      expect_law(kernels[i], f, step, static_cast<unsigned>(i), any_nan, shared, shift);
  }
}

}  // namespace hloom::emit

#include "compiler/check_kernel.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <random>
#include <sstream>

#include "base/aligned_bytes.h"
#include "base/fail.h"
#include "base/run_status.h"
#include "base/try.h"
#include "emit/symbol_name.h"
#include "hlo/narrow_float.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/verify.h"
#include "runtime/fork_join.h"

namespace hloom::compiler {
namespace {

/// The kernel's arguments and scratch.
class Memory {
 public:
  Memory(const kernels::Kernel& kernel, std::uint64_t seed) : kernel_(kernel), scratch_(kernel.scratch_bytes) {
    std::mt19937_64 random(seed);
    for (const kernels::Argument& a : kernel.arguments) {
      buffers_.emplace_back(kernels::argument_bytes(a));
      fill(a, buffers_.back().bytes(), random);
    }
  }

  std::vector<void*> pointers() {
    std::vector<void*> result;
    for (base::AlignedBytes& buffer : buffers_) result.push_back(buffer.data());
    result.push_back(&status_);  // of a kernel that checks its accesses
    return result;
  }
  void* scratch() { return scratch_.data(); }

  std::optional<std::string> difference(const Memory& want) const {
    for (std::size_t a = 0; a < buffers_.size(); ++a) {
      const DType type = kernel_.arguments[a].type;
      const DType part = type == DType::Invalid ? DType::U8 : real_type(type);
      const auto width = static_cast<std::size_t>(byte_width(part));
      for (std::size_t at = 0; at < buffers_[a].bytes().size(); at += width) {
        const std::uint64_t x = bits(buffers_[a], at, width), y = bits(want.buffers_[a], at, width);
        if (x == y || (is_nan(part, x) && is_nan(part, y))) continue;
        std::ostringstream message;
        message << kernel_.arguments[a].name << ": part " << at / width << " has the bits 0x" << std::hex << x
                << " instead of 0x" << y;
        return std::move(message).str();
      }
    }
    return std::nullopt;
  }

 private:
  static std::uint64_t bits(const base::AlignedBytes& from, std::size_t at, std::size_t width) {
    std::uint64_t result = 0;
    std::memcpy(&result, from.data() + at, width);
    return result;
  }
  static bool is_nan(DType type, std::uint64_t x) {
    return is_floating(type) && hlo::is_nan_bits(hlo::float_format(type), x);
  }
  static void fill(const kernels::Argument& a, std::span<std::byte> to, std::mt19937_64& random) {
    const DType part = a.type == DType::Invalid ? DType::U8 : real_type(a.type);
    const auto width = static_cast<std::size_t>(byte_width(part));
    for (std::size_t at = 0; at + width <= to.size(); at += width) {
      const std::uint64_t x = element(part, random());
      std::memcpy(to.data() + at, &x, width);
    }
  }
  static std::uint64_t element(DType type, std::uint64_t random) {
    if (type == DType::Pred) return random & 1;
    if (!is_floating(type)) {
      const std::uint64_t x = bit_width(type) >= 16 ? random % 8 : random & ((1u << bit_width(type)) - 1);
      const bool negative = is_signed(type) && ((x >> (bit_width(type) - 1)) & 1) != 0;
      return negative ? x | ~std::uint64_t{0} << bit_width(type) : x;
    }
    const double value = static_cast<double>(random >> 11) * 0x1p-51 - 2;
    if (type != DType::F64) return hlo::encode_float(hlo::float_format(type), value);
    std::uint64_t x;
    std::memcpy(&x, &value, sizeof(x));
    return x;
  }

  const kernels::Kernel& kernel_;
  std::vector<base::AlignedBytes> buffers_;
  base::AlignedBytes scratch_;
  base::RunStatus status_;
};

// Memory that the system lacks would end the process.
Expected<> check_size(const kernels::Kernel& kernel) {
  constexpr std::int64_t kMaxBytes = std::int64_t{1} << 32;
  std::int64_t bytes = kernel.scratch_bytes;
  for (const kernels::Argument& a : kernel.arguments) {
    bytes += std::min(kernels::argument_bytes(a), kMaxBytes);
    if (bytes >= kMaxBytes)
      return fail(Code::ResourceExhausted, kernel.name, ": arguments and scratch of 4 GiB and more are not checked");
  }
  return {};
}

}  // namespace

Expected<std::vector<KernelDifference>> check_kernels(std::span<const kernels::Kernel> kernels, std::uint64_t seed,
                                                     const std::string& cpu) {
  for (const kernels::Kernel& kernel : kernels) {
    TRY(kernels::verify(kernel));
    TRY(check_size(kernel));
  }
  jit::CompileOptions options;
  options.cpu = cpu;
  options.externals = {{std::string(emit::kForkJoin), reinterpret_cast<void*>(&runtime::fork_join)}};
  const auto code = TRY(jit::compile(kernels, options));
  kernels::EvaluateOptions evaluate;
  evaluate.callees = kernels;
  std::vector<KernelDifference> differences;
  for (const kernels::Kernel& kernel : kernels) {
    Memory got(kernel, seed), want(kernel, seed);
    // First, because it checks bounds: code that leaves its arguments would end the process.
    TRY(kernels::evaluate(kernel, want.pointers().data(), 0, kernel.blocks, want.scratch(), evaluate));
    const base::KernelFunction function = TRY(jit::kernel_function(*code, kernel.name));
    function(got.pointers().data(), 0, kernel.blocks, got.scratch());
    if (const auto problem = got.difference(want)) differences.push_back({kernel.name, *problem});
  }
  return differences;
}

}  // namespace hloom::compiler

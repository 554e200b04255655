// The law of kernels by levels: a scan written by halves or by doubled distances leaves the bits that the interpreter leaves, of any
// length, type and combiner, along any dimension, on any part of the grid; and it is one kernel.
#include "kernels/plan_levels.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>

#include "fusion/fuse.h"
#include "fusion/taps.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/test_run_fused.h"
#include "kernels/verify.h"
#include "text/print.h"

namespace hloom::kernels {
namespace {

/// A scan along dimension `along` of arrays whose others are `dims`, as jax.lax.associative_scan writes it.
class Scan {
 public:
  Scan(std::string type, std::vector<std::int64_t> dims, std::size_t along, std::string op)
      : type_(std::move(type)), dims_(std::move(dims)), along_(along), op_(std::move(op)) {}

  std::string by_halves() {
    const std::int64_t n = dims_[along_];
    std::vector<std::string> x;
    for (std::size_t k = 0; k < arrays(); ++k) x.push_back(add(n, "parameter(" + std::to_string(k) + ")"));
    return module(halves(x, n));
  }

  /// As x + (x moved by 1, 2, 4 …), zeros before.
  std::string by_doubled_distances() {
    const std::int64_t n = dims_[along_];
    std::string x = add(n, "parameter(0)");
    for (std::int64_t distance = 1; distance < n; distance *= 2) {
      const std::string cut = slice(x, 0, n - distance, 1);
      x = add(n, op_ + "(" + x + ", " + pad(cut, n, distance, 0, 0) + ")");
    }
    return module({x});
  }

 private:
  using Names = std::vector<std::string>;
  std::size_t arrays() const { return op_ == "linear" ? 2 : 1; }

  std::string shape(std::int64_t n) const {
    std::string s = type_ + "[";
    for (std::size_t d = 0; d < dims_.size(); ++d) s += (d == 0 ? "" : ",") + std::to_string(d == along_ ? n : dims_[d]);
    return s + "]";
  }
  std::string add(std::int64_t n, const std::string& what) {
    const std::string name = "v" + std::to_string(next_++);
    text_ += "  " + name + " = " + shape(n) + " " + what + "\n";
    return name;
  }
  std::string slice(const std::string& x, std::int64_t from, std::int64_t to, std::int64_t stride) {
    std::string ranges;
    for (std::size_t d = 0; d < dims_.size(); ++d)
      ranges += (d == 0 ? "[" : ", [") +
                (d == along_ ? std::to_string(from) + ":" + std::to_string(to) + ":" + std::to_string(stride) : "0:" + std::to_string(dims_[d])) + "]";
    return add((to - from + stride - 1) / stride, "slice(" + x + "), slice={" + ranges + "}");
  }
  std::string pad(const std::string& x, std::int64_t n, std::int64_t low, std::int64_t high, std::int64_t interior) {
    std::string config;
    for (std::size_t d = 0; d < dims_.size(); ++d)
      config += (d == 0 ? "" : "x") +
                (d == along_ ? std::to_string(low) + "_" + std::to_string(high) + "_" + std::to_string(interior) : "0_0_0");
    return add(n, "pad(" + x + ", zero), padding=" + config);
  }
  Names combine(const Names& a, const Names& b, std::int64_t n) {
    if (op_ != "linear") return {add(n, op_ + "(" + a[0] + ", " + b[0] + ")")};
    const std::string moved = add(n, "multiply(" + b[0] + ", " + a[1] + ")");
    return {add(n, "multiply(" + a[0] + ", " + b[0] + ")"), add(n, "add(" + moved + ", " + b[1] + ")")};
  }
  Names sliced(const Names& x, std::int64_t from, std::int64_t to, std::int64_t stride) {
    Names s;
    for (const std::string& name : x) s.push_back(slice(name, from, to, stride));
    return s;
  }

  Names halves(const Names& x, std::int64_t n) {
    if (n < 2) return x;
    const std::int64_t half = n / 2, evens = n - half;
    const Names odd = halves(combine(sliced(x, 0, 2 * half - 1, 2), sliced(x, 1, 2 * half, 2), half), half);
    Names even = sliced(x, 0, 1, 1);
    if (evens > 1) {
      const Names later = combine(sliced(odd, 0, evens - 1, 1), sliced(x, 2, n, 2), evens - 1);
      for (std::size_t k = 0; k < even.size(); ++k)
        even[k] = add(evens, "concatenate(" + even[k] + ", " + later[k] + "), dimensions={" + std::to_string(along_) + "}");
    }
    Names all;
    for (std::size_t k = 0; k < even.size(); ++k)
      all.push_back(add(n, (type_ == "pred" ? "or(" : "add(") + pad(even[k], n, 0, n - 2 * evens + 1, 1) + ", " +
                               pad(odd[k], n, 1, n - 2 * half, 1) + ")"));
    return all;
  }

  std::string module(const Names& results) {
    std::string names, shapes;
    for (const std::string& r : results) {
      names += (names.empty() ? "" : ", ") + r;
      shapes += (shapes.empty() ? "" : ", ") + shape(dims_[along_]);
    }
    return "HloModule scan\n\nENTRY main {\n  zero = " + type_ + "[] constant(" + (type_ == "pred" ? "false" : "0") + ")\n" + text_ +
           "  ROOT t = (" + shapes + ") tuple(" + names + ")\n}\n";
  }

  std::string type_;
  std::vector<std::int64_t> dims_;
  std::size_t along_;
  std::string op_, text_;
  int next_ = 0;
};

// Numbers of all signs whose sums round.
std::vector<Literal> draw_arguments(const hlo::Module& module, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Literal> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    Literal drawn(p->shape());
    for (std::int64_t n = 0; n < p->shape().num_elements(); ++n) {
      const double value = static_cast<double>(static_cast<int>(random() % 2001) - 1000) / 700;
      const DType type = p->shape().dtype();
      const std::int64_t width = byte_width(type);
      std::byte* to = drawn.mutable_bytes().data() + n * width;
      if (type == DType::F32) {
        const auto f = static_cast<float>(value);
        std::memcpy(to, &f, sizeof f);
      } else if (type == DType::F64) {
        std::memcpy(to, &value, sizeof value);
      } else if (type == DType::BF16) {
        const auto f = static_cast<float>(value);
        std::memcpy(to, reinterpret_cast<const std::byte*>(&f) + 2, 2);
      } else {
        const auto bits = static_cast<std::uint32_t>(type == DType::Pred ? random() % 2 : random());
        std::memcpy(to, &bits, static_cast<std::size_t>(width));
      }
    }
    arguments.push_back(std::move(drawn));
  }
  return arguments;
}

// By the evaluator, or as machine code; a block at a time, the last one first.
Literal run_blocks(const hlo::Module& module, const std::vector<Literal>& arguments, bool as_code) {
  return run_fused(module, arguments, [&](const Instruction& fusion, const std::vector<Literal>& operands) {
    const auto kernel = plan(fusion);
    EXPECT_TRUE(kernel) << kernel.error().message();
    const auto valid = verify(*kernel);
    EXPECT_TRUE(valid) << valid.error().message() << print(*kernel);
    Buffers buffers(fusion, operands);
    alignas(64) static std::byte scratch[1 << 20];
    EXPECT_LE(kernel->scratch_bytes, static_cast<std::int64_t>(sizeof scratch));
    std::memset(scratch, 0x5b, sizeof scratch);
    if (as_code) {
      const auto code = jit::compile({{*kernel}});
      EXPECT_TRUE(code) << code.error().message();
      const auto function = jit::kernel_function(**code, kernel->name);
      for (std::int64_t b = kernel->blocks; b-- > 0;) (*function)(buffers.pointers.data(), b, b + 1, scratch);
    } else {
      for (std::int64_t b = kernel->blocks; b-- > 0;) {
        const auto done = evaluate(*kernel, buffers.pointers.data(), b, b + 1, scratch);
        EXPECT_TRUE(done) << done.error().message();
      }
    }
    return buffers.result(fusion.shape());
  });
}

int num_levels_kernels(const hlo::Module& module) {
  int n = 0;
  for (const Instruction& i : module.entry()->instructions()) n += i.opcode() == Opcode::Fusion && is_levels_fusion(i) ? 1 : 0;
  return n;
}

int num_kernels(const hlo::Module& module) {
  int n = 0;
  for (const Instruction& i : module.entry()->instructions()) n += i.opcode() == Opcode::Fusion ? 1 : 0;
  return n;
}

// Says whether a kernel by levels was made.
bool check(const std::string& text, unsigned seed, bool as_code) {
  const auto module = parse(text);
  if (!module) return false;
  const std::vector<Literal> arguments = draw_arguments(*module, seed);
  const auto want = interp::interpret(*module, arguments);
  EXPECT_TRUE(want) << want.error().message();
  EXPECT_TRUE(fusion::fuse(*module));
  const bool by_levels = num_levels_kernels(*module) > 0;
  if (seed % 4 == 1) fusion::add_taps(*module);
  expect_equal(run_blocks(*module, arguments, as_code), *want, "seed " + std::to_string(seed) + "\n" + text + text::print(*module));
  return by_levels;
}

struct Kind {
  const char *type, *op;
};
constexpr Kind kKinds[] = {{"f32", "add"},  {"f32", "linear"}, {"f64", "maximum"},  {"bf16", "add"},
                           {"s8", "add"},   {"u16", "multiply"}, {"s32", "linear"}, {"pred", "or"}};

TEST(PlanLevels, EqualTheInterpreterForEachLength) {
  int by_levels = 0;
  unsigned seed = 0;
  for (std::int64_t n = 1; n <= 70; ++n) {
    const Kind& kind = kKinds[static_cast<std::size_t>(n) % std::size(kKinds)];
    by_levels += check(Scan(kind.type, {5, n}, 1, kind.op).by_halves(), ++seed, false);
    by_levels += check(Scan(kind.type, {n, 21}, 0, kind.op).by_halves(), ++seed, false);
    if (n % 5 == 0) by_levels += check(Scan(kind.type, {2, n, 6}, 1, kind.op).by_halves(), ++seed, false);
    if (std::string(kind.op) != "linear" && n > 4) by_levels += check(Scan(kind.type, {19, n}, 1, kind.op).by_doubled_distances(), ++seed, false);
    if (HasFailure()) return;
  }
  EXPECT_GT(by_levels, 120);  // or this tests nothing
}

TEST(PlanLevels, MachineCodeEqualsTheInterpreterForEachKind) {
  unsigned seed = 1000;
  for (const Kind& kind : kKinds) {
    EXPECT_TRUE(check(Scan(kind.type, {19, 37}, 1, kind.op).by_halves(), seed++, true)) << kind.type;
    EXPECT_TRUE(check(Scan(kind.type, {22, 2, 21}, 0, kind.op).by_halves(), seed++, true)) << kind.type;
    if (HasFailure()) return;
  }
}

TEST(PlanLevels, AScanIsOneKernelThatIsSharedOut) {
  const auto module = parse(Scan("f32", {256, 1024}, 1, "linear").by_halves());
  ASSERT_TRUE(module && fusion::fuse(*module));
  EXPECT_EQ(num_levels_kernels(*module), 1) << text::print(*module);
  EXPECT_EQ(num_kernels(*module), 1) << text::print(*module);
  for (const Instruction& i : module->entry()->instructions()) {
    if (i.opcode() != Opcode::Fusion) continue;
    EXPECT_GT(plan(i)->blocks, 8);
  }
}

TEST(PlanLevels, LinesThatDoNotStayNearGoLevelByLevel) {
  const auto module = parse(Scan("f32", {8, 300000}, 1, "add").by_halves());
  ASSERT_TRUE(module && fusion::fuse(*module));
  EXPECT_EQ(num_levels_kernels(*module), 0);
  EXPECT_NE(text::print(*module).find("lines are too long to stay near"), std::string::npos);
}

}  // namespace
}  // namespace hloom::kernels

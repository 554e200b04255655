// The law of kernels over rows: they leave the bits that the same program leaves without them, whatever is tied to what, on any part
// of the grid; and what the interpreter says, to the bit where the numbers are small integers. Programs are drawn by a printed seed.
#include "kernels/plan_rows.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <random>

#include "fusion/column_sums.h"
#include "fusion/fuse.h"
#include "fusion/taps.h"
#include "hlo/narrow_float.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/test_run_fused.h"
#include "kernels/verify.h"
#include "text/print.h"

namespace hloom::kernels {
namespace {

/// A program of arrays of one shape, of arrays without some of its dimensions, and of ways between them.
class Draw {
 public:
  Draw(unsigned seed, bool integers) : random_(seed), integers_(integers) {}

  std::string module() {
    shape();
    for (int n = pick(1, 3); n > 0; --n) parameter(full_, full_names_, full());
    for (int n = pick(0, 2); n > 0; --n) parameter(row_, row_names_, row());
    parameter(column_, column_names_, "[" + list(column_dims_) + "]");
    text_ += "  zero = " + type_ + "[] constant(0)\n  low = " + type_ + "[] constant(-60)\n";
    for (int n = pick(3, 14); n > 0; --n) step();
    std::string shapes, names;
    for (int n = pick(1, 3); n > 0; --n) result(shapes, names);
    result_last(shapes, names);
    text_ += "  ROOT t = (" + shapes + ") tuple(" + names + ")\n";
    const std::string scalar = type_ + "[]";
    std::string reducers;
    for (const char* op : {"add", "maximum", "minimum"})
      reducers += std::string(op) + " { a = " + scalar + " parameter(0) b = " + scalar + " parameter(1) ROOT s = " + scalar + " " + op +
                  "(a, b) }\n";
    return "HloModule drawn\n\n" + reducers + "\nENTRY main {\n" + text_ + "}\n";
  }

 private:
  using Names = std::vector<std::string>;

  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }
  template <std::size_t N>
  int one_of(const int (&of)[N]) { return of[pick(0, static_cast<int>(N) - 1)]; }
  const std::string& some(const Names& names) { return names[static_cast<std::size_t>(pick(0, static_cast<int>(names.size()) - 1))]; }
  static std::string list(const std::vector<int>& d) {
    std::string s;
    for (const int n : d) s += (s.empty() ? "" : ",") + std::to_string(n);
    return s;
  }

  void shape() {
    const char* const types[] = {"f32", "f32", "f32", "f64", "bf16", "f16"};
    type_ = integers_ ? "f32" : types[pick(0, 5)];
    constexpr int kLong[] = {1, 2, 3, 7, 8, 15, 16, 17, 31, 33, 63, 64, 65, 130, 200, 1000};
    constexpr int kShort[] = {1, 2, 3, 5, 17, 16, 24};
    const int rank = pick(1, 4), columns = pick(1, std::min(rank, 2));
    // Reduced dimensions: mostly the last ones.
    std::vector<bool> along(static_cast<std::size_t>(rank), false);
    for (int n = 0; n < columns; ++n) along[static_cast<std::size_t>(pick(0, 3) == 0 ? pick(0, rank - 1) : rank - 1 - n)] = true;
    int elements = 1;
    for (int d = 0; d < rank; ++d) {
      int n = along[static_cast<std::size_t>(d)] ? one_of(kLong) : one_of(kShort);
      if (elements * n > 20000) n = 2;
      elements *= n;
      dims_.push_back(n);
      (along[static_cast<std::size_t>(d)] ? along_ : over_).push_back(d);
      (along[static_cast<std::size_t>(d)] ? column_dims_ : row_dims_).push_back(n);
    }
  }

  std::string full() const { return "[" + list(dims_) + "]"; }
  std::string row() const { return "[" + list(row_dims_) + "]"; }
  std::string add(Names& names, const std::string& shape, const std::string& op) {
    const std::string name = "v" + std::to_string(next_++);
    text_ += "  " + name + " = " + type_ + shape + " " + op + "\n";
    names.push_back(name);
    return name;
  }
  void parameter(Names& names, int&, const std::string& shape) {
    add(names, shape, "parameter(" + std::to_string(parameters_++) + ")");
  }
  void parameter(Names& names, Names& all, const std::string& shape) {
    parameter(names, parameters_, shape);
    all.push_back(names.back());
  }

  void step() {
    switch (pick(0, 11)) {
      case 0:
      case 1:
      case 2: return reduce();
      case 3:
      case 4: return spread();
      case 5: return elementwise(row_, row());
      case 6: return move();
      case 7:
      case 8: return sum_rows();
      default: return elementwise(full_, full());
    }
  }

  void reduce() {
    const char* const ops[] = {"add", "add", "maximum", "minimum"};
    const std::string op = ops[pick(0, 3)];
    add(row_, row(), "reduce(" + some(full_) + ", " + (op == "maximum" ? "low" : "zero") + "), dimensions={" + list(along_) + "}, to_apply=" + op);
  }

  // Over rows, all or by blocks.
  void sum_rows() {
    if (over_.empty()) return;
    const char* const ops[] = {"add", "add", "maximum", "minimum"};
    const std::string op = ops[pick(0, 3)], initial = op == "maximum" ? "low" : "zero", x = some(full_);
    const int cut = over_[0], rows = dims_[static_cast<std::size_t>(cut)], block = rows % 2 == 0 ? 2 : rows % 3 == 0 ? 3 : 1;
    if (rows / block < 2 || block == 1) {
      add(column_, "[" + list(column_dims_) + "]", "reduce(" + x + ", " + initial + "), dimensions={" + list(over_) + "}, to_apply=" + op);
      return;
    }
    std::vector<int> dims = dims_, along = over_, kept, first;
    dims[static_cast<std::size_t>(cut)] = rows / block;
    dims.insert(dims.begin() + cut + 1, block);
    for (int& d : along) ++d;
    for (int d = 0, n = 0; d < static_cast<int>(dims.size()); ++d) {
      if (std::ranges::find(along, d) != along.end()) continue;
      if (d == cut) first.push_back(n);
      kept.push_back(dims[static_cast<std::size_t>(d)]);
      ++n;
    }
    Names sums, blocks;
    add(blocks, "[" + list(dims) + "]", "bitcast(" + x + ")");
    add(sums, "[" + list(kept) + "]", "reduce(" + blocks[0] + ", " + initial + "), dimensions={" + list(along) + "}, to_apply=" + op);
    add(column_, "[" + list(column_dims_) + "]", "reduce(" + sums[0] + ", " + initial + "), dimensions={" + list(first) + "}, to_apply=" + op);
  }

  void spread() {
    if (!row_.empty() && pick(0, 3) != 0)
      add(full_, full(), "broadcast(" + some(row_) + "), dimensions={" + list(over_) + "}");
    else
      add(full_, full(), "broadcast(" + some(column_) + "), dimensions={" + list(along_) + "}");
    elementwise(full_, full());
  }

  // Dimensions of one element come and go; elements move, so that nothing is tied to them.
  void move() {
    const std::string x = some(full_);
    if (pick(0, 2) == 0) {
      add(full_, full(), "reverse(" + x + "), dimensions={" + std::to_string(pick(0, static_cast<int>(dims_.size()) - 1)) + "}");
    } else {
      const std::string name = "v" + std::to_string(next_++);
      text_ += "  " + name + " = " + type_ + "[1," + list(dims_) + "] reshape(" + x + ")\n";
      const std::string other = "v" + std::to_string(next_++);
      text_ += "  " + other + " = " + type_ + "[1," + list(dims_) + "] negate(" + name + ")\n";
      add(full_, full(), "reshape(" + other + ")");
    }
  }

  void elementwise(Names& names, const std::string& shape) {
    if (names.empty()) return;
    const std::string x = pick(0, 1) == 0 ? names.back() : some(names), y = some(names);
    const char* const exact[] = {"negate", "abs", "add", "subtract", "maximum"};
    const char* const costly[] = {"tanh", "logistic", "multiply", "divide", "rsqrt"};
    const int n = pick(0, 4);
    if (integers_ || pick(0, 1) == 0)
      add(names, shape, std::string(exact[n]) + "(" + x + (n < 2 ? "" : ", " + y) + ")");
    else
      add(names, shape, std::string(costly[n]) + "(" + x + (n == 2 || n == 3 ? ", " + y : "") + ")");
  }

  void result(std::string& shapes, std::string& names) {
    const int of = pick(0, 3);
    const bool of_rows = !row_.empty() && of == 0, of_columns = of == 1;
    const std::string comma = shapes.empty() ? "" : ", ";
    shapes += comma + type_ + (of_rows ? row() : of_columns ? "[" + list(column_dims_) + "]" : full());
    names += comma + (of_columns ? column_.back() : some(of_rows ? row_ : full_));
  }
  void result_last(std::string& shapes, std::string& names) {
    shapes += ", " + type_ + full();
    names += ", " + full_.back();
  }

  std::mt19937 random_;
  bool integers_;
  std::string type_, text_;
  std::vector<int> dims_, row_dims_, column_dims_, along_, over_;
  Names full_, row_, column_, full_names_, row_names_, column_names_;
  int next_ = 0, parameters_ = 0;
};

std::vector<Literal> draw_arguments(const hlo::Module& module, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Literal> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    Literal l(p->shape());
    const DType type = p->shape().dtype();
    const auto draw = [&] { return std::uniform_int_distribution<int>(-3, 3)(random); };
    if (type == DType::F32)
      for (float& f : l.mutable_data<float>()) f = static_cast<float>(draw());
    else if (type == DType::F64)
      for (double& f : l.mutable_data<double>()) f = draw();
    else
      for (std::uint16_t& f : l.mutable_data<std::uint16_t>())
        f = static_cast<std::uint16_t>(hlo::encode_float(hlo::float_format(type), draw()));
    arguments.push_back(std::move(l));
  }
  return arguments;
}

struct Scratch {
  explicit Scratch(std::int64_t bytes) : room(static_cast<std::size_t>(bytes) + 128) {}
  void* get() { return room.data() + (64 - reinterpret_cast<std::uintptr_t>(room.data()) % 64); }
  std::vector<std::byte> room;
};

/// In plain C++, block by block from the last one.
Literal evaluated(const hlo::Module& module, const std::vector<Literal>& arguments, std::string* kernels = nullptr, int* rows = nullptr,
                  int* sums = nullptr) {
  return run_fused(module, arguments, [&](const Instruction& fusion, const std::vector<Literal>& operands) {
    const auto kernel = plan(fusion);
    EXPECT_TRUE(kernel) << kernel.error().message();
    if (!kernel) return Literal(fusion.shape());
    if (kernels != nullptr) *kernels += print(*kernel) + "\n";
    if (rows != nullptr) *rows += is_rows_fusion(fusion) ? 1 : 0;
    if (sums != nullptr && is_rows_fusion(fusion)) *sums += fusion::column_blocks(fusion) > 0 ? 1 : 0;
    const auto verified = verify(*kernel);
    EXPECT_TRUE(verified) << verified.error().message() << print(*kernel);
    Buffers buffers(fusion, operands);
    Scratch scratch(kernel->scratch_bytes);
    for (std::int64_t block = kernel->blocks; block-- > 0;) {
      const auto done = evaluate(*kernel, buffers.pointers.data(), block, block + 1, scratch.get());
      EXPECT_TRUE(done) << done.error().message() << print(*kernel);
    }
    return buffers.result(fusion.shape());
  });
}

void expect_same_bits(const Literal& got, const Literal& want, const std::string& context) {
  for (std::size_t n = 0; n < got.elements().size(); ++n) {
    const auto difference = arrays::compare(got.elements()[n], want.elements()[n], arrays::Tolerance::exact());
    EXPECT_FALSE(difference) << "result " << n << ": " << *difference << "\n" << context;
  }
}

unsigned programs(unsigned few) { return std::getenv("HLOOM_EXHAUSTIVE") != nullptr ? 20000 : few; }

TEST(PlanRows, LeaveTheBitsThatSingleKernelsLeave) {
  int rows = 0, sums = 0;
  for (unsigned seed = 1; seed <= programs(900); ++seed) {
    const std::string text = Draw(seed, false).module();
    const auto module = parse(text), apart = parse(text);
    ASSERT_TRUE(module && apart) << "seed " << seed;
    const std::vector<Literal> arguments = draw_arguments(*module, seed);
    ASSERT_TRUE(fusion::fuse(*module));
    ASSERT_TRUE(fusion::fuse(*apart, {.rows = false}));
    std::string kernels;
    const Literal got = evaluated(*module, arguments, &kernels, &rows, &sums), want = evaluated(*apart, arguments);
    expect_same_bits(got, want, "seed " + std::to_string(seed) + "\n" + text + text::print(*module) + kernels);
    if (HasFailure()) return;
  }
  EXPECT_GT(rows, 200);  // or this tests nothing
  EXPECT_GT(sums, 30);
}

TEST(PlanRows, EqualTheInterpreter) {
  for (unsigned seed = 1; seed <= programs(300); ++seed) {
    const std::string text = Draw(seed, true).module();
    const auto module = parse(text);
    ASSERT_TRUE(module) << "seed " << seed;
    const std::vector<Literal> arguments = draw_arguments(*module, seed);
    const auto want = interp::interpret(*module, arguments);
    ASSERT_TRUE(want) << want.error().message();
    ASSERT_TRUE(fusion::fuse(*module));
    if (seed % 2 == 0) fusion::add_taps(*module);
    std::string kernels;
    const Literal got = evaluated(*module, arguments, &kernels);
    expect_equal(got, *want, "seed " + std::to_string(seed) + "\n" + text + text::print(*module) + kernels);
    if (HasFailure()) return;
  }
}

TEST(PlanRows, MachineCodeLeavesTheBitsOfTheEvaluator) {
  for (unsigned seed = 5000; seed < 5000 + programs(30); ++seed) {
    const std::string text = Draw(seed, false).module();
    const auto module = parse(text);
    ASSERT_TRUE(module);
    const std::vector<Literal> arguments = draw_arguments(*module, seed);
    ASSERT_TRUE(fusion::fuse(*module));
    const Literal want = evaluated(*module, arguments);
    const Literal got = run_fused(*module, arguments, [&](const Instruction& fusion, const std::vector<Literal>& operands) {
      const auto kernel = plan(fusion);
      const auto code = jit::compile({{*kernel}});
      EXPECT_TRUE(code) << code.error().message();
      const auto function = jit::kernel_function(**code, kernel->name);
      EXPECT_TRUE(function);
      Buffers buffers(fusion, operands);
      Scratch scratch(kernel->scratch_bytes);
      (*function)(buffers.pointers.data(), 0, kernel->blocks, scratch.get());
      return buffers.result(fusion.shape());
    });
    expect_same_bits(got, want, "seed " + std::to_string(seed) + "\n" + text);
    if (HasFailure()) return;
  }
}

std::string single_kernel(const std::string& entry) {
  const auto module = parse("add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n" + entry);
  EXPECT_TRUE(module && fusion::fuse(*module));
  std::string kernels;
  int count = 0;
  for (const Instruction& i : module->entry()->instructions())
    if (i.opcode() == Opcode::Fusion) {
      EXPECT_TRUE(is_rows_fusion(i));
      kernels += print(*plan(i));
      ++count;
    }
  EXPECT_EQ(count, 1) << text::print(*module);
  return kernels;
}

std::size_t times(const std::string& text, const std::string& word) {
  std::size_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

const std::string kSums =
    " z = f32[] constant(0)\n s = f32[8] reduce(x, z), dimensions={1}, to_apply=add\n"
    " b = f32[8,100] broadcast(s), dimensions={0}\n";

TEST(PlanRows, WhatIsCostlyIsMadeOnce) {
  const std::string kernel = single_kernel("ENTRY main { p = f32[8,100] parameter(0)\n x = f32[8,100] tanh(p)\n" + kSums +
                                           " ROOT r = f32[8,100] subtract(x, b) }");
  EXPECT_EQ(times(kernel, "tanh"), 1u) << kernel;
  EXPECT_EQ(times(kernel, "store scratch"), 1u) << kernel;
}

TEST(PlanRows, WhatIsCheapIsMadeAgain) {
  const std::string kernel = single_kernel("ENTRY main { p = f32[8,100] parameter(0)\n x = f32[8,100] negate(p)\n" + kSums +
                                           " ROOT r = f32[8,100] subtract(x, b) }");
  EXPECT_EQ(times(kernel, "negate"), 2u) << kernel;
  EXPECT_EQ(kernel.find("scratch"), std::string::npos) << kernel;
}

TEST(PlanRows, WhatIsWrittenAnywayIsReadBack) {
  const std::string kernel = single_kernel("ENTRY main { p = f32[8,100] parameter(0)\n x = f32[8,100] tanh(p)\n" + kSums +
                                           " r = f32[8,100] subtract(x, b)\n ROOT t = (f32[8,100], f32[8,100]) tuple(x, r) }");
  EXPECT_EQ(times(kernel, "tanh"), 1u) << kernel;
  EXPECT_EQ(kernel.find("scratch"), std::string::npos) << kernel;
  EXPECT_EQ(times(kernel, "load f32 y0"), 1u) << kernel;
}

// Sums of a row, each of what the one before leaves: code for one more is about as much as for the last.
TEST(PlanRows, CodeGrowsWithTheNumberOfSums) {
  const auto lines = [](int sums) {
    std::string text = "ENTRY main { v0 = f32[8,100] parameter(0)\n z = f32[] constant(0)\n";
    for (int n = 1; n <= sums; ++n) {
      const std::string k = std::to_string(n), before = "v" + std::to_string(n - 1);
      text += " t" + k + " = f32[8,100] multiply(" + before + ", " + before + ")\n sum" + k + " = f32[8] reduce(t" + k +
              ", z), dimensions={1}, to_apply=add\n b" + k + " = f32[8,100] broadcast(sum" + k + "), dimensions={0}\n " +
              (n == sums ? "ROOT " : "") + "v" + k + " = f32[8,100] subtract(" + before + ", b" + k + ")\n";
    }
    return times(single_kernel(text + "}"), "\n");
  };
  const std::size_t few = lines(6), many = lines(12);
  EXPECT_LT(many, 3 * few) << few;
}

// All kernels of a program, and how many.
std::string all_kernels(const std::string& entry, int* count) {
  const auto module = parse("add { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n" + entry);
  EXPECT_TRUE(module && fusion::fuse(*module));
  std::string kernels;
  for (const Instruction& i : module->entry()->instructions())
    if (i.opcode() == Opcode::Fusion) {
      kernels += print(*plan(i));
      ++*count;
    }
  return kernels;
}

TEST(ContractedBroadcast, IsOneLoopOverPairsWithoutAnArrayOfThem) {
  int count = 0;
  const std::string kernel = all_kernels(
      "ENTRY main { x = f32[200,3] parameter(0)\n m = f32[200] parameter(1)\n z = f32[] constant(0)\n"
      " xi = f32[200,200,3] broadcast(x), dimensions={0,2}\n xj = f32[200,200,3] broadcast(x), dimensions={1,2}\n"
      " d = f32[200,200,3] subtract(xj, xi)\n q = f32[200,200,3] multiply(d, d)\n"
      " r = f32[200,200] reduce(q, z), dimensions={2}, to_apply=add\n i = f32[200,200] rsqrt(r)\n"
      " mj = f32[200,200] broadcast(m), dimensions={1}\n w = f32[200,200] multiply(i, mj)\n"
      " wb = f32[200,200,3] broadcast(w), dimensions={0,1}\n f = f32[200,200,3] multiply(d, wb)\n"
      " ROOT a = f32[200,3] reduce(f, z), dimensions={1}, to_apply=add }",
      &count);
  EXPECT_EQ(count, 1) << kernel;
  EXPECT_EQ(times(kernel, "rsqrt"), 1u) << kernel;   // for all three coordinates
  EXPECT_EQ(times(kernel, "0..200"), 2u) << kernel;  // i by lanes, j
  EXPECT_EQ(times(kernel, "carry"), 3u) << kernel;
}

TEST(ContractedBroadcast, SumsOverTheSamePairsShareTheirLoop) {
  int count = 0;
  const std::string kernel = all_kernels(
      "ENTRY main { x = f32[64] parameter(0)\n y = f32[200] parameter(1)\n z = f32[] constant(0)\n"
      " xi = f32[200,64] broadcast(x), dimensions={1}\n yj = f32[200,64] broadcast(y), dimensions={0}\n"
      " d = f32[200,64] subtract(yj, xi)\n q = f32[200,64] multiply(d, d)\n"
      " a = f32[64] reduce(d, z), dimensions={0}, to_apply=add\n b = f32[64] reduce(q, z), dimensions={0}, to_apply=add\n"
      " ROOT c = f32[64] multiply(a, b) }",
      &count);
  EXPECT_EQ(count, 1) << kernel;
  EXPECT_EQ(times(kernel, "0..200"), 1u) << kernel;
  EXPECT_EQ(times(kernel, "subtract"), 1u) << kernel;
}

TEST(ContractedBroadcast, AVectorOfAFewCoordinatesIsNormalisedSideBySide) {
  int count = 0;
  const std::string kernel = all_kernels(
      "ENTRY main { x = f32[50,3] parameter(0)\n z = f32[] constant(0)\n q = f32[50,3] multiply(x, x)\n"
      " r = f32[50] reduce(q, z), dimensions={1}, to_apply=add\n i = f32[50] rsqrt(r)\n"
      " b = f32[50,3] broadcast(i), dimensions={0}\n ROOT n = f32[50,3] multiply(x, b) }",
      &count);
  EXPECT_EQ(count, 1) << kernel;
  EXPECT_EQ(times(kernel, "rsqrt"), 1u) << kernel;
  EXPECT_EQ(times(kernel, "load"), 3u) << kernel;
}

}  // namespace
}  // namespace hloom::kernels

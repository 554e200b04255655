// The law of planning: the kernels of a fused module leave what the interpreter says, in plain C++ and compiled. Programs
// are drawn by a printed seed: chains of moved indices, sums and updates, in all combinations that cut, split and merge.
#include "kernels/plan_fusion.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <random>
#include <unordered_map>

#include "fusion/fuse.h"
#include "interp/interpret.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/test_run_fused.h"
#include "kernels/verify.h"
#include "text/print.h"

namespace hloom::kernels {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

/// A program under construction, as text.
class Draw {
 public:
  explicit Draw(unsigned seed) : random_(seed) {}

  std::string module() {
    dims_of("p", random_dims());
    line("p", "parameter(0)");
    text_ += "  i = s32[] parameter(1)\n  zero = f32[] constant(0)\n  seven = f32[] constant(7)\n";
    const int steps = pick(2, 9);
    for (int s = 0; s < steps; ++s) step();
    const std::string last = names_.back();
    const std::string other = names_[static_cast<std::size_t>(pick(0, static_cast<int>(names_.size()) - 1))];
    text_ += "  ROOT t = (" + shape(last) + ", " + shape(other) + ") tuple(" + last + ", " + other + ")\n";
    return "HloModule drawn\n\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n\n" +
           std::string("maximum { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n\n") +
           "ENTRY main {\n" + text_ + "}\n";
  }
  int pick(int lo, int hi) { return std::uniform_int_distribution<int>(lo, hi)(random_); }

 private:
  using Dims = std::vector<int>;

  Dims random_dims() {
    Dims d(static_cast<std::size_t>(pick(1, 3)));
    for (int& n : d) n = pick(1, 6);
    return d;
  }
  static int count(const Dims& d) { return std::accumulate(d.begin(), d.end(), 1, std::multiplies<>()); }
  void dims_of(const std::string& name, Dims d) {
    names_.push_back(name);
    dims_[name] = std::move(d);
  }
  static std::string list(const Dims& d) {
    std::string s;
    for (const int n : d) s += (s.empty() ? "" : ",") + std::to_string(n);
    return s;
  }
  std::string shape(const std::string& name) { return "f32[" + list(dims_[name]) + "]"; }
  void line(const std::string& name, const std::string& op) { text_ += "  " + name + " = " + shape(name) + " " + op + "\n"; }
  std::string make(Dims d) {
    const std::string name = "v" + std::to_string(names_.size());
    dims_of(name, std::move(d));
    return name;
  }
  std::string some() { return names_[static_cast<std::size_t>(pick(0, static_cast<int>(names_.size()) - 1))]; }

  void step() {
    const std::string x = pick(0, 2) == 0 ? some() : names_.back();
    const Dims d = dims_[x];
    switch (pick(0, 13)) {
      case 0: return slice(x, d);
      case 1: return pad(x, d);
      case 2: return reverse(x, d);
      case 3: return transpose(x, d);
      case 4: return reshape(x, d);
      case 5: return broadcast(x, d);
      case 6:
      case 7: return concatenate(x, d);
      case 8: return reduce(x, d);
      case 9: return dynamic_slice(x, d);
      case 10: return dynamic_update_slice(x, d);
      case 11: return iota(x, d);
      default: return elementwise(x, d);
    }
  }

  void slice(const std::string& x, const Dims& d) {
    Dims out;
    std::string s;
    for (const int n : d) {
      const int start = pick(0, n - 1), limit = pick(start + 1, n), stride = pick(1, 2);
      out.push_back((limit - start + stride - 1) / stride);
      s += (s.empty() ? "[" : ", [") + std::to_string(start) + ":" + std::to_string(limit) + ":" + std::to_string(stride) + "]";
    }
    line(make(out), "slice(" + x + "), slice={" + s + "}");
  }

  void pad(const std::string& x, const Dims& d) {
    Dims out;
    std::string s;
    for (const int n : d) {
      int low = pick(-1, 2), high = pick(-1, 2);
      const int interior = pick(0, 3) == 0 ? pick(1, 2) : 0;
      int size = low + high + n + (n - 1) * interior;
      if (size < 1) low = 0, high = 0, size = n + (n - 1) * interior;
      out.push_back(size);
      s += (s.empty() ? "" : "x") + std::to_string(low) + "_" + std::to_string(high) + "_" + std::to_string(interior);
    }
    if (count(out) > 400) return;
    line(make(out), "pad(" + x + ", seven), padding=" + s);
  }

  void reverse(const std::string& x, const Dims& d) {
    Dims dims;
    for (int n = 0; n < static_cast<int>(d.size()); ++n)
      if (pick(0, 1) == 0) dims.push_back(n);
    line(make(d), "reverse(" + x + "), dimensions={" + list(dims) + "}");
  }

  void transpose(const std::string& x, const Dims& d) {
    Dims order(d.size()), out;
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random_);
    for (const int n : order) out.push_back(d[static_cast<std::size_t>(n)]);
    line(make(out), "transpose(" + x + "), dimensions={" + list(order) + "}");
  }

  void reshape(const std::string& x, const Dims& d) {
    int left = count(d);
    Dims out;
    for (int tries = 0; tries < 3 && left > 1; ++tries) {
      const int f = pick(1, 6);
      if (left % f == 0) out.push_back(f), left /= f;
    }
    out.push_back(left);
    line(make(out), "reshape(" + x + ")");
  }

  void broadcast(const std::string& x, const Dims& d) {
    if (count(d) > 100 || d.size() > 3) return;
    Dims out = d, dims(d.size());
    const int at = pick(0, static_cast<int>(d.size()));
    out.insert(out.begin() + at, pick(1, 4));
    for (int n = 0; n < static_cast<int>(d.size()); ++n) dims[static_cast<std::size_t>(n)] = n < at ? n : n + 1;
    line(make(out), "broadcast(" + x + "), dimensions={" + list(dims) + "}");
  }

  void concatenate(const std::string& x, const Dims& d) {
    const auto along = static_cast<std::size_t>(pick(0, static_cast<int>(d.size()) - 1));
    Dims out = d;
    std::string operands = x;
    for (const std::string& other : names_) {
      Dims o = dims_[other];
      if (o.size() != d.size() || pick(0, 2) != 0) continue;
      o[along] = d[along];
      if (o != d) continue;
      operands += ", " + other;
      out[along] += dims_[other][along];
    }
    if (count(out) > 400) return;
    line(make(out), "concatenate(" + operands + "), dimensions={" + std::to_string(along) + "}");
  }

  void reduce(const std::string& x, const Dims& d) {
    Dims dims, out;
    for (int n = 0; n < static_cast<int>(d.size()); ++n)
      if (pick(0, 1) == 0)
        dims.push_back(n);
      else
        out.push_back(d[static_cast<std::size_t>(n)]);
    if (out.empty()) return;
    line(make(out), "reduce(" + x + ", zero), dimensions={" + list(dims) + "}, to_apply=" + (pick(0, 1) == 0 ? "add" : "maximum"));
  }

  std::string starts(std::size_t rank) {
    std::string s;
    for (std::size_t n = 0; n < rank; ++n) s += ", i";
    return s;
  }

  void dynamic_slice(const std::string& x, const Dims& d) {
    Dims out;
    for (const int n : d) out.push_back(pick(1, n));
    line(make(out), "dynamic-slice(" + x + starts(d.size()) + "), dynamic_slice_sizes={" + list(out) + "}");
  }

  void dynamic_update_slice(const std::string& x, const Dims& d) {
    for (const std::string& u : names_) {
      const Dims& ud = dims_[u];
      if (ud.size() != d.size() || u == x) continue;
      bool fits = true;
      for (std::size_t n = 0; n < d.size(); ++n) fits = fits && ud[n] <= d[n];
      if (!fits) continue;
      const std::string update = u;
      return line(make(d), "dynamic-update-slice(" + x + ", " + update + starts(d.size()) + ")");
    }
  }

  void iota(const std::string& x, const Dims& d) {
    const std::string n = make(d);
    line(n, "iota(), iota_dimension=" + std::to_string(pick(0, static_cast<int>(d.size()) - 1)));
    line(make(d), "add(" + x + ", " + n + ")");
  }

  void elementwise(const std::string& x, const Dims& d) {
    const char* const ops[] = {"add", "subtract", "maximum"};
    for (const std::string& y : names_)
      if (dims_[y] == d && pick(0, 1) == 0) {
        const std::string other = y;
        return line(make(d), std::string(ops[pick(0, 2)]) + "(" + x + ", " + other + ")");
      }
    line(make(d), "negate(" + x + ")");
  }

  std::mt19937 random_;
  std::string text_;
  std::vector<std::string> names_;
  std::unordered_map<std::string, Dims> dims_;
};

std::vector<Literal> draw_arguments(const hlo::Module& module, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<Literal> arguments;
  for (const Instruction* p : module.entry()->parameters()) {
    Literal l(p->shape());
    if (p->shape().dtype() == DType::F32) {
      for (float& f : l.mutable_data<float>()) f = static_cast<float>(std::uniform_int_distribution<int>(-9, 9)(random));
    } else {
      l.mutable_data<std::int32_t>()[0] = std::uniform_int_distribution<int>(-2, 5)(random);
    }
    arguments.push_back(std::move(l));
  }
  return arguments;
}

TEST(PlanFusion, EvaluatedEqualsInterpreted) {
  const unsigned last = std::getenv("HLOOM_EXHAUSTIVE") != nullptr ? 100000 : 1500;
  for (unsigned seed = 1; seed <= last; ++seed) {
    const std::string text = Draw(seed).module();
    const auto module = parse(text);
    ASSERT_NE(module, nullptr) << "seed " << seed;
    const std::vector<Literal> arguments = draw_arguments(*module, seed);
    const auto want = interp::interpret(*module, arguments);
    ASSERT_TRUE(want) << want.error().message();
    ASSERT_TRUE(fusion::fuse(*module));
    std::string kernels;
    const Literal got = run_fused(*module, arguments, [&](const Instruction& fusion, const std::vector<Literal>& operands) {
      const auto kernel = plan(fusion);
      EXPECT_TRUE(kernel) << kernel.error().message() << "\n" << text;
      if (!kernel) return Literal(fusion.shape());
      kernels += print(*kernel) + "\n";
      const auto verified = verify(*kernel);
      EXPECT_TRUE(verified) << verified.error().message() << "\n" << kernels << text;
      Buffers buffers(fusion, operands);
      std::vector<std::byte> scratch(static_cast<std::size_t>(kernel->scratch_bytes) + 64);
      const auto done = evaluate(*kernel, buffers.pointers.data(), 0, kernel->blocks, scratch.data());
      EXPECT_TRUE(done) << done.error().message() << "\n" << kernels << text;
      return buffers.result(fusion.shape());
    });
    expect_equal(got, *want, "seed " + std::to_string(seed) + "\n" + text + text::print(*module) + kernels);
    if (HasFailure()) return;
  }
}

TEST(PlanFusion, CompiledEqualsInterpreted) {
  for (unsigned seed = 2000; seed < 2040; ++seed) {
    const std::string text = Draw(seed).module();
    const auto module = parse(text);
    ASSERT_NE(module, nullptr);
    const std::vector<Literal> arguments = draw_arguments(*module, seed);
    const auto want = interp::interpret(*module, arguments);
    ASSERT_TRUE(want) << want.error().message();
    ASSERT_TRUE(fusion::fuse(*module));
    std::vector<Kernel> kernels;
    for (const Instruction& i : module->entry()->instructions())
      if (i.opcode() == Opcode::Fusion) {
        auto kernel = plan(i);
        ASSERT_TRUE(kernel) << kernel.error().message();
        kernels.push_back(*std::move(kernel));
      }
    const auto code = jit::compile(kernels);
    ASSERT_TRUE(code) << code.error().message();
    const Literal got = run_fused(*module, arguments, [&](const Instruction& fusion, const std::vector<Literal>& operands) {
      const auto function = jit::kernel_function(**code, fusion.name());
      EXPECT_TRUE(function);
      Buffers buffers(fusion, operands);
      std::vector<std::byte> scratch(1 << 16);
      void* aligned = scratch.data() + (64 - reinterpret_cast<std::uintptr_t>(scratch.data()) % 64);
      (*function)(buffers.pointers.data(), 0, 1, aligned);
      return buffers.result(fusion.shape());
    });
    expect_equal(got, *want, "seed " + std::to_string(seed) + "\n" + text);
    if (HasFailure()) return;
  }
}

std::string single_kernel(const std::string& text) {
  const auto module = parse(text);
  EXPECT_TRUE(fusion::fuse(*module));
  std::string kernels;
  for (const Instruction& i : module->entry()->instructions())
    if (i.opcode() == Opcode::Fusion) {
      const auto kernel = plan(i);
      EXPECT_TRUE(kernel);
      kernels += print(*kernel);
    }
  return kernels;
}

TEST(PlanFusion, ARollIsTwoLoopsWithoutBranches) {
  const std::string kernel = single_kernel(
      "ENTRY main { p = f32[8,100] parameter(0)\n a = f32[8,97] slice(p), slice={[0:8], [3:100]}\n"
      " b = f32[8,3] slice(p), slice={[0:8], [0:3]}\n c = f32[8,100] concatenate(a, b), dimensions={1}\n"
      " ROOT r = f32[8,100] add(c, p) }");
  EXPECT_EQ(kernel.find("select"), std::string::npos) << kernel;
  EXPECT_EQ(kernel.find("compare"), std::string::npos) << kernel;
  EXPECT_NE(kernel.find("by"), kernel.rfind("by")) << kernel;
}

// Each piece has a loop of its own: asking for each element which of a hundred it comes from costs a hundred times as much.
TEST(PlanFusion, APieceOfManyIsALoopOfItsOwn) {
  std::string text = "ENTRY main {\n", operands;
  for (int n = 0; n < 100; ++n) {
    const std::string name = "p" + std::to_string(n);
    text += name + " = f32[8,3] parameter(" + std::to_string(n) + ")\n";
    operands += (n > 0 ? ", " : "") + name;
  }
  const std::string kernel = single_kernel(text + "ROOT r = f32[8,300] concatenate(" + operands + "), dimensions={1} }");
  EXPECT_EQ(kernel.find("select"), std::string::npos) << kernel;
  EXPECT_EQ(kernel.find("compare"), std::string::npos) << kernel;
}

// Blocks along a diagonal: what is not cut for there would be too many parts still says how it reads, so no dimensions are put together
// that have to be taken apart again.
TEST(PlanFusion, ManyPaddedPiecesAreNotDivided) {
  for (const std::int64_t pieces : {40, 90}) {
    const std::string all = std::to_string(3 * pieces);
    std::string text = "ENTRY main {\n z = f32[] constant(0)\n", operands;
    for (std::int64_t n = 0; n < pieces; ++n) {
      const std::string number = std::to_string(n);
      text += "p" + number + " = f32[2,3] parameter(" + number + ")\n q" + number + " = f32[2," + all + "] pad(p" + number + ", z), padding=0_0x" +
              std::to_string(3 * n) + "_" + std::to_string(3 * (pieces - 1 - n)) + "\n";
      operands += (n > 0 ? ", q" : "q") + number;
    }
    const std::string kernel =
        single_kernel(text + "ROOT r = f32[" + std::to_string(2 * pieces) + "," + all + "] concatenate(" + operands + "), dimensions={0} }");
    EXPECT_EQ(kernel.find("divide"), std::string::npos) << kernel;
  }
}

// Elements far apart are an instruction each: 64 at once, of each of many columns, is code that takes minutes to compile.
TEST(PlanFusion, ElementsFarApartGoByOneVector) {
  const std::string column = single_kernel("ENTRY main { p = f32[9,64] parameter(0)\n q = f32[9,64] parameter(1)\n t = f32[64,9] transpose(p), dimensions={1,0}\n"
                                           " u = f32[64,9] transpose(q), dimensions={1,0}\n ROOT c = f32[64,18] concatenate(t, u), dimensions={1} }");
  EXPECT_EQ(column.find("by 64"), std::string::npos) << column;
  EXPECT_EQ(column.find("by 32"), std::string::npos) << column;
}

// Rows that an index picks lie anywhere: across them each element is an access of its own, and no square turns over.
TEST(PlanFusion, PickedRowsGoAlongTheRow) {
  for (const std::string type : {"pred", "s8", "bf16", "f32", "f64"}) {
    const std::string kernel = single_kernel("ENTRY main { p = " + type + "[4000,64] parameter(0)\n i = s32[1100,1] parameter(1)\n ROOT r = " + type +
                                             "[1100,64] gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, "
                                             "index_vector_dim=1, slice_sizes={1,64} }");
    EXPECT_NE(kernel.find("in 0..1100"), std::string::npos) << kernel;
    EXPECT_NE(kernel.find("in 0..64 by"), std::string::npos) << kernel;
    EXPECT_EQ(kernel.find("transpose"), std::string::npos) << kernel;
  }
}

// Of a nest.
std::int64_t iterations(const Loop& loop) {
  std::int64_t inside = 0;
  for (const Statement& s : loop.body)
    if (const auto* inner = std::get_if<Loop>(&s.of)) inside += iterations(*inner);
  return (loop.to - loop.from) * std::max<std::int64_t>(inside, 1);
}

// Threads get equal ranges of blocks: the loop with most to do has work in each of them.
TEST(PlanFusion, NoBlockOfALargeGridIsEmpty) {
  const char* const programs[] = {
      "ENTRY e { p = f32[1000,1000] parameter(0)\n ROOT r = f32[1000,1000] transpose(p), dimensions={1,0} }",
      "ENTRY e { p = f32[4096,300] parameter(0)\n ROOT r = f32[300,4096] transpose(p), dimensions={1,0} }",
      "ENTRY e { p = f32[300,2000] parameter(0)\n ROOT r = f32[300,2000] reverse(p), dimensions={0} }",
      "ENTRY e { p = f32[60,3000] parameter(0)\n c = f32[] constant(0)\n ROOT r = f32[62,4000] pad(p, c), padding=1_1x500_500 }",
  };
  for (const std::string text : programs) {
    SCOPED_TRACE(text);
    const auto module = parse(text);
    ASSERT_TRUE(fusion::fuse(*module));
    const auto kernel = plan(*module->entry()->root());
    ASSERT_TRUE(kernel);
    ASSERT_GT(kernel->blocks, 1);
    std::int64_t most = 0, used = 0;
    for (const Statement& s : kernel->body) {
      const auto* loop = std::get_if<Loop>(&s.of);
      if (loop == nullptr) continue;
      const std::int64_t work = iterations(*loop);
      if (work <= most) continue;
      most = work;
      used = (loop->to - loop->from + loop->block - 1) / loop->block;
    }
    EXPECT_EQ(used, kernel->blocks) << print(*kernel);
  }
}

TEST(PlanFusion, ElementwiseWorkIsOneLoop) {
  const std::string kernel = single_kernel(
      "ENTRY main { p = f32[4,5,6] parameter(0)\n q = f32[120] reshape(p)\n r = f32[120] negate(q)\n"
      " ROOT s = f32[20,6] reshape(r) }");
  EXPECT_NE(kernel.find("in 0..120 by"), std::string::npos) << kernel;
  EXPECT_EQ(kernel.find("divide"), std::string::npos) << kernel;
}

TEST(PlanFusion, AWindowUpdateWritesItsWindowOnly) {
  const std::string kernel = single_kernel(
      "ENTRY main { p = f32[1000,8] parameter(0)\n u = f32[1,8] parameter(1)\n i = s32[] parameter(2)\n"
      " z = s32[] constant(0)\n n = f32[1,8] negate(u)\n ROOT d = f32[1000,8] dynamic-update-slice(p, n, i, z) }");
  EXPECT_EQ(kernel.find("1000.."), std::string::npos) << kernel;
  EXPECT_NE(kernel.find("in 0..8 by 8"), std::string::npos) << kernel;
}

}  // namespace
}  // namespace hloom::kernels

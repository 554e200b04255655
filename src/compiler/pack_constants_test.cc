// Constants that dots read as panels: the same bits as from a parameter, nothing packed in a run, no second copy.
#include "compiler/pack_constants.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "fusion/fuse.h"
#include "hlo/panels.h"
#include "interp/interpret.h"
#include "jit/target.h"
#include "passes/pipeline.h"
#include "text/print.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

// Small whole numbers for bytes, others with all their bits.
Literal random_literal(const Shape& shape, int seed) {
  std::mt19937 random(static_cast<unsigned>(seed));
  Literal literal(shape);
  const auto bytes = literal.mutable_bytes();
  const bool is_byte = byte_width(shape.dtype()) == 1;
  const DType part = real_type(shape.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    const double x = std::uniform_real_distribution<double>(-1, 1)(random);
    const auto f = static_cast<float>(x);
    std::uint32_t bits = 0;
    std::memcpy(&bits, &f, 4);
    if (is_byte) bytes[at] = static_cast<std::byte>(random());
    else if (part == DType::F64) std::memcpy(&bytes[at], &x, 8);
    else if (part == DType::BF16) bits >>= 16, std::memcpy(&bytes[at], &bits, 2);
    else if (part == DType::F16) bits = 0x3000u + (random() & 0x83ffu), std::memcpy(&bytes[at], &bits, 2);
    else std::memcpy(&bytes[at], &bits, 4);
  }
  return literal;
}

struct Case {
  std::string name, text;  ///< parameter 1 is to be the constant
  bool packs = true;       ///< it becomes panels
  bool keeps_scratch = false;  ///< for something else
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

std::string operation(const std::string& types, const std::string& op) {
  const auto comma = types.find("; "), second = types.rfind("; ");
  return "HloModule m\nENTRY e { x = " + types.substr(0, comma) + " parameter(0)\n k = " + types.substr(comma + 2, second - comma - 2) +
         " parameter(1)\n ROOT r = " + types.substr(second + 2) + " " + op + " }\n";
}
std::string dot(const std::string& types, int lhs, int rhs, bool swapped = false) {
  return operation(types, (swapped ? std::string("dot(k, x)") : std::string("dot(x, k)")) + ", lhs_contracting_dims={" + std::to_string(lhs) +
                              "}, rhs_contracting_dims={" + std::to_string(rhs) + "}");
}
std::string convolution(const std::string& types, const std::string& attributes) { return operation(types, "convolution(x, k), " + attributes); }

std::vector<Case> cases() {
  const std::string same = "window={size=3x3 pad=1_1x1_1}, dim_labels=b01f_01io->b01f";
  return {
      {"Dot", dot("f32[64,256]; f32[256,200]; f32[64,200]", 1, 0)},
      {"DotOfFew", dot("f32[6,25]; f32[25,40]; f32[6,40]", 1, 0)},
      {"DotTransposed", dot("f32[70,300]; f32[230,300]; f32[70,230]", 1, 1)},
      {"DotColumns", dot("f32[70,300]; f32[230,300]{0,1}; f32[70,230]", 1, 1)},
      {"DotOfConstantRows", dot("f32[700,48]; f32[700,900]; f32[900,48]", 0, 0, true)},
      {"DotOfDoubles", dot("f64[70,300]; f64[230,300]; f64[70,230]", 1, 1)},
      {"DotOfHalves", dot("f16[70,300]; f16[230,300]; f32[70,230]", 1, 1), true, true},
      {"DotOfBrainFloats", dot("bf16[70,300]; bf16[230,300]; bf16[70,230]", 1, 1), true, true},
      {"DotOfBytes", dot("s8[70,300]; s8[230,300]; s32[70,230]", 1, 1), true, true},
      {"DotOfBytesAndARest", dot("u8[70,303]; s8[303,230]; s32[70,230]", 1, 0), true, true},
      {"DotOfUnsignedBytes", dot("u8[70,303]; u8[303,230]; s32[70,230]", 1, 0), true, true},
      {"DotOfComplex", dot("c64[64,256]; c64[200,256]; c64[200,64]", 1, 1, true)},
      {"LongSum", dot("f32[40,4096]; f32[4096,300]; f32[40,300]", 1, 0), true, true},
      {"Vector", dot("f32[1,512]; f32[512,300]; f32[1,300]", 1, 0)},
      {"VectorFromMemory", dot("f32[1,1024]; f32[1024,1000]; f32[1,1000]", 1, 0), false},
      {"Batch", operation("f32[5,40,70]; f32[5,90,70]; f32[5,40,90]",
                          "dot(x, k), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={2}")},
      {"TwoSums", operation("f32[60,8,70]; f32[8,70,90]; f32[60,90]", "dot(x, k), lhs_contracting_dims={1,2}, rhs_contracting_dims={0,1}")},
      {"Converted", "HloModule m\nENTRY e { x = f32[64,256] parameter(0)\n k = bf16[200,256] parameter(1)\n w = f32[200,256] convert(k)\n"
                    " ROOT r = f32[64,200] dot(x, w), lhs_contracting_dims={1}, rhs_contracting_dims={1} }\n"},
      {"Convolution", convolution("f32[1,14,14,96]; f32[3,3,96,96]; f32[1,14,14,96]", same)},
      {"ConvolutionWithKernelsFirst", convolution("f32[2,48,14,14]; f32[80,48,3,3]; f32[2,80,14,14]", "window={size=3x3 pad=1_1x1_1}, dim_labels=bf01_oi01->bf01")},
      {"ConvolutionBackwards", convolution("f32[1,14,14,64]; f32[3,3,48,64]; f32[1,14,14,48]", "window={size=3x3 pad=1_1x1_1 rhs_reversal=1x1}, dim_labels=b01f_01oi->b01f")},
      {"ConvolutionInGroups", convolution("f32[1,14,14,96]; f32[3,3,32,96]; f32[1,14,14,96]", same + ", feature_group_count=3")},
      {"Strides", convolution("f32[1,29,29,64]; f32[3,3,64,72]; f32[1,14,14,72]", "window={size=3x3 stride=2x2}, dim_labels=b01f_01io->b01f")},
      {"ConvolutionOfBytes", convolution("s8[1,14,14,64]; s8[3,3,64,80]; s32[1,14,14,80]", same), true, true},
  };
}

std::unique_ptr<hlo::Module> read(const std::string& text) {
  auto module = read_program(text);
  EXPECT_TRUE(module) << module.error().message();
  return *std::move(module);
}

// The constant in place of parameter 1.
std::unique_ptr<hlo::Module> with_constant(const std::string& text, const Literal& k) {
  auto module = read(text);
  hlo::Computation& entry = *module->entry();
  Literal literal = k;
  literal.set_shape_layout(entry.parameter(1)->shape().layout());
  Instruction* constant = entry.add_constant(literal, "weights");
  entry.replace_uses(entry.parameter(1), constant);
  entry.sort();
  return module;
}

Literal run(Compiled compiled, const std::vector<Literal>& arguments, int threads = 1) {
  const std::vector<Shape> parameters = parameter_leaves(*compiled.module), results = result_leaves(*compiled.module);
  const auto executor = runtime::Executor::create(std::move(compiled.program));
  EXPECT_TRUE(executor);
  runtime::ThreadPool pool(threads);
  auto values = execute_literals(**executor, parameters, results, arguments, pool);
  EXPECT_TRUE(values) << values.error().message();
  return (*values)[0];
}

Compiled compiled(std::unique_ptr<hlo::Module> module, const Options& options = {}) {
  auto c = compile(std::move(module), options);
  EXPECT_TRUE(c) << c.error().message();
  return *std::move(c);
}

std::int64_t num_marked(const hlo::Module& module) {
  std::int64_t n = 0;
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) n += !hlo::panels_of(i).empty();
  return n;
}

std::int64_t num_constants(const hlo::Module& module, std::int64_t least_bytes) {
  std::int64_t n = 0;
  for (const hlo::Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) n += i.opcode() == Opcode::Constant && i.shape().size_bytes() >= least_bytes;
  return n;
}

std::int64_t scratch_bytes(const Compiled& c) {
  std::int64_t bytes = 0;
  for (const kernels::Kernel& k : c.kernels) bytes = std::max(bytes, k.scratch_bytes);
  return bytes;
}

bool same_bytes(const Literal& a, const Literal& b) { return std::ranges::equal(a.bytes(), b.bytes()); }

class Packed : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto module = read(GetParam().text);
    for (const Instruction* p : module->entry()->parameters()) arguments_.push_back(random_literal(Shape::array(p->shape().dtype(), p->shape().dims()), 7));
  }
  std::unique_ptr<hlo::Module> constant() const { return with_constant(GetParam().text, arguments_[1]); }
  Literal of_parameter(const Options& options = {}) const { return run(compiled(read(GetParam().text), options), arguments_); }

  std::vector<Literal> arguments_;
};

TEST_P(Packed, GivesTheBitsOfAParameter) {
  for (const std::string cpu : {"", "haswell"}) {
    Options options;
    options.cpu = cpu;
    const Literal want = of_parameter(options);
    for (const int threads : {1, 3}) EXPECT_TRUE(same_bytes(run(compiled(constant(), options), arguments_, threads), want)) << cpu << threads;
  }
}

TEST_P(Packed, NothingIsPackedInARunOrThereTwice) {
  const Compiled c = compiled(constant());
  EXPECT_EQ(num_marked(*c.module), GetParam().packs ? 1 : 0) << text::print(*c.module);
  EXPECT_EQ(num_constants(*c.module, 4000), 1);
  if (!GetParam().keeps_scratch) {
    EXPECT_EQ(scratch_bytes(c), 0);
  }
}

// What a fused computation says of its panels is the constant.
TEST_P(Packed, TheModuleMeansTheSame) {
  const auto before = constant();
  const auto want = interp::interpret(*before, arguments_);
  auto module = constant();
  ASSERT_TRUE(passes::run_standard(*module, {}));
  ASSERT_TRUE(fusion::fuse(*module));
  ASSERT_TRUE(pack_constants(*module, *jit::target_or_host("")));
  EXPECT_EQ(num_marked(*module), GetParam().packs ? 1 : 0);
  const auto got = interp::interpret(*module, arguments_);
  ASSERT_TRUE(want && got);
  EXPECT_TRUE(same_bytes(*got, *want));
}

// Text of a packed module is a program, here and for a machine that reads other panels.
TEST_P(Packed, MayBePrintedAndReadAgain) {
  std::string text;
  Options dumps;
  dumps.dump = [&](const std::string& name, const std::string& contents) {
    if (name.ends_with("fusions.hlo")) text = contents;
  };
  const Literal want = run(compiled(constant(), dumps), arguments_);
  ASSERT_FALSE(text.empty());
  EXPECT_TRUE(same_bytes(run(compiled(read(text)), arguments_), want));
  Options other;
  other.cpu = "haswell";
  const Literal elsewhere = run(compiled(read(text), other), arguments_);
  if (is_integral(want.dtype())) {
    EXPECT_TRUE(same_bytes(elsewhere, want));
  }
  for (std::int64_t i = 0; i < want.num_elements(); ++i)
    ASSERT_NEAR(element_as_double(elsewhere, i), element_as_double(want, i), want.dtype() == DType::BF16 ? 0.3 : 1e-3);
}

INSTANTIATE_TEST_SUITE_P(Constants, Packed, testing::ValuesIn(cases()), [](const auto& c) { return c.param.name; });

// --- Who else reads it ---------------------------------------------------------------------------------------------

std::string two_readers(std::int64_t n, const std::string& second) {
  const std::string k = "[" + std::to_string(n) + ",256]";
  return "HloModule m\nENTRY e { x = f32[64,256] parameter(0)\n k = f32" + k + " parameter(1)\n d = f32[64," + std::to_string(n) +
         "] dot(x, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n " + second + " }\n";
}

std::string two_dots(std::int64_t n) {
  const std::string out = "f32[64," + std::to_string(n) + "]";
  return two_readers(n, "y = f32[64,256] negate(x)\n q = " + out + " dot(y, k), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n" +
                            " ROOT r = " + out + " add(d, q)");
}

TEST(PackConstants, TwoKernelsShareTheirPanels) {
  const Compiled c = compiled(with_constant(two_dots(2000), random_literal(Shape::array(DType::F32, {2000, 256}), 1)));
  EXPECT_EQ(num_marked(*c.module), 2);
  EXPECT_EQ(num_constants(*c.module, 4096), 1);
}

TEST(PackConstants, ALargeConstantThatIsReadOtherwiseStays) {
  for (const std::int64_t n : {200, 2000}) {
    const std::string out = "(f32[64," + std::to_string(n) + "], f32[" + std::to_string(n) + ",256])";
    const auto text = two_readers(n, "s = f32[1,256] slice(x), slice={[3:4],[0:256]}\n t = f32[256] reshape(s)\n b = f32[" + std::to_string(n) + ",256] broadcast(t), dimensions={1}\n u = f32[" + std::to_string(n) + ",256] add(k, b)\n ROOT r = " + out + " tuple(d, u)");
    const Literal k = random_literal(Shape::array(DType::F32, {n, 256}), 1);
    const Compiled c = compiled(with_constant(text, k));
    EXPECT_EQ(num_marked(*c.module), n == 200 ? 1 : 0);
    EXPECT_EQ(num_constants(*c.module, 4096), n == 200 ? 2 : 1);
  }
}

}  // namespace
}  // namespace hloom::compiler

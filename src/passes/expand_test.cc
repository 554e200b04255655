// What expansions keep: the interpreter says of the ops that they take apart what it says of what they make.
#include <gtest/gtest.h>

#include <random>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::checking;
using testing::parse;

hlo::Literal random_literal(const Shape& shape, std::mt19937& random) {
  hlo::Literal literal(shape);
  for (std::byte& b : literal.mutable_bytes()) b = static_cast<std::byte>(random());
  if (shape.dtype() == DType::F32)
    for (float& x : literal.mutable_data<float>()) x = static_cast<float>(static_cast<int>(random() % 33) - 16) / 4;
  if (shape.dtype() == DType::F64)
    for (double& x : literal.mutable_data<double>()) x = (static_cast<int>(random() % 33) - 16) / 4.0;
  if (shape.dtype() == DType::BF16)  // upper halves of small floats
    for (std::uint16_t& x : literal.mutable_data<std::uint16_t>())
      x = static_cast<std::uint16_t>(0x3f00 + random() % 0x180);
  if (shape.dtype() == DType::S32)
    for (std::int32_t& x : literal.mutable_data<std::int32_t>()) x = static_cast<std::int32_t>(random() % 4);
  return literal;
}

bool has_opcode(const hlo::Module& module, hlo::Opcode opcode) {
  for (const hlo::Computation& c : module.computations())
    for (const hlo::Instruction& i : c.instructions())
      if (i.opcode() == opcode) return true;
  return false;
}

std::vector<hlo::Literal> leaves_of(const hlo::Literal& result) {
  std::vector<hlo::Literal> copies;
  for (const hlo::Literal* leaf : hlo::leaves(result)) copies.push_back(*leaf);
  return copies;
}

void expect_same(const hlo::Module& before, const hlo::Module& after, std::span<const hlo::Literal> arguments,
                 const arrays::Tolerance& tolerance) {
  const auto want = interp::interpret(before, arguments), got = interp::interpret(after, arguments);
  ASSERT_TRUE(want) << want.error().message();
  ASSERT_TRUE(got) << got.error().message();
  const auto difference = arrays::compare_results(leaves_of(*got), leaves_of(*want), {&tolerance, 1});
  EXPECT_FALSE(difference) << *difference << "\n" << testing::body(after);
}

arrays::Tolerance within(double ulp, double abs) {
  arrays::Tolerance tolerance = arrays::Tolerance::within_ulp(ulp);
  tolerance.abs = abs;
  return tolerance;
}

// Runs all passes, of which one is to take `gone` apart, in a module as written and in one that is scheduled.
void expect_law(const std::string& text, hlo::Opcode gone,
                const arrays::Tolerance& tolerance = arrays::Tolerance::exact()) {
  SCOPED_TRACE(text);
  std::mt19937 random(7);
  for (const bool scheduled : {false, true}) {
    const auto before = parse(text), after = parse(text);
    ASSERT_TRUE(before && after);
    after->config().is_scheduled = scheduled;
    const auto changed = run_standard(*after, checking());
    ASSERT_TRUE(changed) << changed.error().message();
    EXPECT_FALSE(has_opcode(*after, gone)) << testing::body(*after);
    for (int draw = 0; draw < 3; ++draw) {
      std::vector<hlo::Literal> arguments;
      for (const hlo::Instruction* p : before->entry()->parameters()) arguments.push_back(random_literal(p->shape(), random));
      expect_same(*before, *after, arguments, tolerance);
    }
  }
}

std::string entry(const std::string& instructions) { return "HloModule m\nENTRY e {\n" + instructions + "\n}\n"; }

TEST(ExpandBatchNorm, KeepsTheValues) {
  for (const std::string type : {"f32", "f64", "bf16"}) {
    const auto near = within(8, type == "bf16" ? 0.06 : type == "f32" ? 4e-6 : 1e-13);
    for (const int feature : {0, 1, 2}) {
      const std::string x = type + "[2,5,3]", f = type + "[" + (feature == 0 ? "2" : feature == 1 ? "5" : "3") + "]";
      const std::string attributes = ", epsilon=0.01, feature_index=" + std::to_string(feature);
      const std::string head = "x = " + x + " parameter(0)\ns = " + f + " parameter(1)\no = " + f + " parameter(2)\n";
      expect_law(entry(head + "ROOT r = (" + x + ", " + f + ", " + f + ") batch-norm-training(x, s, o)" + attributes),
                 hlo::Opcode::BatchNormTraining, near);
      // The variance is that of squares, so that it is not negative.
      const std::string rest = "m = " + f + " parameter(3)\nq = " + f + " parameter(4)\nv = " + f + " multiply(q, q)\n";
      expect_law(entry(head + rest + "ROOT r = " + x + " batch-norm-inference(x, s, o, m, v)" + attributes),
                 hlo::Opcode::BatchNormInference, near);
      expect_law(entry(head + rest + "dy = " + x + " parameter(5)\nROOT r = (" + x + ", " + f + ", " + f +
                       ") batch-norm-grad(x, s, m, v, dy)" + attributes),
                 hlo::Opcode::BatchNormGrad, near);
    }
  }
}

TEST(ExpandRaggedDot, KeepsTheValuesInEachMode) {
  // Sizes of up to 3 in groups of 3: up to 9.
  const std::string rows =
      "a = f32[2,9,4] parameter(0)\nb = f32[3,2,4,5] parameter(1)\n";
  const std::string attributes =
      ", lhs_batch_dims={0}, rhs_batch_dims={1}, lhs_contracting_dims={2}, rhs_contracting_dims={2}, "
      "lhs_ragged_dims={1}, rhs_group_dims={0}";
  expect_law(entry(rows + "g = s32[3] parameter(2)\nROOT r = f32[2,9,5] ragged-dot(a, b, g)" + attributes),
             hlo::Opcode::RaggedDot);
  expect_law(entry(rows + "g = s32[2,3] parameter(2)\nROOT r = f32[2,9,5] ragged-dot(a, b, g)" + attributes),
             hlo::Opcode::RaggedDot);
  const std::string parts = "a = f32[2,4,9] parameter(0)\nb = f32[2,9,5] parameter(1)\n";
  const std::string of_parts =
      ", lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}, "
      "lhs_ragged_dims={2}";
  expect_law(entry(parts + "g = s32[3] parameter(2)\nROOT r = f32[3,2,4,5] ragged-dot(a, b, g)" + of_parts),
             hlo::Opcode::RaggedDot);
  expect_law(entry(parts + "g = s32[2,3] parameter(2)\nROOT r = f32[3,2,4,5] ragged-dot(a, b, g)" + of_parts),
             hlo::Opcode::RaggedDot);
  const std::string batch = "a = f32[9,2,4] parameter(0)\nb = f32[9,4,5] parameter(1)\ng = s32[3] parameter(2)\n";
  expect_law(entry(batch + "ROOT r = f32[9,2,5] ragged-dot(a, b, g), lhs_batch_dims={0}, rhs_batch_dims={0}, "
                           "lhs_contracting_dims={2}, rhs_contracting_dims={1}, lhs_ragged_dims={0}"),
             hlo::Opcode::RaggedDot);
  expect_law(entry("a = f32[4,3] parameter(0)\nb = f32[0,3,2] parameter(1)\ng = s32[0] parameter(2)\n"
                   "ROOT r = f32[4,2] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={1}, "
                   "lhs_ragged_dims={0}, rhs_group_dims={0}"),
             hlo::Opcode::RaggedDot);
}

// What is in no group does not count, not even as a NaN.
TEST(ExpandRaggedDot, KeepsNaNsWhereTheyAre) {
  expect_law(entry("x = f32[2,9] parameter(0)\nb = f32[9,2] parameter(1)\ng = s32[2] parameter(2)\n"
                   "z = f32[2,9] subtract(x, x)\na = f32[2,9] divide(x, z)\n"
                   "ROOT r = f32[2,2,2] ragged-dot(a, b, g), lhs_contracting_dims={1}, rhs_contracting_dims={0}, "
                   "lhs_ragged_dims={1}"),
             hlo::Opcode::RaggedDot);
}

TEST(ExpandScaledDot, KeepsTheValues) {
  expect_law(entry("a = f32[2,8] parameter(0)\nb = f32[3,8] parameter(1)\ns = f32[2,4] parameter(2)\n"
                   "t = f32[1,2] parameter(3)\n"
                   "ROOT r = f32[2,3] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
             hlo::Opcode::ScaledDot);
  expect_law(entry("a = f32[2,8] parameter(0)\nb = f32[3,8] parameter(1)\ns = f32[] parameter(2)\nt = f32[3,8] parameter(3)\n"
                   "ROOT r = f32[2,3] scaled-dot(a, b, s, t), lhs_contracting_dims={1}, rhs_contracting_dims={1}"),
             hlo::Opcode::ScaledDot);
}

TEST(ExpandScan, KeepsTheValues) {
  const std::string f = R"(HloModule m
f { x = f32[2] parameter(0)
 n = s32[2] parameter(1)
 c = f32[2] parameter(2)
 k = s32[] parameter(3)
 s = f32[2] add(x, c)
 y = f32[2] convert(n)
 p = f32[2,1] reshape(s)
 q = f32[2] multiply(x, y)
 one = s32[] constant(1)
 l = s32[] add(k, one)
 ROOT r = (f32[2,1], f32[2], f32[2], s32[]) tuple(p, q, s, l) }
ENTRY e { a = f32[2,7] parameter(0)
 b = s32[2,7] parameter(1)
 c = f32[2] parameter(2)
 d = s32[] parameter(3)
)";
  for (const char* reverse : {"false", "true"})
    expect_law(f + " ROOT r = (f32[2,7,1], f32[2,7], f32[2], s32[]) scan(a, b, c, d), dimensions={1}, num_carries=2, "
                   "is_reverse=" + reverse + ", to_apply=f\n}",
               hlo::Opcode::Scan);
  expect_law(R"(HloModule m
g { x = s32[] parameter(0)
 ROOT n = s32[] negate(x) }
h { x = s32[3] parameter(0)
 y = (s32[3]) scan(x), dimensions={0}, num_carries=0, to_apply=g1
 ROOT z = s32[3] get-tuple-element(y), index=0 }
g1 { x = s32[] parameter(0)
 ROOT n = (s32[]) tuple(x) }
ENTRY e { a = s32[4,3] parameter(0)
 ROOT r = (s32[4,3]) scan(a), dimensions={0}, num_carries=0, to_apply=h })",
             hlo::Opcode::Scan);
}

TEST(ExpandRng, DrawsTheSame) {
  for (const std::string type : {"f32", "f64", "bf16", "f16", "s32", "u8", "s64"}) {
    const bool real = type[0] != 's' && type[0] != 'u';
    const std::string low = real ? "-1.5" : type[0] == 's' ? "-3" : "2", high = real ? "-1.25" : "90";
    const std::string ends = "a = " + type + "[] constant(" + low + ")\nb = " + type + "[] constant(" + high + ")\n";
    const std::string two = "x = " + type + "[3,5] rng(a, b), distribution=rng_uniform\ny = " + type +
                            "[] rng(a, b), distribution=rng_uniform\nROOT r = (" + type + "[3,5], " + type +
                            "[]) tuple(x, y)";
    expect_law(entry(ends + two), hlo::Opcode::Rng);
    const std::string none = "x = " + type + "[2] rng(b, a), distribution=rng_uniform\nROOT r = (" + type + "[2]) tuple(x)";
    expect_law(entry(ends + none), hlo::Opcode::Rng);
    if (real)
      expect_law(entry(ends + "x = " + type + "[3,5] rng(a, b), distribution=rng_normal\nROOT r = (" + type +
                       "[3,5]) tuple(x)"),
                 hlo::Opcode::Rng, within(4, 1e-15));
  }
}

// Each number lies in the interval, though rounding reaches its end.
TEST(ExpandRng, StaysBelowTheEnd) {
  for (const char* ends : {"a = bf16[] constant(1)\nb = bf16[] constant(1.0078125)\n",
                           "a = bf16[] constant(-1e-40)\nb = bf16[] constant(0)\n"}) {
    const std::string text =
        entry(ends + std::string("x = bf16[64] rng(a, b), distribution=rng_uniform\nc = bf16[64] broadcast(b), "
                                 "dimensions={}\nROOT p = pred[64] compare(x, c), direction=LT"));
    const auto module = parse(text);
    ASSERT_TRUE(module);
    const auto result = interp::interpret(*module, {});
    ASSERT_TRUE(result) << result.error().message();
    for (const std::byte b : result->bytes()) EXPECT_EQ(b, std::byte{1});
    expect_law(text, hlo::Opcode::Rng);
  }
}

// The state goes from one reader to the next in order, through loops too.
TEST(ExpandRng, OrdersWhatReadsTheState) {
  const std::string text = R"(HloModule m
body { s = (s32[], u64[2]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 one = s32[] constant(1)
 j = s32[] add(i, one)
 u = u64[2] rng-get-and-update-state(), delta=7
 ROOT t = (s32[], u64[2]) tuple(j, u) }
more { s = (s32[], u64[2]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(3)
 ROOT p = pred[] compare(i, n), direction=LT }
ENTRY e { z = s32[] constant(0)
 a = u64[2] rng-get-and-update-state(), delta=1
 init = (s32[], u64[2]) tuple(z, a)
 w = (s32[], u64[2]) while(init), condition=more, body=body
 b = u64[2] rng-get-and-update-state(), delta=1
 ROOT r = ((s32[], u64[2]), u64[2]) tuple(w, b) })";
  const auto module = parse(text);
  ASSERT_TRUE(module);
  EXPECT_EQ(testing::run("expand-rng", *module), Changed::Yes);
  EXPECT_EQ(testing::run("expand-rng", *module), Changed::No);
  for (const hlo::Instruction& i : module->entry()->instructions())
    EXPECT_EQ(i.control_predecessors().size(), i.name() == "b" || i.name() == "w" ? 1u : 0u) << i.name();
}

TEST(ExpandAsync, WorksAtTheStart) {
  expect_law(R"(HloModule m
f { a = f32[3] parameter(0)
 b = f32[3] parameter(1)
 ROOT m = f32[3] multiply(a, b) }
ENTRY e { x = f32[3] parameter(0)
 y = f32[3] parameter(1)
 s = ((f32[3], f32[3]), f32[3], u32[], token[]) async-start(x, y), calls=f, async_execution_thread="pool"
 u = ((f32[3], f32[3]), f32[3], u32[], token[]) async-update(s)
 z = f32[3] negate(y)
 d = f32[3] async-done(u)
 ROOT r = f32[3] subtract(d, z) })",
             hlo::Opcode::AsyncStart);
}

TEST(ExpandAsync, CopiesIntoTheLayoutAndSpace) {
  const auto module = parse(entry(R"(p = f32[2,3] parameter(0)
s = (f32[2,3]{0,1:S(5)}, f32[2,3], u32[]) copy-start(p)
ROOT r = f32[2,3]{0,1:S(5)} copy-done(s))"));
  ASSERT_TRUE(module);
  testing::run("expand-async", *module);
  testing::run("simplify-tuples", *module);
  testing::run("remove-dead", *module);
  EXPECT_EQ(testing::body(*module), "p = f32[2,3] parameter(0)\nROOT s.1 = f32[2,3] copy(p)\n");
  EXPECT_EQ(module->entry()->root()->shape().layout().memory_space(), 5);
}

// Two results in another layout than the expansion's are copied into it.
TEST(Expand, KeepsTheLayoutOfTheResult) {
  const auto module = parse(R"(HloModule m, is_scheduled=true
ENTRY e { x = f32[4,3]{0,1} parameter(0)
 s = f32[3]{0} parameter(1)
 ROOT r = (f32[4,3]{0,1}, f32[3]{0}, f32[3]{0}) batch-norm-training(x, s, s), epsilon=0.1, feature_index=1 })");
  ASSERT_TRUE(module);
  testing::run("expand-batch-norm", *module);
  EXPECT_EQ(to_string(module->entry()->root()->shape()), "(f32[4,3]{0,1}, f32[3]{0}, f32[3]{0})");
}

// --- Fusions of other compilers --------------------------------------------------------------------------------------

std::string fused(const std::string& result, const std::string& body) {
  return std::string("HloModule m, is_scheduled=true\nless { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = pred[] "
         "compare(a, b), direction=LT }\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\n"
         "f { p = f32[4,4] parameter(0)\n q = f32[4,4] parameter(1)\n") +
         (body.find("one") != std::string::npos ? "one = s32[] constant(1)\n" : "") +
         (body.find(", z)") != std::string::npos ? "z = f32[] constant(0)\n" : "") + body + " }\nENTRY e { x = f32[4,4] parameter(0)\n y = f32[4,4] parameter(1)\n ROOT r = " + result +
         " fusion(x, y), kind=kLoop, calls=f }\n";
}

bool stays(const std::string& result, const std::string& body) {
  const std::string text = fused(result, body);
  SCOPED_TRACE(text);
  const auto before = parse(text), after = parse(text);
  testing::run("open-fusions", *after);
  EXPECT_EQ(testing::run("open-fusions", *after), Changed::No);
  std::mt19937 random(1);
  const Shape shape = Shape::array(DType::F32, {4, 4});
  const std::vector<hlo::Literal> arguments = {random_literal(shape, random), random_literal(shape, random)};
  expect_same(*before, *after, arguments, arrays::Tolerance::exact());
  return has_opcode(*after, hlo::Opcode::Fusion);
}

TEST(OpenFusions, KeepsWhatIsOneKernel) {
  EXPECT_TRUE(stays("f32[4,4]", "s = f32[4,4] add(p, q)\nROOT n = f32[4,4] negate(s)"));
  EXPECT_TRUE(stays("(f32[4], f32[4,4])", "s = f32[4,4] add(p, q)\nd = f32[4] reduce(s, z), dimensions={1}, to_apply=sum\n"
                                          "ROOT t = (f32[4], f32[4,4]) tuple(d, s)"));
  EXPECT_TRUE(stays("f32[4,4]", "u = f32[2,2] slice(q), slice={[0:2], [0:2]}\n"
                                "ROOT n = f32[4,4] dynamic-update-slice(p, u, one, one)"));
  EXPECT_TRUE(stays("f32[4,4]", "ROOT d = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}"));
}

TEST(OpenFusions, OpensWhatIsNot) {
  // A reduce whose elements are read often.
  EXPECT_FALSE(stays("f32[4,4]", "d = f32[4] reduce(p, z), dimensions={1}, to_apply=sum\n"
                                 "b = f32[4,4] broadcast(d), dimensions={0}\nROOT t = f32[4,4] divide(q, b)"));
  // What is updated is computed first.
  EXPECT_FALSE(stays("f32[4,4]", "n = f32[4,4] negate(p)\nu = f32[2,2] slice(q), slice={[0:2], [0:2]}\n"
                                 "ROOT w = f32[4,4] dynamic-update-slice(n, u, one, one)"));
  // What is updated is read at other places.
  EXPECT_FALSE(stays("f32[4,4]", "s = f32[4,4] add(p, q)\nu = f32[2,2] slice(s), slice={[0:2], [0:2]}\n"
                                 "ROOT w = f32[4,4] dynamic-update-slice(p, u, one, one)"));
  EXPECT_FALSE(stays("f32[4,4]", "s = f32[4,4] add(p, q)\nROOT o = f32[4,4] sort(s), dimensions={1}, to_apply=less"));
  EXPECT_FALSE(stays("f32[4,4]", "d = f32[4,4] dot(p, q), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
                                 "ROOT n = f32[4,4] negate(d)"));
}

TEST(ExpandStructure, ForwardsDomainsAndNumbersTheOneDevice) {
  expect_law(entry("p = f32[2] parameter(0)\nd = f32[2] domain(p), domain={kind=\"sharding\", entry={maximal device=0}, "
                   "exit={maximal device=0}}\ni = u32[] replica-id()\nj = u32[] partition-id()\n"
                   "ROOT r = (f32[2], u32[], u32[]) tuple(d, i, j)"),
             hlo::Opcode::ReplicaId);
  const auto several = parse("HloModule m, replica_count=2\nENTRY e { ROOT i = u32[] replica-id() }");
  ASSERT_TRUE(several);
  EXPECT_EQ(testing::run("expand-structure", *several), Changed::No);
}

}  // namespace
}  // namespace hloom::passes

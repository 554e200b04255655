// Random bits of every algorithm, type and shape: compiled programs give what the interpreter gives, block by block.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>

#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "run_compiled.h"

namespace hloom {
namespace {

void expect_as_interpreted(const std::string& text) {
  SCOPED_TRACE(text);
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  std::mt19937_64 random(text.size());
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : (*module)->entry()->parameters()) {
    arguments.emplace_back(p->shape());
    for (std::byte& b : arguments.back().mutable_bytes()) b = static_cast<std::byte>(random());
    // The counter's low word is about to run over.
    const std::uint64_t counter = ~std::uint64_t{0} - 3;
    std::memcpy(&arguments.back().mutable_bytes()[8], &counter, 8);
  }
  const auto want = interp::interpret(**module, arguments);
  ASSERT_TRUE(want) << want.error().message();
  for (const int threads : {1, 3}) {
    auto again = compiler::read_program(text);
    const std::vector<hlo::Literal> got = run_compiled(std::move(*again), arguments, threads);
    ASSERT_FALSE(got.empty());
    for (std::size_t k = 0; k < got.size(); ++k) {
      const hlo::Literal& leaf = want->shape().is_tuple() ? want->elements()[k] : *want;
      EXPECT_TRUE(std::ranges::equal(got[k].bytes(), leaf.bytes())) << "leaf " << k;
    }
  }
}

struct Algorithm {
  const char *name, *state;
};
constexpr Algorithm kAlgorithms[] = {
    {"rng_three_fry", "u64[2]"}, {"rng_philox", "u64[3]"}, {"rng_philox", "u64[2]"}, {"rng_default", "u64[2]"}};
constexpr const char* kShapes[] = {"[]",     "[1]",    "[2]",     "[3]",   "[4]",     "[5]",     "[63]",      "[64]",   "[1001]", "[4096]",
                                   "[3,5]",  "[6,7]",  "[7,6]",   "[8,3]", "[33,34]", "[5,7,9]", "[2,3,4,5]", "[0,4]",  "[70001]", "[300,301]"};

std::string program(const Algorithm& a, const std::string& bits) {
  return std::string("ENTRY e { p = ") + a.state + " parameter(0)\n ROOT r = (" + a.state + ", " + bits + ") rng-bit-generator(p), algorithm=" + a.name + " }";
}

TEST(CompiledRandom, BitsOfEveryTypeAndShape) {
  for (const Algorithm& a : kAlgorithms)
    for (const char* shape : kShapes)
      for (const char* type : {"u32", "u64"}) expect_as_interpreted(program(a, std::string(type) + shape));
  for (const Algorithm& a : kAlgorithms)
    for (const char* shape : {"[1001]", "[6,7]", "[7,6]"})
      for (const char* type : {"u8", "s16", "s32", "s64"}) expect_as_interpreted(program(a, std::string(type) + shape));
}
TEST(CompiledRandom, BitsOfEveryLayout) {
  for (const Algorithm& a : kAlgorithms)
    for (const char* layout : {"{0,1}", "{1,0}"}) {
      const std::string bits = std::string("u32[40,30]") + layout, state = std::string(a.state) + "{0}";
      expect_as_interpreted("HloModule m, entry_computation_layout={(" + state + ")->(" + state + ", " + bits + ")}\n" + program(a, "u32[40,30]"));
    }
}
TEST(CompiledRandom, NumbersMadeOfTheBitsAlongside) {
  for (const Algorithm& a : kAlgorithms)
    for (const char* shape : {"[4099]", "[64,66]", "[7,5]"}) {
      const std::string s = a.state, u = std::string("u32") + shape, f = std::string("f32") + shape;
      expect_as_interpreted("ENTRY e { p = " + s + " parameter(0)\n g = (" + s + ", " + u + ") rng-bit-generator(p), algorithm=" + a.name + "\n b = " + u +
                            " get-tuple-element(g), index=1\n n = u32[] constant(9)\n ns = " + u + " broadcast(n), dimensions={}\n m = " + u +
                            " shift-right-logical(b, ns)\n o = u32[] constant(1065353216)\n os = " + u + " broadcast(o), dimensions={}\n x = " + u +
                            " or(m, os)\n y = " + f + " bitcast-convert(x)\n ROOT r = " + f + " negate(y) }");
    }
}

}  // namespace
}  // namespace hloom

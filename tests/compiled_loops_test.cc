// Loops that carry arrays: right values however many steps there are, and a step moves as many bytes whatever the size
// of the arrays.

#include <gtest/gtest.h>

#include <algorithm>

#include "arrays/compare.h"
#include "buffers/check_assignment.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "literals.h"
#include "loops.h"
#include "traffic.h"

namespace hloom {
namespace {

using loops::Loop;

std::unique_ptr<hlo::Module> read(const Loop& loop) {
  auto module = compiler::read_program(loop.text);
  EXPECT_TRUE(module) << module.error().message() << loop.text;
  return module ? *std::move(module) : nullptr;
}

compiler::Compiled compile(const Loop& loop, bool regions, bool generate_code) {
  compiler::Options options;
  options.regions = regions;
  options.generate_code = generate_code;
  auto compiled = compiler::compile(read(loop), options);
  EXPECT_TRUE(compiled) << loop.name << ": " << compiled.error().message();
  if (!compiled) std::abort();
  return *std::move(compiled);
}

const hlo::Instruction& loop_of(const compiler::Compiled& c) {
  for (const hlo::Instruction& i : c.module->entry()->instructions())
    if (i.opcode() == hlo::Opcode::While) return i;
  ADD_FAILURE() << "no loop";
  std::abort();
}

// --- Values --------------------------------------------------------------------------------------------------------

void expect_values(const Loop& loop, std::int64_t steps, bool known_steps) {
  SCOPED_TRACE(loop.name + " for " + std::to_string(steps) + " steps");
  const auto module = read(loop);
  std::vector<hlo::Literal> arguments;
  for (const Shape& shape : compiler::parameter_leaves(*module))
    arguments.push_back(tests::numbered(shape, std::ssize(arguments)));
  if (!known_steps) arguments.back().mutable_data<std::int32_t>()[0] = static_cast<std::int32_t>(steps);
  const auto want = interp::interpret(*module, compiler::arguments_of(*module, arguments));
  ASSERT_TRUE(want) << want.error().message();
  std::vector<hlo::Literal> leaves;
  for (const hlo::Literal* leaf : hlo::leaves(*want)) leaves.push_back(*leaf);
  for (const bool regions : {true, false}) {
    compiler::Compiled c = compile(loop, regions, true);
    EXPECT_EQ(buffers::check_assignment(c.assignment), std::vector<std::string>());
    const auto parameters = compiler::parameter_leaves(*c.module), results = compiler::result_leaves(*c.module);
    const auto executor = runtime::Executor::create(std::move(c.program));
    ASSERT_TRUE(executor) << executor.error().message();
    const auto got = compiler::execute_literals(**executor, parameters, results, arguments);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(arrays::compare_results(*got, leaves, std::vector{arrays::Tolerance::exact()}), std::nullopt);
  }
}

class Loops : public testing::TestWithParam<std::size_t> {};

TEST_P(Loops, GiveTheInterpretersValues) {
  for (const bool known_steps : {true, false})
    for (const std::int64_t steps : known_steps ? std::vector<std::int64_t>{4, 5, 12} : std::vector<std::int64_t>{0, 1, 2, 3, 4, 7})
      expect_values(loops::loops(1024, steps, known_steps)[GetParam()], steps, known_steps);
  // Arrays too large to be copied by one thread inside a region, where the steps do not fill the last round.
  for (const std::int64_t steps : {0, 1, 2, 7}) expect_values(loops::loops(40'000, steps, false)[GetParam()], steps, false);
}

// --- Bytes ---------------------------------------------------------------------------------------------------------

traffic::Bytes bytes_a_round(const Loop& loop) {
  const compiler::Compiled c = compile(loop, false, false);
  return traffic::of(c, *loop_of(c).body());
}

// Invariant 9 of the memory pipeline: time per loop iteration is independent of the size of arrays that are only
// carried or window-updated.
TEST_P(Loops, MoveAsManyBytesAStepWhateverTheSize) {
  for (const bool known_steps : {true, false}) {
    const Loop small = loops::loops(1024, 12, known_steps)[GetParam()],
               large = loops::loops(1 << 20, 12, known_steps)[GetParam()];
    const traffic::Bytes of_small = bytes_a_round(small), of_large = bytes_a_round(large);
    EXPECT_LT(of_large.copies, 1000) << large.name;
    EXPECT_EQ(of_small.copies, of_large.copies) << large.name;
    if (!large.changes_all) {
      EXPECT_EQ(of_small.kernels, of_large.kernels) << large.name;
      continue;
    }
    // A step that computes an array reads it twice and writes it once.
    const std::int64_t steps = traffic::steps_a_round(loop_of(compile(large, false, false)));
    EXPECT_LT(of_large.kernels, steps * ((12 << 20) + 1000)) << large.name;
  }
}

std::string name_of(const testing::TestParamInfo<std::size_t>& info) { return loops::loops(64, 1, true)[info.param].name; }

INSTANTIATE_TEST_SUITE_P(All, Loops, testing::Range<std::size_t>(0, loops::loops(64, 1, true).size()), name_of);

}  // namespace
}  // namespace hloom

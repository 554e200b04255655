// Invariant 4 of the memory pipeline: what a step writes stays inside its results. Faults are planted in plans, programs
// and kernels; runs that are checked name the step that does wrong, and find nothing where nothing is.
#include "compiler/checked_run.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "compiler/build_program.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;
using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// Three kernels, for dots are kernels of their own: both products are there when the third reads them.
constexpr const char* kProducts = R"(HloModule products
ENTRY main {
  x = f32[16,16] parameter(0)
  y = f32[16,16] parameter(1)
  a = f32[16,16] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}, metadata={op_name="a" source_file="model.py" source_line=7}
  b = f32[16,16] dot(y, x), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  ROOT c = f32[16,16] dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
})";

// A window of the array is negated in each of four rounds.
constexpr const char* kWindow = R"(HloModule window, input_output_alias={ {}: (0, {}, may-alias) }
cond { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  n = s32[] constant(4)
  ROOT c = pred[] compare(i, n), direction=LT }
body { s = (s32[], f32[64]) parameter(0)
  i = s32[] get-tuple-element(s), index=0
  x = f32[64] get-tuple-element(s), index=1
  eight = s32[] constant(8)
  at = s32[] multiply(i, eight)
  v = f32[8] dynamic-slice(x, at), dynamic_slice_sizes={8}
  w = f32[8] negate(v)
  y = f32[64] dynamic-update-slice(x, w, at)
  k = s32[] constant(1)
  j = s32[] add(i, k)
  ROOT t = (s32[], f32[64]) tuple(j, y) }
ENTRY main {
  x = f32[64] parameter(0)
  z = s32[] constant(0)
  init = (s32[], f32[64]) tuple(z, x)
  w = (s32[], f32[64]) while(init), condition=cond, body=body
  ROOT r = f32[64] get-tuple-element(w), index=1
})";

constexpr const char* kScatter = R"(HloModule scattered, input_output_alias={ {}: (0, {}, may-alias) }
sum { l = f32[] parameter(0)
  m = f32[] parameter(1)
  ROOT o = f32[] add(l, m) }
ENTRY main {
  x = f32[64,4] parameter(0)
  at = s32[3,1] parameter(1)
  u = f32[3,4] parameter(2)
  ROOT y = f32[64,4] scatter(x, at, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=sum
})";

// The parameter is returned: it has to be copied.
constexpr const char* kReturned = R"(HloModule returned
ENTRY main {
  x = f32[100] parameter(0)
  n = f32[100] negate(x)
  ROOT t = (f32[100], f32[100]) tuple(x, n)
})";

Literal floats(std::vector<std::int64_t> dims) {
  Literal literal(Shape::array(DType::F32, std::move(dims)));
  float value = 1;
  for (float& x : literal.mutable_data<float>()) x = value += 0.5F;
  return literal;
}

std::vector<Literal> products() { return {floats({16, 16}), floats({16, 16})}; }

std::vector<Literal> scattered() {
  Literal at(Shape::array(DType::S32, {3, 1}));
  at.mutable_data<std::int32_t>()[1] = 7;
  at.mutable_data<std::int32_t>()[2] = 9;
  return {floats({64, 4}), at, floats({3, 4})};
}

/// What is done wrong, and whether kernels look at their indices.
struct Fault {
  std::function<void(Compiled&)> in_plan = nullptr, in_program = nullptr;
  std::function<void(std::vector<kernels::Kernel>&)> in_kernels = nullptr;
  bool check_bounds = false;
};

Expected<Compiled> compile_with(std::string_view text, const Fault& fault) {
  Options options;
  options.check_memory = true;
  options.check_bounds = fault.check_bounds;
  options.change_kernels = fault.in_kernels;
  options.generate_code = fault.in_plan == nullptr;
  auto compiled = compile(*read_program(text), options);
  if (!compiled || fault.in_plan == nullptr) return compiled;
  // What follows the plan is made anew of the wrong one.
  fault.in_plan(*compiled);
  compiled->kernels.clear();
  compiled->step_instructions.clear();
  compiled->program = {};
  if (auto built = build_program(*compiled, options, nullptr, [](const kernels::Kernel&) {}); !built) return built.error();
  compiled->code = *jit::compile(compiled->kernels);
  if (auto linked = link_program(*compiled); !linked) return linked.error();
  return compiled;
}

struct Outcome {
  std::vector<Literal> results;
  std::string error;
};

Outcome run(std::string_view text, const std::vector<Literal>& arguments, const Fault& fault = {}) {
  auto compiled = compile_with(text, fault);
  if (!compiled) return {{}, "compile: " + compiled.error().message()};
  const std::vector<Shape> parameters = parameter_leaves(*compiled->module), results = result_leaves(*compiled->module);
  if (fault.in_program) fault.in_program(*compiled);
  const auto executor = make_executor(*std::move(compiled));
  if (!executor) return {{}, executor.error().message()};
  static runtime::ThreadPool pool(2);
  auto values = execute_literals(**executor, parameters, results, arguments, pool);
  if (!values) return {{}, values.error().message()};
  return {*std::move(values), ""};
}

// The step of the n-th kernel from 0.
runtime::Call& call(Compiled& c, std::size_t n) {
  std::vector<runtime::Call*> calls;
  for (runtime::Step& step : c.program.steps)
    if (auto* one = std::get_if<runtime::Call>(&step.of)) calls.push_back(one);
  return *calls.at(n);
}

const Instruction& kernel(const Compiled& c, std::size_t n) {
  for (const Instruction& i : c.module->entry()->instructions())
    if (i.opcode() == Opcode::Fusion && n-- == 0) return i;
  std::abort();
}

// Moves what the kernel's accesses touch, loads or stores.
template <typename Access>
void shift(kernels::Block& block, std::int64_t by) {
  for (kernels::Statement& s : block) {
    if (auto* access = std::get_if<Access>(&s.of)) access->index = access->index + by;
    if (auto* loop = std::get_if<kernels::Loop>(&s.of)) shift<Access>(loop->body, by);
    if (auto* choice = std::get_if<kernels::If>(&s.of))
      for (kernels::Block& branch : choice->branches) shift<Access>(branch, by);
  }
}

// In the kernels whose name begins so.
template <typename Access>
std::function<void(std::vector<kernels::Kernel>&)> shifted(std::int64_t by, const std::string& name = "") {
  return [by, name](std::vector<kernels::Kernel>& all) {
    for (kernels::Kernel& k : all)
      if (k.name.starts_with(name)) shift<Access>(k.body, by);
  };
}

TEST(CheckedRun, FindsNothingWhereNothingIs) {
  struct Case {
    const char* text;
    std::vector<Literal> arguments;
  };
  for (const Case& c : {Case{kProducts, products()}, {kWindow, {floats({64})}}, {kScatter, scattered()},
                        {kReturned, {floats({100})}}}) {
    for (const bool check_bounds : {false, true}) {
      const Outcome checked = run(c.text, c.arguments, {.check_bounds = check_bounds});
      EXPECT_EQ(checked.error, "");
      auto compiled = compile(*read_program(c.text));
      const auto parameters = parameter_leaves(*compiled->module), results = result_leaves(*compiled->module);
      const auto plain = execute_literals(**make_executor(*std::move(compiled)), parameters, results, c.arguments);
      ASSERT_EQ(checked.results.size(), plain->size());
      for (std::size_t n = 0; n < plain->size(); ++n)
        EXPECT_TRUE(std::ranges::equal(checked.results[n].bytes(), (*plain)[n].bytes()));
    }
  }
}

// --- Plans and programs --------------------------------------------------------------------------------------------

TEST(CheckedRun, FindsTwoValuesInOnePlace) {
  Fault fault;
  fault.in_plan = [](Compiled& c) {
    c.assignment.set_slice(kernel(c, 1), 0, c.assignment.slice(kernel(c, 0)));
  };
  EXPECT_THAT(run(kProducts, products(), fault).error,
              AllOf(HasSubstr(": reads "), HasSubstr(" in the arena, bytes "), HasSubstr("which holds ")));
}

TEST(CheckedRun, FindsAValueInPartOverAnother) {
  Fault fault;
  fault.in_plan = [](Compiled& c) {
    buffers::Slice half = c.assignment.slice(kernel(c, 0));
    half.offset += half.offset >= 64 ? -64 : 64;
    c.assignment.set_slice(kernel(c, 1), 0, half);
  };
  EXPECT_THAT(run(kProducts, products(), fault).error, AllOf(HasSubstr(": reads "), HasSubstr("which holds ")));
}

TEST(CheckedRun, FindsAStepWithAnotherPlace) {
  Fault fault;
  fault.in_program = [](Compiled& c) { call(c, 2).arguments[0].offset += 64; };
  EXPECT_THAT(run(kProducts, products(), fault).error,
              AllOf(HasSubstr(": argument 0 is bytes "), HasSubstr("none of its operands or results lies")));
}

TEST(CheckedRun, FindsACopyThatIsNotMade) {
  Fault fault;
  fault.in_program = [](Compiled& c) {
    for (std::size_t n = 0; n < c.program.steps.size(); ++n)
      if (std::holds_alternative<runtime::Copy>(c.program.steps[n].of)) {
        c.program.steps.erase(c.program.steps.begin() + static_cast<std::ptrdiff_t>(n));
        c.step_instructions.erase(c.step_instructions.begin() + static_cast<std::ptrdiff_t>(n));
        return;
      }
    ADD_FAILURE() << "no copy";
  };
  EXPECT_THAT(run(kReturned, {floats({100})}, fault).error,
              AllOf(StartsWith("copy"), HasSubstr("byte 0 of its result in result 0, bytes 0 to 400 is not written")));
}

TEST(CheckedRun, FindsStepsInAnotherOrder) {
  Fault fault;
  fault.in_program = [](Compiled& c) {
    std::swap(c.program.steps[1], c.program.steps[2]);
    std::swap(c.step_instructions[1], c.step_instructions[2]);
  };
  EXPECT_THAT(run(kProducts, products(), fault).error, HasSubstr("runs it before what stands in front of it"));
}

// --- Kernels and routines ------------------------------------------------------------------------------------------

constexpr const char* kNegate = R"(HloModule negate
ENTRY main {
  x = f32[100] parameter(0)
  ROOT n = f32[100] negate(x), metadata={op_name="n" source_file="model.py" source_line=3}
})";

TEST(CheckedRun, KernelsNameTheElementThatIsNot) {
  const Outcome stored = run(kNegate, {floats({100})}, {.in_kernels = shifted<kernels::Store>(1), .check_bounds = true});
  EXPECT_THAT(stored.error, AllOf(HasSubstr("(model.py:3 (n)): stores to "), HasSubstr("100 elements of f32 (argument 1)"),
                                  HasSubstr("there is no element 100")));
  const Outcome loaded = run(kNegate, {floats({100})}, {.in_kernels = shifted<kernels::Load>(-1), .check_bounds = true});
  EXPECT_THAT(loaded.error, AllOf(HasSubstr(": loads from "), HasSubstr("there is no element -1")));
}

TEST(CheckedRun, FindsAWriteBehindAResult) {
  const Outcome found = run(kNegate, {floats({100})}, {.in_kernels = shifted<kernels::Store>(1)});
  EXPECT_THAT(found.error, AllOf(HasSubstr("(model.py:3 (n)): writes byte 40"), HasSubstr("of result 0, bytes 0 to 400"),
                                 HasSubstr("where nothing lies"), HasSubstr("none of its results")));
}

TEST(CheckedRun, FindsAReadBehindAnOperand) {
  const Outcome found = run(kNegate, {floats({100})}, {.in_kernels = shifted<kernels::Load>(1)});
  EXPECT_THAT(found.error, AllOf(HasSubstr("byte 39"), HasSubstr("of its result in result 0"),
                                 HasSubstr("depends on memory that holds nothing")));
}

TEST(CheckedRun, FindsWhatIsNotWritten) {
  Fault fault;
  fault.in_kernels = [](std::vector<kernels::Kernel>& all) {
    for (kernels::Kernel& k : all) k.blocks = 0;
  };
  fault.in_program = [](Compiled& c) { call(c, 0).blocks = 0; };
  EXPECT_THAT(run(kNegate, {floats({100})}, fault).error, HasSubstr("byte 0 of its result in result 0, bytes 0 to 400 is not written"));
}

TEST(CheckedRun, FindsAWriteOutsideOfTheWindow) {
  for (const bool check_bounds : {false, true}) {
    const Outcome found =
        run(kWindow, {floats({64})}, {.in_kernels = shifted<kernels::Store>(4, "y"), .check_bounds = check_bounds});
    EXPECT_THAT(found.error, AllOf(HasSubstr("iteration 0 of "), HasSubstr("writes byte "),
                                   HasSubstr("outside of the window that it updates")));
  }
}

TEST(CheckedRun, FindsAWriteOutsideOfTheWindowsOfAScatter) {
  const Outcome found = run(kScatter, scattered(), {.in_kernels = shifted<kernels::Store>(8)});
  EXPECT_THAT(found.error, AllOf(HasSubstr("writes byte "), HasSubstr("outside of the window that it updates")));
}

// A routine is not compiled: it may write anywhere.
void write_far(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  if (begin >= end) return;
  std::memset(buffers[2], 0, 16 * 16 * 4);
  static_cast<char*>(buffers[0])[100] ^= 1;  // an operand
}

TEST(CheckedRun, FindsAWriteFarAway) {
  Fault fault;
  fault.in_program = [](Compiled& c) { call(c, 0).function = write_far; };
  EXPECT_THAT(run(kProducts, products(), fault).error,
              AllOf(HasSubstr("(model.py:7 (a)): writes byte 100 of parameter 0"), HasSubstr("where x lies")));
}

// --- The public door -----------------------------------------------------------------------------------------------

TEST(CheckedRun, IsAnOptionOfExecutables) {
  CompileOptions options;
  options.debug_memory = true;
  const auto program = Executable::compile(kWindow, options);
  ASSERT_TRUE(program) << program.error().message();
  std::vector<float> in(64, 1), out(64);
  const std::span<std::byte> inputs[] = {std::as_writable_bytes(std::span(in))};
  const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(out))};
  for (int i = 0; i < 2; ++i) {
    const auto done = program->run(inputs, outputs);
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(out[0], -1);
    EXPECT_EQ(out[31], -1);
    EXPECT_EQ(out[32], 1);
  }
}

}  // namespace
}  // namespace hloom::compiler

// Code for a named processor: cut for its registers, refused where it cannot run, with the values of any other.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <sstream>

#include "base/try.h"
#include "compiler/check.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "jit/compile.h"

namespace hloom::compiler {
namespace {

using hlo::Literal;
using testing::HasSubstr;

std::string array(const char* type, std::vector<std::int64_t> dims) {
  std::string text = std::string(type) + "[";
  for (std::size_t i = 0; i < dims.size(); ++i) text += (i == 0 ? "" : ",") + std::to_string(dims[i]);
  return text + "]";
}

std::string dot(std::int64_t m, std::int64_t k, std::int64_t n, const char* type = "f32") {
  const std::string result = array(type, {m, n});
  return "HloModule dot\nENTRY e { a = " + array(type, {m, k}) + " parameter(0)\n  b = " + array(type, {k, n}) +
         " parameter(1)\n  d = " + result +
         " dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n  ROOT t = " + result + " negate(d) }\n";
}

Compiled compile_for(const std::string& text, const std::string& cpu, bool regions, bool generate_code) {
  Options options;
  options.cpu = cpu;
  options.regions = regions;
  options.generate_code = generate_code;
  auto compiled = compile(*read_program(text), options);
  EXPECT_TRUE(compiled) << compiled.error().message();
  return *std::move(compiled);
}

// How often haswell's code has vectors on the stack, for want of registers, in its innermost loops.
int spills(const std::string& text, const std::string& planned_for, bool regions) {
  const Compiled compiled = compile_for(text, planned_for, regions, false);
  std::istringstream lines(*jit::show_asm(compiled.kernels, {.cpu = "haswell"}));
  int count = 0, since_label = 0;
  std::string label;
  for (std::string line; std::getline(lines, line);) {
    EXPECT_EQ(line.find("zmm"), std::string::npos) << line;
    if (line.starts_with(".LBB")) {
      label = line.substr(0, line.find(':'));
      since_label = 0;
    }
    const bool stack = line.find("(%rsp)") != std::string::npos || line.find("(%rbp)") != std::string::npos;
    if (stack && line.find("ymm") != std::string::npos) ++since_label;
    if (line.starts_with("\tj") && line.ends_with("\t" + label)) count += since_label;  // back to its own start
  }
  return count;
}

bool is_x86() { return jit::host_target().triple.starts_with("x86_64"); }

TEST(Target, TilesFitTheRegistersOfANamedProcessor) {
  if (!is_x86()) GTEST_SKIP() << "names of x86 registers";
  const std::tuple<std::int64_t, std::int64_t, std::int64_t> shapes[] = {
      {64, 64, 64}, {100, 70, 30}, {7, 300, 200}, {33, 40, 500}, {13, 17, 19}};
  for (const auto& [m, k, n] : shapes)
    for (const char* type : {"f32", "f64"})
      for (const bool regions : {false, true})
        EXPECT_EQ(spills(dot(m, k, n, type), "haswell", regions), 0) << m << "x" << k << "x" << n << " " << type;
  EXPECT_GT(spills(dot(64, 64, 64), "skylake-avx512", false), 0) << "tiles for 32 registers of 64 bytes";
  EXPECT_GT(spills(dot(64, 64, 64), "skylake-avx512", true), 0);
}

std::vector<Literal> operands(const hlo::Module& module) {
  std::mt19937 random(11);
  std::vector<Literal> result;
  for (const Shape& shape : parameter_leaves(module)) {
    result.emplace_back(shape);
    for (float& f : result.back().mutable_data<float>()) f = std::uniform_real_distribution<float>(-1, 1)(random);
  }
  return result;
}

std::vector<Literal> run_on(const std::string& text, const std::string& cpu) {
  Compiled compiled = compile_for(text, cpu, true, true);
  const std::vector<Shape> parameters = parameter_leaves(*compiled.module), results = result_leaves(*compiled.module);
  const std::vector<Literal> arguments = operands(*compiled.module);
  const auto executor = *runtime::Executor::create(std::move(compiled.program));
  runtime::ThreadPool pool(2);
  return *execute_literals(*executor, parameters, results, arguments, pool);
}

TEST(Target, ProcessorsAgreeToTheBit) {
  if (!is_x86() || !jit::check_runs_here(*jit::target_named("haswell"))) GTEST_SKIP() << "needs AVX2";
  for (const auto& [m, k, n] : {std::tuple(64, 64, 64), std::tuple(1, 300, 200), std::tuple(50, 300, 1),
                                std::tuple(33, 500, 40), std::tuple(13, 17, 19)}) {
    const std::string text = dot(m, k, n);
    const std::vector<Literal> here = run_on(text, "");
    for (const std::string cpu : {"haswell", "x86-64"}) EXPECT_TRUE(run_on(text, cpu) == here) << cpu << " " << m;
    auto module = *read_program(text);
    const std::vector<Literal> arguments = operands(*module);
    CheckOptions options;
    options.compile.cpu = "haswell";
    const auto report = check(std::move(module), arguments, options);
    ASSERT_TRUE(report) << report.error().message();
    EXPECT_TRUE(report->differences.empty()) << to_string(report->differences[0]);
  }
}

TEST(Target, CodeThatCannotRunHereNamesWhatIsMissing) {
  if (!is_x86()) GTEST_SKIP() << "names of x86 processors";
  const auto foreign = jit::check_runs_here(*jit::target_named("diamondrapids"));
  if (foreign) GTEST_SKIP() << "a machine that has all of this";
  const auto program = Executable::compile(dot(4, 4, 4), {.cpu = "diamondrapids"});
  ASSERT_FALSE(program);
  EXPECT_EQ(program.error().code(), Code::FailedPrecondition);
  EXPECT_EQ(program.error().message(), foreign.error().message());
  EXPECT_THAT(foreign.error().message(), testing::ContainsRegex("code for diamondrapids needs .*amx-avx512"));
  EXPECT_TRUE(jit::check_runs_here(jit::host_target()));
  EXPECT_EQ(Executable::compile(dot(4, 4, 4), {.cpu = "pentium-9"}).error().code(), Code::InvalidArgument);
}

}  // namespace
}  // namespace hloom::compiler

// Kernels that check their accesses: they do what they do without, and report what the evaluator calls out of range,
// before anything outside of an argument is touched.
#include <gtest/gtest.h>

#include "base/run_status.h"
#include "emit/test_memory.h"

namespace hloom::emit {
namespace {

using kernels::Kernel;

// y[d·i + e] = a[c·i + o] for i in 0..n in every form of access: one after the other, by lanes, under a mask, through
// indices that are loaded; with the smallest arguments that do.
struct Form {
  std::string type;
  int lanes;
  std::int64_t n, load_stride, store_stride;
  bool masked, indexed;
};

std::string affine(std::int64_t stride, std::int64_t n) {
  return std::to_string(stride) + "*i + " + std::to_string(stride < 0 ? -stride * (n - 1) : 0);
}

std::string size_of(std::int64_t stride, std::int64_t n) { return std::to_string(std::abs(stride) * (n - 1) + 1); }

Kernel kernel_of(const Form& f) {
  static int count = 0;
  const std::string n = std::to_string(f.n), mask = f.masked ? " where p" : "";
  // Loaded indices lie below the test memory's bound for S64.
  const std::string a_size = f.indexed ? "64" : size_of(f.load_stride, f.n);
  const std::string from = f.indexed ? "k" : affine(f.load_stride, f.n);
  const std::string text =
      "kernel form." + std::to_string(count++) + "(a: " + f.type + "[" + a_size + "], m: pred[" + n + "], x: s64[" + n +
      "]) -> (y: " + f.type + "[" + size_of(f.store_stride, f.n) + "]) checked { for i in 0.." + n +
      (f.lanes > 0 ? " by " + std::to_string(f.lanes) : "") + " { p = load pred m[i] k = load s64 x[i] v = load " +
      f.type + " a[" + from + "]" + mask + " store y[" + affine(f.store_stride, f.n) + "], v" + mask + " } }";
  return *kernels::parse(text);
}

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const char* type : {"pred", "f32", "c64"})
    for (const int lanes : {0, 4, 16})
      for (const std::int64_t n : {1, 16, 21})
        for (const std::int64_t stride : {-3, -1, 1, 2, 5})
          for (const bool masked : {false, true})
            for (const bool indexed : {false, true})
              if (!indexed || stride == 1) all.push_back({type, lanes, n, stride, stride == 5 ? 1 : stride, masked, indexed});
  return all;
}

struct Outcome {
  std::string difference, report;
};

// The compiled kernel against the evaluator, as far as that comes.
Outcome run(const Kernel& kernel, base::KernelFunction function, unsigned seed) {
  TestMemory expected(kernel, seed), got(kernel, seed);
  base::RunStatus status;
  std::vector<void*> pointers = got.pointers();
  pointers.push_back(&status);
  function(pointers.data(), 0, kernel.blocks, got.scratch());
  const Expected<> done = kernels::evaluate(kernel, expected.pointers().data(), 0, kernel.blocks, expected.scratch());
  EXPECT_EQ(done.has_value(), !base::has_failed(status)) << kernels::print(kernel);
  if (!base::has_failed(status)) return {expected.difference(got, false), ""};
  // What stands around the arguments is as it was.
  TestMemory before(kernel, seed);
  return {got.fences_differ(before) ? "a fence was written" : "", base::take_failure(status, kernel.name).message()};
}

std::vector<base::KernelFunction> compile(const std::vector<Kernel>& kernels, std::shared_ptr<jit::Code>& code) {
  code = *jit::compile(kernels, {.threads = 2});
  std::vector<base::KernelFunction> functions;
  for (const Kernel& kernel : kernels) functions.push_back(*jit::kernel_function(*code, kernel.name));
  return functions;
}

TEST(Bounds, WhatIsInsideIsDoneAsWithoutChecks) {
  std::vector<Kernel> kernels;
  for (const Form& form : forms()) kernels.push_back(kernel_of(form));
  std::shared_ptr<jit::Code> code;
  const auto functions = compile(kernels, code);
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Outcome done = run(kernels[i], functions[i], static_cast<unsigned>(i));
    EXPECT_EQ(done.difference + done.report, "") << kernels::print(kernels[i]);
  }
}

// Each argument in turn is shorter by an element; the loops' last iterations, or those that the index says, leave it.
TEST(Bounds, WhatIsOutsideIsReportedAndNotTouched) {
  std::vector<Kernel> kernels;
  for (const Form& form : forms())
    for (const std::size_t argument : {0, 3}) {
      Kernel kernel = kernel_of(form);
      kernel.arguments[argument].num_elements -= form.indexed && argument == 0 ? 48 : 1;
      kernels.push_back(std::move(kernel));
    }
  std::shared_ptr<jit::Code> code;
  const auto functions = compile(kernels, code);
  std::size_t reports = 0;
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const Outcome done = run(kernels[i], functions[i], static_cast<unsigned>(i));
    EXPECT_EQ(done.difference, "") << kernels::print(kernels[i]);
    reports += !done.report.empty();
  }
  EXPECT_GT(reports, kernels.size() / 2);  // a mask may leave out what lies outside
}

TEST(Bounds, ReportsNameKernelArgumentAndElement) {
  const std::vector<Kernel> kernels = {
      *kernels::parse("kernel f(a: f32[8]) -> (y: f32[8]) checked { for i in 0..8 by 8 { x = load f32 a[i] store y[i + 1], x } }"),
      *kernels::parse("kernel g(a: f32[8]) -> (y: f32[8]) checked { for i in 0..8 { x = load f32 a[i - 1] store y[i], x } }"),
      *kernels::parse("kernel h(a: f32[8]) -> (y: f32[8]) scratch 32 f32 checked { x = load f32 a[0] store scratch[8], x }"),
  };
  std::shared_ptr<jit::Code> code;
  const auto functions = compile(kernels, code);
  EXPECT_EQ(run(kernels[0], functions[0], 1).report,
            "f: stores to y, 8 elements of f32 (argument 1): there is no element 8");
  EXPECT_EQ(run(kernels[1], functions[1], 1).report,
            "g: loads from a, 8 elements of f32 (argument 0): there is no element -1");
  EXPECT_EQ(run(kernels[2], functions[2], 1).report,
            "h: stores to scratch, 8 elements of f32: there is no element 8");
}

}  // namespace
}  // namespace hloom::emit

// The law of emit/: compiled code leaves the memory that the evaluator leaves, to the bit, for any split of the grid.
#include <gtest/gtest.h>

#include <cstdlib>

#include "emit/function.h"
#include "emit/random_kernel.h"
#include "emit/test_memory.h"

namespace hloom::emit {
namespace {

using kernels::Kernel;

TEST(Law, RandomKernels) {
  for (unsigned batch = 0; batch < 15; ++batch) {
    std::vector<Kernel> kernels;
    for (unsigned i = 0; i < 20; ++i) kernels.push_back(RandomKernel(20 * batch + i).draw());
    expect_laws(kernels);
    if (HasFailure()) return;
  }
}

// Processors without masks, gathers, wide vectors or fused multiply-add run the same values.
TEST(Law, RandomKernelsOnOlderProcessors) {
  if (jit::host_target().triple.find("x86_64") != 0) GTEST_SKIP() << "names of x86 processors";
  for (const std::string cpu : {"x86-64", "haswell", "skylake-avx512"}) {
    if (cpu != "x86-64" && jit::host_target().vector_bytes < jit::target_named(cpu)->vector_bytes) continue;
    std::vector<Kernel> kernels;
    for (unsigned seed = 1000; seed < 1010; ++seed) kernels.push_back(RandomKernel(seed).draw());
    expect_laws(kernels, true, -1, 0, cpu);
  }
}

// So many that their bodies are called: by lanes, with a rest, and one by one; of one operand and of two, and of complex numbers.
TEST(Law, ManyFunctions) {
  std::string text = "kernel k(a: f32[37], b: f64[37], c: c64[37], h: bf16[37]) -> (y: f32[37], z: f64[37], w: c64[37], g: bf16[37]) {\n";
  for (const int lanes : {16, 0}) {
    const std::string n = std::to_string(lanes), by = lanes == 0 ? "" : " by " + n;
    text += "  for i" + n + " in " + (lanes == 0 ? "33..37" : "0..35") + by + " {\n";
    int value = 0;
    const auto chain = [&](const std::string& from, const std::string& type, const std::string& to, const std::vector<std::string>& functions) {
      std::string last = "x" + n + std::to_string(value++);
      text += "    " + last + " = load " + type + " " + from + "[i" + n + "]\n";
      const std::string first = last;
      for (const std::string& function : functions) {
        const std::string next = "x" + n + std::to_string(value++);
        text += "    " + next + " = " + function + " " + type + " " + last + (function == "atan2" || function == "power" ? ", " + first : "") + "\n";
        last = next;
      }
      text += "    store " + to + "[i" + n + "], " + last + "\n";
    };
    chain("a", "f32", "y", {"tanh", "sine", "tanh", "atan2", "exponential"});
    chain("b", "f64", "z", {"tanh", "logistic", "power"});
    chain("c", "c64", "w", {"tanh", "sine", "tanh"});
    chain("h", "bf16", "g", {"tanh", "cosine"});
    text += "  }\n";
  }
  const std::vector<Kernel> kernels = *kernels::parse_kernels(text + "}\n");
  ASSERT_GT(count_functions(kernels[0].body), 20);
  expect_laws(kernels);
}

TEST(Law, RandomKernelsAreParsedBack) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    const Kernel kernel = RandomKernel(seed).draw();
    const std::string text = kernels::print(kernel);
    const Expected<Kernel> again = kernels::parse(text);
    ASSERT_TRUE(again) << again.error().message() << "\n" << text;
    ASSERT_EQ(kernels::print(*again), text);
  }
}

}  // namespace
}  // namespace hloom::emit

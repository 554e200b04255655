// The law of emit/: compiled code leaves the memory that the evaluator leaves, to the bit, for any split of the grid.
#include <gtest/gtest.h>

#include <cstdlib>

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

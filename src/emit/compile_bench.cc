// Time to compile a hundred kernels of about eight elementwise ops, and what they take to run.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "jit/compile.h"
#include "kernels/print.h"

namespace hloom::emit {
namespace {

using kernels::Kernel;

// y = f(a·c + b) with eight lines, in blocks; `n` makes the kernels differ.
Kernel chain(int n, const std::string& type, int lanes, bool transcendental) {
  const std::string t = type, size = std::to_string(4096 + n);
  const std::string function = transcendental ? (n % 2 ? "exponential" : "tanh") : "negate";
  return *kernels::parse("kernel k." + std::to_string(n) + "(a: " + t + "[" + size + "], b: " + t + "[" + size +
                         "]) -> (y: " + t + "[" + size + "]) blocks 2 { c = constant " + t +
                         (t == "f32" ? " 1.5" : " 0x3f80") + " for i in 0.." + size + " block 4096 by " +
                         std::to_string(lanes) + " { x = load " + t + " a[i] z = load " + t + " b[i] p = multiply " +
                         t + " x, c s = add " + t + " p, z e = " + function + " " + t + " s q = subtract " + t +
                         " e, x m = multiply " + t + " q, s r = add " + t + " m, c store y[i], r } }");
}

std::vector<Kernel> hundred(const std::string& type, int lanes, bool transcendental) {
  std::vector<Kernel> kernels;
  for (int n = 0; n < 100; ++n) kernels.push_back(chain(n, type, lanes, transcendental));
  return kernels;
}

void compile(benchmark::State& state, const char* type, bool transcendental) {
  const std::vector<Kernel> kernels = hundred(type, static_cast<int>(state.range(0)), transcendental);
  for (auto _ : state) benchmark::DoNotOptimize(*jit::compile(kernels));
  state.counters["ms_per_kernel"] = benchmark::Counter(
      100, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK_CAPTURE(compile, f32, "f32", false)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile, f32_functions, "f32", true)->Arg(16)->Arg(64)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(compile, bf16, "bf16", false)->Arg(16)->Arg(32)->Unit(benchmark::kMillisecond);

void run(benchmark::State& state, const char* type, bool transcendental) {
  const std::vector<Kernel> kernels = {chain(0, type, static_cast<int>(state.range(0)), transcendental)};
  const auto code = *jit::compile(kernels);
  const base::KernelFunction f = *jit::kernel_function(*code, kernels[0].name);
  std::vector<float> a(4096), b(4096), y(4096);
  void* buffers[] = {a.data(), b.data(), y.data()};
  for (auto _ : state) f(buffers, 0, 1, nullptr);
  state.SetItemsProcessed(4096 * state.iterations());
}
BENCHMARK_CAPTURE(run, f32, "f32", false)->Arg(16)->Arg(32)->Arg(64);
BENCHMARK_CAPTURE(run, f32_functions, "f32", true)->Arg(16)->Arg(32)->Arg(64);
BENCHMARK_CAPTURE(run, bf16, "bf16", false)->Arg(16)->Arg(32)->Arg(64);

}  // namespace
}  // namespace hloom::emit

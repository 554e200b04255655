// A loop that carries an array and updates a small window of it: the time of an iteration must not depend on the array.
// Compare the time of one iteration for 10^4, 10^5, 10^6 and 10^7 elements: one array, and two that write from each other.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "hloom/executable.h"

namespace {

constexpr int kIterations = 1000;

std::string replace_all(std::string text, const std::string& what, const std::string& with) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += with.size())
    text.replace(at, what.size(), with);
  return text;
}

const char* const kOneArray = R"(HloModule one, input_output_alias={ {}: (0, {}, may-alias) }
body { c = (s32[], f32[N]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[N] get-tuple-element(c), index=1
  w = f32[8] dynamic-slice(x, i), dynamic_slice_sizes={8}
  u = f32[8] negate(w)
  y = f32[N] dynamic-update-slice(x, u, i)
  k = s32[] constant(1)
  j = s32[] add(i, k)
  ROOT r = (s32[], f32[N]) tuple(j, y) }
condition { c = (s32[], f32[N]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(1000)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY main { x = f32[N] parameter(0)
  z = s32[] constant(0)
  t = (s32[], f32[N]) tuple(z, x)
  w = (s32[], f32[N]) while(t), condition=condition, body=body
  ROOT r = f32[N] get-tuple-element(w), index=1 }
)";

const char* const kTwoArrays = R"(HloModule two, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }
body { c = (s32[], f32[N], f32[N]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  x = f32[N] get-tuple-element(c), index=1
  y = f32[N] get-tuple-element(c), index=2
  v = f32[8] dynamic-slice(x, i), dynamic_slice_sizes={8}
  w = f32[8] dynamic-slice(y, i), dynamic_slice_sizes={8}
  a = f32[N] dynamic-update-slice(x, w, i)
  b = f32[N] dynamic-update-slice(y, v, i)
  k = s32[] constant(1)
  j = s32[] add(i, k)
  ROOT r = (s32[], f32[N], f32[N]) tuple(j, a, b) }
condition { c = (s32[], f32[N], f32[N]) parameter(0)
  i = s32[] get-tuple-element(c), index=0
  n = s32[] constant(1000)
  ROOT l = pred[] compare(i, n), direction=LT }
ENTRY main { x = f32[N] parameter(0)
  y = f32[N] parameter(1)
  z = s32[] constant(0)
  t = (s32[], f32[N], f32[N]) tuple(z, x, y)
  w = (s32[], f32[N], f32[N]) while(t), condition=condition, body=body
  p = f32[N] get-tuple-element(w), index=1
  q = f32[N] get-tuple-element(w), index=2
  ROOT r = (f32[N], f32[N]) tuple(p, q) }
)";

void run_loop(benchmark::State& state, const char* text, int num_arrays) {
  const auto n = static_cast<std::size_t>(state.range(0));
  auto program = hloom::Executable::compile(replace_all(text, "[N]", "[" + std::to_string(n) + "]"));
  if (!program) return state.SkipWithError(program.error().message().c_str());
  std::vector<std::vector<float>> arrays(static_cast<std::size_t>(num_arrays), std::vector<float>(n, 1));
  std::vector<std::span<std::byte>> ports;
  for (auto& a : arrays) ports.emplace_back(reinterpret_cast<std::byte*>(a.data()), n * sizeof(float));
  for (auto _ : state) {
    const auto done = program->run(ports, ports);  // donated: the results are the parameters' memory
    if (!done) return state.SkipWithError(done.error().message().c_str());
  }
  state.counters["per_iteration"] = benchmark::Counter(
      kIterations, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}

void one_array(benchmark::State& state) { run_loop(state, kOneArray, 1); }
void two_arrays(benchmark::State& state) { run_loop(state, kTwoArrays, 2); }
BENCHMARK(one_array)->RangeMultiplier(10)->Range(10'000, 10'000'000);
BENCHMARK(two_arrays)->RangeMultiplier(10)->Range(10'000, 10'000'000);

}  // namespace

// The time of a step of a loop that carries arrays and changes little of them: (t(2S) - t(S)) / S for S steps, by the
// arrays' elements. It must not depend on them, but for what cache misses cost where a step goes to a random place.
//
//   loop_slope_bench                       all loops, 10^3 to 10^7 elements
//   loop_slope_bench --benchmark_filter=window
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

#include "../tests/loops.h"
#include "hloom/executable.h"

namespace {

using hloom::loops::Loop;

constexpr std::int32_t kMostSteps = 4096;
constexpr int kRuns = 7;

/// A loop with arrays of its own, donated.
class Program {
 public:
  static hloom::Expected<Program> create(const Loop& loop) {
    auto executable = hloom::Executable::compile(loop.text, {.threads = 1});
    if (!executable) return executable.error();
    return Program(*std::move(executable));
  }

  // Seconds of one run, the least of several. 0 if it fails.
  double seconds(std::int32_t steps) {
    std::int32_t count = steps;
    ports_.back() = {reinterpret_cast<std::byte*>(&count), sizeof count};
    const std::vector<std::span<std::byte>> outputs(ports_.begin(), ports_.end() - 1);
    double least = 0;
    for (int run = 0; run < kRuns; ++run) {
      const auto begin = std::chrono::steady_clock::now();
      if (!executable_.run_into(ports_, outputs)) return 0;
      const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
      least = run == 0 ? s : std::min(least, s);
    }
    return least;
  }

 private:
  explicit Program(hloom::Executable executable) : executable_(std::move(executable)) {
    for (const hloom::Shape& shape : executable_.parameter_shapes())
      arrays_.emplace_back(static_cast<std::size_t>(shape.size_bytes()) / sizeof(float), 1.0F);
    for (std::vector<float>& a : arrays_)
      ports_.emplace_back(reinterpret_cast<std::byte*>(a.data()), a.size() * sizeof(float));
  }

  hloom::Executable executable_;
  std::vector<std::vector<float>> arrays_;
  std::vector<std::span<std::byte>> ports_;
};

void slope(benchmark::State& state, std::size_t number) {
  const std::int64_t n = state.range(0);
  auto program = Program::create(hloom::loops::loops(n, 1, false)[number]);
  if (!program) return state.SkipWithError(program.error().message().c_str());
  // Windows go up with the steps and must not run against the end.
  // A multiple of how many steps make a round, so that both runs end alike.
  const auto steps = static_cast<std::int32_t>(std::min<std::int64_t>(n / 16, kMostSteps) / 12 * 12);
  double a_step = 0;
  for (auto _ : state) {
    const double once = program->seconds(steps), twice = program->seconds(2 * steps);
    a_step = (twice - once) / steps;
    state.SetIterationTime(std::max(a_step, 1e-12));
  }
  state.counters["ns_a_step"] = a_step * 1e9;
}

// Those whose steps compute whole arrays have no flat slope.
const int kRegistered = [] {
  const std::vector<Loop> loops = hloom::loops::loops(1024, 1, false);
  for (std::size_t k = 0; k < loops.size(); ++k)
    if (!loops[k].changes_all)
      benchmark::RegisterBenchmark(loops[k].name.c_str(), slope, k)
          ->Arg(1'000)->Arg(10'000)->Arg(100'000)->Arg(1'000'000)->Arg(10'000'000)
          ->UseManualTime()->Iterations(3)->Unit(benchmark::kNanosecond);
  return 0;
}();

}  // namespace

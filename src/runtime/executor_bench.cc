// What the runtime itself costs: a call of a small program, a step, a parallel loop without work.
#include <benchmark/benchmark.h>

#include <array>

#include "runtime/executor.h"

namespace hloom::runtime {
namespace {

void nothing(void* const*, std::int64_t, std::int64_t, void*) {}

void increment(void* const* buffers, std::int64_t, std::int64_t, void*) { ++*static_cast<float*>(buffers[0]); }

std::unique_ptr<Executor> scalar_program(std::int64_t num_steps, std::int64_t trips) {
  Program program;
  program.parameters = {{4, 4}, {4, 4}};
  program.results = {{4, 4}};
  program.aliases = {{0, 0}};
  program.allocations = {{Allocation::Kind::Result, 0, 4}, {Allocation::Kind::Arena, 0, 64}};
  Call call;
  call.function = increment;
  call.arguments = {{0, 0, 4}, {1, 0, 4}};
  const Steps steps(static_cast<std::size_t>(num_steps), Step{call});
  program.steps = trips == 1 ? steps : Steps{{While{{}, {}, steps, trips}}};
  return *Executor::create(std::move(program));
}

void run(benchmark::State& state, const Executor& executor) {
  ThreadPool pool(1);
  alignas(4) std::byte x[4] = {}, y[4] = {}, z[4] = {};
  const std::array<std::span<std::byte>, 2> parameters = {std::span(x), std::span(y)};
  const std::array<std::span<std::byte>, 1> results = {std::span(z)};
  for (auto _ : state) benchmark::DoNotOptimize(executor.execute(parameters, results, pool).has_value());
}

// A whole call: checks, addresses, one step.
void call_scalar_program(benchmark::State& state) { run(state, *scalar_program(1, 1)); }
BENCHMARK(call_scalar_program);

// items_per_second is steps.
void step(benchmark::State& state) {
  run(state, *scalar_program(1000, 1));
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(step);

void step_in_loop(benchmark::State& state) {
  run(state, *scalar_program(1, 1000));
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(step_in_loop);

void empty_parallel_for(benchmark::State& state) {
  const int threads = static_cast<int>(state.range(0));
  ThreadPool pool(threads);
  for (auto _ : state) pool.parallel_for_blocks(nothing, nullptr, 1000, threads, {});
}
BENCHMARK(empty_parallel_for)->Arg(1)->Arg(2)->UseRealTime();

}  // namespace
}  // namespace hloom::runtime

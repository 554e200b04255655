// What a call of a program costs its caller.
#include <benchmark/benchmark.h>

#include "hloom/executable.h"

namespace hloom {
namespace {

const char* const kScalar = "ENTRY e { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }";

Executable compile(const std::string& program) {
  CompileOptions options;
  options.threads = 1;
  return *Executable::compile(program, options);
}

// A scalar program in the caller's memory. design.md promises less than 0.3 us.
void call_into(benchmark::State& state) {
  const Executable program = compile(kScalar);
  float a = 1, b = 2, c = 0;
  const auto bytes = [](float& x) { return std::as_writable_bytes(std::span(&x, 1)); };
  const std::span<std::byte> inputs[] = {bytes(a), bytes(b)}, outputs[] = {bytes(c)};
  for (auto _ : state) benchmark::DoNotOptimize(program.run_into(inputs, outputs).has_value());
}
BENCHMARK(call_into);

// The same with results from the pool.
void call(benchmark::State& state) {
  const Executable program = compile(kScalar);
  const float one = 1;
  const Buffer scalar = *Buffer::copy_of(std::as_bytes(std::span(&one, 1)));
  Buffer args[] = {scalar, scalar};
  for (auto _ : state) benchmark::DoNotOptimize(program.run(args).has_value());
}
BENCHMARK(call);

// A large result: its bytes a second, which fresh pages each time would cut to a fraction.
void large_result(benchmark::State& state) {
  const std::int64_t n = state.range(0);
  const std::string shape = "f32[" + std::to_string(n) + "]";
  const Executable program =
      compile("ENTRY e { a = " + shape + " parameter(0)\n ROOT b = " + shape + " negate(a) }");
  Buffer args[] = {*Buffer::allocate(4 * n)};
  std::ranges::fill(args[0].mutable_bytes(), std::byte{0});
  for (auto _ : state) benchmark::DoNotOptimize(program.run(args).has_value());
  state.SetBytesProcessed(state.iterations() * 4 * n);
}
BENCHMARK(large_result)->Arg(1 << 16)->Arg(1 << 23);

}  // namespace
}  // namespace hloom

// Kernels that only stream: their bytes a second as a share of what memcpy reaches on the same arrays in the same run.
#include <benchmark/benchmark.h>

#include <chrono>
#include <cstring>
#include <string>
#include <vector>

#include "hloom/executable.h"

namespace {

constexpr std::int64_t kRows = 4096, kColumns = 1024;  // f32: 16 MiB

struct Case {
  const char* name;
  const char* text;
  std::int64_t read_bytes, written_bytes;
};

constexpr std::int64_t kArray = kRows * kColumns * 4;

const Case kCases[] = {
    {"negate", "ENTRY e { p = f32[4096,1024] parameter(0)\n ROOT r = f32[4096,1024] negate(p) }", kArray, kArray},
    {"exp", "ENTRY e { p = f32[4096,1024] parameter(0)\n ROOT r = f32[4096,1024] exponential(p) }", kArray, kArray},
    {"transpose", "ENTRY e { p = f32[4096,1024] parameter(0)\n ROOT r = f32[1024,4096] transpose(p), dimensions={1,0} }",
     kArray, kArray},
    {"row_sum",
     "a { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
     "ENTRY e { p = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[4096] reduce(p, z), dimensions={1}, to_apply=a }",
     kArray, kRows * 4},
    {"column_sum",
     "a { x = f32[] parameter(0)\n y = f32[] parameter(1)\n ROOT s = f32[] add(x, y) }\n"
     "ENTRY e { p = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[1024] reduce(p, z), dimensions={0}, to_apply=a }",
     kArray, kColumns * 4},
    {"roll",
     "ENTRY e { p = f32[4096,1024] parameter(0)\n a = f32[4096,1021] slice(p), slice={[0:4096], [3:1024]}\n"
     " b = f32[4096,3] slice(p), slice={[0:4096], [0:3]}\n ROOT c = f32[4096,1024] concatenate(a, b), dimensions={1} }",
     kArray, kArray},
    {"pad",
     "ENTRY e { p = f32[4096,1024] parameter(0)\n z = f32[] constant(0)\n"
     " ROOT r = f32[4098,1026] pad(p, z), padding=1_1x1_1 }",
     kArray, 4098 * 1026 * 4},
};

// Bytes a second that memcpy reads and writes, on one thread.
double copy_rate() {
  std::vector<char> from(static_cast<std::size_t>(kArray), 1), to(static_cast<std::size_t>(kArray));
  double best = 0;
  for (int i = 0; i < 10; ++i) {
    const auto start = std::chrono::steady_clock::now();
    std::memcpy(to.data(), from.data(), to.size());
    benchmark::DoNotOptimize(to.data());
    const double s = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * static_cast<double>(kArray) / s);
  }
  return best;
}

void streaming(benchmark::State& state, const Case& c) {
  hloom::CompileOptions options;
  options.threads = 1;
  auto program = hloom::Executable::compile(c.text, options);
  if (!program) return state.SkipWithError(program.error().message().c_str());
  std::vector<float> input(static_cast<std::size_t>(kRows * kColumns), 0.5f);
  std::vector<std::byte> output(static_cast<std::size_t>(program->result_shapes()[0].size_bytes()));
  const std::span<std::byte> inputs[] = {{reinterpret_cast<std::byte*>(input.data()), static_cast<std::size_t>(kArray)}};
  const std::span<std::byte> outputs[] = {output};
  const double peak = copy_rate();
  for (auto _ : state) {
    const auto done = program->run(inputs, outputs);
    if (!done) return state.SkipWithError(done.error().message().c_str());
  }
  const auto moved = static_cast<double>(c.read_bytes + c.written_bytes);
  state.counters["bytes_per_second"] = benchmark::Counter(moved, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["share_of_memcpy"] = benchmark::Counter(moved / peak, benchmark::Counter::kIsIterationInvariantRate);
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    benchmark::RegisterBenchmark(c.name, [&c](benchmark::State& state) { streaming(state, c); });
  return true;
}();

}  // namespace

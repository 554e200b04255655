// Transposes as shares of what memcpy does with as many bytes, best against best, by this thread's time.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <string>
#include <vector>

#include "hloom/executable.h"
#include "limits.h"

namespace {

using hloom::bench::thread_seconds;

struct Case {
  const char* type;
  std::int64_t element_bytes;
  std::vector<std::int64_t> dims, permutation;
};

const Case kCases[] = {
    {"f32", 4, {64, 64}, {1, 0}},             {"f32", 4, {60, 68}, {1, 0}},
    {"f32", 4, {361, 363}, {1, 0}},           {"f32", 4, {128, 1024}, {1, 0}},
    {"f32", 4, {512, 512}, {1, 0}},           {"f32", 4, {1024, 1024}, {1, 0}},
    {"f32", 4, {1000, 1000}, {1, 0}},         {"f32", 4, {1001, 1003}, {1, 0}},
    {"f32", 4, {4096, 1024}, {1, 0}},         {"f32", 4, {4096, 4096}, {1, 0}},
    {"f32", 4, {64, 128, 512}, {0, 2, 1}},    {"f32", 4, {64, 128, 512}, {2, 1, 0}},
    {"f32", 4, {64, 128, 512}, {1, 0, 2}},    {"f32", 4, {32, 64, 16, 64}, {0, 2, 1, 3}},
    {"f32", 4, {8, 224, 224, 3}, {0, 3, 1, 2}}, {"f32", 4, {8, 3, 224, 224}, {0, 2, 3, 1}},
    {"f32", 4, {16, 56, 56, 64}, {0, 3, 1, 2}}, {"f32", 4, {16, 64, 56, 56}, {0, 2, 3, 1}},
    {"f32", 4, {8192, 8192}, {1, 0}},         {"f32", 4, {8256, 8256}, {1, 0}},
    {"f32", 4, {1000000, 3}, {1, 0}},
    {"f32", 4, {3, 1000000}, {1, 0}},         {"bf16", 2, {4096, 1024}, {1, 0}},
    {"s8", 1, {4096, 1024}, {1, 0}},          {"f64", 8, {2048, 1024}, {1, 0}},
    {"bf16", 2, {8, 224, 224, 3}, {0, 3, 1, 2}}, {"s8", 1, {8, 224, 224, 3}, {0, 3, 1, 2}},
    {"s8", 1, {8, 3, 224, 224}, {0, 2, 3, 1}}, {"bf16", 2, {16, 1000, 100}, {0, 2, 1}},
    {"c64", 8, {2048, 1024}, {1, 0}},
};

std::string list(const std::vector<std::int64_t>& numbers) {
  std::string s;
  for (const std::int64_t n : numbers) s += (s.empty() ? "" : ",") + std::to_string(n);
  return s;
}

std::string program(const Case& c) {
  std::vector<std::int64_t> to;
  for (const std::int64_t d : c.permutation) to.push_back(c.dims[static_cast<std::size_t>(d)]);
  const std::string type = c.type;
  return "ENTRY e { p = " + type + "[" + list(c.dims) + "] parameter(0)\n ROOT r = " + type + "[" + list(to) +
         "] transpose(p), dimensions={" + list(c.permutation) + "} }";
}

void transpose(benchmark::State& state, const Case& c) {
  hloom::CompileOptions options;
  options.threads = 1;
  auto compiled = hloom::Executable::compile(program(c), options);
  if (!compiled) return state.SkipWithError(compiled.error().message().c_str());
  auto bytes = static_cast<std::size_t>(c.element_bytes);
  for (const std::int64_t d : c.dims) bytes *= static_cast<std::size_t>(d);
  hloom::Buffer input = *hloom::Buffer::allocate(static_cast<std::int64_t>(bytes));
  hloom::Buffer output = *hloom::Buffer::allocate(static_cast<std::int64_t>(bytes));
  std::ranges::fill(input.mutable_bytes(), std::byte{1});
  const std::span<std::byte> inputs[] = {input.mutable_bytes()}, outputs[] = {output.mutable_bytes()};
  const std::int64_t times = hloom::bench::times_for(2 * static_cast<std::int64_t>(bytes));
  // Large ones are measured once or twice: not while their memory comes.
  for (int run = 0; run < 2; ++run)
    if (const auto done = compiled->run_into(inputs, outputs); !done) return state.SkipWithError(done.error().message().c_str());
  double own = 1e9;
  for (auto _ : state) {
    const double start = thread_seconds();
    for (std::int64_t k = 0; k < times; ++k) benchmark::DoNotOptimize(compiled->run_into(inputs, outputs).has_value());
    own = std::min(own, (thread_seconds() - start) / static_cast<double>(times));
  }
  state.counters["GB_per_second"] = 2e-9 * static_cast<double>(bytes) / own;
  state.counters["share_of_memcpy"] = hloom::bench::copy_seconds(2 * static_cast<std::int64_t>(bytes)) / own;
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    benchmark::RegisterBenchmark((std::string(c.type) + "[" + list(c.dims) + "] by " + list(c.permutation)).c_str(),
                                 [&c](benchmark::State& state) { transpose(state, c); })
        ->MinTime(0.1);
  return true;
}();

}  // namespace

// Transposes as shares of what memcpy does with as many bytes, best against best in the same run, by this thread's time.
#include <benchmark/benchmark.h>

#include <ctime>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "hloom/executable.h"

namespace {

struct Case {
  const char* type;
  std::int64_t element_bytes;
  std::vector<std::int64_t> dims, permutation;
};

const Case kCases[] = {
    {"f32", 4, {512, 512}, {1, 0}},           {"f32", 4, {1024, 1024}, {1, 0}},
    {"f32", 4, {1000, 1000}, {1, 0}},         {"f32", 4, {1001, 1003}, {1, 0}},
    {"f32", 4, {4096, 1024}, {1, 0}},         {"f32", 4, {4096, 4096}, {1, 0}},
    {"f32", 4, {64, 128, 512}, {0, 2, 1}},    {"f32", 4, {64, 128, 512}, {2, 1, 0}},
    {"f32", 4, {64, 128, 512}, {1, 0, 2}},    {"f32", 4, {32, 64, 16, 64}, {0, 2, 1, 3}},
    {"f32", 4, {8, 224, 224, 3}, {0, 3, 1, 2}}, {"f32", 4, {1000000, 3}, {1, 0}},
    {"f32", 4, {3, 1000000}, {1, 0}},         {"bf16", 2, {4096, 1024}, {1, 0}},
    {"s8", 1, {4096, 1024}, {1, 0}},          {"f64", 8, {2048, 1024}, {1, 0}},
    {"c64", 8, {2048, 1024}, {1, 0}},
};

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

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
  std::vector<std::byte> input(bytes, std::byte{1}), output(bytes);
  const std::span<std::byte> inputs[] = {input}, outputs[] = {output};
  double copy = 1e9, own = 1e9;
  for (auto _ : state) {
    double start = thread_seconds();
    std::memcpy(output.data(), input.data(), bytes);
    benchmark::DoNotOptimize(output.data());
    copy = std::min(copy, thread_seconds() - start);
    start = thread_seconds();
    const auto done = compiled->run(inputs, outputs);
    if (!done) return state.SkipWithError(done.error().message().c_str());
    own = std::min(own, thread_seconds() - start);
    state.SetIterationTime(thread_seconds() - start);
  }
  state.counters["GB_per_second"] = 2e-9 * static_cast<double>(bytes) / own;
  state.counters["share_of_memcpy"] = copy / own;
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    benchmark::RegisterBenchmark((std::string(c.type) + "[" + list(c.dims) + "] by " + list(c.permutation)).c_str(),
                                 [&c](benchmark::State& state) { transpose(state, c); })
        ->UseManualTime();
  return true;
}();

}  // namespace

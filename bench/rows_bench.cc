// What goes over rows several times: softmax, norms and their gradients, in the caches and in memory. `share_of_memcpy` is the
// time of a memcpy of as many bytes as the program has to read and write, once, over its own; both are the fastest of their
// runs, in time of the one thread that they have.
#include <benchmark/benchmark.h>
#include <time.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "hloom/executable.h"

namespace {

/// A program over `x`, an array of rows, and `y` of the same shape, `g` of a row's; "F", "R" and "C" stand for the types of an
/// array, of one element for each row, and of a row.
struct Case {
  const char* name;
  int arrays;  ///< read or written, each once
  const char* body;
};

const Case kCases[] = {
    {"softmax", 2,
     " m = R reduce(x, low), dimensions={1}, to_apply=max\n mb = F broadcast(m), dimensions={0}\n"
     " d = F subtract(x, mb)\n e = F exponential(d)\n s = R reduce(e, zero), dimensions={1}, to_apply=sum\n"
     " sb = F broadcast(s), dimensions={0}\n ROOT r = F divide(e, sb)\n"},
    {"log_softmax", 2,
     " m = R reduce(x, low), dimensions={1}, to_apply=max\n mb = F broadcast(m), dimensions={0}\n"
     " d = F subtract(x, mb)\n e = F exponential(d)\n s = R reduce(e, zero), dimensions={1}, to_apply=sum\n"
     " l = R log(s)\n lb = F broadcast(l), dimensions={0}\n ROOT r = F subtract(d, lb)\n"},
    {"layer_norm", 2,
     " s = R reduce(x, zero), dimensions={1}, to_apply=sum\n mu = R multiply(s, share)\n mb = F broadcast(mu), dimensions={0}\n"
     " d = F subtract(x, mb)\n q = F multiply(d, d)\n v = R reduce(q, zero), dimensions={1}, to_apply=sum\n"
     " w = R multiply(v, share)\n a = R add(w, share)\n i = R rsqrt(a)\n ib = F broadcast(i), dimensions={0}\n"
     " n = F multiply(d, ib)\n gb = F broadcast(g), dimensions={1}\n o = F multiply(n, gb)\n ROOT r = F add(o, gb)\n"},
    {"rms_norm", 2,
     " q = F multiply(x, x)\n v = R reduce(q, zero), dimensions={1}, to_apply=sum\n w = R multiply(v, share)\n"
     " a = R add(w, share)\n i = R rsqrt(a)\n ib = F broadcast(i), dimensions={0}\n n = F multiply(x, ib)\n"
     " gb = F broadcast(g), dimensions={1}\n ROOT r = F multiply(n, gb)\n"},
    {"softmax_gradient", 3,
     " p = F multiply(x, y)\n s = R reduce(p, zero), dimensions={1}, to_apply=sum\n sb = F broadcast(s), dimensions={0}\n"
     " d = F subtract(y, sb)\n ROOT r = F multiply(d, x)\n"},
    {"rms_norm_gradient", 3,
     " q = F multiply(x, x)\n v = R reduce(q, zero), dimensions={1}, to_apply=sum\n w = R multiply(v, share)\n"
     " a = R add(w, share)\n i = R rsqrt(a)\n ib = F broadcast(i), dimensions={0}\n n = F multiply(x, ib)\n"
     " gb = F broadcast(g), dimensions={1}\n h = F multiply(y, gb)\n p = F multiply(h, n)\n"
     " t = R reduce(p, zero), dimensions={1}, to_apply=sum\n u = R multiply(t, share)\n ub = F broadcast(u), dimensions={0}\n"
     " c = F multiply(n, ub)\n e = F subtract(h, c)\n dx = F multiply(e, ib)\n k = F multiply(y, n)\n"
     " dg = C reduce(k, zero), dimensions={0}, to_apply=sum\n ROOT r = (F, C) tuple(dx, dg)\n"},
};

struct Size {
  const char* name;
  std::int64_t rows, columns;
};
const Size kSizes[] = {{"L1", 16, 128}, {"L2", 256, 256}, {"L3", 1024, 1024}, {"memory", 16384, 1024}, {"memory_short_rows", 262144, 64}};

std::string program(const Case& c, const Size& size) {
  const std::string rows = std::to_string(size.rows), columns = std::to_string(size.columns);
  std::string body;
  for (const char* at = c.body; *at != '\0'; ++at) {
    const bool alone = (at == c.body || at[-1] == ' ' || at[-1] == '(') && (at[1] == ' ' || at[1] == ',' || at[1] == ')');
    if (alone && *at == 'F')
      body += "f32[" + rows + "," + columns + "]";
    else if (alone && *at == 'R')
      body += "f32[" + rows + "]";
    else if (alone && *at == 'C')
      body += "f32[" + columns + "]";
    else
      body += *at;
  }
  return "sum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
         "max { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] maximum(a, b) }\n"
         "ENTRY e { x = f32[" + rows + "," + columns + "] parameter(0)\n y = f32[" + rows + "," + columns + "] parameter(1)\n" +
         " g = f32[" + columns + "] parameter(2)\n zero = f32[] constant(0)\n low = f32[] constant(-inf)\n" +
         " part = f32[] constant(0.001)\n share = f32[" + rows + "] broadcast(part), dimensions={}\n" + body + "}\n";
}

// Of this thread alone, so that others who use the machine hardly count.
double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

// Runs in one measurement: the clock is coarse.
int repeats(std::int64_t bytes) { return static_cast<int>(std::max<std::int64_t>(1, 4'000'000 / bytes)); }

double copy_seconds(std::int64_t bytes) {
  std::vector<char> from(static_cast<std::size_t>(bytes), 1), to(static_cast<std::size_t>(bytes));
  double best = 1e9;
  for (int i = 0; i < 20; ++i) {
    const double start = thread_seconds();
    for (int n = 0; n < repeats(2 * bytes); ++n) {
      std::memcpy(to.data(), from.data(), to.size());
      benchmark::DoNotOptimize(to.data());
      benchmark::ClobberMemory();
    }
    best = std::min(best, (thread_seconds() - start) / repeats(2 * bytes));
  }
  return best;
}

void rows(benchmark::State& state, const Case& c, const Size& size) {
  hloom::CompileOptions options;
  options.threads = 1;
  auto compiled = hloom::Executable::compile(program(c, size), options);
  if (!compiled) return state.SkipWithError(compiled.error().message().c_str());
  const auto elements = static_cast<std::size_t>(size.rows * size.columns);
  std::vector<float> arrays[3] = {std::vector<float>(elements), std::vector<float>(elements),
                                  std::vector<float>(static_cast<std::size_t>(size.columns), 0.5f)};
  for (std::size_t i = 0; i < elements; ++i) arrays[0][i] = arrays[1][i] = static_cast<float>(i % 97) * 0.05f;
  std::vector<std::span<std::byte>> inputs, outputs;
  for (auto& a : arrays) inputs.emplace_back(reinterpret_cast<std::byte*>(a.data()), a.size() * sizeof(float));
  std::vector<std::vector<std::byte>> results;
  for (const auto& shape : compiled->result_shapes()) results.emplace_back(static_cast<std::size_t>(shape.size_bytes()));
  for (auto& r : results) outputs.emplace_back(r);
  const std::int64_t moved = c.arrays * static_cast<std::int64_t>(elements * sizeof(float));
  double best = 1e9;
  for (auto _ : state) {
    const double start = thread_seconds();
    for (int n = 0; n < repeats(moved); ++n)
      if (const auto done = compiled->run(inputs, outputs); !done) return state.SkipWithError(done.error().message().c_str());
    best = std::min(best, (thread_seconds() - start) / repeats(moved));
  }
  state.counters["bytes_per_second"] = static_cast<double>(moved) / best;
  state.counters["share_of_memcpy"] = copy_seconds(moved / 2) / best;
}

const bool kRegistered = [] {
  for (const Case& c : kCases)
    for (const Size& size : kSizes)
      benchmark::RegisterBenchmark((std::string(c.name) + "/" + size.name).c_str(),
                                   [&c, &size](benchmark::State& state) { rows(state, c, size); });
  return true;
}();

}  // namespace

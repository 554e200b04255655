// Reading generated dumps: bytes of text a second, and the most bytes of memory held for a byte of text.
#include <benchmark/benchmark.h>
#include <malloc.h>

#include <cstdlib>
#include <new>
#include <random>
#include <string>

#include "text/parse.h"

namespace {

// Bytes given out by operator new, counted where `counting`; the allocator's own rounding included.
bool counting = false;
std::int64_t live_bytes = 0, peak_bytes = 0;

void* count(void* p) {
  if (counting) {
    live_bytes += static_cast<std::int64_t>(malloc_usable_size(p)) + 8;
    peak_bytes = std::max(peak_bytes, live_bytes);
  }
  return p;
}

void uncount(void* p) {
  if (counting && p != nullptr) live_bytes -= static_cast<std::int64_t>(malloc_usable_size(p)) + 8;
}

}  // namespace

[[gnu::noinline]] void* operator new(std::size_t size) {
  void* p = std::malloc(size);
  if (p == nullptr) std::abort();
  return count(p);
}
[[gnu::noinline]] void operator delete(void* p) noexcept {
  uncount(p);
  std::free(p);
}
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept {
  uncount(p);
  std::free(p);
}

namespace hloom::text {
namespace {

using Random = std::mt19937_64;

std::string number(Random& random, std::uint64_t below) { return std::to_string(random() % below); }

// As JAX prints a module before optimization: short lines without metadata.
std::string short_lines(std::size_t size) {
  Random random(1);
  std::string text = "HloModule short_lines\n\nENTRY main {\n  add.0 = f32[8,128]{1,0} parameter(0)\n";
  std::uint64_t n = 0;
  while (text.size() < size) {
    const std::string a = "add." + std::to_string(n - random() % std::min<std::uint64_t>(n + 1, 100));
    ++n;
    text += "  add." + std::to_string(n) + " = f32[8,128]{1,0} add(" + a + ", add." + std::to_string(n - 1) + ")\n";
  }
  return text + "}\n";
}

// As XLA dumps a module after optimization: `%`, layouts, metadata, scalars among the arrays.
std::string long_lines(std::size_t size) {
  Random random(2);
  std::string text =
      "HloModule long_lines, is_scheduled=true\n\nENTRY %main (p: f32[24,2,8]) -> f32[24,2,8] {\n"
      "  %broadcast_add_fusion.0 = f32[24,2,8]{2,1,0} parameter(0)\n";
  std::uint64_t n = 0;
  while (text.size() < size) {
    const std::string last = "%broadcast_add_fusion." + std::to_string(n++);
    const std::string here = std::to_string(n);
    text += "  %constant." + here + " = f32[] constant(" + number(random, 1000) + "." + number(random, 1000) +
            "), metadata={op_name=\"jit(step)/jit(main)/mul\" stack_frame_id=" + number(random, 900) + "}\n";
    text += "  %broadcast." + here + " = f32[24,2,8]{2,1,0} broadcast(%constant." + here +
            "), dimensions={}, metadata={op_name=\"jit(step)/jit(main)/while/body/layer_" + number(random, 12) +
            "/mul\" stack_frame_id=" + number(random, 900) + "}\n";
    text += "  %broadcast_add_fusion." + here + " = f32[24,2,8]{2,1,0} add(%broadcast." + here + ", " + last +
            "), metadata={op_name=\"jit(step)/jit(main)/while/body/layer_" + number(random, 12) +
            "/add\" source_file=\"/home/user/project/model.py\" source_line=" + number(random, 900) + "}\n";
  }
  return text + "}\n";
}

template <typename Element>
std::string constants(std::string_view type, std::size_t size, const Element& element) {
  Random random(3);
  std::string text = "HloModule constants\n\nENTRY main {\n";
  std::vector<std::string> names;
  while (text.size() < size) {
    names.push_back("c." + std::to_string(names.size()));
    text += "  " + names.back() + " = " + std::string(type) + "[512,1024]{1,0} constant({";
    for (int row = 0; row < 512; ++row) {
      text += row == 0 ? " {" : ", {";
      for (int i = 0; i < 1024; ++i) text += (i == 0 ? " " : ", ") + element(random);
      text += " }";
    }
    text += " })\n";
  }
  text += "  ROOT t = (";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + std::string(type) + "[512,1024]{1,0}";
  text += ") tuple(";
  for (std::size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : ", ") + names[i];
  return text + ")\n}\n";
}

std::string float_constants(std::size_t size) {
  return constants("f32", size, [](Random& random) {
    return (random() % 2 != 0 ? "-0.0" : "0.0") + std::to_string(100000000 + random() % 900000000);
  });
}

std::string integer_constants(std::size_t size) {
  return constants("s32", size, [](Random& random) { return std::to_string(static_cast<std::int32_t>(random())); });
}

void parse(benchmark::State& state, std::string (*generate)(std::size_t), bool verify) {
  const std::string text = generate(static_cast<std::size_t>(state.range(0)) << 20);
  for (auto _ : state) {
    auto module = parse_module(text, {.verify = verify});
    state.PauseTiming();  // reading alone, not the module's end
    if (!module) return state.SkipWithError(module.error().message().c_str());
    module->reset();
    state.ResumeTiming();
  }
  live_bytes = peak_bytes = 0;
  counting = true;
  {
    const auto module = parse_module(text, {.verify = verify});
    state.counters["held"] = static_cast<double>(live_bytes) / static_cast<double>(text.size());
  }
  counting = false;
  state.counters["peak"] = static_cast<double>(peak_bytes) / static_cast<double>(text.size());
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(text.size()));
}

#define HLOOM_BENCH(generate)                                                                            \
  BENCHMARK_CAPTURE(parse, generate, generate, false)->Arg(16)->Arg(100)->Unit(benchmark::kMillisecond); \
  BENCHMARK_CAPTURE(parse, generate##_verified, generate, true)->Arg(16)->Unit(benchmark::kMillisecond)

HLOOM_BENCH(short_lines);
HLOOM_BENCH(long_lines);
HLOOM_BENCH(float_constants);
HLOOM_BENCH(integer_constants);

}  // namespace
}  // namespace hloom::text

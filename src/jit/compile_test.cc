#include "jit/compile.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <vector>

#include "emit/symbol_name.h"
#include "jit/memory_cache.h"
#include "kernels/print.h"

namespace hloom::jit {
namespace {

using kernels::Kernel;

Kernel scale(const std::string& name, int factor) {
  return *kernels::parse("kernel " + name + "(a: f32[100]) -> (y: f32[100]) blocks 4 { c = constant f32 " +
                         std::to_string(factor) +
                         " for i in 0..100 block 32 by 16 { x = load f32 a[i] s = multiply f32 x, c store y[i], s } }");
}

TEST(Compile, KernelsAreFoundByName) {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 25; ++i) kernels.push_back(scale("fusion." + std::to_string(i), i));
  for (const int threads : {1, 3}) {
    const auto code = *compile(kernels, {.threads = threads});
    for (int i = 0; i < 25; ++i) {
      const base::KernelFunction f = *kernel_function(*code, kernels[static_cast<std::size_t>(i)].name);
      std::vector<float> a(100, 3.0f), y(100);
      void* buffers[] = {a.data(), y.data()};
      f(buffers, 1, 3, nullptr);
      EXPECT_EQ(y[31], 0);
      EXPECT_EQ(y[32], static_cast<float>(3 * i));
      EXPECT_EQ(y[95], static_cast<float>(3 * i));
      EXPECT_EQ(y[96], 0);
    }
    EXPECT_EQ(kernel_function(*code, "fusion.25").error().code(), hloom::Code::NotFound);
  }
}

std::vector<std::byte> machine_code(const Code& code) {
  const std::byte* begin = code.begin(Section::Code);
  return {begin, begin + code.statistics().carved_bytes[static_cast<std::size_t>(Section::Code)]};
}

// Nor on whether kernels come all at once or one after the other.
TEST(Compile, CodeDoesNotDependOnThreads) {
  std::vector<Kernel> kernels;
  for (int i = 0; i < 100; ++i) kernels.push_back(scale("k" + std::to_string(i), i / 2));
  MemoryCache::process().clear();
  const auto one = *compile(kernels);
  const std::vector<std::byte> want = machine_code(*one);
  ASSERT_GT(want.size(), 1000u);
  for (const int threads : {1, 2, 4}) {
    MemoryCache::process().clear();
    const auto compiler = *KernelCompiler::create({.threads = threads});
    for (const Kernel& kernel : kernels) compiler->add(kernel);
    EXPECT_EQ(machine_code(**compiler->finish()), want) << threads;
  }
}

TEST(Compile, WhatIsGivenUpEndsWhatIsUnderWay) {
  MemoryCache::process().clear();
  const auto compiler = *KernelCompiler::create({.threads = 4});
  for (int i = 0; i < 50; ++i) compiler->add(scale("k" + std::to_string(i), i));
}

TEST(Compile, EqualKernelsAreOne) {
  const auto code = *compile(std::vector{scale("a", 1), scale("b", 2), scale("c", 1), scale("d.e", 1)});
  const auto address = [&](const char* name) { return *kernel_function(*code, name); };
  EXPECT_EQ(address("a"), address("c"));
  EXPECT_EQ(address("a"), address("d.e"));
  EXPECT_NE(address("a"), address("b"));
}

// Whatever programs call it, one object serves all; each program has a copy of its code.
TEST(Compile, EqualKernelsOfManyProgramsAreCompiledOnce) {
  MemoryCache& cache = MemoryCache::process();
  cache.clear();
  std::vector<std::shared_ptr<Code>> programs;
  for (int i = 0; i < 10; ++i)
    programs.push_back(*compile(std::vector{scale("first." + std::to_string(i), 1), scale("second", 2)}));
  EXPECT_EQ(cache.statistics().misses, 2);
  EXPECT_EQ(cache.statistics().hits, 18);
  EXPECT_EQ(cache.statistics().objects, 2);
  std::set<base::KernelFunction> functions;
  for (int i = 0; i < 10; ++i) {
    const base::KernelFunction f = *kernel_function(*programs[static_cast<std::size_t>(i)], "first." + std::to_string(i));
    functions.insert(f);
    std::vector<float> a(100, 3.0f), y(100);
    void* buffers[] = {a.data(), y.data()};
    f(buffers, 0, 4, nullptr);
    EXPECT_EQ(y[99], 3.0f);
    EXPECT_FALSE(kernel_function(*programs[static_cast<std::size_t>(i)], "kernel"));
  }
  EXPECT_EQ(functions.size(), 10u);
  const auto other = compile(std::vector{scale("first", 1)}, {.level = Level::None});
  EXPECT_TRUE(other);
  EXPECT_EQ(cache.statistics().misses, 3) << "code of another level is other code";
}

struct Call {
  base::KernelFunction callee;
  std::array<void*, 2> buffers;
  std::int64_t blocks, scratch_bytes;
};
std::vector<Call> calls;

// As the runtime's, on one thread.
void fork_join(base::KernelFunction callee, void* const* buffers, std::int64_t blocks, std::int64_t scratch_bytes) {
  calls.push_back({callee, {buffers[0], buffers[1]}, blocks, scratch_bytes});
  for (std::int64_t i = 0; i < blocks; ++i) callee(buffers, i, i + 1, nullptr);
}

TEST(Compile, CallsGoThroughForkJoin) {
  const Kernel region = *kernels::parse(R"(
kernel region(arena: bytes[4096] align 64 written) {
  zero = constant s64 0
  three = constant s64 3
  while carry n = three {
    more = compare pred n, zero gt signed
  } test more do {
    call twice(arena, arena + 1024) blocks 4
    for i in 0..100 by 16 { x = load f32 arena[i + 256] store arena[i], x }
    fewer = index n - 1
    next fewer
  } -> last
})");
  const std::string name(emit::kForkJoin);
  const std::vector<Kernel> kernels = {region, scale("twice", 2)};
  EXPECT_EQ(compile(kernels).error().code(), hloom::Code::NotFound);
  const auto code = compile(kernels, {.externals = {{name, reinterpret_cast<void*>(&fork_join)}}});
  ASSERT_TRUE(code) << code.error().message();
  alignas(64) std::array<float, 1024> arena{};
  arena[7] = 1.5f;
  void* buffers[] = {arena.data()};
  calls.clear();
  (*kernel_function(**code, "region"))(buffers, 0, 1, nullptr);
  EXPECT_EQ(arena[7], 12.0f);
  ASSERT_EQ(calls.size(), 3u);
  EXPECT_EQ(calls[0].callee, *kernel_function(**code, "twice"));
  EXPECT_EQ(calls[0].buffers[1], arena.data() + 256);
  EXPECT_EQ(calls[0].blocks, 4);
}

TEST(Compile, ShowsWhatItMakes) {
  const std::vector<Kernel> kernels = {scale("a", 1), scale("b", 2)};
  const std::string ir = *show_llvm(kernels), text = *show_asm(kernels, {.cpu = "haswell"});
  EXPECT_NE(ir.find("define void @hloom_a("), std::string::npos);
  EXPECT_NE(ir.find("define void @hloom_b("), std::string::npos);
  EXPECT_NE(text.find("hloom_b:"), std::string::npos);
  EXPECT_NE(text.find("ymm"), std::string::npos);
  EXPECT_EQ(compile(kernels, {.cpu = "pentium-9"}).error().message(), "no processor is called 'pentium-9'");
}

TEST(SymbolName, DiffersWhereNamesDo) {
  EXPECT_EQ(emit::symbol_name("fusion.2"), "hloom_fusion_2e2");
  EXPECT_EQ(emit::symbol_name("a_b"), "hloom_a__b");
  EXPECT_NE(emit::symbol_name("a_2eb"), emit::symbol_name("a.b"));
}

}  // namespace
}  // namespace hloom::jit

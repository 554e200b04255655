// Dots in GF/s and as shares of what the machine can do, measured in the same run: "peak" by multiply-adds on registers,
// "read" by one stream. Each block of a grid is timed alone, many times, and the best times are added, for on a shared
// machine only short runs say anything.
//
//   build/release/bin/kernels_bench --benchmark_filter=Dot
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "hlo/module.h"
#include "jit/compile.h"
#include "kernels/plan_dot.h"

namespace hloom::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Machine code of one kernel with memory to run it on.
class Compiled {
 public:
  explicit Compiled(Kernel kernel) : kernel_(std::move(kernel)) {
    code_ = *jit::compile(std::span(&kernel_, 1));
    function_ = *jit::kernel_function(*code_, kernel_.name);
    std::mt19937 random(1);
    for (const Argument& a : kernel_.arguments) {
      memory_.push_back(allocate(a.num_elements * byte_width(a.type)));
      auto* elements = static_cast<float*>(memory_.back().get());
      if (a.type == DType::F32)
        std::generate_n(elements, a.num_elements, [&] { return static_cast<float>(random() % 1000) / 500 - 1; });
      buffers_.push_back(memory_.back().get());
    }
    scratch_ = allocate(kernel_.scratch_bytes);
    best_.resize(static_cast<std::size_t>(kernel_.blocks), 1e9);
  }

  /// One run of all blocks; remembers each block's best time.
  void run() {
    for (std::size_t b = 0; b < best_.size(); ++b) {
      const double start = seconds();
      for (std::int64_t r = 0; r < repeats_; ++r)
        function_(buffers_.data(), static_cast<std::int64_t>(b), static_cast<std::int64_t>(b) + 1, scratch_.get());
      const double time = (seconds() - start) / static_cast<double>(repeats_);
      best_[b] = std::min(best_[b], time);
      // The clock takes tens of nanoseconds.
      if (best_.size() == 1 && time * static_cast<double>(repeats_) < 2e-5) repeats_ *= 2;
    }
  }

  double best_seconds() const {
    double sum = 0;
    for (const double t : best_) sum += t;
    return sum;
  }

 private:
  struct Free {
    void operator()(void* p) const { std::free(p); }
  };
  using Memory = std::unique_ptr<void, Free>;
  static Memory allocate(std::int64_t size) {
    constexpr std::size_t kPage = 2 << 20;
    return Memory(std::aligned_alloc(kPage, (static_cast<std::size_t>(size) + kPage) / kPage * kPage));
  }

  Kernel kernel_;
  std::shared_ptr<jit::Code> code_;
  base::KernelFunction function_ = nullptr;
  std::vector<Memory> memory_;
  Memory scratch_;
  std::vector<void*> buffers_;
  std::vector<double> best_;
  std::int64_t repeats_ = 1;
};

/// Multiply-adds of 24 vectors with each other's neighbours.
double peak_gflops() {
  static const double peak = [] {
    constexpr std::int64_t kSums = 24, kSteps = 1000, kUnrolled = 4, kLanes = 16;
    Builder b("peak");
    b.kernel().arguments = {{"x", DType::F32, kLanes, false, 4, false}, {"y", DType::F32, kLanes, true, 4, false}};
    const Index lane = index_of(b.begin_loop(0, kLanes, kLanes));
    const Value x = b.load_linear(0, lane, DType::F32);
    b.begin_loop(0, kSteps);
    for (std::int64_t s = 0; s < kSums; ++s) {
      Value sum = b.add_carry(b.constant(DType::F32, static_cast<std::uint64_t>(s + 1)));
      for (std::int64_t u = 0; u < kUnrolled; ++u) sum = b.multiply_add(x, x, sum);
      b.set_next(static_cast<std::size_t>(s), sum);
    }
    const std::vector<Carry> carries = b.loop().carries;
    b.end_loop();
    Value sum = carries[0].result;
    for (std::size_t s = 1; s < carries.size(); ++s) sum = b.line(Opcode::Add, DType::F32, {sum, carries[s].result});
    b.store_linear(1, lane, sum);
    b.end_loop();
    Compiled compiled(std::move(b).finish());
    for (int i = 0; i < 2000; ++i) compiled.run();
    return 2.0 * kSums * kSteps * kUnrolled * kLanes / compiled.best_seconds() / 1e9;
  }();
  return peak;
}

/// Reading 64 MiB, a MiB a block.
double read_gbytes() {
  static const double rate = [] {
    constexpr std::int64_t kBlocks = 64, kElements = 1 << 18, kLanes = 128;
    Builder b("read");
    b.kernel().arguments = {{"x", DType::F32, kBlocks * kElements, false, 4, false}, {"y", DType::F32, kBlocks, true, 4, false}};
    const Index block = index_of(b.begin_loop(0, kBlocks, 0, 1));
    const Value zero = b.constant(DType::F32, 0);
    const Index i = index_of(b.begin_loop(0, kElements, kLanes));
    const Value sum = b.add_fold(Opcode::Add, zero);
    b.set_fold_next(0, b.line(Opcode::Add, DType::F32, {sum, b.load_linear(0, block * kElements + i, DType::F32)}));
    const Value result = b.loop().folds[0].carry.result;
    b.end_loop();
    b.store_linear(1, block, result);
    b.end_loop();
    Kernel kernel = std::move(b).finish();
    kernel.blocks = kBlocks;
    Compiled compiled(std::move(kernel));
    for (int n = 0; n < 20; ++n) compiled.run();
    return 4.0 * kBlocks * kElements / compiled.best_seconds() / 1e9;
  }();
  return rate;
}

struct Sizes {
  std::int64_t batch, m, n, k;
  bool rhs_transposed;
  DType type = DType::F32, result = DType::F32;
};

Kernel plan(const Sizes& s) {
  hlo::Module module("m");
  hlo::Computation* fused = module.add_computation("fused");
  const Shape lhs = Shape::array(s.type, {s.batch, s.m, s.k});
  const Shape rhs = Shape::array(s.type, s.rhs_transposed ? std::vector{s.batch, s.n, s.k} : std::vector{s.batch, s.k, s.n});
  const Shape out = Shape::array(s.result, {s.batch, s.m, s.n});
  Instruction* dot = fused->add(Opcode::Dot, out, {fused->add_parameter(0, lhs), fused->add_parameter(1, rhs)});
  auto& attr = dot->mutable_attr<hlo::DotAttr>();
  attr.lhs_batch = attr.rhs_batch = {0};
  attr.lhs_contracting = {2};
  attr.rhs_contracting = {s.rhs_transposed ? 2 : 1};
  fused->set_root(dot);
  hlo::Computation* entry = module.add_computation("main");
  Instruction* fusion =
      entry->add(Opcode::Fusion, out, {entry->add_parameter(0, lhs), entry->add_parameter(1, rhs)}, "dot");
  fusion->set_called({fused});
  entry->set_root(fusion);
  module.set_entry(entry);
  return *plan_dot(*fusion);
}

void dot(benchmark::State& state, const Sizes& s) {
  Compiled compiled(plan(s));
  compiled.run();
  for (auto _ : state) compiled.run();
  const double best = compiled.best_seconds();
  const double flops = 2.0 * static_cast<double>(s.batch * s.m * s.n * s.k);
  const double bytes = static_cast<double>(s.batch * ((s.m * s.k + s.k * s.n) * byte_width(s.type) + s.m * s.n * byte_width(s.result)));
  state.counters["us"] = best * 1e6;
  state.counters["GF/s"] = flops / best / 1e9;
  state.counters["of_peak"] = flops / best / 1e9 / peak_gflops();
  state.counters["GB/s"] = bytes / best / 1e9;
  state.counters["of_read"] = bytes / best / 1e9 / read_gbytes();
}

void add(const Sizes& s) {
  const std::string name = "Dot/" + (s.batch > 1 ? std::to_string(s.batch) + "x" : std::string()) + std::to_string(s.m) +
                           "x" + std::to_string(s.n) + "x" + std::to_string(s.k) + (s.rhs_transposed ? "/rhs_transposed" : "") +
                           (s.type == DType::F32 ? "" : "/" + std::string(hloom::name(s.type)) + "_" + std::string(hloom::name(s.result)));
  benchmark::RegisterBenchmark(name.c_str(), [s](benchmark::State& state) { dot(state, s); })->MinTime(0.3);
}

const bool registered = [] {
  for (const bool transposed : {false, true}) {
    for (const std::int64_t n : {16, 32, 64, 100, 128, 256, 512, 1024}) add({1, n, n, n, transposed});
    for (const std::int64_t m : {1, 2, 4, 8, 16, 32}) add({1, m, 1024, 1024, transposed});
    for (const std::int64_t m : {1, 4, 16}) add({1, m, 4096, 4096, transposed});
    add({64, 64, 64, 64, transposed});
  }
  for (const std::int64_t n : {1, 4, 8, 12, 16}) add({1, 512, n, 512, false});
  for (const auto& [type, result] : {std::pair(DType::S8, DType::S32), {DType::U4, DType::S32}, {DType::BF16, DType::F32},
                                     {DType::BF16, DType::BF16}, {DType::F16, DType::F32}, {DType::F8E4M3FN, DType::F32}})
    for (const auto& [m, n, k] : {std::tuple(64, 2048, 1024), std::tuple(256, 256, 256), std::tuple(512, 512, 2048),
                                  std::tuple(1, 4096, 4096)})
      add({1, m, n, k, false, type, result});
  return true;
}();

}  // namespace
}  // namespace hloom::kernels

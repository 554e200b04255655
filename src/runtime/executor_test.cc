#include "runtime/executor.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/run_status.h"
#include "hloom/cancel_token.h"
#include "runtime/allocations_test.h"
#include "runtime/float_mode.h"
#include "runtime/fork_join.h"

#if defined(__SANITIZE_THREAD__)
#define HLOOM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HLOOM_TSAN 1
#endif
#endif

namespace hloom::runtime {
namespace {

using Kind = Allocation::Kind;
using Ints = std::vector<std::int32_t>;

constexpr std::int64_t kBlock = 4;  // elements of a kernel's block

std::span<std::byte> bytes(Ints& v) { return {reinterpret_cast<std::byte*>(v.data()), v.size() * sizeof(v[0])}; }

std::int32_t* ints(void* const* buffers, int i) { return static_cast<std::int32_t*>(buffers[i]); }

// out = a + b
void add(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i)
    ints(buffers, 2)[i] = ints(buffers, 0)[i] + ints(buffers, 1)[i];
}

// x += 1, on one block
void increment(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) ++ints(buffers, 0)[i];
}

// pred = x[0] < limit[0]
void less(void* const* buffers, std::int64_t, std::int64_t, void*) {
  *static_cast<std::uint8_t*>(buffers[2]) = *ints(buffers, 0) < *ints(buffers, 1);
}

// Fails in each block whose first element is negative, with its number.
void refuse_negative(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  for (std::int64_t block = begin; block < end; ++block)
    if (ints(buffers, 1)[block * kBlock] < 0)
      base::report_failure(*static_cast<base::RunStatus*>(buffers[0]), block,
                           Error(Code::FailedPrecondition, "block " + std::to_string(block)));
}

// x = x * 10 + k
template <std::int32_t k>
void append_digit(void* const* buffers, std::int64_t, std::int64_t, void*) {
  *ints(buffers, 0) = *ints(buffers, 0) * 10 + k;
}

Step call(std::string name, base::KernelFunction function, std::vector<Slice> arguments, std::int64_t blocks = 1,
          std::int32_t workers = 1) {
  Call result;
  result.name = std::move(name);
  result.function = function;
  result.arguments = std::move(arguments);
  result.blocks = blocks;
  result.max_workers = workers;
  return {std::move(result)};
}

// A program of one state array of n elements, which is result 0 and aliased with parameter 0; parameter 1 has n
// elements as well. Memory: 0 the parameter, 1 the result, 2 parameter 1, 3 an arena of 4n + 64 bytes.
Program state_program(std::int64_t n, Steps steps) {
  Program program;
  program.name = "test";
  program.parameters = {{4 * n, 4}, {4 * n, 4}};
  program.results = {{4 * n, 4}};
  program.aliases = {{0, 0}};
  program.allocations = {{Kind::Parameter, 0, 4 * n}, {Kind::Result, 0, 4 * n}, {Kind::Parameter, 1, 4 * n},
                         {Kind::Arena, 0, 4 * n + 64}};
  program.steps = std::move(steps);
  return program;
}

std::unique_ptr<Executor> executor(Program program) {
  Expected<std::unique_ptr<Executor>> made = Executor::create(std::move(program));
  if (!made) ADD_FAILURE() << made.error().message();
  return *std::move(made);
}

Expected<> run(const Executor& executor, std::vector<std::span<std::byte>> parameters,
               std::vector<std::span<std::byte>> results, ThreadPool& pool, const RunOptions& options = {}) {
  return executor.execute(parameters, results, pool, options);
}

// Runs state_program in place; returns the state.
Ints run_state(const Executor& executor, Ints state, Ints other, ThreadPool& pool) {
  const Expected<> done = run(executor, {bytes(state), bytes(other)}, {bytes(state)}, pool);
  EXPECT_TRUE(done) << done.error().message();
  return state;
}

constexpr Slice kState{1, 0, 16}, kLimit{2, 0, 16}, kPredicate{3, 32, 1}, kSelector{2, 4, 4};

TEST(Executor, EmptyOneAndTwoSteps) {
  ThreadPool pool(1);
  Steps steps;
  for (int n = 0; n <= 2; ++n) {
    EXPECT_EQ(run_state(*executor(state_program(4, steps)), {1, 2, 3, 4}, Ints(4), pool),
              (Ints{1 + n, 2 + n, 3 + n, 4 + n}));
    steps.push_back(call("increment", increment, {kState}));
  }
}

TEST(Executor, ThreadsDoNotChangeResults) {
  constexpr std::int64_t n = 1000;
  const Slice a{1, 0, 4 * n}, b{2, 0, 4 * n}, t{3, 64, 4 * n};
  Ints x(n), y(n), expected(n);
  for (int i = 0; i < n; ++i) x[static_cast<std::size_t>(i)] = i, y[static_cast<std::size_t>(i)] = 3 * i;
  for (int i = 0; i < n; ++i) expected[static_cast<std::size_t>(i)] = 8 * i + 3 * i;
  const auto program = executor(state_program(n, {call("add", add, {a, b, t}, n / kBlock, 4),
                                                  call("add", add, {t, t, a}, n / kBlock, 3),
                                                  call("add", add, {a, b, a}, n / kBlock, 100)}));
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(run_state(*program, x, y, pool), expected);
  }
}

TEST(Executor, ConstantsAndCopies) {
  ThreadPool pool(2);
  Program program = state_program(4, {{Copy{{4, 0, 8}, {1, 8, 8}}}, {Copy{{2, 0, 4}, {1, 4, 4}}}, {Copy{kState, kState}}});
  const Ints constant = {70, 80};
  program.constants.emplace_back(std::as_bytes(std::span(constant)));
  program.allocations.push_back({Kind::Constant, 0, 8});
  EXPECT_EQ(run_state(*executor(std::move(program)), {1, 2, 3, 4}, {9, 8, 7, 6}, pool), (Ints{1, 9, 70, 80}));
}

TEST(Executor, LargeCopiesAreComplete) {
  constexpr std::int64_t n = 1 << 20;
  ThreadPool pool(2);
  Ints x(n), y(n);
  std::iota(y.begin(), y.end(), 5);
  EXPECT_EQ(run_state(*executor(state_program(n, {{Copy{{2, 0, 4 * n}, {1, 0, 4 * n}}}})), x, y, pool), y);
}

TEST(Executor, WhileRunsUntilThePredicateIsFalse) {
  ThreadPool pool(2);
  While loop;
  loop.condition = {call("less", less, {kState, kLimit, kPredicate})};
  loop.predicate = kPredicate;
  loop.body = {call("increment", increment, {kState})};
  const auto program = executor(state_program(4, {{loop}, call("increment", increment, {kState})}));
  for (std::int32_t limit : {-5, 0, 1, 2, 100})
    EXPECT_EQ(run_state(*program, Ints(4), {limit, 0, 0, 0}, pool)[0], std::max(limit, 0) + 1);
}

// x -= 1 in each element; in the call before, the block of the first negative one fails.
void decrement(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) --ints(buffers, 0)[i];
}

TEST(Executor, ErrorsInConditionsAndBodiesOfLoopsEndTheRun) {
  constexpr Slice kStatus{4, 0, sizeof(base::RunStatus)};
  Step check = call("checker", refuse_negative, {kStatus, kState});
  std::get<Call>(check.of).may_fail = true;
  const Step down = call("decrement", decrement, {kState}), up = call("increment", increment, {kState});
  for (const bool in_condition : {false, true})
    for (const bool known : {false, true}) {
      if (known && in_condition) continue;
      While loop;
      if (known) {
        loop.trip_count = 1000;
      } else {
        loop.condition = {call("less", less, {kState, kLimit, kPredicate})};
        loop.predicate = kPredicate;
      }
      (in_condition ? loop.condition : loop.body).insert((in_condition ? loop.condition : loop.body).begin(), check);
      loop.body.push_back(down);
      Program program = state_program(4, {{loop}, up});
      program.allocations.push_back({Kind::Status, 0, sizeof(base::RunStatus)});
      const auto made = executor(std::move(program));
      for (const int threads : {1, 2}) {
        ThreadPool pool(threads);
        Ints x(4, 5), limit(4, 100);
        const Expected<> failed = run(*made, {bytes(x), bytes(limit)}, {bytes(x)}, pool);
        ASSERT_FALSE(failed);
        EXPECT_EQ(failed.error().message(), "checker: block 0");
        EXPECT_EQ(x[0], -1);  // nothing behind it has run
      }
    }
}

TEST(Executor, KnownTripsAndNestedLoops) {
  ThreadPool pool(1);
  for (std::int64_t outer : {0, 1, 3})
    for (std::int64_t inner : {0, 1, 5}) {
      While in, out;
      in.body = {call("increment", increment, {kState})};
      in.trip_count = inner;
      out.body = {{in}, call("increment", increment, {kState}), {in}};
      out.trip_count = outer;
      const auto program = executor(state_program(4, {{out}, {in}}));
      EXPECT_EQ(run_state(*program, Ints(4), Ints(4), pool)[0], outer * (2 * inner + 1) + inner);
    }
}

TEST(Executor, ConditionalOnPredAndIndex) {
  ThreadPool pool(1);
  const std::vector<Steps> branches = {{call("1", append_digit<1>, {kState})}, {call("2", append_digit<2>, {kState})}, {}};
  Conditional index{kSelector, false, branches};
  Conditional pred{{2, 4, 1}, true, {branches[0], branches[1]}};
  const Step last = call("9", append_digit<9>, {kState});
  const auto by_index = executor(state_program(4, {{index}, last}));
  const auto by_pred = executor(state_program(4, {{pred}, last}));
  for (const auto& [selector, expected] : std::vector<std::pair<std::int32_t, std::int32_t>>{
           {0, 19}, {1, 29}, {2, 9}, {3, 9}, {-1, 9}, {INT32_MIN, 9}, {INT32_MAX, 9}})
    EXPECT_EQ(run_state(*by_index, Ints(4), {0, selector, 0, 0}, pool)[0], expected) << selector;
  for (const auto& [selector, expected] : std::vector<std::pair<std::int32_t, std::int32_t>>{{0, 29}, {1, 19}, {255, 19}})
    EXPECT_EQ(run_state(*by_pred, Ints(4), {0, selector, 0, 0}, pool)[0], expected) << selector;
}

TEST(Executor, BranchesAndLoopsInsideEachOther) {
  ThreadPool pool(1);
  While loop;
  loop.trip_count = 3;
  loop.body = {{Conditional{kSelector, false, {{call("1", append_digit<1>, {kState})}, {{While{{}, {}, {call("2", append_digit<2>, {kState})}, 2}}}}}}};
  const auto program = executor(state_program(4, {{loop}}));
  EXPECT_EQ(run_state(*program, Ints(4), {0, 0, 0, 0}, pool)[0], 111);
  EXPECT_EQ(run_state(*program, Ints(4), {0, 1, 0, 0}, pool)[0], 222222);
}

TEST(Executor, UndonatedParametersAreKept) {
  ThreadPool pool(1);
  const auto program = executor(state_program(4, {call("increment", increment, {{0, 0, 16}})}));
  Ints x = {1, 2, 3, 4}, y(4), z(4);
  ASSERT_TRUE(run(*program, {bytes(x), bytes(y)}, {bytes(z)}, pool));
  EXPECT_EQ(x, (Ints{1, 2, 3, 4}));
  EXPECT_EQ(z, (Ints{2, 3, 4, 5}));
}

TEST(Executor, WrongValuesAreErrorsAndNothingRuns) {
  ThreadPool pool(1);
  const auto program = executor(state_program(4, {call("increment", increment, {kState})}));
  Ints x(12), y(4), z(4);
  const auto at = [&](std::size_t first, std::size_t count) { return bytes(x).subspan(first, count); };
  const auto message = [&](std::vector<std::span<std::byte>> parameters, std::vector<std::span<std::byte>> results) {
    const Expected<> done = run(*program, std::move(parameters), std::move(results), pool);
    EXPECT_FALSE(done);
    if (done) return std::string();
    EXPECT_EQ(done.error().code(), Code::InvalidArgument);
    return done.error().message();
  };
  EXPECT_EQ(message({bytes(y)}, {bytes(z)}), "expects 2 parameters, found 1");
  EXPECT_EQ(message({bytes(y), bytes(y)}, {}), "expects 1 results, found 0");
  EXPECT_EQ(message({at(0, 12), bytes(y)}, {bytes(z)}), "parameter 0: has 12 bytes; expected 16");
  EXPECT_EQ(message({at(1, 16), bytes(y)}, {bytes(z)}), "parameter 0: its address is no multiple of 4");
  EXPECT_EQ(message({bytes(y), {static_cast<std::byte*>(nullptr), 16}}, {bytes(z)}), "parameter 1: is null");
  for (std::size_t overlap : {4u, 8u, 12u, 20u, 28u})  // in part, with the parameter it is aliased with
    EXPECT_EQ(message({at(16, 16), bytes(y)}, {at(overlap, 16)}).find("result 0 overlaps parameter 0"), 0u);
  EXPECT_EQ(message({bytes(y), at(0, 16)}, {at(0, 16)}).find("result 0 overlaps parameter 1"), 0u);
  EXPECT_EQ(message({at(0, 16), at(0, 16)}, {at(0, 16)}).find("result 0 overlaps parameter 1"), 0u);
  EXPECT_EQ(message({at(0, 16), at(4, 16)}, {at(0, 16)}).find("result 0 overlaps parameter 1"), 0u);
  for (const Ints& untouched : {x, y, z})
    EXPECT_TRUE(std::all_of(untouched.begin(), untouched.end(), [](int v) { return v == 0; }));
  EXPECT_TRUE(run(*program, {at(0, 16), at(16, 16)}, {at(32, 16)}, pool));   // neighbours are apart
  EXPECT_TRUE(run(*program, {at(0, 16), at(4, 16)}, {at(32, 16)}, pool));    // parameters may overlap
}

TEST(Executor, OverlapsAreFoundAmongMany) {
  Program program;
  constexpr std::size_t kPorts = 20;
  for (std::size_t i = 0; i < kPorts; ++i) {
    program.parameters.push_back({8, 1});
    program.results.push_back({8, 1});
  }
  const auto many = executor(std::move(program));
  ThreadPool pool(1);
  std::vector<std::byte> memory(400);
  std::vector<std::span<std::byte>> parameters, results;
  for (std::size_t i = 0; i < kPorts; ++i) {
    parameters.push_back(std::span(memory).subspan(16 * ((7 * i) % kPorts), 8));
    results.push_back(std::span(memory).subspan(16 * ((3 * i) % kPorts) + 8, 8));
  }
  EXPECT_TRUE(run(*many, parameters, results, pool));
  for (std::size_t i = 0; i < kPorts; ++i)
    for (std::size_t j = 0; j < kPorts; ++j) {
      auto changed = results;
      changed[i] = std::span(memory).subspan(static_cast<std::size_t>(parameters[j].data() - memory.data()) + 4, 8);
      EXPECT_FALSE(run(*many, parameters, changed, pool)) << i << " " << j;
    }
}

TEST(Executor, OverlapsWithALongRangeAreFoundPastAShortOne) {
  Program program;
  program.parameters = {{32, 1}, {4, 1}};
  program.results = {{4, 1}};
  const auto both = executor(std::move(program));
  ThreadPool pool(1);
  std::byte memory[40];
  const auto at = [&](std::size_t first, std::size_t size) { return std::span(memory).subspan(first, size); };
  EXPECT_FALSE(run(*both, {at(0, 32), at(4, 4)}, {at(16, 4)}, pool));
  EXPECT_TRUE(run(*both, {at(0, 32), at(4, 4)}, {at(32, 4)}, pool));
}

TEST(Executor, ArenaAllocationsAreApart) {
  Program program = state_program(4, {{Copy{kState, {3, 64, 16}}}, {Copy{kLimit, {4, 0, 16}}}, {Copy{{3, 64, 16}, kState}}});
  program.allocations.push_back({Kind::Arena, 0, 16});
  program.allocations.push_back({Kind::Arena, 0, 100});
  const auto three = executor(std::move(program));
  EXPECT_EQ(three->arena_bytes(), 128 + 64 + 128);
  ThreadPool pool(1);
  EXPECT_EQ(run_state(*three, {1, 2, 3, 4}, {5, 6, 7, 8}, pool), (Ints{1, 2, 3, 4}));
}

TEST(Executor, EmptyArraysMayBeNull) {
  Program program;
  program.parameters = {{0, 4}};
  program.results = {{0, 4}};
  ThreadPool pool(1);
  EXPECT_TRUE(run(*executor(std::move(program)), {{}}, {{}}, pool));
}

TEST(Executor, InconsistentPlansAreRefused) {
  const auto message = [](Program program) {
    Expected<std::unique_ptr<Executor>> made = Executor::create(std::move(program));
    EXPECT_FALSE(made);
    return made ? std::string() : made.error().message();
  };
  EXPECT_EQ(message(state_program(4, {call("k", increment, {{1, 4, 16}})})),
            "test, step 1 k: a slice is out of its allocation");
  EXPECT_EQ(message(state_program(4, {call("k", increment, {{9, 0, 16}})})),
            "test, step 1 k: a slice names no allocation");
  EXPECT_EQ(message(state_program(4, {{Copy{kState, {3, 0, 8}}}})), "test, step 1 : a copy between different sizes");
  EXPECT_EQ(message(state_program(4, {{Copy{{3, 0, 8}, {3, 4, 8}}}})), "test, step 1 : a copy onto a part of itself");
  EXPECT_EQ(message(state_program(4, {{Copy{{0, 0, 8}, {1, 4, 8}}}})), "test, step 1 : a copy onto a part of itself");
  EXPECT_FALSE(message(state_program(4, {{While{{}, {3, 0, 4}, {}, {}}}})).empty());
  EXPECT_FALSE(message(state_program(4, {{Conditional{kSelector, true, {{}, {}}}}})).empty());
  EXPECT_FALSE(message(state_program(4, {{Conditional{kSelector, false, {}}}})).empty());
  EXPECT_FALSE(message(state_program(4, {call("k", nullptr, {})})).empty());
  Program twice = state_program(4, {});
  twice.aliases.push_back({0, 1});
  EXPECT_FALSE(message(std::move(twice)).empty());
}

TEST(Executor, SecondRunFaultsNoPage) {
  constexpr std::int64_t n = 1 << 18;
  const Slice a{1, 0, 4 * n}, b{2, 0, 4 * n}, t{3, 64, 4 * n};
  const auto program = executor(state_program(n, {call("add", add, {a, b, t}, n / kBlock, 2), call("add", add, {t, b, a}, n / kBlock, 2)}));
  ThreadPool pool(2);
  Ints x(n), y(n, 1);
  const std::vector<std::span<std::byte>> parameters = {bytes(x), bytes(y)}, results = {bytes(x)};
  const auto faults = [] {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    return usage.ru_minflt;
  };
  for (int warm = 0; warm < 3; ++warm) ASSERT_TRUE(program->execute(parameters, results, pool));
  const long before = faults();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(program->execute(parameters, results, pool));
  EXPECT_LE(faults() - before, 64);  // a fresh arena each time would fault 2560 times
  EXPECT_EQ(x[17], 2 * 13);
  EXPECT_EQ(program->num_kept(), 1);
  program->trim();
  EXPECT_EQ(program->num_kept(), 0);
}

TEST(Executor, SecondRunAllocatesNothing) {
  const Slice half{1, 0, 8};
  While loop;
  loop.trip_count = 3;
  loop.body = {call("add", add, {kState, kState, kState}, 8, 2), {Copy{half, {3, 0, 8}}}};
  const auto program = executor(state_program(32, {{loop}}));
  ThreadPool pool(2);
  Ints x(32), y(32), z(32);
  const std::vector<std::span<std::byte>> parameters = {bytes(x), bytes(y)}, results = {bytes(z)};
  ASSERT_TRUE(program->execute(parameters, results, pool));
  const std::int64_t before = num_allocations();
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(program->execute(parameters, results, pool));
  EXPECT_EQ(num_allocations(), before);
}

TEST(Executor, ManyRunsAtOnce) {
  constexpr std::int64_t n = 256;
  const Slice a{1, 0, 4 * n}, b{2, 0, 4 * n}, t{3, 64, 4 * n};
  While loop;
  loop.trip_count = 20;
  loop.body = {call("add", add, {a, b, t}, n / kBlock, 3), call("add", add, {t, b, a}, n / kBlock, 3)};
  const auto program = executor(state_program(n, {{loop}}));
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int i = 0; i < 100; ++i)
    callers.emplace_back([&, i] { EXPECT_EQ(run_state(*program, Ints(n), Ints(n, i), pool), Ints(n, 40 * i)); });
  for (std::thread& caller : callers) caller.join();
}

// Kernels use all of their worker's scratch; so do kernels that a region starts.
constexpr std::int64_t kScratch = 1000;

void use_scratch(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  for (std::int64_t i = begin; i < end; ++i) {
    std::memset(scratch, static_cast<int>(i % 100), kScratch);
    for (int j = 0; j < kScratch; ++j) ints(buffers, 0)[i] += static_cast<const char*>(scratch)[j];
  }
}

void region(void* const* buffers, std::int64_t, std::int64_t, void* scratch) {
  std::memset(scratch, 1, 64);
  fork_join(use_scratch, buffers, 100, kScratch);
  fork_join(use_scratch, buffers, 100, kScratch);
  EXPECT_EQ(static_cast<const char*>(scratch)[63], 1);
}

TEST(Executor, ScratchOfCallsAndOfRegions) {
  constexpr std::int64_t n = 100;
  Step direct = call("direct", use_scratch, {{1, 0, 4 * n}}, 100, 4), forking = call("region", region, {{1, 0, 4 * n}});
  std::get<Call>(direct.of).scratch_bytes = kScratch;
  Call& fork = std::get<Call>(forking.of);
  fork.scratch_bytes = 64;
  fork.forks = true;
  fork.forked_scratch_bytes = kScratch;
  const auto program = executor(state_program(n, {direct, forking, direct}));
  for (int threads : {1, 4, 2}) {
    ThreadPool pool(threads);
    const Ints got = run_state(*program, Ints(n), Ints(n), pool);
    for (int i = 0; i < n; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 4 * kScratch * i);
  }
  EXPECT_EQ(program->scratch_bytes(1), 2 * 1024);
  EXPECT_EQ(program->scratch_bytes(8), 8 * 1024 + 4 * 1024);
}

// Each block writes what its bytes of scratch say, first and last; scratch begins at a line.
template <std::int64_t size>
void use_all_scratch(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  auto* bytes = static_cast<std::uint8_t*>(scratch);
  if (size > 0 && reinterpret_cast<std::uintptr_t>(scratch) % 64 != 0) return;
  for (std::int64_t i = begin; i < end; ++i) {
    if (size > 0) std::memset(bytes, static_cast<int>(i % 100 + 1), size);
    ints(buffers, 0)[i] += size > 0 ? bytes[0] + bytes[size - 1] : 2;
  }
}

// Between calls that ask for none, one that asks for a byte and one for far more than a worker had before.
TEST(Executor, ScratchOfNoBytesAndOfMany) {
  constexpr std::int64_t n = 64, kMany = (std::int64_t{3} << 20) + 1;
  const std::vector<Slice> state = {{1, 0, 4 * n}};
  Step none = call("none", use_all_scratch<0>, state, n, 4), one = call("one", use_all_scratch<1>, state, n, 4),
       many = call("many", use_all_scratch<kMany>, state, n, 4);
  std::get<Call>(one.of).scratch_bytes = 1;
  std::get<Call>(many.of).scratch_bytes = kMany;
  const auto without = executor(state_program(n, {none, none})), with = executor(state_program(n, {none, one, none, many, one}));
  for (const int threads : {1, 4, 2}) {
    ThreadPool pool(threads);
    EXPECT_EQ(without->scratch_bytes(threads), 0);
    EXPECT_EQ(run_state(*without, Ints(n), Ints(n), pool), Ints(n, 4));
    EXPECT_GE(with->scratch_bytes(threads), threads * kMany);
    EXPECT_LE(with->scratch_bytes(threads), threads * (kMany + 4096));
    const Ints got = run_state(*with, Ints(n), Ints(n), pool);
    for (int i = 0; i < n; ++i) EXPECT_EQ(got[static_cast<std::size_t>(i)], 4 + 3 * 2 * (i + 1)) << threads << " threads";
  }
}

// Memory 3 is an arena: scratch lies in it where it has room for all workers of the run, else beside it.
TEST(Executor, ScratchLiesInTheArenaWhereThereIsRoom) {
  constexpr std::int64_t n = 1200;
  for (const std::int64_t room : {0, 1, 2, 4}) {
    Step step = call("direct", use_scratch, {{1, 0, 4 * n}}, n, 4);
    std::get<Call>(step.of).scratch_bytes = kScratch;
    std::get<Call>(step.of).scratch_room = {3, 64, room * 1024};
    const auto program = executor(state_program(n, {step, step}));
    for (const int threads : {1, 2, 4, 8}) {
      ThreadPool pool(threads);
      const std::int64_t workers = std::min(threads, 4);
      EXPECT_EQ(program->scratch_bytes(threads), room >= workers ? 0 : workers * 1024) << room << " " << threads;
      const Ints got = run_state(*program, Ints(n), Ints(n), pool);
      for (int i = 0; i < n; ++i) ASSERT_EQ(got[static_cast<std::size_t>(i)], 2 * kScratch * (i % 100));
    }
  }
}

TEST(ForkJoin, OutsideARunTheCallerDoesAll) {
  Ints x(8);
  void* buffers[] = {x.data()};
  fork_join(increment, buffers, 2, 0);
  EXPECT_EQ(x, Ints(8, 1));
}

// The first block that fails says so, on any number of threads; nothing after it runs; the next run is a new one.
TEST(Executor, ACallThatFailsEndsTheRun) {
  constexpr std::int64_t n = 400;
  Step check = call("checker", refuse_negative, {{4, 0, sizeof(base::RunStatus)}, {1, 0, 4 * n}}, n / kBlock, 8);
  std::get<Call>(check.of).may_fail = true;
  Program program = state_program(n, {check, call("increment", increment, {{1, 0, 4 * n}}, n / kBlock)});
  program.allocations.push_back({Kind::Status, 0, sizeof(base::RunStatus)});
  const auto made = executor(std::move(program));
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    Ints x(n), y(n);
    x[7 * kBlock] = x[30 * kBlock] = x[99 * kBlock] = -5;
    const Expected<> failed = run(*made, {bytes(x), bytes(y)}, {bytes(x)}, pool);
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code(), Code::FailedPrecondition);
    EXPECT_EQ(failed.error().message(), "checker: block 7");
    EXPECT_EQ(x[0], 0);
    EXPECT_EQ(run_state(*made, Ints(n), y, pool), Ints(n, 1));
  }
}

TEST(Executor, ObserversSeeEachStepAndItsMemory) {
  While loop;
  loop.trip_count = 2;
  loop.body = {call("increment", increment, {kState})};
  const auto program = executor(state_program(4, {{loop}, {Copy{kState, {3, 0, 16}}}}));
  std::string seen;
  const std::function<void(const StepEvent&)> observer = [&](const StepEvent& event) {
    const Slice first = std::holds_alternative<Copy>(event.of->of) ? Slice{3, 0, 4} : kState;
    std::int32_t value;
    std::memcpy(&value, event.at(first), sizeof(value));
    seen += std::to_string(event.step) + "/" + std::to_string(event.iteration) + "=" + std::to_string(value) + " ";
  };
  ThreadPool pool(1);
  Ints x(4), y(4);
  ASSERT_TRUE(run(*program, {bytes(x), bytes(y)}, {bytes(x)}, pool, {.observer = &observer}));
  EXPECT_EQ(seen, "1/0=1 1/1=2 2/0=2 ");
}

TEST(Executor, ProgramsPrint) {
  While loop;
  loop.condition = {call("less", less, {kState, kLimit, kPredicate})};
  loop.predicate = kPredicate;
  loop.body = {{Conditional{kSelector, false, {{{Copy{kState, {3, 0, 16}}}}, {}}}}};
  EXPECT_EQ(to_string(state_program(4, {{loop}, call("add", add, {kState, kLimit, kState}, 8, 2)})),
            R"(program test {
  memory 0 = parameter 0: 16 bytes
  memory 1 = result 0: 16 bytes
  memory 2 = parameter 1: 16 bytes
  memory 3 = arena: 80 bytes
  alias result 0 with parameter 0
  0: while 3[32:33]
  condition {
    1: call less(1[0:16], 2[0:16], 3[32:33]) blocks 1 workers 1
  }
  body {
    2: switch 2[4:8]
    branch 0 {
      3: copy 1[0:16] to 3[0:16]
    }
    branch 1 {
    }
  }
  4: call add(1[0:16], 2[0:16], 1[0:16]) blocks 8 workers 2
}
)");
}

#if defined(__SSE2__)
void store_mode(void* const* buffers, std::int64_t, std::int64_t, void*) {
  *ints(buffers, 0) = static_cast<std::int32_t>(_mm_getcsr());
}

TEST(Executor, RunsInTheDefaultFloatModeAndRestoresTheCallers) {
  const auto program = executor(state_program(4, {call("mode", store_mode, {kState})}));
  ThreadPool pool(1);
  const unsigned before = _mm_getcsr();
  _mm_setcsr(0x1f80 | 0x8040);
  const Ints got = run_state(*program, Ints(4), Ints(4), pool);
  EXPECT_EQ(_mm_getcsr(), 0x1f80u | 0x8040u);
  _mm_setcsr(before);
  EXPECT_EQ(got[0] & ~0x3f, 0x1f80);  // what flags are up says nothing
}
#endif

// What the hooks of mapped host memory were called with.
struct Hooks {
  std::vector<std::pair<std::byte*, std::int64_t>> mapped;
  std::vector<std::byte*> unmapped;
  bool refuses = false;

  std::shared_ptr<HostAllocator> allocator() {
    HostAllocator::Options options;
    options.map = [this](std::optional<int>, std::byte* chunk, std::int64_t size) -> Expected<> {
      if (refuses) return Error(Code::Unavailable, "the device is away");
      mapped.emplace_back(chunk, size);
      return {};
    };
    options.unmap = [this](std::optional<int>, std::byte* chunk) -> Expected<> {
      unmapped.push_back(chunk);
      return {};
    };
    options.max_cached_bytes = 0;
    return std::make_shared<HostAllocator>(std::move(options));
  }
};

std::byte* g_seen = nullptr;
void see(void* const* buffers, std::int64_t, std::int64_t, void*) { g_seen = static_cast<std::byte*>(buffers[0]); }

TEST(Executor, MappedHostMemoryComesFromTheAllocator) {
  Program program = state_program(4, {call("see", see, {{5, 64, 36}})});
  program.allocations.push_back({Kind::Arena, 0, 100, 5});
  program.allocations.push_back({Kind::Arena, 0, 100, 2});
  Hooks hooks;
  const auto allocator = hooks.allocator();
  ThreadPool pool(1);
  Ints x(4), y(4);
  {
    const auto made = Executor::create(std::move(program), {.host_memory = allocator.get()});
    ASSERT_TRUE(made);
    EXPECT_EQ((*made)->arena_bytes(), 4096 + 128 + 128);  // spaces begin with a page
    EXPECT_TRUE(hooks.mapped.empty());                    // until a run needs it
    for (int n = 0; n < 3; ++n) ASSERT_TRUE(run(**made, {bytes(x), bytes(y)}, {bytes(x)}, pool));
    ASSERT_EQ(hooks.mapped.size(), 1u);  // the next run finds it
    const auto [chunk, size] = hooks.mapped[0];
    EXPECT_GE(g_seen - 64, chunk);
    EXPECT_LE(g_seen + 36, chunk + size);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(g_seen - 64) % 4096, 0u);
    (*made)->trim();
  }
  EXPECT_EQ(hooks.unmapped, std::vector<std::byte*>{hooks.mapped[0].first});
}

TEST(Executor, HostMemoryThatCannotBeMappedIsAnError) {
  Program program = state_program(4, {});
  program.allocations.push_back({Kind::Arena, 0, 100, 2});
  Hooks hooks;
  hooks.refuses = true;
  const auto allocator = hooks.allocator();
  const auto made = Executor::create(std::move(program), {.host_memory = allocator.get()});
  ThreadPool pool(1);
  Ints x(4), y(4);
  const Expected<> done = run(**made, {bytes(x), bytes(y)}, {bytes(x)}, pool);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Unavailable);
  EXPECT_NE(done.error().message().find("test: host memory: "), std::string::npos);
}

TEST(Executor, NoMemoryForTheArenaIsAnError) {
  Program program = state_program(4, {});
  program.allocations.push_back({Kind::Arena, 0, std::int64_t{1} << 55});
  ThreadPool pool(1);
  Ints x(4), y(4);
  const Expected<> done = run(*executor(std::move(program)), {bytes(x), bytes(y)}, {bytes(x)}, pool);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::ResourceExhausted);
  EXPECT_NE(done.error().message().find("test: arena: "), std::string::npos);
}

TEST(Executor, NoMemoryNamesTheOwnersOfThePeak) {
  Program program = state_program(1 << 20, {});
  program.arena_owners = "\n  4194304: fusion.7 (model.py:3)";
  HostAllocator small({.max_bytes = 1 << 20});
  const auto made = Executor::create(std::move(program), {.allocator = &small});
  ThreadPool pool(1);
  Ints x(1 << 20), y(1 << 20);
  const Expected<> done = run(**made, {bytes(x), bytes(y)}, {bytes(x)}, pool);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::ResourceExhausted);
  EXPECT_NE(done.error().message().find("fusion.7 (model.py:3)"), std::string::npos);
  EXPECT_EQ(small.statistics().num_buffers, 0);
}

// A run that is under way until it is told to end.
struct Gate {
  std::atomic<int> inside = 0, most = 0;
  std::atomic<bool> open = false;
} gate;

void wait_at_gate(void* const*, std::int64_t, std::int64_t, void*) {
  const int now = ++gate.inside;
  for (int most = gate.most; most < now && !gate.most.compare_exchange_weak(most, now);) {
  }
  while (!gate.open) std::this_thread::yield();
  --gate.inside;
}

TEST(Executor, RunsBeyondTheMostWait) {
  gate.most = 0;
  gate.open = false;
  const auto made = Executor::create(state_program(4, {call("gate", wait_at_gate, {kState})}), {.max_concurrent_runs = 2});
  ThreadPool pool(1);
  std::atomic<int> ended = 0;
  std::vector<std::thread> callers;
  for (int i = 0; i < 6; ++i)
    callers.emplace_back([&] {
      for (int n = 0; n < 50; ++n) run_state(**made, Ints(4), Ints(4), pool);
      ++ended;
    });
  while (gate.inside < 2) std::this_thread::yield();
  gate.open = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(ended, 6);
  EXPECT_EQ(gate.most, 2);
}

// No run may wait for ever because the one before it got no memory.
TEST(Executor, RunsThatWaitEndWhereNoneGetsItsArena) {
  constexpr int kRuns = 6;
  std::atomic<bool> is_full = true;
  std::atomic<int> begun = 0, refused = 0;
  HostAllocator::Options options;
  options.map = [&](std::optional<int>, std::byte*, std::int64_t) -> Expected<> {
    while (is_full && begun < kRuns) std::this_thread::yield();  // the others come and wait meanwhile
    if (is_full) return Error(Code::ResourceExhausted, "no more");
    return {};
  };
  HostAllocator allocator(std::move(options));
  const auto made = Executor::create(state_program(4, {}), {.allocator = &allocator, .max_concurrent_runs = 1});
  std::vector<std::thread> callers;
  for (int i = 0; i < kRuns; ++i)
    callers.emplace_back([&] {
      ThreadPool pool(1);
      Ints x(4), y(4);
      ++begun;
      const Expected<> done = run(**made, {bytes(x), bytes(y)}, {bytes(x)}, pool);
      if (!done && done.error().code() == Code::ResourceExhausted) ++refused;
    });
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(refused, kRuns);
  EXPECT_EQ(allocator.statistics().num_buffers, 0);
  EXPECT_EQ(allocator.statistics().num_chunks, 0);
  is_full = false;
  ThreadPool pool(1);
  EXPECT_EQ(run_state(**made, Ints(4, 3), Ints(4), pool), Ints(4, 3));
}

// The run calls its own program once more.
const Executor* again = nullptr;
void run_again(void* const*, std::int64_t, std::int64_t, void*) {
  if (again == nullptr) return;
  ThreadPool pool(1);
  EXPECT_EQ(run_state(*std::exchange(again, nullptr), Ints(4, 1), Ints(4), pool), Ints(4, 1));
}

TEST(Executor, ARunWithinARunDoesNotWait) {
  const auto program = Executor::create(state_program(4, {call("again", run_again, {kState})}), {.max_concurrent_runs = 1});
  ThreadPool pool(1);
  again = program->get();
  EXPECT_EQ(run_state(**program, Ints(4, 2), Ints(4), pool), Ints(4, 2));
  EXPECT_EQ(again, nullptr);
}

TEST(Executor, CancelledRunsEndAndTheNextIsAsAny) {
  While forever;
  forever.condition = {call("less", less, {kState, kLimit, kPredicate})};
  forever.predicate = kPredicate;
  const auto program = executor(state_program(4, {{forever}}));
  ThreadPool pool(1);
  CancelToken token;
  RunOptions options;
  options.cancel = &token;
  Ints state(4), limit(4, 1);
  std::thread stopper([&] { token.cancel(); });
  const Expected<> done = run(*program, {bytes(state), bytes(limit)}, {bytes(state)}, pool, options);
  stopper.join();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Cancelled);
  EXPECT_EQ(run_state(*program, Ints(4, 5), limit, pool), Ints(4, 5));  // the condition is false at once
  token.reset();
  state[0] = 1;
  EXPECT_TRUE(run(*program, {bytes(state), bytes(limit)}, {bytes(state)}, pool, options));
}

#ifndef HLOOM_TSAN
TEST(Executor, AForkedChildRunsProgramsWhileOthersWere) {
  While loop;
  loop.trip_count = 5;
  loop.body = {call("add", increment, {kState}, 1, 1), call("add", add, {kState, kState, kState}, 1, 2)};
  const auto program = executor(state_program(4, {{loop}}));
  ThreadPool pool(2);
  const Ints want = run_state(*program, Ints(4), Ints(4), pool);
  std::atomic<bool> stop = false;
  std::vector<std::thread> others;
  for (int t = 0; t < 3; ++t)
    others.emplace_back([&] {
      while (!stop) run_state(*program, Ints(4), Ints(4), pool);
    });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      const bool good = run_state(*program, Ints(4), Ints(4), pool) == want;
      _exit(good ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  stop = true;
  for (std::thread& other : others) other.join();
}
#endif

}  // namespace
}  // namespace hloom::runtime

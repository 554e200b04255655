// Work that goes on beside the steps of a run: errands of a pool, starts and finishes of a program.
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

#include "base/run_status.h"
#include "runtime/allocations_test.h"
#include "runtime/executor.h"

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

void wait_for(const std::atomic<int>& word, int value) {
  while (word.load() < value) std::this_thread::yield();
}

// --- Errands of a pool

struct Counted {
  Errand errand;
  std::atomic<int> times = 0;
};

void count(void* context) { ++static_cast<Counted*>(context)->times; }

TEST(Errands, EachIsDoneOnceWhoeverSendsThem) {
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    std::vector<std::thread> owners;
    for (int owner = 0; owner < 4; ++owner)
      owners.emplace_back([&pool] {
        std::vector<Counted> all(20);
        for (int round = 1; round <= 25; ++round) {
          for (Counted& one : all) {
            one.errand.function = count;
            one.errand.context = &one;
            pool.send(one.errand);
          }
          for (std::size_t n = all.size(); n-- > 0;) {
            Counted& one = all[(7 * n) % all.size()];
            pool.finish(one.errand);
            EXPECT_EQ(one.times, round);
          }
        }
      });
    for (std::thread& owner : owners) owner.join();
  }
}

struct Gate {
  Errand errand;
  std::atomic<int> begun = 0, open = 0, ended = 0;
  std::thread::id thread;
};

void pass(void* context) {
  Gate& gate = *static_cast<Gate*>(context);
  gate.thread = std::this_thread::get_id();
  ++gate.begun;
  wait_for(gate.open, 1);
  ++gate.ended;
}

void send(ThreadPool& pool, Gate& gate) {
  gate.errand.function = pass;
  gate.errand.context = &gate;
  pool.send(gate.errand);
}

TEST(Errands, AWorkerDoesThemWhileTheSenderGoesOn) {
  ThreadPool pool(2);
  for (int round = 0; round < 3; ++round) {
    Gate gate;
    send(pool, gate);
    wait_for(gate.begun, 1);
    EXPECT_EQ(gate.ended, 0);
    gate.open = 1;
    pool.finish(gate.errand);
    EXPECT_EQ(gate.ended, 1);
    EXPECT_NE(gate.thread, std::this_thread::get_id());
  }
}

TEST(Errands, ThoseThatNobodyHasBegunTheOwnerDoes) {
  ThreadPool pool(2);
  Gate first, second;
  send(pool, first);
  wait_for(first.begun, 1);
  second.open = 1;
  send(pool, second);
  pool.finish(second.errand);  // the only worker is at the first
  EXPECT_EQ(second.thread, std::this_thread::get_id());
  first.open = 1;
  pool.finish(first.errand);
}

TEST(Errands, PartsOfOtherWorkGoOnMeanwhile) {
  for (const int threads : {2, 3, 4}) {
    ThreadPool pool(threads);
    std::vector<Gate> gates(static_cast<std::size_t>(threads - 1));
    for (Gate& gate : gates) send(pool, gate);
    for (Gate& gate : gates) wait_for(gate.begun, 1);  // all workers are at one
    std::atomic<int> parts = 0;
    for (int round = 0; round < 3; ++round)
      pool.run(threads, [](void* context, int, int) { ++*static_cast<std::atomic<int>*>(context); }, &parts);
    EXPECT_EQ(parts, 3 * threads);
    for (Gate& gate : gates) gate.open = 1;
    for (Gate& gate : gates) pool.finish(gate.errand);
  }
}

#if !defined(HLOOM_TSAN)
TEST(Errands, AChildDoesWhatAWorkerOfItsParentHadBegun) {
  ThreadPool pool(2);
  Gate gate;
  send(pool, gate);
  wait_for(gate.begun, 1);
  const pid_t child = fork();
  if (child == 0) {
    gate.open = 1;
    pool.finish(gate.errand);
    _exit(gate.ended == 1 ? 0 : 1);
  }
  gate.open = 1;
  pool.finish(gate.errand);
  int status = 1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}
#endif

// --- Programs

// Memory: 0 the parameter, 1 the result, 2 the arena, each of n elements; 3 the status.
Program program(std::int64_t n, Steps steps) {
  Program p;
  p.name = "test";
  p.parameters = {{4 * n, 4}};
  p.results = {{4 * n, 4}};
  p.allocations = {{Kind::Parameter, 0, 4 * n}, {Kind::Result, 0, 4 * n}, {Kind::Arena, 0, 4 * n},
                   {Kind::Status, 0, sizeof(base::RunStatus)}};
  p.steps = std::move(steps);
  return p;
}

std::unique_ptr<Executor> executor(Program p) {
  auto made = Executor::create(std::move(p));
  if (!made) ADD_FAILURE() << made.error().message();
  return *std::move(made);
}

Expected<> run(const Executor& executor, const Ints& x, Ints& y, ThreadPool& pool, const RunOptions& options = {}) {
  const auto bytes = [](const Ints& v) {
    return std::span(reinterpret_cast<std::byte*>(const_cast<std::int32_t*>(v.data())), 4 * v.size());
  };
  const std::span<std::byte> in[] = {bytes(x)}, out[] = {bytes(y)};
  return executor.execute(in, out, pool, options);
}

Call call(base::KernelFunction function, std::vector<Slice> arguments) {
  Call result;
  result.name = "call";
  result.function = function;
  result.arguments = std::move(arguments);
  return result;
}

constexpr std::int64_t kCount = 4096;

// y += x
void add_to(void* const* buffers, std::int64_t, std::int64_t, void*) {
  for (std::int64_t n = 0; n < kCount; ++n)
    static_cast<std::int32_t*>(buffers[1])[n] += static_cast<const std::int32_t*>(buffers[0])[n];
}

// y = 10
void ten(void* const* buffers, std::int64_t, std::int64_t, void*) {
  for (std::int64_t n = 0; n < kCount; ++n) static_cast<std::int32_t*>(buffers[0])[n] = 10;
}

constexpr Slice kX{0, 0, 4 * kCount}, kY{1, 0, 4 * kCount}, kT{2, 0, 4 * kCount}, kStatus{3, 0, sizeof(base::RunStatus)};

// In each of five rounds a copy of x to t goes on beside a call; then t is added to y.
Program looped() {
  While loop;
  loop.trip_count = 5;
  loop.body = {{Start{0, Copy{kX, kT}}}, {call(add_to, {kX, kY})}, {Finish{0}}, {call(add_to, {kT, kY})}};
  return program(kCount, {{call(ten, {kY})}, {std::move(loop)}});
}

TEST(Started, ValuesAreThoseOfOneStepAfterTheOther) {
  Ints x(kCount), want(kCount);
  std::iota(x.begin(), x.end(), -50);
  for (std::size_t n = 0; n < kCount; ++n) want[n] = 10 + 10 * x[n];
  const auto p = executor(looped());
  for (const int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    for (int round = 0; round < 20; ++round) {
      Ints y(kCount);
      const auto done = run(*p, x, y, pool);
      ASSERT_TRUE(done) << done.error().message();
      EXPECT_EQ(y, want);
    }
  }
}

TEST(Started, CallsMayGoOnBesideToo) {
  const auto p = executor(program(kCount, {{Start{0, call(ten, {kT})}}, {call(ten, {kY})}, {Finish{0}}, {call(add_to, {kT, kY})}}));
  ThreadPool pool(2);
  Ints x(kCount), y(kCount);
  ASSERT_TRUE(run(*p, x, y, pool));
  EXPECT_EQ(y, Ints(kCount, 20));
}

TEST(Started, ManyRunsAtOnce) {
  Ints x(kCount, 3);
  const auto p = executor(looped());
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 6; ++caller)
    callers.emplace_back([&] {
      for (int round = 0; round < 20; ++round) {
        Ints y(kCount);
        EXPECT_TRUE(run(*p, x, y, pool));
        EXPECT_EQ(y, Ints(kCount, 40));
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(Started, AnObserverSeesWhatIsGiven) {
  const auto p = executor(looped());
  ThreadPool pool(2);
  Ints x(kCount, 3), y(kCount);
  int starts = 0;
  const std::function<void(const StepEvent&)> observer = [&](const StepEvent& event) {
    if (!std::holds_alternative<Start>(event.of->of)) return;
    ++starts;
    EXPECT_EQ(std::memcmp(event.at(kT), x.data(), 4 * kCount), 0);
  };
  ASSERT_TRUE(run(*p, x, y, pool, {.observer = &observer}));
  EXPECT_EQ(starts, 5);
  EXPECT_EQ(y, Ints(kCount, 40));
}

// What goes on when a run ends is ended with it.
std::atomic<int> begun = 0, ended = 0;
CancelToken* token = nullptr;

void slow(void* const*, std::int64_t, std::int64_t, void*) {
  ++begun;
  for (int n = 0; n < 100; ++n) std::this_thread::yield();
  ++ended;
}

void refuse(void* const* buffers, std::int64_t, std::int64_t, void*) {
  base::report_failure(*static_cast<base::RunStatus*>(buffers[0]), 0, Error(Code::FailedPrecondition, "no"));
}

void cancel(void* const*, std::int64_t, std::int64_t, void*) { token->cancel(); }

TEST(Started, NothingGoesOnAfterAnErrorOrACancelledRun) {
  Call failing = call(refuse, {kStatus});
  failing.may_fail = true;
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    for (const bool by_cancel : {false, true}) {
      const Call last = by_cancel ? call(cancel, {}) : failing;
      const auto p = executor(program(
          kCount, {{Start{0, call(slow, {kT})}}, {Start{1, call(slow, {kY})}}, {last}, {Finish{1}}, {Finish{0}}}));
      for (int round = 0; round < 20; ++round) {
        CancelToken own;
        token = &own;
        begun = ended = 0;
        Ints x(kCount), y(kCount);
        const auto done = run(*p, x, y, pool, {.cancel = &own});
        EXPECT_EQ(begun, 2);
        EXPECT_EQ(ended, 2);
        ASSERT_FALSE(done);
        EXPECT_EQ(done.error().code(), by_cancel ? Code::Cancelled : Code::FailedPrecondition);
      }
    }
  }
}

TEST(Started, AWarmRunAllocatesNothing) {
  const auto p = executor(looped());
  ThreadPool pool(3);
  Ints x(kCount, 3), y(kCount);
  for (int round = 0; round < 3; ++round) ASSERT_TRUE(run(*p, x, y, pool));
  const std::int64_t before = num_allocations();
  ASSERT_TRUE(run(*p, x, y, pool));
  EXPECT_EQ(num_allocations(), before);
}

TEST(Started, PlansThatDoNotHoldAreRefused) {
  Call scratch = call(ten, {kT}), failing = call(ten, {kT});
  scratch.scratch_bytes = 64;
  failing.may_fail = true;
  While loop;
  loop.trip_count = 2;
  loop.body = {{Start{0, Copy{kX, kT}}}};
  const std::pair<Steps, const char*> wrong[] = {
      {{{Start{0, Copy{kX, kT}}}}, "not finished"},
      {{{Finish{0}}}, "a finish of what was not started"},
      {{{Start{1, Copy{kX, kT}}}, {Finish{1}}}, "a start out of turn"},
      {{{Start{0, Copy{kX, kT}}}, {Finish{0}}, {Finish{0}}}, "a finish of what was not started"},
      {{{Start{0, scratch}}, {Finish{0}}}, "needs scratch"},
      {{{Start{0, failing}}, {Finish{0}}}, "fails"},
      {{{loop}, {Finish{0}}}, "not finished"},
  };
  for (const auto& [steps, message] : wrong) {
    const auto made = Executor::create(program(kCount, steps));
    ASSERT_FALSE(made) << message;
    EXPECT_THAT(made.error().message(), testing::HasSubstr(message));
  }
}

TEST(Started, Prints) {
  EXPECT_THAT(to_string(looped()), testing::HasSubstr("start 0: copy 0[0:16384] to 2[0:16384]\n"));
  EXPECT_THAT(to_string(looped()), testing::HasSubstr(": finish 0\n"));
}

}  // namespace
}  // namespace hloom::runtime

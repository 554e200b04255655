#include "runtime/graph.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "base/run_status.h"
#include "runtime/executor.h"

namespace hloom::runtime {
namespace {

Task task(std::vector<Access> accesses, std::int64_t cost = kLargeCost, bool ordered = false) {
  Task t;
  t.cost = cost;
  t.ordered = ordered;
  t.accesses = std::move(accesses);
  return t;
}

Access reads(std::int64_t begin, std::int64_t end, std::int64_t memory = 0) { return {memory, begin, end, false}; }
Access writes(std::int64_t begin, std::int64_t end, std::int64_t memory = 0) { return {memory, begin, end, true}; }

bool waits(const Task& a, const Task& b) {
  // Two more that are independent, so that there is a graph.
  const Task tasks[] = {a, b, task({}), task({})};
  const std::optional<Graph> graph = make_graph(tasks);
  EXPECT_TRUE(graph);
  return graph->nodes[1].waits_for == 1 && graph->nodes[0].num_next == 1;
}

TEST(Graph, OneWaitsForTheOtherIfOneWritesWhatTheOtherUses) {
  EXPECT_TRUE(waits(task({writes(0, 8)}), task({reads(0, 8)})));
  EXPECT_TRUE(waits(task({reads(0, 8)}), task({writes(0, 8)})));
  EXPECT_TRUE(waits(task({writes(0, 8)}), task({writes(7, 9)})));
  EXPECT_TRUE(waits(task({reads(20, 30), writes(0, 8)}), task({writes(8, 12), reads(4, 5)})));
  EXPECT_FALSE(waits(task({reads(0, 8)}), task({reads(0, 8)})));
  EXPECT_FALSE(waits(task({writes(0, 8)}), task({writes(8, 9)})));
  EXPECT_FALSE(waits(task({writes(0, 8)}), task({writes(0, 8, 1)})));
  EXPECT_FALSE(waits(task({writes(0, 8)}), task({writes(3, 3)})));
  EXPECT_TRUE(waits(task({}, kLargeCost, true), task({}, kLargeCost, true)));
  EXPECT_FALSE(waits(task({}, kLargeCost, true), task({}, kLargeCost, false)));
}

TEST(Graph, AChainIsNone) {
  const Task a = task({writes(0, 8)}), b = task({reads(0, 8), writes(8, 16)}), c = task({reads(8, 16)});
  EXPECT_FALSE(make_graph({}));
  EXPECT_FALSE(make_graph(std::vector{a}));
  EXPECT_FALSE(make_graph(std::vector{a, b}));
  EXPECT_FALSE(make_graph(std::vector{a, b, c}));
  const Task small = task({reads(0, 8)}, kLargeCost - 1);
  EXPECT_FALSE(make_graph(std::vector{a, b, small}));  // not worth a thread
  EXPECT_TRUE(make_graph(std::vector{a, b, task({reads(0, 8)})}));
}

// No edge is there because of others, and all that conflict are in order: against brute force.
TEST(Graph, RandomGraphsAreReducedAndComplete) {
  std::mt19937 random(11);
  for (int round = 0; round < 300; ++round) {
    const std::size_t n = 2 + random() % 40;
    std::vector<Task> tasks(n);
    for (Task& t : tasks) {
      t.cost = kLargeCost;
      t.ordered = random() % 8 == 0;
      for (auto k = random() % 3; k-- > 0;) {
        const auto begin = static_cast<std::int64_t>(random() % 50);
        t.accesses.push_back({static_cast<std::int64_t>(random() % 2), begin, begin + static_cast<std::int64_t>(random() % 5),
                              random() % 2 == 0});
      }
    }
    std::vector<std::vector<bool>> path(n, std::vector<bool>(n)), edge = path;
    const auto clash = [](const Task& a, const Task& b) {
      bool found = a.ordered && b.ordered;
      for (const Access& x : a.accesses)
        for (const Access& y : b.accesses)
          for (std::int64_t at = x.begin; at < x.end; ++at)
            found |= x.memory == y.memory && at >= y.begin && at < y.end && (x.written || y.written);
      return found;
    };
    for (std::size_t i = n; i-- > 0;)
      for (std::size_t j = i + 1; j < n; ++j) {
        path[i][j] = path[i][j] || clash(tasks[i], tasks[j]);
        if (path[i][j])
          for (std::size_t k = j + 1; k < n; ++k) path[i][k] = path[i][k] || path[j][k];
      }
    const std::optional<Graph> graph = make_graph(tasks);
    bool independent = false;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = i + 1; j < n; ++j) independent |= !path[i][j];
    ASSERT_EQ(graph.has_value(), independent);
    if (!graph) continue;
    for (std::size_t i = 0; i < n; ++i)
      for (std::uint32_t k = 0; k < graph->nodes[i].num_next; ++k)
        edge[i][graph->next[graph->nodes[i].first_next + k]] = true;
    for (std::size_t j = 0; j < n; ++j) {
      std::int32_t entering = 0;
      for (std::size_t i = 0; i < j; ++i) {
        bool direct = path[i][j];
        for (std::size_t k = i + 1; k < j; ++k) direct = direct && !(path[i][k] && path[k][j]);
        ASSERT_EQ(edge[i][j], direct) << round << ": " << i << " to " << j;
        entering += edge[i][j];
      }
      ASSERT_EQ(graph->nodes[j].waits_for, entering);
    }
  }
}

using Kind = Allocation::Kind;
using Ints = std::vector<std::int32_t>;

// y = 3 y + x + block, with a scratch that no other worker may touch meanwhile
void mix(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  const auto* x = static_cast<const std::uint32_t*>(buffers[0]);
  auto* y = static_cast<std::uint32_t*>(buffers[1]);
  auto* own = static_cast<std::int64_t*>(scratch);
  for (std::int64_t i = begin; i < end; ++i) {
    *own = i;
    y[i] = 3 * y[i] + x[i] + static_cast<std::uint32_t>(i);
    EXPECT_EQ(*own, i);
  }
}

// The same; fails if the first element is even.
void mix_or_fail(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
  const std::uint32_t first = *static_cast<const std::uint32_t*>(buffers[0]);
  mix(buffers, begin, end, scratch);
  if (begin == 0 && first % 2 == 0)
    base::report_failure(*static_cast<base::RunStatus*>(buffers[2]), 0,
                         Error(Code::FailedPrecondition, "found " + std::to_string(first)));
}

constexpr std::int64_t kElements = 4096;
constexpr std::int64_t kRoom = 2048;  // bytes behind the arena's elements, for scratch

// Memory: 0 the parameter and the result, 1 an arena, 2 the status.
Program mixing(Steps steps) {
  Program program;
  program.name = "mixing";
  program.parameters = {{4 * kElements, 4}};
  program.results = {{4 * kElements, 4}};
  program.aliases = {{0, 0}};
  program.allocations = {{Kind::Result, 0, 4 * kElements}, {Kind::Arena, 0, 4 * kElements + kRoom},
                         {Kind::Status, 0, sizeof(base::RunStatus)}};
  // The arena has a value in every run.
  program.steps.push_back({Copy{{0, 0, 4 * kElements}, {1, 0, 4 * kElements}}});
  While once;  // so that what follows is a run of steps of its own
  once.trip_count = 1;
  program.steps.push_back({once});
  for (Step& step : steps) program.steps.push_back(std::move(step));
  return program;
}

Steps random_steps(std::mt19937& random, std::size_t count, bool failing) {
  Steps steps;
  while (steps.size() < count) {
    const auto n = static_cast<std::int64_t>(1 + random() % 600);
    const auto place = [&] {
      return Slice{static_cast<std::int32_t>(random() % 2), 4 * static_cast<std::int64_t>(random() % (kElements - 600)), 4 * n};
    };
    const Slice x = place(), y = place();
    if (x.allocation == y.allocation && x.offset < y.offset + 4 * n && y.offset < x.offset + 4 * n) continue;
    if (random() % 6 == 0) {
      steps.push_back({Copy{x, y}});
      continue;
    }
    Call call;
    call.name = "mix." + std::to_string(steps.size());
    call.arguments = {x, y};
    call.written = {false, true};
    call.function = mix;
    call.blocks = n;
    call.max_workers = static_cast<std::int32_t>(1 + random() % 4);
    call.scratch_bytes = static_cast<std::int64_t>(8 + 64 * (random() % 4));
    // For all workers, for some, or for none: calls that share room must not go on at once.
    if (const auto lines = static_cast<std::int64_t>(random() % 12); lines > 0)
      call.scratch_room = {1, 4 * kElements + 64 * static_cast<std::int64_t>(random() % 20), 64 * lines};
    call.cost = random() % 3 == 0 ? 1 : kLargeCost;
    call.ordered = random() % 10 == 0;
    if (failing && random() % 12 == 0) {
      call.function = mix_or_fail;
      call.arguments.push_back({2, 0, sizeof(base::RunStatus)});
      call.written.push_back(false);
      call.may_fail = true;
    }
    steps.push_back({std::move(call)});
  }
  return steps;
}

struct Outcome {
  Ints state = Ints(kElements);
  std::string error;
};

Outcome run(const Executor& executor, ThreadPool& pool, const RunOptions& options = {}) {
  Outcome outcome;
  for (std::int64_t i = 0; i < kElements; ++i) outcome.state[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i * i);
  const std::span<std::byte> memory[] = {std::as_writable_bytes(std::span(outcome.state))};
  if (const Expected<> done = executor.execute(memory, memory, pool, options); !done) outcome.error = done.error().message();
  return outcome;
}

TEST(GraphRun, AnyNumberOfThreadsGivesTheSame) {
  std::mt19937 random(3);
  ThreadPool one(1), two(2), four(4);
  for (int round = 0; round < 60; ++round) {
    const auto executor = *Executor::create(mixing(random_steps(random, 2 + random() % 300, false)));
    const Outcome want = run(*executor, one);
    EXPECT_EQ(want.error, "");
    for (ThreadPool* pool : {&two, &four, &two})
      ASSERT_EQ(run(*executor, *pool).state, want.state) << round << " on " << pool->num_threads();
  }
}

TEST(GraphRun, ObservedRunsGiveTheSame) {
  std::mt19937 random(8);
  ThreadPool three(3);
  for (int round = 0; round < 30; ++round) {
    const auto executor = *Executor::create(mixing(random_steps(random, 2 + random() % 60, round % 2 == 1)));
    const Outcome want = run(*executor, three);
    std::int64_t events = 0;
    const std::function<void(const StepEvent&)> observer = [&](const StepEvent&) { ++events; };
    const Outcome got = run(*executor, three, {.observer = &observer});
    EXPECT_EQ(got.error, want.error);
    if (want.error.empty()) {
      EXPECT_EQ(got.state, want.state);
    }
    EXPECT_GT(events, 0);
  }
}

// The first error in the order of the program is the run's, and the next run is as any.
TEST(GraphRun, TheFirstErrorWins) {
  std::mt19937 random(4);
  ThreadPool one(1), three(3);
  int failed = 0;
  for (int round = 0; round < 60; ++round) {
    const auto executor = *Executor::create(mixing(random_steps(random, 2 + random() % 60, true)));
    const Outcome want = run(*executor, one);
    failed += !want.error.empty();
    for (int again = 0; again < 3; ++again) {
      const Outcome got = run(*executor, three);
      ASSERT_EQ(got.error, want.error) << round;
      if (want.error.empty()) {
        EXPECT_EQ(got.state, want.state);
      }
    }
  }
  EXPECT_GT(failed, 10);
  EXPECT_LT(failed, 60);
}

TEST(GraphRun, ManyRunsAtOnceShareThePool) {
  std::mt19937 random(5);
  const auto executor = *Executor::create(mixing(random_steps(random, 100, false)));
  ThreadPool one(1), three(3);
  const Outcome want = run(*executor, one);
  std::vector<std::thread> callers;
  for (int i = 0; i < 8; ++i)
    callers.emplace_back([&] {
      for (int n = 0; n < 20; ++n) EXPECT_EQ(run(*executor, three).state, want.state);
    });
  for (std::thread& caller : callers) caller.join();
}

// Two steps that wait for each other end, so they go on at the same time.
std::atomic<int> met = 0;
void meet(void* const*, std::int64_t, std::int64_t, void*) {
  for (++met; met < 2;) std::this_thread::yield();
}

Steps meeting_steps(std::int64_t cost) {
  Call call;
  call.function = meet;
  call.blocks = 1;
  call.cost = cost;
  Call other = call;
  call.arguments = {{0, 0, 64}};
  other.arguments = {{0, 64, 64}};
  return {{call}, {other}};
}

TEST(GraphRun, IndependentStepsGoOnAtTheSameTime) {
  met = 0;
  const auto executor = *Executor::create(mixing(meeting_steps(kLargeCost)));
  ThreadPool two(2);
  ASSERT_TRUE(two.start_all());
  EXPECT_EQ(run(*executor, two).error, "");
  EXPECT_EQ(met, 2);
}

TEST(GraphRun, OneThreadKeepsTheOrder) {
  static std::vector<int> order;
  order.clear();
  Steps steps;
  const auto note = [](auto number) {
    return +[](void* const*, std::int64_t, std::int64_t, void*) { order.push_back(decltype(number)::value); };
  };
  const base::KernelFunction functions[] = {note(std::integral_constant<int, 0>()), note(std::integral_constant<int, 1>()),
                                            note(std::integral_constant<int, 2>())};
  for (int i = 0; i < 3; ++i) {
    Call call;
    call.function = functions[i];
    call.arguments = {{0, 64 * i, 64}};
    call.cost = kLargeCost;
    steps.push_back({call});
  }
  ThreadPool one(1);
  run(*(*Executor::create(mixing(std::move(steps)))), one);
  EXPECT_EQ(order, (std::vector{0, 1, 2}));
}

// The plan's order is the priority: of the steps that are ready, the first, also where one further on was ready before.
TEST(GraphRun, TheFirstReadyStepGoesFirst) {
  static std::vector<int> order;
  order.clear();
  const auto note = [](auto number) {
    return +[](void* const*, std::int64_t, std::int64_t, void*) { order.push_back(decltype(number)::value); };
  };
  // 0 and 4 wait for nothing, 1 and 2 for 0, 3 for both; written in this order, 4 is ready from the start.
  const base::KernelFunction functions[] = {note(std::integral_constant<int, 0>()), note(std::integral_constant<int, 1>()),
                                            note(std::integral_constant<int, 2>()), note(std::integral_constant<int, 3>()),
                                            note(std::integral_constant<int, 4>())};
  const std::vector<std::vector<Slice>> reads = {{}, {{0, 0, 64}}, {{0, 0, 64}}, {{0, 64, 64}, {0, 128, 64}}, {}};
  Steps steps;
  for (int i = 0; i < 5; ++i) {
    Call call;
    call.function = functions[i];
    call.arguments = reads[static_cast<std::size_t>(i)];
    call.written = std::vector<bool>(call.arguments.size(), false);
    call.arguments.push_back({0, 64 * i, 64});
    call.written.push_back(true);
    call.cost = kLargeCost;
    steps.push_back({call});
  }
  ThreadPool one(1);
  run(*(*Executor::create(mixing(std::move(steps)))), one);
  EXPECT_EQ(order, (std::vector{0, 1, 2, 3, 4}));
}

// A copy between two memories and a call before it: the call ends when what reads the copy has told it.
TEST(GraphRun, CopiesGoOnBesideWork) {
  static std::atomic<bool> copied = false;
  Call call;
  call.function = [](void* const* buffers, std::int64_t, std::int64_t, void*) {
    // Ends when the copy, which comes later in the program, has been made.
    const std::atomic_ref told(*static_cast<std::int32_t*>(buffers[1]));
    while (told.load(std::memory_order_relaxed) == 0) std::this_thread::yield();
    copied = true;
  };
  call.arguments = {{0, 0, 64}, {1, 0, 4}};
  call.written = {true, false};
  call.cost = kLargeCost;
  Program program;
  program.name = "copying";
  constexpr std::int64_t kBytes = 1 << 20;
  program.parameters = {{kBytes, 4}};
  program.results = {{kBytes, 4}};
  program.allocations = {{Kind::Arena, 0, 64}, {Kind::Arena, 0, 4}, {Kind::Parameter, 0, kBytes}, {Kind::Result, 0, kBytes}};
  Call tell;  // after the copy
  tell.function = [](void* const* buffers, std::int64_t, std::int64_t, void*) {
    std::atomic_ref(*static_cast<std::int32_t*>(buffers[1])).store(1, std::memory_order_relaxed);
  };
  tell.arguments = {{3, 0, 4}, {1, 0, 4}};
  tell.written = {false, false};  // for the test: the two calls are not to wait for each other
  tell.cost = kLargeCost;
  Call clear = tell;
  clear.function = [](void* const* buffers, std::int64_t, std::int64_t, void*) { *static_cast<std::int32_t*>(buffers[1]) = 0; };
  clear.written = {false, true};
  program.steps = {{clear}, {call}, {Copy{{2, 0, kBytes}, {3, 0, kBytes}}}, {tell}};
  const auto executor = *Executor::create(std::move(program));
  ThreadPool two(2);
  ASSERT_TRUE(two.start_all());
  Ints from(kBytes / 4, 7), to(kBytes / 4);
  const std::span<std::byte> in[] = {std::as_writable_bytes(std::span(from))}, out[] = {std::as_writable_bytes(std::span(to))};
  ASSERT_TRUE(executor->execute(in, out, two));
  EXPECT_TRUE(copied);
  EXPECT_EQ(to, from);
}

TEST(GraphRun, CanBeCancelled) {
  static std::atomic<bool> begun = false;
  static CancelToken token;
  begun = false;
  token.reset();
  Steps steps;
  for (int i = 0; i < 100; ++i) {
    Call call;
    call.function = [](void* const*, std::int64_t, std::int64_t, void*) {
      token.cancel();
      begun = true;
    };
    call.arguments = {{0, 64 * i, 64}};
    call.cost = kLargeCost;
    steps.push_back({call});
  }
  const auto executor = *Executor::create(mixing(std::move(steps)));
  ThreadPool two(2);
  Ints state(kElements);
  const std::span<std::byte> memory[] = {std::as_writable_bytes(std::span(state))};
  const Expected<> done = executor->execute(memory, memory, two, {.cancel = &token});
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().code(), Code::Cancelled);
  EXPECT_TRUE(begun);
}

}  // namespace
}  // namespace hloom::runtime

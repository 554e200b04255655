#include "runtime/threads.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>
#include <vector>

#include "runtime/cpus.h"
#include "runtime/float_mode.h"

#if defined(__SANITIZE_THREAD__)
#define HLOOM_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HLOOM_TSAN 1
#endif
#endif

namespace hloom::runtime {
namespace {

// buffers[0]: counts of visits to each block.
void count_blocks(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  auto* counts = static_cast<std::atomic<int>*>(buffers[0]);
  for (std::int64_t i = begin; i < end; ++i) ++counts[i];
}

void expect_each_block_once(ThreadPool& pool, std::int64_t blocks, int workers) {
  std::vector<std::atomic<int>> counts(static_cast<std::size_t>(blocks) + 1);
  void* buffers[] = {counts.data()};
  pool.parallel_for_blocks(count_blocks, buffers, blocks, workers, {});
  for (std::int64_t i = 0; i < blocks; ++i) ASSERT_EQ(counts[static_cast<std::size_t>(i)], 1) << i;
  ASSERT_EQ(counts.back(), 0);
}

TEST(ThreadPool, EachBlockOnce) {
  for (int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    for (std::int64_t blocks : {0, 1, 2, 3, 7, 8, 9, 1000})
      for (int workers : {0, 1, 2, 5, 100}) expect_each_block_once(pool, blocks, workers);
  }
}

TEST(ThreadPool, PartsAreContiguousBalancedAndCoverAll) {
  for (std::int64_t blocks : {std::int64_t{0}, std::int64_t{1}, std::int64_t{5}, std::int64_t{64}, INT64_MAX - 1})
    for (int workers : {1, 2, 3, 7, 64}) {
      EXPECT_EQ(first_block(blocks, 0, workers), 0);
      EXPECT_EQ(first_block(blocks, workers, workers), blocks);
      for (int w = 0; w < workers; ++w) {
        const std::int64_t size = first_block(blocks, w + 1, workers) - first_block(blocks, w, workers);
        EXPECT_GE(size, blocks / workers);
        EXPECT_LE(size, blocks / workers + 1);
      }
    }
}

// Sets of numbers in (0, end).
std::vector<std::vector<std::int64_t>> all_cuts(std::int64_t end) {
  std::vector<std::vector<std::int64_t>> all;
  for (unsigned bits = 0; bits < 1u << (end - 1); ++bits) {
    all.emplace_back();
    for (std::int64_t cut = 1; cut < end; ++cut)
      if ((bits >> (cut - 1) & 1) != 0) all.back().push_back(cut);
  }
  return all;
}

TEST(ThreadPool, CutBlocksGoPartByPart) {
  for (std::int64_t blocks = 1; blocks <= 9; ++blocks)
    for (const auto& cuts : all_cuts(blocks)) {
      const int parts = static_cast<int>(cuts.size()) + 1;
      for (int workers = 1; workers <= 2 * parts + 1; ++workers) {
        EXPECT_EQ(first_block(blocks, cuts, 0, workers), 0);
        EXPECT_EQ(first_block(blocks, cuts, workers, workers), blocks);
        for (int w = 0; w < workers; ++w)
          EXPECT_LE(first_block(blocks, cuts, w, workers), first_block(blocks, cuts, w + 1, workers));
        // Where workers are a multiple of the parts, or the other way round, each part has its own.
        for (int w = 1; w < workers; ++w) {
          if (w * parts % workers != 0) continue;
          EXPECT_EQ(first_block(blocks, cuts, w, workers), cuts[static_cast<std::size_t>(w * parts / workers - 1)]);
        }
      }
    }
}

TEST(ThreadPool, EachBlockOfCutOnesOnce) {
  for (int threads : {1, 2, 3, 4}) {
    ThreadPool pool(threads);
    for (const auto& cuts : all_cuts(7)) {
      std::vector<std::atomic<int>> counts(7);
      void* buffers[] = {counts.data()};
      const base::KernelFunction count = [](void* const* b, std::int64_t begin, std::int64_t end, void*) {
        for (std::int64_t n = begin; n < end; ++n) ++static_cast<std::atomic<int>*>(b[0])[n];
      };
      pool.parallel_for_blocks(count, buffers, 7, threads, {}, cuts);
      for (const auto& n : counts) EXPECT_EQ(n, 1);
    }
  }
}

struct Record {
  std::vector<std::thread::id> threads = std::vector<std::thread::id>(16);
  std::vector<void*> scratch = std::vector<void*>(16);
  std::atomic<int> parts = 0;
};

// Each part waits until all have begun, so that no thread can do two.
struct Meeting {
  Record record;
  std::atomic<int> begun = 0;
  static void body(void* context, int w, int n) {
    auto& all = *static_cast<Meeting*>(context);
    all.record.threads[static_cast<std::size_t>(w)] = std::this_thread::get_id();
    for (++all.begun; all.begun < n;) std::this_thread::yield();
  }
};

TEST(ThreadPool, CallerIsWorkerZeroAndWorkersKeepTheirParts) {
  ThreadPool pool(4);
  ASSERT_TRUE(pool.start_all());
  Meeting first, second;
  pool.run(4, Meeting::body, &first);
  pool.run(4, Meeting::body, &second);
  EXPECT_EQ(first.record.threads, second.record.threads);
  EXPECT_EQ(first.record.threads[0], std::this_thread::get_id());
  EXPECT_NE(first.record.threads[1], first.record.threads[2]);
}

// A worker that is busy outside does not hold up the caller, who does its part.
TEST(ThreadPool, TheCallerDoesPartsThatNobodyHasBegun) {
  ThreadPool pool(3);
  struct Work {
    std::atomic<int> done = 0;
    std::thread::id caller = std::this_thread::get_id();
    std::atomic<int> on_caller = 0;
  };
  for (int round = 0; round < 200; ++round) {
    Work work;
    pool.run(3, [](void* context, int, int) {
      auto& all = *static_cast<Work*>(context);
      if (std::this_thread::get_id() == all.caller) ++all.on_caller;
      ++all.done;
    }, &work);
    EXPECT_EQ(work.done, 3);
    EXPECT_GE(work.on_caller, 1);
  }
}

// An embedder's pool that keeps to the letter of the interface: parts last to first, one after the other, on a thread
// that is not the caller's.
class Backwards final : public WorkerPool {
 public:
  int num_threads() const override { return 3; }
  void run(int parts, Body body, void* context) override {
    ++calls;
    std::thread([&] {
      for (int p = parts; p-- > 0;) body(context, p, parts);
    }).join();
  }
  std::atomic<int> calls = 0;
};

TEST(ThreadPool, RunsOnThreadsOfTheEmbedder) {
  Backwards theirs;
  ThreadPool pool(theirs);
  EXPECT_EQ(pool.num_threads(), 3);
  EXPECT_TRUE(pool.start_all());
  for (int workers = 1; workers <= 5; ++workers) expect_each_block_once(pool, 30, workers);
  EXPECT_EQ(theirs.calls, 4);  // not for one worker
}

TEST(ThreadPool, AskedFromWithinAPartTheEmbeddersPoolIsNotAskedAgain) {
  Backwards theirs;
  ThreadPool pool(theirs);
  struct Work {
    ThreadPool& pool;
    std::atomic<int> inner = 0;
  } work{pool};
  pool.run(2, [](void* context, int, int) {
    auto& all = *static_cast<Work*>(context);
    EXPECT_TRUE(ThreadPool::is_within_work());
    all.pool.run(3, [](void* inner, int, int) { ++static_cast<Work*>(inner)->inner; }, &all);
  }, &work);
  EXPECT_EQ(work.inner, 6);
  EXPECT_EQ(theirs.calls, 1);
  EXPECT_FALSE(ThreadPool::is_within_work());
}

TEST(ThreadPool, EachWorkerHasItsScratch) {
  ThreadPool pool(3);
  std::vector<std::byte> memory(3 * 64);
  Record record;
  void* buffers[] = {&record};
  const auto kernel = [](void* const* b, std::int64_t begin, std::int64_t, void* scratch) {
    static_cast<Record*>(b[0])->scratch[static_cast<std::size_t>(begin)] = scratch;
  };
  pool.parallel_for_blocks(kernel, buffers, 3, 3, {memory.data(), 64});
  for (int w = 0; w < 3; ++w) EXPECT_EQ(record.scratch[static_cast<std::size_t>(w)], memory.data() + 64 * w);
  pool.parallel_for_blocks(kernel, buffers, 3, 3, {});
  for (int w = 0; w < 3; ++w) EXPECT_EQ(record.scratch[static_cast<std::size_t>(w)], nullptr);
}

struct Nested {
  ThreadPool* pool;
  std::atomic<int>* counts;
};

TEST(ThreadPool, NestedLoopsEndForPoolsOfAnySize) {
  for (int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    std::vector<std::atomic<int>> counts(100);
    Nested nested{&pool, counts.data()};
    void* buffers[] = {&nested};
    const auto outer = [](void* const* b, std::int64_t begin, std::int64_t end, void*) {
      auto& of = *static_cast<Nested*>(b[0]);
      for (std::int64_t i = begin; i < end; ++i) {
        void* inner[] = {of.counts};
        of.pool->parallel_for_blocks(count_blocks, inner, 100, 4, {});
      }
    };
    for (int round = 0; round < 20; ++round) pool.parallel_for_blocks(outer, buffers, 10, 4, {});
    for (const auto& count : counts) EXPECT_EQ(count, 200);
  }
}

TEST(ThreadPool, ManyCallersAtOnce) {
  ThreadPool pool(3);
  std::vector<std::thread> callers;
  for (int i = 0; i < 16; ++i)
    callers.emplace_back([&] {
      for (int round = 0; round < 50; ++round) expect_each_block_once(pool, 40, 3);
    });
  for (std::thread& caller : callers) caller.join();
}

// Alternates between work at once, for spinning workers, and after they have fallen asleep.
TEST(ThreadPool, WorkersWakeFromSleep) {
  ThreadPool pool(3);
  for (int round = 0; round < 30; ++round) {
    expect_each_block_once(pool, 30, 3);
    if (round % 3 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(ThreadPool, PoolsComeAndGo) {
  for (int i = 0; i < 50; ++i) {
    ThreadPool unused(4);
    ThreadPool pool(3);
    expect_each_block_once(pool, 10, 3);
  }
}

TEST(ThreadPool, CopiesAllBytes) {
  ThreadPool pool(3);
  for (std::size_t size : {0u, 1u, 63u, 64u, 65u, 1000u, 524289u, 800001u}) {
    std::vector<std::byte> from(size), to(size + 1, std::byte{0xee});
    for (std::size_t i = 0; i < size; ++i) from[i] = static_cast<std::byte>(i * 7 + 1);
    pool.parallel_copy(to.data(), from.data(), static_cast<std::int64_t>(size));
    EXPECT_TRUE(std::equal(from.begin(), from.end(), to.begin()));
    EXPECT_EQ(to[size], std::byte{0xee});
  }
}

TEST(ThreadPool, WorksInAForkedChild) {
#ifdef HLOOM_TSAN
  GTEST_SKIP() << "the sanitizer forbids threads in a forked child";
#endif
  ThreadPool pool(3);
  expect_each_block_once(pool, 30, 3);
  const pid_t child = fork();
  if (child == 0) {
    expect_each_block_once(pool, 30, 3);
    _exit(testing::Test::HasFailure() ? 1 : 0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  expect_each_block_once(pool, 30, 3);
}

#if defined(__SSE2__)
constexpr unsigned kFlushAndDown = 0x1f80 | 0x8040 | 0x2000;

TEST(FloatMode, WorkersHaveTheDefaultWhateverTheirCreator) {
  const unsigned before = _mm_getcsr();
  _mm_setcsr(kFlushAndDown);
  {
    ThreadPool pool(2);
    ASSERT_TRUE(pool.start_all());
    struct Modes {
      Meeting meeting;  // so that part 1 is the worker's
      unsigned of[2] = {};
    } modes;
    pool.run(2, [](void* context, int w, int n) {
      auto& all = *static_cast<Modes*>(context);
      Meeting::body(&all.meeting, w, n);
      all.of[w] = _mm_getcsr() & ~0x3fu;
    }, &modes);
    EXPECT_EQ(modes.of[1], 0x1f80u);
  }
  {
    const DefaultFloatMode mode;
    EXPECT_EQ(_mm_getcsr(), 0x1f80u);
  }
  EXPECT_EQ(_mm_getcsr(), kFlushAndDown);
  _mm_setcsr(before);
}
#endif

}  // namespace
}  // namespace hloom::runtime

// Parts of arrays: which worker has them, and which touches their memory first.
#include <gmock/gmock.h>

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/layout.h"
#include "runtime/threads.h"

namespace hloom::runtime {
namespace {

using Kind = Allocation::Kind;
constexpr std::int64_t kBytes = 4 << 20;

void nothing(void* const*, std::int64_t, std::int64_t, void*) {}

Call cut_call() {
  Call call;
  call.name = "cut";
  call.function = nothing;
  call.arguments = {{0, 0, kBytes}, {1, 0, kBytes}};
  call.written = {false, true};
  call.blocks = 16;
  call.max_workers = 4;
  call.cuts = {3, 9};
  call.split_bytes = {{}, {4096, 1 << 20}};
  return call;
}

Program program_of(Call call) {
  Program p;
  p.name = "test";
  p.parameters = {{kBytes, 4}};
  p.allocations = {{Kind::Parameter, 0, kBytes}, {Kind::Arena, 0, kBytes}};
  p.steps = {{std::move(call)}};
  return p;
}

TEST(SplitArrays, AreTouchedByTheOwnersOfTheirParts) {
  const Program p = program_of(cut_call());
  const auto layout = lay_out(p);
  ASSERT_TRUE(layout) << layout.error().message();
  ASSERT_EQ(layout->touched.size(), 1u);
  EXPECT_THAT(layout->touched[0].cuts, testing::ElementsAre(4096, 1 << 20));
  EXPECT_THAT(layout->operations[0].cuts, testing::ElementsAre(3, 9));
  // Three workers write blocks 0, 3 and 9 on, which begin at these bytes.
  for (int w = 0; w <= 3; ++w) {
    EXPECT_EQ(first_block(16, layout->operations[0].cuts, w, 3), (std::vector<std::int64_t>{0, 3, 9, 16}[static_cast<std::size_t>(w)]));
    EXPECT_EQ(first_block(kBytes, layout->touched[0].cuts, w, 3),
              (std::vector<std::int64_t>{0, 4096, 1 << 20, kBytes}[static_cast<std::size_t>(w)]));
  }
}

TEST(SplitArrays, CutsThatDoNotHoldAreRefused) {
  for (const std::vector<std::int64_t>& cuts : std::vector<std::vector<std::int64_t>>{{0}, {16}, {5, 5}, {7, 3}, {-1}, {3, 17}}) {
    Call call = cut_call();
    call.cuts = cuts;
    const auto layout = lay_out(program_of(call));
    ASSERT_FALSE(layout);
    EXPECT_THAT(layout.error().message(), testing::HasSubstr("step 1 cut: cuts that are not inside"));
  }
  Call outside = cut_call(), few = cut_call();
  outside.split_bytes[1] = {kBytes};
  few.split_bytes.pop_back();
  EXPECT_FALSE(lay_out(program_of(outside)));
  EXPECT_FALSE(lay_out(program_of(few)));
}

// Each part waits until all have begun, so that no thread has two; then worker k has part k, time after time.
struct Meeting {
  std::atomic<int> begun = 0;
  std::vector<std::thread::id> threads = std::vector<std::thread::id>(3);
};

void meet(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  Meeting& meeting = *static_cast<Meeting*>(buffers[0]);
  const std::size_t part = begin == 0 ? 0 : begin == 3 ? 1 : 2;
  EXPECT_EQ(end, part == 0 ? 3 : part == 1 ? 9 : 16);
  meeting.threads[part] = std::this_thread::get_id();
  for (++meeting.begun; meeting.begun < 3;) std::this_thread::yield();
}

TEST(SplitArrays, AWorkerKeepsItsPart) {
  ThreadPool pool(3);
  ASSERT_TRUE(pool.start_all());
  std::vector<std::thread::id> before;
  const std::vector<std::int64_t> cuts = {3, 9};
  for (int round = 0; round < 20; ++round) {
    Meeting meeting;
    void* buffers[] = {&meeting};
    pool.parallel_for_blocks(meet, buffers, 16, 3, {}, cuts);
    EXPECT_EQ(meeting.threads[0], std::this_thread::get_id());
    if (round > 0) {
      EXPECT_EQ(meeting.threads, before);
    }
    before = meeting.threads;
  }
}

}  // namespace
}  // namespace hloom::runtime

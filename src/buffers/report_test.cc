#include "buffers/report.h"

#include "buffers/test_plan.h"

namespace hloom::buffers {
namespace {

const char* const kProgram = R"(HloModule m
add { ra = f32[] parameter(0) rb = f32[] parameter(1) ROOT rs = f32[] add(ra, rb) }
ENTRY e {
  x = f32[100] parameter(0)
  z = f32[] constant(0)
  a = f32[100] negate(x)
  b = f32[100] reverse(a), dimensions={0}
  c = f32[50] slice(b), slice={[0:50]}
  d = f32[50] reverse(c), dimensions={0}
  m = f32[100] multiply(a, b)
  s = f32[] reduce(m, z), dimensions={0}, to_apply=add
  ROOT r = (f32[], f32[50]) tuple(s, d)
})";

TEST(Report, PeakAndTimelineEqualASumOverBlocks) {
  const Plan p = plan(kProgram);
  const MemoryReport r = report(p.assignment);
  std::int64_t most = 0;
  for (std::int32_t point = 0; point < 200; ++point) {
    std::int64_t bytes = 0;
    for (const ArenaBlock& b : p.assignment.blocks()) bytes += b.live.contains(point) ? b.bytes : 0;
    most = std::max(most, bytes);
  }
  EXPECT_EQ(r.peak_bytes, most);
  EXPECT_EQ(r.peak_bytes, 800);  // a and b
  std::int64_t owned = 0;
  for (const ArenaBlock* owner : r.owners) owned += owner->bytes;
  EXPECT_EQ(owned, r.peak_bytes);
  EXPECT_EQ(r.unused_bytes, p.assignment.arena_bytes() - r.peak_bytes);
  ASSERT_NE(r.peak_at, nullptr);
  EXPECT_EQ(r.peak_at->name(), "b");
  for (const TimelineEntry& e : r.timeline) EXPECT_LE(e.bytes, r.peak_bytes);
  EXPECT_EQ(r.timeline.size(), 6u);
}

TEST(Report, OfAnEmptyArenaHasNoPeak) {
  const Plan p = plan("HloModule m\nENTRY e { x = f32[4] parameter(0) ROOT r = f32[4] negate(x) }");
  const MemoryReport r = report(p.assignment);
  EXPECT_EQ(r.peak_bytes, 0);
  EXPECT_EQ(r.peak_at, nullptr);
  EXPECT_TRUE(r.owners.empty());
}

}  // namespace
}  // namespace hloom::buffers

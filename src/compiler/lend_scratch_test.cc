// Scratch in the arena: where it is, nothing lies that is needed meanwhile.
#include "compiler/lend_scratch.h"

#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "text/parse.h"

namespace hloom::compiler {
namespace {

// Sorts of one line after the other, whose scratch is two lines; between them values of many lines come and go.
constexpr std::string_view kSorts = R"(HloModule sorts, is_scheduled=true
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER }
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY e { p = f32[64,512] parameter(0)
  a = f32[64,512] sort(p), dimensions={1}, to_apply=less
  b = f32[64,512] reverse(a), dimensions={0}
  c = f32[64,512] multiply(a, b)
  z = f32[] constant(0)
  d = f32[512] reduce(c, z), dimensions={0}, to_apply=sum
  e = f32[512] sort(d), dimensions={0}, to_apply=less
  ROOT r = f32[2] slice(e), slice={[0:2]} }
)";

TEST(LendScratch, OfWhatRunsWhileTheArenaIsNotFull) {
  Options options;
  options.threads = 1;
  const auto compiled = compile(*text::parse_module(kSorts), options);
  ASSERT_TRUE(compiled) << compiled.error().message();
  std::vector<const runtime::Call*> with_scratch;
  for (const runtime::Step& step : compiled->program.steps)
    if (const auto* call = std::get_if<runtime::Call>(&step.of); call != nullptr && call->scratch_bytes > 0) with_scratch.push_back(call);
  ASSERT_EQ(with_scratch.size(), 2u);
  EXPECT_EQ(with_scratch[0]->scratch_room.size_bytes, 0) << "the arena is what the first sort makes";
  const runtime::Slice& room = with_scratch[1]->scratch_room;
  ASSERT_GE(room.size_bytes, with_scratch[1]->scratch_bytes);
  EXPECT_LE(room.offset + room.size_bytes, compiled->assignment.allocations()[0].bytes);
  EXPECT_EQ(room.offset % 64, 0);
  for (const runtime::Slice& used : with_scratch[1]->arguments)
    EXPECT_TRUE(used.allocation != 0 || used.offset + used.size_bytes <= room.offset || room.offset + room.size_bytes <= used.offset);
}

TEST(LendScratch, NotInRunsThatAreWatched) {
  Options options;
  options.check_memory = true;
  const auto compiled = compile(*text::parse_module(kSorts), options);
  ASSERT_TRUE(compiled) << compiled.error().message();
  for (const runtime::Step& step : compiled->program.steps) {
    const auto* call = std::get_if<runtime::Call>(&step.of);
    EXPECT_TRUE(call == nullptr || call->scratch_room.size_bytes == 0);
  }
}

}  // namespace
}  // namespace hloom::compiler

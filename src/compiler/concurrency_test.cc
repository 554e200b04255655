// Memory that is spent on concurrency shows in the runtime's graph: fewer steps wait.
#include <gtest/gtest.h>

#include "compiler/compile.h"
#include "runtime/layout.h"
#include "text/parse.h"

namespace hloom::compiler {
namespace {

// Two chains of sorts side by side, scheduled one behind the other.
constexpr std::string_view kChains = R"(HloModule chains, is_scheduled=true
less { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=LT, type=TOTALORDER }
more { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT l = pred[] compare(a, b), direction=GT, type=TOTALORDER }
ENTRY e { p = f32[256,256] parameter(0)
  q = f32[256,256] parameter(1)
  a0 = f32[256,256] sort(p), dimensions={0}, to_apply=less
  a1 = f32[256,256] sort(a0), dimensions={1}, to_apply=more
  a2 = f32[256,256] sort(a1), dimensions={0}, to_apply=less
  b0 = f32[256,256] sort(q), dimensions={1}, to_apply=less
  b1 = f32[256,256] sort(b0), dimensions={0}, to_apply=more
  b2 = f32[256,256] sort(b1), dimensions={1}, to_apply=less
  s = f32[256,256] add(a2, b2)
  ROOT r = f32[1,256] slice(s), slice={[0:1], [0:256]} }
)";

struct Made {
  std::size_t graphs = 0, edges = 0;
  std::int64_t arena_bytes = 0;
};

Made make(std::int64_t concurrency_bytes) {
  Options options;
  options.memory.concurrency_bytes = concurrency_bytes;
  auto compiled = compile(*text::parse_module(kChains), options);
  EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message());
  const auto layout = runtime::lay_out(compiled->program);
  Made made{layout->graphs.size(), 0, compiled->assignment.arena_bytes()};
  for (const runtime::Graph& graph : layout->graphs) made.edges += graph.next.size();
  return made;
}

TEST(Concurrency, FewerStepsWaitWhereMemoryIsSpent) {
  const Made tight = make(0), loose = make(std::int64_t{1} << 20);
  EXPECT_LT(tight.arena_bytes, loose.arena_bytes);
  EXPECT_EQ(tight.graphs, 0u) << "each step waits for the one before";
  EXPECT_EQ(loose.graphs, 1u);
  EXPECT_EQ(loose.edges, 6u) << "two chains of two edges each, and one from each of them to what adds them";
}

}  // namespace
}  // namespace hloom::compiler

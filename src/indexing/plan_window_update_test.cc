#include "indexing/plan_window_update.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "text/parse.h"

namespace hloom::indexing {
namespace {

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = text::parse_module(text, {.verify = false});  // not all parameters are used
  if (!module) ADD_FAILURE() << module.error().message();
  return module ? *std::move(module) : nullptr;
}

// The plan of leaf `leaf` of the entry's root, which is a fusion of `body` with parameters base, f32[8,6], and v,
// f32[8,6], and two starts; or of what `outside` says.
WindowUpdatePlan plan_fused(const std::string& body, std::int64_t leaf = 0, const std::string& result = "f32[8,6]",
                            const std::string& arguments = "x, y, i, j") {
  const auto module = parse(
      "HloModule m\nsecond { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\nfused {\nbase = f32[8,6] "
      "parameter(0)\nv = f32[8,6] parameter(1)\ni = s32[] parameter(2)\nj = s32[] parameter(3)\n" +
      body +
      "\n}\nENTRY e {\nx = f32[8,6] parameter(0)\ny = f32[8,6] parameter(1)\ni = s32[] parameter(2)\nj = s32[] "
      "parameter(3)\nROOT r = " +
      result + " fusion(" + arguments + "), kind=kLoop, calls=fused\n}\n");
  if (!module) return {};
  EXPECT_TRUE(is_window_update(*module->entry()->root(), leaf));
  return plan_window_update(*module->entry()->root(), leaf);
}

constexpr const char* kSliceOfV = "u = f32[2,3] slice(v), slice={[0:2], [0:3]}\n";

TEST(PlanWindowUpdate, IsDirectIfNothingElseIsRead) {
  const auto plan = plan_fused(std::string(kSliceOfV) +
                               "w = f32[2,3] negate(u)\nROOT r = f32[8,6] dynamic-update-slice(base, w, i, j)");
  EXPECT_EQ(plan.kind, UpdateKind::Direct) << plan.reason;
  EXPECT_EQ(plan.base_operand, 0);
  EXPECT_EQ(plan.update_bytes, 24);
}

TEST(PlanWindowUpdate, IsDirectIfTheWindowItselfIsRead) {
  const std::string window = "o = f32[2,3] dynamic-slice(base, i, j), dynamic_slice_sizes={2,3}\n";
  EXPECT_EQ(
      plan_fused(kSliceOfV + window + "w = f32[2,3] add(o, u)\nROOT r = f32[8,6] dynamic-update-slice(base, w, i, j)")
          .kind,
      UpdateKind::Direct);
  // At other places, or in another order.
  EXPECT_EQ(
      plan_fused(kSliceOfV + window + "w = f32[2,3] add(o, u)\nROOT r = f32[8,6] dynamic-update-slice(base, w, j, i)")
          .kind,
      UpdateKind::Staged);
  EXPECT_EQ(plan_fused(window +
                       "w = f32[2,3] reverse(o), dimensions={1}\nROOT r = f32[8,6] dynamic-update-slice(base, w, i, j)")
                .kind,
            UpdateKind::Staged);
}

TEST(PlanWindowUpdate, TakesAStaticWindowForWhatItIs) {
  const std::string places = "c = s32[] constant(2)\nd = s32[] constant(9)\n";
  const auto rewritten = [&](const std::string& slice) {
    return plan_fused(places + "o = f32[2,3] slice(base), slice=" + slice +
                      "\nw = f32[2,3] negate(o)\nROOT r = f32[8,6] dynamic-update-slice(base, w, c, d)")
        .kind;
  };
  EXPECT_EQ(rewritten("{[2:4], [3:6]}"), UpdateKind::Direct);  // 9 means 3
  EXPECT_EQ(rewritten("{[2:4], [0:3]}"), UpdateKind::Staged);
}

TEST(PlanWindowUpdate, ElidesWhatChangesNothing) {
  EXPECT_EQ(plan_fused("o = f32[2,3] dynamic-slice(base, i, j), dynamic_slice_sizes={2,3}\nROOT r = f32[8,6] "
                       "dynamic-update-slice(base, o, i, j)")
                .kind,
            UpdateKind::Elide);
  EXPECT_EQ(
      plan_fused("u = f32[0,3] slice(v), slice={[0:0], [0:3]}\nROOT r = f32[8,6] dynamic-update-slice(base, u, i, j)")
          .kind,
      UpdateKind::Elide);
}

TEST(PlanWindowUpdate, ReadsAnyOneElementForOne) {
  EXPECT_EQ(plan_fused("o = f32[1,1] dynamic-slice(base, j, i), dynamic_slice_sizes={1,1}\nw = f32[1,1] "
                       "exponential(o)\nROOT r = f32[8,6] dynamic-update-slice(base, w, i, j)")
                .kind,
            UpdateKind::Direct);
}

// The reproducer of xla#49176: rows 0 … n-2 go to 1 … n-1.
TEST(PlanWindowUpdate, MovesASliceByDirection) {
  EXPECT_EQ(plan_fused("o = f32[7,6] slice(base), slice={[0:7], [0:6]}\nc = s32[] constant(1)\nd = s32[] "
                       "constant(0)\nROOT r = f32[8,6] dynamic-update-slice(base, o, c, d)")
                .kind,
            UpdateKind::DirectionalMove);
  EXPECT_EQ(plan_fused("o = f32[2,3] dynamic-slice(base, j, i), dynamic_slice_sizes={2,3}\nROOT r = f32[8,6] "
                       "dynamic-update-slice(base, o, i, j)")
                .kind,
            UpdateKind::DirectionalMove);
  // With a stride it is no move; and a reshape on the way is.
  EXPECT_EQ(
      plan_fused(
          "o = f32[4,6] slice(base), slice={[0:8:2], [0:6]}\nROOT r = f32[8,6] dynamic-update-slice(base, o, i, j)")
          .kind,
      UpdateKind::Staged);
  EXPECT_EQ(plan_fused("o = f32[7,6] slice(base), slice={[0:7], [0:6]}\nf = f32[42] bitcast(o)\ng = f32[7,6] "
                       "bitcast(f)\nc = s32[] constant(1)\nd = s32[] constant(0)\n"
                       "ROOT r = f32[8,6] dynamic-update-slice(base, g, c, d)")
                .kind,
            UpdateKind::DirectionalMove);
}

TEST(PlanWindowUpdate, SeesThroughBitcasts) {
  // Under the update, over it, and both.
  EXPECT_EQ(plan_fused("b = f32[48] bitcast(base)\nu = f32[4] constant({1,2,3,4})\nd = f32[48] dynamic-update-slice(b, "
                       "u, i)\nROOT r = f32[8,6] bitcast(d)")
                .kind,
            UpdateKind::Direct);
  const auto plan = plan_fused(
      std::string(kSliceOfV) + "d = f32[8,6] dynamic-update-slice(base, u, i, j)\nROOT r = f32[48] bitcast(d)", 0,
      "f32[48]");
  EXPECT_EQ(plan.kind, UpdateKind::Direct);
}

TEST(PlanWindowUpdate, CountsAStartThatComesFromTheBase) {
  EXPECT_EQ(plan_fused(std::string(kSliceOfV) +
                       "e = f32[1,1] slice(base), slice={[0:1], [0:1]}\nf = f32[] bitcast(e)\nk = s32[] convert(f)\n"
                       "ROOT r = f32[8,6] dynamic-update-slice(base, u, k, j)")
                .kind,
            UpdateKind::Staged);
}

TEST(PlanWindowUpdate, SplitsForAnotherResult) {
  const std::string two = "d = f32[8,6] dynamic-update-slice(base, u, i, j)\n";
  EXPECT_EQ(plan_fused(kSliceOfV + two + "n = f32[8,6] negate(base)\nROOT t = (f32[8,6], f32[8,6]) tuple(d, n)", 0,
                       "(f32[8,6], f32[8,6])")
                .kind,
            UpdateKind::Split);
  EXPECT_EQ(plan_fused(kSliceOfV + two + "n = f32[8,6] negate(d)\nROOT t = (f32[8,6], f32[8,6]) tuple(d, n)", 0,
                       "(f32[8,6], f32[8,6])")
                .kind,
            UpdateKind::Split);
  EXPECT_EQ(
      plan_fused(kSliceOfV + two + "ROOT t = (f32[8,6], f32[8,6]) tuple(d, base)", 0, "(f32[8,6], f32[8,6])").kind,
      UpdateKind::OutOfPlace);
}

TEST(PlanWindowUpdate, PlansEachOfSeveralUpdates) {
  const std::string body =
      std::string(kSliceOfV) +
      "d = f32[8,6] dynamic-update-slice(base, u, i, j)\nw = f32[1,6] slice(v), slice={[0:1], [0:6]}\n";
  const std::string result = "(f32[8,6], f32[8,6])";
  const std::string own =
      "s = f32[2,3] constant({{1,2,3},{4,5,6}})\nc = f32[8,6] dynamic-update-slice(base, s, i, j)\nd = f32[8,6] "
      "dynamic-update-slice(v, s, j, i)\nROOT t = (f32[8,6], f32[8,6]) tuple(c, d)";
  EXPECT_EQ(plan_fused(own, 0, result).kind, UpdateKind::Direct);
  EXPECT_EQ(plan_fused(own, 1, result).kind, UpdateKind::Direct);
  EXPECT_EQ(plan_fused(own, 1, result).base_operand, 1);
  // Both of one base; or of two operands that are one array.
  EXPECT_EQ(
      plan_fused(body + "c = f32[8,6] dynamic-update-slice(base, w, j, i)\nROOT t = (f32[8,6], f32[8,6]) tuple(d, c)",
                 0, result)
          .kind,
      UpdateKind::OutOfPlace);
  EXPECT_EQ(plan_fused(own, 0, result, "x, x, i, j").kind, UpdateKind::OutOfPlace);
}

TEST(PlanWindowUpdate, KnowsTheBaseByAnotherName) {
  EXPECT_EQ(plan_fused(std::string(kSliceOfV) +
                           "w = f32[2,3] negate(u)\nROOT r = f32[8,6] dynamic-update-slice(base, w, i, j)",
                       0, "f32[8,6]", "x, x, i, j")
                .kind,
            UpdateKind::Staged);
}

TEST(PlanWindowUpdate, SplitsAboveTheLimitOfStaging) {
  for (const std::int64_t rows : {8192, 8193}) {
    const std::string array = "f32[100000]", update = "f32[" + std::to_string(rows) + "]";
    const auto module =
        parse("HloModule m\nfused {\nb = " + array +
              " parameter(0)\ni = s32[] parameter(1)\nj = s32[] parameter(2)\no = " + update +
              " dynamic-slice(b, j), dynamic_slice_sizes={" + std::to_string(rows) + "}\nn = " + update +
              " negate(o)\nROOT r = " + array + " dynamic-update-slice(b, n, i)\n}\nENTRY e {\nb = " + array +
              " parameter(0)\ni = s32[] parameter(1)\nj = s32[] parameter(2)\nROOT r = " + array +
              " fusion(b, i, j), kind=kLoop, calls=fused\n}\n");
    EXPECT_EQ(plan_window_update(*module->entry()->root()).kind,
              rows * 4 <= kMaxStagedBytes ? UpdateKind::Staged : UpdateKind::Split);
  }
}

TEST(PlanWindowUpdate, PlansBareUpdates) {
  const auto plan_of = [](const std::string& instruction) {
    const auto module = parse(
        "HloModule m\nsecond { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\nENTRY e {\nx = f32[8] "
        "parameter(0)\nu = f32[2] parameter(1)\ni = s32[] parameter(2)\nk = s32[2,1] parameter(3)\n"
        "v = f32[2,4] bitcast(x)\nROOT r = " +
        instruction + "\n}\n");
    return plan_window_update(*module->entry()->root());
  };
  EXPECT_EQ(plan_of("f32[8] dynamic-update-slice(x, u, i)").kind, UpdateKind::Direct);
  EXPECT_EQ(plan_of("f32[8] dynamic-update-slice(x, x, i)").kind, UpdateKind::Elide);
  const std::string scatter =
      ", update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
      "to_apply=second";
  EXPECT_EQ(plan_of("f32[8] scatter(x, k, u)" + scatter).kind, UpdateKind::Direct);
  EXPECT_EQ(plan_of("f32[2] scatter(u, k, u)" + scatter).kind, UpdateKind::OutOfPlace);
}

TEST(PlanWindowUpdate, PlansFusedScatters) {
  const std::string scatter =
      ", update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
      "to_apply=second";
  EXPECT_EQ(plan_fused("k = s32[2,1] constant({{1},{2}})\nu = f32[2,6] slice(v), slice={[0:2], [0:6]}\nROOT r = "
                       "f32[8,6] scatter(base, k, u)" +
                       scatter)
                .kind,
            UpdateKind::Direct);
  EXPECT_EQ(plan_fused("k = s32[2,1] constant({{1},{2}})\nu = f32[2,6] slice(base), slice={[0:2], [0:6]}\nROOT r = "
                       "f32[8,6] scatter(base, k, u)" +
                       scatter)
                .kind,
            UpdateKind::OutOfPlace);  // an update may change what a later one is computed from
}

TEST(PlanWindowUpdate, NeedsTheBaseFromOutside) {
  const auto plan = plan_fused(std::string(kSliceOfV) +
                               "n = f32[8,6] negate(base)\nROOT r = f32[8,6] dynamic-update-slice(n, u, i, j)");
  EXPECT_EQ(plan.kind, UpdateKind::OutOfPlace);
  EXPECT_EQ(plan.base_operand, -1);
}

// Diamonds of 60 levels: 2^60 paths.
TEST(PlanWindowUpdate, IsLinearInTheFusion) {
  std::string body = "o0 = f32[2,3] dynamic-slice(base, i, j), dynamic_slice_sizes={2,3}\n";
  for (int n = 1; n <= 60; ++n)
    body += "o" + std::to_string(n) + " = f32[2,3] multiply(o" + std::to_string(n - 1) + ", o" + std::to_string(n - 1) +
            ")\n";
  EXPECT_EQ(plan_fused(body + "ROOT r = f32[8,6] dynamic-update-slice(base, o60, i, j)").kind, UpdateKind::Direct);
}

}  // namespace
}  // namespace hloom::indexing

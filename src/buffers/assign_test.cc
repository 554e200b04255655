#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "buffers/test_plan.h"
#include "text/print.h"

namespace hloom::buffers {
namespace {

using Kind = Allocation::Kind;

Kind kind(const Plan& p, std::string_view name, std::int64_t leaf = 0) {
  return p.assignment.allocation(p.slice(name, leaf)).kind;
}

std::string entry(std::string_view body, std::string_view before = {}, std::string_view header = {}) {
  return "HloModule m" + std::string(header) + "\n" + std::string(before) + "\nENTRY e {\n" + std::string(body) +
         "\n}\n";
}

// A loop over (counter, leaves…): `body` makes k (the next counter) and the root from q.
std::string loop(std::string_view types, std::string_view body) {
  const std::string t(types);
  return "cond { p = " + t +
         " parameter(0) i = s32[] get-tuple-element(p), index=0 n = s32[] constant(3)\n"
         " ROOT c = pred[] compare(i, n), direction=LT }\n"
         "body { q = " +
         t +
         " parameter(0) j = s32[] get-tuple-element(q), index=0 one = s32[] constant(1)\n"
         " k = s32[] add(j, one)\n" +
         std::string(body) + "}\n";
}
std::string loop_entry(std::string_view types, std::string_view init, std::string_view rest) {
  return "zero = s32[] constant(0)\n" + std::string(init) + "\n w = " + std::string(types) +
         " while(t), condition=cond, body=body\n" + std::string(rest);
}

TEST(Assign, ChainOfScalarsReusesOneBuffer) {
  const Plan p = plan(
      entry("x = f32[] parameter(0) a = f32[] negate(x) b = f32[] abs(a) c = f32[] sine(b) ROOT d = f32[] cosine(c)"));
  EXPECT_EQ(p.assignment.arena_bytes(), 0);  // all in the result
  EXPECT_EQ(p.slice("a"), p.slice("d"));
  EXPECT_EQ(kind(p, "d"), Kind::Result);
}

// Sums in between, so that no value may be written over another.
constexpr std::string_view kAdd = "add { ra = f32[] parameter(0) rb = f32[] parameter(1) ROOT rs = f32[] add(ra, rb) }";

TEST(Assign, AResultsMemoryServesOthersBeforeItIsWritten) {
  const Plan p = plan(entry("x = f32[64] parameter(0) z = f32[] constant(0) n = f32[32,64] broadcast(x), dimensions={1}\n"
                            "r = f32[32] reduce(n, z), dimensions={1}, to_apply=add\n"
                            "ROOT b = f32[64,32] broadcast(r), dimensions={1}",
                            kAdd));
  EXPECT_EQ(kind(p, "n"), Kind::Result);
  EXPECT_EQ(p.slice("n").offset, 0);
  EXPECT_EQ(kind(p, "r"), Kind::Arena);  // alive when the result is written
  EXPECT_EQ(p.assignment.arena_bytes(), 32 * 4);
}

TEST(Assign, ADonatedParametersMemoryServesOthersOnceItIsRead) {
  const Plan p = plan(entry("x = f32[32,64] parameter(0) z = f32[] constant(0)\n"
                            "r = f32[32] reduce(x, z), dimensions={1}, to_apply=add\n"
                            "n = f32[16,32] broadcast(r), dimensions={1}\n"
                            "ROOT s = f32[32] reduce(n, z), dimensions={0}, to_apply=add",
                            kAdd, ", buffer_donor={ (0, {}) }"));
  EXPECT_EQ(kind(p, "n"), Kind::Parameter);
  EXPECT_EQ(kind(p, "r"), Kind::Result);
  EXPECT_EQ(p.assignment.arena_bytes(), 0);
}

// The caller's memory is aligned as its own elements need.
TEST(Assign, WiderElementsDoNotLieInAResultsMemory) {
  const Plan p = plan(entry("x = f64[64] parameter(0) z = f64[] constant(0) n = f64[32,64] broadcast(x), dimensions={1}\n"
                            "r = f64[32] reduce(n, z), dimensions={1}, to_apply=add\n"
                            "c = f32[32] convert(r) ROOT b = f32[128,32] broadcast(c), dimensions={1}",
                            "add { ra = f64[] parameter(0) rb = f64[] parameter(1) ROOT rs = f64[] add(ra, rb) }"));
  EXPECT_EQ(kind(p, "n"), Kind::Arena);
}

TEST(Assign, ReduceDoesNotShareWithItsInput) {
  const Plan p =
      plan(entry("x = f32[4] parameter(0) n = f32[4] negate(x) z = f32[] constant(0)\n"
                 "r = f32[] reduce(n, z), dimensions={0}, to_apply=add\n"
                 "s = f32[1] reshape(r) b = f32[4] broadcast(r), dimensions={} ROOT d = f32[4] add(b, b)",
                 "add { ra = f32[] parameter(0) rb = f32[] parameter(1) ROOT rs = f32[] add(ra, rb) }"));
  EXPECT_NE(p.slice("n"), p.slice("r"));
  EXPECT_EQ(p.slice("r"), p.slice("s"));  // a reshape keeps the bytes
}

// What a fusion writes over its operand, and nothing reads, keeps its place until the other results are written.
TEST(Assign, AnUnreadUpdateLiesBesideTheFusionsOtherResults) {
  const Plan p =
      plan(entry("x = f32[4] parameter(0) b = f32[4] negate(x)\n"
                 "f = (f32[4], f32[4]) fusion(b, x), kind=kLoop, calls=g\n"
                 "ROOT r = f32[4] abs(x)",
                 "g { base = f32[4] parameter(0) y = f32[4] parameter(1) w = f32[1] slice(y), slice={[1:2]}\n"
                 "at = s32[] constant(2) u = f32[4] dynamic-update-slice(base, w, at)\n"
                 "e = f32[4] exponential(y) ROOT t = (f32[4], f32[4]) tuple(u, e) }",
                 ", is_scheduled=true"));
  EXPECT_EQ(p.slice("b"), p.slice("f", 0));
  EXPECT_NE(p.slice("f", 0), p.slice("f", 1));
}

TEST(Assign, ResultsThatAreParametersAndConstantsAreCopied) {
  const Plan p =
      plan(entry("x = f32[4] parameter(0) c = f32[4] constant({1,2,3,4}) n = f32[4] negate(x)\n"
                 "ROOT t = (f32[4], f32[4], f32[4], f32[4]) tuple(x, c, n, n)"));
  EXPECT_EQ(p.copies().size(), 3u);
  for (std::int64_t leaf = 0; leaf < 4; ++leaf)
    EXPECT_EQ(p.assignment.allocation(p.root_slice(leaf)).kind, Kind::Result);
  EXPECT_EQ(kind(p, "c"), Kind::Constant);
}

TEST(Assign, NestedTupleParametersAreNumberedByLeaf) {
  const Plan p =
      plan(entry("p = (f32[2], (s32[], f32[3])) parameter(0) q = f32[5] parameter(1)\n"
                 "i = (s32[], f32[3]) get-tuple-element(p), index=1 x = f32[3] get-tuple-element(i), index=1\n"
                 "ROOT r = f32[3] negate(x)"));
  EXPECT_EQ(p.assignment.allocation(p.slice("x")).number, 2);
  EXPECT_EQ(p.assignment.allocation(p.slice("q")).number, 3);
}

TEST(Assign, WindowUpdateOfACarriedLeafIsInPlace) {
  const char* const t = "(s32[], f32[100])";
  const Plan p = plan(entry(
      loop_entry(t,
                 "f = f32[] constant(0) b = f32[100] broadcast(f), dimensions={} t = (s32[], f32[100]) tuple(zero, b)",
                 "ROOT r = f32[100] get-tuple-element(w), index=1"),
      loop(t,
           "x = f32[100] get-tuple-element(q), index=1 u = f32[1] constant({7})\n"
           "y = f32[100] dynamic-update-slice(x, u, j)\n ROOT o = (s32[], f32[100]) tuple(k, y)")));
  EXPECT_EQ(p.copies_in("body"), 0);
  EXPECT_EQ(p.slice("y"), p.slice("b"));
  EXPECT_EQ(kind(p, "b"), Kind::Result);  // the loop works in the result's memory
  EXPECT_EQ(p.copies_in("e"), 1);         // the counter's constant
}

TEST(Assign, ReadersOfTheBaseComeBeforeItsWriter) {
  const char* const t = "(s32[], f32[100], f32[1])";
  const Plan p = plan(entry(
      loop_entry(
          t,
          "f = f32[] constant(0) b = f32[100] broadcast(f), dimensions={} h = f32[1] broadcast(f), dimensions={}\n"
          "t = (s32[], f32[100], f32[1]) tuple(zero, b, h)",
          "ROOT r = f32[100] get-tuple-element(w), index=1"),
      loop(t,
           "x = f32[100] get-tuple-element(q), index=1 g = f32[1] get-tuple-element(q), index=2\n"
           "y = f32[100] dynamic-update-slice(x, g, j) s = f32[1] dynamic-slice(x, k), dynamic_slice_sizes={1}\n"
           "ROOT o = (s32[], f32[100], f32[1]) tuple(k, y, s)")));
  EXPECT_EQ(p.copies_in("body"), 2);  // s and k, since g and j are still to be read
  for (const auto& d : p.assignment.decisions()) EXPECT_TRUE(d.in_place || d.bytes != 400) << d.reason;
}

TEST(Assign, SwapOfTwoLeavesTakesOneTemporary) {
  const char* const t = "(s32[], f32[100], f32[100])";
  const Plan p = plan(entry(
      loop_entry(t,
                 "a = f32[100] parameter(0) b = f32[100] parameter(1) na = f32[100] negate(a) nb = f32[100] negate(b)\n"
                 "t = (s32[], f32[100], f32[100]) tuple(zero, na, nb)",
                 "ROOT r = f32[100] get-tuple-element(w), index=1"),
      loop(t,
           "x = f32[100] get-tuple-element(q), index=1 y = f32[100] get-tuple-element(q), index=2\n"
           "ROOT o = (s32[], f32[100], f32[100]) tuple(k, y, x)")));
  EXPECT_EQ(p.copies_in("body"), 3);  // one to the temporary, one over, one back
  EXPECT_EQ(p.slice("x"), p.slice("na"));
}

TEST(Assign, LeavesThatPassThroughAreNotCopied) {
  const char* const t = "(s32[], f32[100], f32[100])";
  const Plan p =
      plan(entry(loop_entry(t,
                            "a = f32[100] parameter(0) b = f32[100] parameter(1) nb = f32[100] negate(b)\n"
                            "t = (s32[], f32[100], f32[100]) tuple(zero, a, nb)",
                            "ROOT r = f32[100] get-tuple-element(w), index=2"),
                 loop(t,
                      "x = f32[100] get-tuple-element(q), index=1 y = f32[100] get-tuple-element(q), index=2\n"
                      "z = f32[100] add(x, y) ROOT o = (s32[], f32[100], f32[100]) tuple(k, x, z)")));
  EXPECT_EQ(p.copies_in("body"), 0);
  EXPECT_EQ(kind(p, "x"), Kind::Parameter);
  EXPECT_EQ(p.slice("z"), p.slice("y"));  // elementwise over its dying operand
}

TEST(Assign, EqualInitOfTwoLeavesIsCopiedOnce) {
  const char* const t = "(s32[], f32[100], f32[100])";
  const Plan p = plan(entry(
      loop_entry(
          t, "a = f32[100] parameter(0) na = f32[100] negate(a) t = (s32[], f32[100], f32[100]) tuple(zero, na, na)",
          "x0 = f32[100] get-tuple-element(w), index=1 y0 = f32[100] get-tuple-element(w), index=2\n"
          "ROOT r = f32[100] add(x0, y0)"),
      loop(t,
           "x = f32[100] get-tuple-element(q), index=1 y = f32[100] get-tuple-element(q), index=2\n"
           "z = f32[100] negate(x) v = f32[100] abs(y) ROOT o = (s32[], f32[100], f32[100]) tuple(k, z, v)")));
  EXPECT_EQ(p.copies_in("e"), 2);  // one of the arrays, and the counter
  EXPECT_EQ(p.copies_in("body"), 0);
}

TEST(Assign, ConstantBodyRootIsCopiedInTheBody) {
  const char* const t = "(s32[], f32[4])";
  const Plan p =
      plan(entry(loop_entry(t, "a = f32[4] parameter(0) na = f32[4] negate(a) t = (s32[], f32[4]) tuple(zero, na)",
                            "ROOT r = f32[4] get-tuple-element(w), index=1"),
                 loop(t, "c4 = f32[4] constant({1,2,3,4}) ROOT o = (s32[], f32[4]) tuple(k, c4)")));
  EXPECT_EQ(p.copies_in("body"), 1);
}

TEST(Assign, InitUsedAfterTheLoopIsCopiedOnce) {
  const char* const t = "(s32[], f32[100])";
  const Plan p = plan(entry(
      loop_entry(t, "a = f32[100] parameter(0) na = f32[100] negate(a) t = (s32[], f32[100]) tuple(zero, na)",
                 "x0 = f32[100] get-tuple-element(w), index=1 ROOT r = f32[100] add(x0, na)"),
      loop(
          t,
          "x = f32[100] get-tuple-element(q), index=1 z = f32[100] negate(x) ROOT o = (s32[], f32[100]) tuple(k, z)")));
  EXPECT_EQ(p.copies_in("e"), 2);
  EXPECT_EQ(p.copies_in("body"), 0);
}

TEST(Assign, PassingBranchesForwardTheirBufferInEachPosition) {
  for (const bool first : {true, false}) {
    const std::string keep = "keep { a = f32[100] parameter(0) ROOT ta = (f32[100]) tuple(a) }\n";
    const std::string change =
        "change { b = f32[100] parameter(0) u = f32[1] constant({1}) i = s32[] constant(5)\n"
        "d = f32[100] dynamic-update-slice(b, u, i) ROOT tb = (f32[100]) tuple(d) }\n";
    const char* const t = "(s32[], f32[100])";
    const Plan p = plan(
        entry(loop_entry(t, "a0 = f32[100] parameter(0) na = f32[100] negate(a0) t = (s32[], f32[100]) tuple(zero, na)",
                         "ROOT r = f32[100] get-tuple-element(w), index=1"),
              keep + change +
                  loop(t,
                       "x = f32[100] get-tuple-element(q), index=1 two = s32[] constant(2) h = pred[] compare(j, two), "
                       "direction=LT\n"
                       "v = (f32[100]) conditional(h, x, x), true_computation=" +
                           std::string(first ? "keep" : "change") +
                           ", false_computation=" + std::string(first ? "change" : "keep") +
                           "\n y = f32[100] get-tuple-element(v), index=0 ROOT o = (s32[], f32[100]) tuple(k, y)")));
    EXPECT_EQ(p.copies_in("body") + p.copies_in("keep") + p.copies_in("change"), 0);
    EXPECT_EQ(p.slice("d"), p.slice("x"));
  }
}

TEST(Assign, NestedLoopsUpdateInPlace) {
  const char* const t = "(s32[], f32[100])";
  const std::string inner =
      "ic { ip = (s32[], f32[100]) parameter(0) ii = s32[] get-tuple-element(ip), index=0 in = s32[] constant(2)\n"
      "ROOT il = pred[] compare(ii, in), direction=LT }\n"
      "ib { iq = (s32[], f32[100]) parameter(0) ij = s32[] get-tuple-element(iq), index=0 i1 = s32[] constant(1)\n"
      "ik = s32[] add(ij, i1) ix = f32[100] get-tuple-element(iq), index=1 iu = f32[1] constant({1})\n"
      "iy = f32[100] dynamic-update-slice(ix, iu, ij) ROOT io = (s32[], f32[100]) tuple(ik, iy) }\n";
  const Plan p = plan(
      entry(loop_entry(t, "a0 = f32[100] parameter(0) na = f32[100] negate(a0) t = (s32[], f32[100]) tuple(zero, na)",
                       "ROOT r = f32[100] get-tuple-element(w), index=1"),
            inner + loop(t,
                         "x = f32[100] get-tuple-element(q), index=1 z2 = s32[] constant(0)\n"
                         "it = (s32[], f32[100]) tuple(z2, x) iw = (s32[], f32[100]) while(it), condition=ic, body=ib\n"
                         "y = f32[100] get-tuple-element(iw), index=1 ROOT o = (s32[], f32[100]) tuple(k, y)")));
  EXPECT_EQ(p.copies_in("ib"), 0);
  EXPECT_EQ(p.copies_in("body"), 1);  // the inner counter's constant
  EXPECT_EQ(p.slice("iy"), p.slice("na"));
}

const char* const kUpdate =
    "u = f32[1] constant({1}) i = s32[] constant(3) y = f32[100] dynamic-update-slice(x, u, i)\n";

TEST(Assign, DonatedParameterIsUpdatedInPlace) {
  const Plan p = plan(entry(std::string("x = f32[100] parameter(0)\n") + kUpdate + "ROOT r = f32[100] reshape(y)", "",
                            ", input_output_alias={ {}: (0, {}, may-alias) }"));
  EXPECT_TRUE(p.copies().empty());
  EXPECT_EQ(p.slice("y"), p.slice("x"));
  EXPECT_EQ(p.assignment.arena_bytes(), 0);
}

TEST(Assign, ParameterThatIsNotDonatedIsCopiedOnceAtEntry) {
  const Plan p = plan(entry(std::string("x = f32[100] parameter(0)\n") + kUpdate + "ROOT r = f32[100] reshape(y)"));
  ASSERT_EQ(p.copies().size(), 1u);
  EXPECT_EQ(kind(p, "y"), Kind::Result);
  const auto& decisions = p.assignment.decisions();
  const auto copied = std::ranges::find(decisions, false, &InPlaceDecision::in_place);
  ASSERT_NE(copied, decisions.end());
  EXPECT_EQ(copied->reason, "parameter x is not donated: input_output_alias or buffer_donor would do so");
}

TEST(Assign, DonatedInputReadAfterTheOutputIsCopied) {
  const Plan p = plan(entry(std::string("x = f32[100] parameter(0)\n") + kUpdate +
                                "s = f32[100] add(x, y) ROOT r = (f32[100], f32[100]) tuple(y, s)",
                            "", ", input_output_alias={ {0}: (0, {}, may-alias) }"));
  EXPECT_EQ(p.copies().size(), 1u);
  EXPECT_EQ(p.assignment.allocation(p.root_slice(0)).kind, Kind::Parameter);
}

// The kernel could not write it there, and a copy would have to.
TEST(Assign, ADonationToAResultThatLiesOtherwiseIsGivenUpIfItMay) {
  const std::string body = "x = f32[4,8]{1,0} parameter(0) ROOT y = f32[4,8]{0,1} copy(x)";
  const Plan may = plan(entry(body, "", ", input_output_alias={ {}: (0, {}, may-alias) }"));
  EXPECT_EQ(kind(may, "y"), Kind::Result);
  EXPECT_EQ(may.assignment.arena_bytes(), 0);
  const Plan must = plan(entry(body, "", ", input_output_alias={ {}: (0, {}, must-alias) }"));
  EXPECT_EQ(must.assignment.allocation(must.root_slice(0)).kind, Kind::Parameter);
}

TEST(Assign, AKernelWhoseResultsLieDifferentlyOverwritesWhatLiesAlike) {
  const Plan p = plan(
      entry("x = f32[4,8]{1,0} parameter(0) a = (f32[4,8]{1,0}, f32[4,8]{0,1}) fusion(x), kind=kLoop, calls=f\n"
            "y = f32[4,8]{1,0} get-tuple-element(a), index=0 z = f32[4,8]{0,1} get-tuple-element(a), index=1\n"
            "ROOT r = (f32[4,8]{1,0}, f32[4,8]{0,1}) tuple(y, z)",
            "f { x1 = f32[4,8]{1,0} parameter(0) n = f32[4,8]{1,0} negate(x1) c = f32[4,8]{0,1} copy(n)\n"
            "ROOT t = (f32[4,8]{1,0}, f32[4,8]{0,1}) tuple(n, c) }",
            ", input_output_alias={ {0}: (0, {}, may-alias) }"));
  EXPECT_TRUE(p.copies().empty());
  EXPECT_EQ(p.slice("y"), p.slice("x"));
}

TEST(Assign, CrossedDonationSwapsThroughOneTemporary) {
  const Plan p =
      plan(entry("x = f32[100] parameter(0) y = f32[100] parameter(1) ROOT r = (f32[100], f32[100]) tuple(y, x)", "",
                 ", input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }"));
  EXPECT_EQ(p.copies().size(), 3u);
  EXPECT_EQ(p.assignment.arena_bytes(), 400);
}

TEST(Assign, PartOfATupleIsDonated) {
  const Plan p = plan(entry("p = (f32[100], f32[100]) parameter(0) x = f32[100] get-tuple-element(p), index=1\n" +
                                std::string(kUpdate) + "ROOT r = (f32[100]) tuple(y)",
                            "", ", input_output_alias={ {0}: (0, {1}, may-alias) }"));
  EXPECT_TRUE(p.copies().empty());
  EXPECT_TRUE(p.assignment.allocation(p.slice("x")).writable);
  EXPECT_FALSE(p.assignment.allocation(p.slice("p", 0)).writable);
}

TEST(Assign, BaseWithALaterReaderIsCopiedExactlyOnce) {
  const Plan p = plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a)\n" + std::string(kUpdate) +
                            "s = f32[1] dynamic-slice(y, i), dynamic_slice_sizes={1} v = f32[] reshape(s)\n"
                            "b = f32[100] broadcast(v), dimensions={} m = f32[100] multiply(x, b)\n"
                            "ROOT r = (f32[100], f32[100]) tuple(y, m)"));
  EXPECT_EQ(p.copies().size(), 1u);
}

TEST(Assign, LateReaderInALoopCostsOneCopy) {
  const char* const t = "(s32[], f32[100], f32[])";
  const Plan p = plan(entry(
      loop_entry(t,
                 "a0 = f32[100] parameter(0)\nna = f32[100] negate(a0) f = f32[] constant(1) nf = f32[] negate(f)\n"
                 "t = (s32[], f32[100], f32[]) tuple(zero, na, nf)",
                 "ROOT r = f32[100] get-tuple-element(w), index=1"),
      "add { ra = f32[] parameter(0) rb = f32[] parameter(1) ROOT rs = f32[] add(ra, rb) }\n" +
          loop(t,
               "x = f32[100] get-tuple-element(q), index=1 u = f32[1] constant({1})\n"
               "y = f32[100] dynamic-update-slice(x, u, j) sl = f32[1] dynamic-slice(y, k), dynamic_slice_sizes={1}\n"
               "v = f32[] reshape(sl) vb = f32[100] broadcast(v), dimensions={} m = f32[100] multiply(x, vb)\n"
               "d = f32[] reduce(m, v), dimensions={0}, to_apply=add ROOT o = (s32[], f32[100], f32[]) tuple(k, y, "
               "d)")));
  std::int64_t large = 0;
  for (const auto* c : p.copies()) large += c->parent()->name() == "body" && c->shape().rank() == 1 ? 1 : 0;
  EXPECT_EQ(large, 1);
}

TEST(Assign, AReaderThatCannotComeBeforeTheWriterIsNamedWithTheWay) {
  const Plan p = plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a)\n" + std::string(kUpdate) +
                            "s = f32[1] dynamic-slice(y, i), dynamic_slice_sizes={1} v = f32[] reshape(s)\n"
                            "b = f32[100] broadcast(v), dimensions={} m = f32[100] multiply(x, b)\n"
                            "ROOT r = (f32[100], f32[100]) tuple(y, m)"));
  EXPECT_EQ(p.find("y").annotations().decisions.at("read_after"), "m comes after y: y, s, v, b, m");
  bool is_said = false;
  for (const InPlaceDecision& d : p.assignment.decisions())
    is_said |= !d.in_place && d.reason.find("y, s, v, b, m") != std::string::npos;
  EXPECT_TRUE(is_said);
}

std::vector<std::string> said(const Plan& p, InPlaceDecision::Kind kind) {
  std::vector<std::string> result;
  for (const InPlaceDecision& d : p.assignment.decisions())
    if (d.kind == kind) result.push_back(d.at + (d.in_place ? " in place" : " copied"));
  return result;
}

TEST(Assign, EachUpdateAndConcatenateIsSpokenOf) {
  const Plan p = plan(entry(
      "a = f32[100] parameter(0) x = f32[100] negate(a) i = s32[] parameter(1)\n"
      "y = (f32[100], f32[100]) fusion(x, i), kind=kLoop, calls=both\n"
      "y0 = f32[100] get-tuple-element(y), index=0 y1 = f32[100] get-tuple-element(y), index=1\n"
      "joined = f32[200] fusion(y0, y1), kind=kLoop, calls=join made = f32[200] fusion(y0, y1), kind=kLoop, calls=make\n"
      "ROOT r = (f32[200], f32[200]) tuple(joined, made)",
      "both { b = f32[100] parameter(0) at = s32[] parameter(1) u = f32[1] constant({2})\n"
      "d = f32[100] dynamic-update-slice(b, u, at) n = f32[100] negate(d) ROOT t = (f32[100], f32[100]) tuple(d, n) }\n"
      "join { l = f32[100] parameter(0) m = f32[100] parameter(1) ROOT c = f32[200] concatenate(l, m), dimensions={0} }\n"
      "make { l = f32[100] parameter(0) m = f32[100] parameter(1) n = f32[100] negate(l) o = f32[100] abs(m)\n"
      "ROOT c = f32[200] concatenate(n, o), dimensions={0} }\n"));
  EXPECT_EQ(said(p, InPlaceDecision::Kind::Update), std::vector<std::string>{"y copied"});
  EXPECT_EQ(said(p, InPlaceDecision::Kind::Concatenate), (std::vector<std::string>{"joined copied", "made in place"}));
}

// A broadcast that is read before and behind the peak, and a dot beside which making it again is nothing.
constexpr const char* kKept =
    "x = f32[] parameter(0) v = f32[65536] parameter(1)\n"
    "d = f32[] dot(v, v), lhs_contracting_dims={0}, rhs_contracting_dims={0}\n"
    "b = f32[1024] fusion(x), kind=kLoop, calls=spread\n"
    "s = f32[1] slice(b), slice={[0:1]} p1 = f32[1024] pad(s, x), padding=0_1023\n"
    "p2 = f32[1024] reverse(p1), dimensions={0} p3 = f32[1024] reverse(p2), dimensions={0} r = f32[1024] add(p3, b)\n"
    "ROOT t = (f32[1024], f32[]) tuple(r, d)";
constexpr const char* kSpread = "spread { z = f32[] parameter(0) ROOT o = f32[1024] broadcast(z), dimensions={} }\n";

TEST(Assign, CheapValuesAreMadeAgainRatherThanKeptOverThePeak) {
  const Plan again = plan(entry(kKept, kSpread));
  EXPECT_LE(again.assignment.arena_bytes(), 4096 + 64);  // and one array in the result's memory
  auto scheduled = text::parse_module(entry(kKept, kSpread));
  ASSERT_TRUE(scheduled) << scheduled.error().message();
  (*scheduled)->config().is_scheduled = true;
  const Plan kept = plan_module(*std::move(scheduled));
  EXPECT_GE(kept.assignment.arena_bytes(), 2 * 4096);
}

// A value that is a part in some hundreds of the peak.
TEST(Assign, UnderALimitEachByteCounts) {
  const std::string kept =
      "x = f32[] parameter(0) b = f32[1024] fusion(x), kind=kLoop, calls=spread\n"
      "s = f32[1] slice(b), slice={[0:1]} p1 = f32[819200] pad(s, x), padding=0_819199\n"
      "p2 = f32[819200] reverse(p1), dimensions={0} h = f32[1024] slice(p2), slice={[0:1024]} ROOT r = f32[1024] add(h, b)";
  const Plan roomy = plan(entry(kept, kSpread));
  const std::int64_t bytes = roomy.assignment.total_bytes();
  auto module = text::parse_module(entry(kept, kSpread));
  ASSERT_TRUE(module) << module.error().message();
  auto assignment = assign(**module, {.place = {.limit_bytes = bytes - 1}});
  ASSERT_TRUE(assignment) << assignment.error().message();
  const Plan tight{*std::move(module), *std::move(assignment)};
  expect_sound(tight);
  EXPECT_LT(tight.assignment.total_bytes(), bytes);
}

TEST(Assign, SequentialUpdatesOfOneBaseShareIt) {
  const Plan p = plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a)\n" + std::string(kUpdate) +
                            "i2 = s32[] constant(9) z = f32[100] dynamic-update-slice(y, u, i2)\n"
                            "ROOT r = f32[100] dynamic-update-slice(z, u, i)"));
  EXPECT_TRUE(p.copies().empty());
  EXPECT_EQ(p.slice("x"), p.slice("r"));
}

TEST(Assign, FusedUpdatesFollowTheirPlan) {
  const std::string fused =
      "f { base = f32[100] parameter(0) other = f32[1] parameter(1) n = f32[1] negate(other) at = s32[] parameter(2)\n"
      "ROOT d = f32[100] dynamic-update-slice(base, n, at) }\n";
  const Plan p =
      plan(entry("a = f32[100] parameter(0) o = f32[1] parameter(1) i = s32[] parameter(2) x = f32[100] negate(a)\n"
                 "ROOT y = f32[100] fusion(x, o, i), kind=kLoop, calls=f",
                 fused));
  EXPECT_TRUE(p.copies().empty());
  EXPECT_EQ(p.slice("x"), p.slice("y"));
  EXPECT_EQ(p.find("y").annotations().decisions.at("in_place"), "0:0");
}

TEST(Assign, EachResultOfAFusionSharesByItself) {
  const std::string fused =
      "f { a1 = f32[100] parameter(0) b1 = f32[100] parameter(1) sx = f32[100] add(a1, b1)\n"
      "d1 = f32[100] subtract(a1, b1) ROOT t1 = (f32[100], f32[100]) tuple(sx, d1) }\n";
  const Plan p =
      plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a) y = f32[100] abs(a)\n"
                 "v = (f32[100], f32[100]) fusion(x, y), kind=kLoop, calls=f\n"
                 "s = f32[100] get-tuple-element(v), index=0 d = f32[100] get-tuple-element(v), index=1\n"
                 "ROOT r = f32[100] divide(s, d)",
                 fused));
  EXPECT_NE(p.slice("v", 0), p.slice("v", 1));
  EXPECT_LE(p.assignment.arena_bytes(), 448);  // the other pair is in the result
}

TEST(Assign, FusionThatMovesElementsDoesNotShare) {
  const std::string fused =
      "f { a1 = f32[100] parameter(0) r1 = f32[100] reverse(a1), dimensions={0}\n"
      "ROOT sx = f32[100] add(a1, r1) }\n";
  const Plan p =
      plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a) y = f32[100] fusion(x), kind=kLoop, calls=f\n"
                 "ROOT r = f32[100] fusion(y), kind=kLoop, calls=g",
                 fused + "g { a2 = f32[100] parameter(0) r2 = f32[100] reverse(a2), dimensions={0}\n"
                         "ROOT sy = f32[100] add(a2, r2) }\n"));
  EXPECT_NE(p.slice("x"), p.slice("y"));
  EXPECT_NE(p.slice("y"), p.slice("r"));
}

TEST(Assign, ZerosAreMadeForEachWhoWritesOverThem) {
  const char* const t = "(s32[], f32[100], f32[100])";
  const std::string fill = "fill { c = f32[] constant(0) ROOT f = f32[100] broadcast(c), dimensions={} }\n";
  const Plan p = plan(entry(
      loop_entry(t, "z = f32[100] fusion(), kind=kLoop, calls=fill t = (s32[], f32[100], f32[100]) tuple(zero, z, z)",
                 "w1 = f32[100] get-tuple-element(w), index=1 w2 = f32[100] get-tuple-element(w), index=2\n"
                 "ROOT r = (f32[100], f32[100]) tuple(w1, w2)"),
      fill + loop(t,
                  "x = f32[100] get-tuple-element(q), index=1 y = f32[100] get-tuple-element(q), index=2\n"
                  "u = f32[1] constant({7}) a = f32[100] dynamic-update-slice(x, u, j)\n"
                  "b = f32[100] dynamic-update-slice(y, u, k) ROOT o = (s32[], f32[100], f32[100]) tuple(k, a, b)")));
  for (const hlo::Instruction* copy : p.copies()) EXPECT_EQ(copy->shape().rank(), 0) << copy->name();
}

TEST(Assign, WorkspaceIsApart) {
  const Plan p =
      plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a) y = f32[100] fusion(x), kind=kLoop, calls=f, "
                 "backend_config={\"hloom\":{\"workspace_bytes\":\"1000\"}}\n ROOT r = f32[100] sine(y)",
                 "f { a1 = f32[100] parameter(0) ROOT n1 = f32[100] negate(a1) }"));
  const Slice workspace = p.assignment.workspace(p.find("y"));
  EXPECT_EQ(workspace.bytes, 1000);
  EXPECT_GE(p.assignment.arena_bytes(), 1000);
}

TEST(Assign, SharedLoopsAreGivenToEachCaller) {
  const char* const t = "(s32[], f32[100])";
  const Plan p = plan(entry(
      loop_entry(t, "a = f32[100] parameter(0) na = f32[100] negate(a) t = (s32[], f32[100]) tuple(zero, na)",
                 "t2 = (s32[], f32[100]) tuple(zero, na) w2 = (s32[], f32[100]) while(t2), condition=cond, body=body\n"
                 "x0 = f32[100] get-tuple-element(w), index=1 x1 = f32[100] get-tuple-element(w2), index=1\n"
                 "ROOT r = f32[100] add(x0, x1)"),
      loop(
          t,
          "x = f32[100] get-tuple-element(q), index=1 z = f32[100] negate(x) ROOT o = (s32[], f32[100]) tuple(k, z)")));
  EXPECT_NE(p.find("w").body(), p.find("w2").body());
  EXPECT_EQ(p.copies_in("e"), 3);  // na once, two counters
}

TEST(Assign, CallsAreSeenThrough) {
  const Plan p =
      plan(entry("a = f32[100] parameter(0) x = f32[100] negate(a) y = f32[100] call(x), to_apply=f\n"
                 "ROOT r = f32[100] abs(y)",
                 "f { a1 = f32[100] parameter(0) u = f32[1] constant({1}) i = s32[] constant(3)\n"
                 "ROOT d1 = f32[100] dynamic-update-slice(a1, u, i) }"));
  EXPECT_TRUE(p.copies().empty());
  EXPECT_EQ(p.slice("x"), p.slice("y"));
}

TEST(Assign, LayoutsThatDifferAreCopied) {
  const Plan p =
      plan(entry("a = f32[4,8]{0,1} parameter(0) n = f32[4,8]{0,1} negate(a) y = f32[4,8]{1,0} call(n), to_apply=f\n"
                 "ROOT r = f32[4,8]{1,0} abs(y)",
                 "f { a1 = f32[4,8]{1,0} parameter(0) ROOT d1 = f32[4,8]{1,0} negate(a1) }"));
  ASSERT_EQ(p.copies().size(), 1u);
  EXPECT_EQ(p.copies()[0]->shape().layout(), Layout::descending(2));
}

TEST(Assign, AsynchronousFormsKeepTheirOperands) {
  const Plan p =
      plan(entry("a = f32[4] parameter(0) n = f32[4] negate(a) s = ((f32[4]), f32[4], u32[]) sine-start(n)\n"
                 "d = f32[4] sine-done(s) c = (f32[4], f32[4], u32[]) copy-start(d) e1 = f32[4] copy-done(c)\n"
                 "ROOT r = f32[4] add(e1, n)"));
  EXPECT_NE(p.slice("d"), p.slice("n"));
}

// Others read the operand of a collective and write its result until it is done: what is computed in between lies elsewhere.
TEST(Assign, CollectivesKeepWhatTheyStartWith) {
  const char* const add = "add { ra = f32[] parameter(0) rb = f32[] parameter(1) ROOT rs = f32[] add(ra, rb) }";
  const std::string between =
      "m1 = f32[64] sine(a) m2 = f32[64] cosine(m1) m3 = f32[64] sine(m2)\n";
  const Plan reduce = plan(entry("a = f32[64] parameter(0) n = f32[64] negate(a)\n"
                                 "s = f32[64] all-reduce-start(n), replica_groups={}, to_apply=add\n" +
                                     between +
                                     "d = f32[64] all-reduce-done(s) e1 = f32[64] add(d, m3)\n"
                                     "ROOT r = f32[2] slice(e1), slice={[0:2]}",
                                 add, ", is_scheduled=true"));
  const Plan gather = plan(entry("a = f32[64] parameter(0) n = f32[64] negate(a)\n"
                                 "s = (f32[64], f32[128]) all-gather-start(n), replica_groups={}, dimensions={0}\n" +
                                     between +
                                     "d = f32[128] all-gather-done(s) e1 = f32[64] slice(d), slice={[0:64]}\n"
                                     "e2 = f32[64] add(e1, m3) ROOT r = f32[2] slice(e2), slice={[0:2]}",
                                 "", ", is_scheduled=true, replica_count=2"));
  const Plan unused = plan(entry("a = f32[64] parameter(0) n = f32[64] negate(a)\n"
                                 "s = (f32[64], f32[64]) collective-permute-start(n), channel_id=1, "
                                 "source_target_pairs={{0,0}}\n" +
                                     between + "d = f32[64] collective-permute-done(s)\n"
                                     "ROOT r = f32[2] slice(m3), slice={[0:2]}",
                                 "", ", is_scheduled=true"));
  for (const Plan* p : {&reduce, &gather, &unused})
    for (const char* m : {"m1", "m2", "m3"}) {
      EXPECT_NE(p->slice(m), p->slice("n")) << m;
      for (std::int64_t leaf = 0; leaf < num_leaves(p->find("s").shape()); ++leaf)
        EXPECT_NE(p->slice(m), p->slice("s", leaf)) << m;
    }
  EXPECT_EQ(gather.slice("s", 0), gather.slice("n"));  // named again, not copied
}

TEST(Assign, PlansTheSameOnceMore) {
  const char* const t = "(s32[], f32[100], f32[100])";
  const Plan p = plan(entry(
      loop_entry(
          t, "a = f32[100] parameter(0) b = f32[100] parameter(1) t = (s32[], f32[100], f32[100]) tuple(zero, a, b)",
          "ROOT r = f32[100] get-tuple-element(w), index=1"),
      loop(t,
           "x = f32[100] get-tuple-element(q), index=1 y = f32[100] get-tuple-element(q), index=2\n"
           "ROOT o = (s32[], f32[100], f32[100]) tuple(k, y, x)")));
  const std::string printed = text::print(*p.module);
  const auto placed = place(**text::parse_module(printed));
  ASSERT_TRUE(placed) << placed.error().message();
  EXPECT_EQ(placed->arena_bytes(), p.assignment.arena_bytes());
  const Plan again = plan(printed);
  EXPECT_EQ(again.copies().size(), p.copies().size());
  EXPECT_EQ(again.assignment.arena_bytes(), p.assignment.arena_bytes());
}

TEST(Assign, SaysWhereACopyIsMissing) {
  auto module =
      *text::parse_module(entry("x = f32[4] parameter(0) ROOT r = (f32[4]) tuple(x)", "", ", is_scheduled=true"));
  const auto placed = place(*module);
  ASSERT_FALSE(placed);
  EXPECT_EQ(placed.error().code(), Code::FailedPrecondition);
}

TEST(Assign, ManyValuesInBoundedTime) {
  std::string body = "x0 = f32[16] parameter(0)\n";
  constexpr int kCount = 20000;
  for (int k = 1; k < kCount; ++k) {
    const std::string n = std::to_string(k), before = std::to_string(k - 1), far = std::to_string(std::max(0, k - 40));
    body += "x" + n + " = f32[16] add(x" + before + ", x" + far + ")\n";
  }
  auto module = *text::parse_module(entry(body + "ROOT r = f32[16] negate(x" + std::to_string(kCount - 1) + ")"));
  const auto assignment = assign(*module);
  ASSERT_TRUE(assignment);
  EXPECT_EQ(assignment->arena_bytes(), assignment->lower_bound());
  EXPECT_LE(assignment->arena_bytes(), 40 * 64);
  EXPECT_TRUE(check_assignment(*assignment).empty());
}

TEST(Assign, HoldsForEachProgramOfTheTests) {
  int count = 0;
  for (const auto& file : std::filesystem::recursive_directory_iterator(HLOOM_SOURCE_DIR "/tests")) {
    if (file.path().extension() != ".hlo") continue;
    std::ifstream in(file.path());
    std::stringstream text;
    text << in.rdbuf();
    const std::string all = std::move(text).str();
    for (const text::ModuleText& part : text::split_modules(all)) {
      auto module = text::parse_module(part.text, {.verify = false});
      ASSERT_TRUE(module) << file.path();
      const Plan p = plan_module(*std::move(module));
      const auto found = check_assignment(p.assignment);
      EXPECT_TRUE(found.empty()) << file.path() << ": " << found.front();
      ++count;
    }
  }
  EXPECT_GT(count, 1000);
}

}  // namespace
}  // namespace hloom::buffers

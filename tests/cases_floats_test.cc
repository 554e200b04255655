// Floating point: what no rewrite may lose, and which values functions give.
#include "cases.h"

namespace hloom::cases {
namespace {

using arrays::Tolerance;

constexpr const char* kTwoExponentials = R"(HloModule two_exps
ENTRY root {
  a = f32[2] parameter(0)
  b = f32[2] parameter(1)
  ea = f32[2] exponential(a)
  eb = f32[2] exponential(b)
  ROOT m = f32[2] multiply(ea, eb)
})";

constexpr const char* kLogOfPower = R"(HloModule selfpow
ENTRY root {
  x = f32[3] parameter(0)
  p = f32[3] power(x, x)
  ROOT l = f32[3] log(p)
})";

constexpr const char* kMask = R"(HloModule mask
mx { p = f32[] parameter(0)
  q = f32[] parameter(1)
  ROOT m = f32[] maximum(p, q) }
ENTRY root {
  keep = f32[3] parameter(0)
  sc = f32[3] parameter(1)
  one = f32[] constant(1)
  ones = f32[3] broadcast(one), dimensions={}
  off = f32[3] subtract(ones, keep)
  big = f32[] constant(-2e30)
  bigs = f32[3] broadcast(big), dimensions={}
  pen = f32[3] multiply(bigs, off)
  t = f32[3] add(sc, pen)
  ninf = f32[] constant(-inf)
  top = f32[] reduce(t, ninf), dimensions={0}, to_apply=mx
  tops = f32[3] broadcast(top), dimensions={}
  ROOT r = f32[3] subtract(t, tops)
})";

std::string sort_total(const std::string& more) {
  return "HloModule keep_order\ncmp { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ia = s32[] parameter(2)\n"
         "  ib = s32[] parameter(3)\n  ROOT lt = pred[] compare(a, b), direction=LT" +
         more + R"( }
ENTRY root {
  x = f32[8] parameter(0)
  i = s32[8] iota(), iota_dimension=0
  ROOT s = (f32[8], s32[8]) sort(x, i), dimensions={0}, is_stable=true, to_apply=cmp
})";
}

constexpr const char* kBusyComparator = R"(HloModule busy_compare
third { a = s32[] parameter(0)
  k = s32[] constant(3)
  ROOT r = s32[] remainder(a, k) }
cmp { a = s32[] parameter(0)
  b = s32[] parameter(1)
  k = s32[] constant(3)
  kb = s32[] broadcast(k), dimensions={}
  ra = s32[] remainder(a, kb)
  rb = s32[] call(b), to_apply=third
  t = (s32[], s32[]) tuple(ra, rb)
  x = s32[] get-tuple-element(t), index=0
  y = s32[] get-tuple-element(t), index=1
  ROOT lt = pred[] compare(x, y), direction=LT }
ENTRY root {
  x = s32[9] parameter(0)
  ROOT s = s32[9] sort(x), dimensions={0}, is_stable=true, to_apply=cmp
})";

constexpr const char* kDenormals = R"(HloModule nonzero
ENTRY root {
  x = f64[] parameter(0)
  z = f64[] constant(0)
  e = pred[] compare(x, z), direction=EQ
  s = f64[] add(x, z)
  k = f64[] constant(1e100)
  m = f64[] multiply(x, k)
  i = f64[] constant(inf)
  w = f64[] multiply(x, i)
  ROOT t = (pred[], f64[], f64[], f64[]) tuple(e, s, m, w)
})";

constexpr const char* kComplexLogs = R"(HloModule clog
ENTRY root {
  z = c64[3] parameter(0)
  l = c64[3] log-plus-one(z)
  e = c64[3] exponential-minus-one(z)
  ROOT t = (c64[3], c64[3]) tuple(l, e)
})";

constexpr const char* kNarrowing = R"(HloModule there_is_loss
ENTRY root {
  x = f32[3] parameter(0)
  b = bf16[3] convert(x)
  y = f32[3] convert(b)
  r = f32[3] reduce-precision(x), exponent_bits=5, mantissa_bits=10
  ROOT t = (f32[3], f32[3]) tuple(y, r)
})";

constexpr const char* kCrowd = R"(HloModule crowd
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY root {
  one = f32[] parameter(0)
  p = f32[2048,1] broadcast(one), dimensions={}
  r1 = f32[2048] reshape(p)
  b = f32[2048,1024] broadcast(r1), dimensions={0}
  z = f32[] constant(0)
  ROOT s = f32[] reduce(b, z), dimensions={0,1}, to_apply=sum
})";

// The position of the greatest, a NaN before all, the first among equals: as jnp.argmax is lowered.
std::string argmax(int n) {
  const std::string s = std::to_string(n);
  return R"(HloModule argmax
pick { a = f32[] parameter(0)
  i = s32[] parameter(1)
  b = f32[] parameter(2)
  j = s32[] parameter(3)
  gt = pred[] compare(a, b), direction=GT
  odd = pred[] compare(a, a), direction=NE
  wins = pred[] or(gt, odd)
  eq = pred[] compare(a, b), direction=EQ
  before = pred[] compare(i, j), direction=LT
  tie = pred[] and(eq, before)
  left = pred[] or(wins, tie)
  v = f32[] select(wins, a, b)
  k = s32[] select(left, i, j)
  ROOT t = (f32[], s32[]) tuple(v, k) }
ENTRY root {
  x = f32[)" +
         s + R"(] parameter(0)
  at = s32[)" +
         s + R"(] iota(), iota_dimension=0
  worst = f32[] constant(-inf)
  zero = s32[] constant(0)
  r = (f32[], s32[]) reduce(x, at, worst, zero), dimensions={0}, to_apply=pick
  ROOT k = s32[] get-tuple-element(r), index=1
})";
}

constexpr const char* kLongSum = R"(HloModule million
sum { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
ENTRY root {
  tenth = f32[] parameter(0)
  x = f32[16777216] broadcast(tenth), dimensions={}
  z = f32[] constant(0)
  ROOT s = f32[] reduce(x, z), dimensions={0}, to_apply=sum
})";

std::string ramp(int n, int nan_at) {
  std::string text;
  for (int k = 0; k < n; ++k)
    text += (text.empty() ? "" : ",") + (k == nan_at ? std::string("nan") : std::to_string(k));
  return "{" + text + "}";
}

TEST(Argmax, ANanIsTheGreatestAtEverySize) {
  for (const int n : {1, 2, 3, 5, 8, 15, 16, 17, 31, 32, 33, 39})
    for (const int k : {0, n / 2, n - 1}) expect({"argmax", argmax(n), {ramp(n, k)}, {std::to_string(k)}});
}

TEST(Argmax, OfEqualsTheFirst) {
  for (const int n : {2, 7, 16, 33}) {
    std::string same = "{";
    for (int k = 0; k < n; ++k) same += k == 0 ? "5" : ",5";
    expect({"ties", argmax(n), {same + "}"}, {"0"}});
  }
}

INSTANTIATE_TEST_SUITE_P(
    Floats, Cases,
    testing::Values(
        Case{"AProductOfExponentialsKeepsItsNan",
             kTwoExponentials,
             {"{120,1}", "{-120,2}"},
             {"{nan,20.085537}"},
             Tolerance::within_ulp(4)},
        Case{"TheLogOfAPowerKeepsItsNan",
             kLogOfPower,
             {"{2,-2.5,0.5}"},
             {"{1.3862944,nan,-0.34657359}"},
             Tolerance::within_ulp(4)},
        Case{"AHugeMaskIsNotReassociated",
             kMask,
             {"{1,1,1}", "{0.7,0.5,0.1}"},
             {"{0,-0.2,-0.6}"},
             Tolerance::close(0, 1e-6)},
        Case{"TotalOrderSortsZerosAndNansAndIsStable",
             sort_total(", type=TOTALORDER"),
             {"{0,-0,nan,-nan,-inf,1,-0,0}"},
             {"{-nan,-inf,-0,-0,0,0,1,nan}", "{3,4,1,6,0,7,5,2}"}},
        Case{"SortKeepsTheOrderOfEqualZeros",
             sort_total(""),
             {"{3,-0,0,1,0,-0,-1,2}"},
             {"{-1,-0,0,0,-0,1,2,3}", "{6,1,2,4,5,3,7,0}"}},
        Case{"AComparatorMayCallAndCompute", kBusyComparator, {"{0,1,2,3,4,5,6,7,8}"}, {"{0,3,6,1,4,7,2,5,8}"}},
        Case{"DenormalsAreNotZero",
             kDenormals,
             {"1e-310"},
             {"false", "1e-310", "1e-210", "inf"},
             Tolerance::close(1e-12, 0)},
        Case{"ComplexLogsOfSmallAndHugeDoNotCancel",
             kComplexLogs,
             {"{(2e-5,0),(7e19,0),(1e-6,1e-6)}"},
             {"{(1.9999800e-5,0),(45.695026,0),(1.0000000e-6,9.9999900e-7)}",
              "{(2.0000200e-5,0),(inf,0),(1.0000000e-6,1.0000010e-6)}"},
             Tolerance::within_ulp(8)},
        Case{"NarrowingCastsAreNotRemoved",
             kNarrowing,
             {"{3.14159,0.1,70000}"},
             {"{3.140625,0.100097656,70144}", "{3.140625,0.099975586,inf}"}},
        Case{"AParallelSumOfOnesIsExact", kCrowd, {"1"}, {"2097152"}},
        Case{"ALongSumDoesNotStopToGrow", kLongSum, {"0.1"}, {"1677721.6"}, Tolerance::close(1e-5, 0)}),
    name_of);

}  // namespace
}  // namespace hloom::cases

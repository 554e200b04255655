// A layout says where elements lie, not what they are: routines, tiles, and matrices of narrow floats.
#include "cases.h"

namespace hloom::cases {
namespace {

// The layouts of a scheduled module stay, so that routines meet other ones than row-major.
std::string scheduled(const std::string& parameters, const std::string& body) {
  return "HloModule m, is_scheduled=true\nless { a = f32[] parameter(0)\n b = f32[] parameter(1)\n"
         " ROOT r = pred[] compare(a, b), direction=LT }\nENTRY e {\n" + parameters + body + "}\n";
}

const std::string kMatrix = "  x = f32[2,2]{1,0} parameter(0)\n  c = f32[2,2]{0,1} copy(x)\n";
const std::string kSquare = "{{4, 2}, {2, 5}}";
const auto kClose = arrays::Tolerance::close(1e-6, 1e-6);

std::string factor(const std::string& type) {
  return "HloModule m\nENTRY e {\n x = " + type + "[2,2] parameter(0)\n ROOT l = " + type + "[2,2] cholesky(x), lower=true\n}\n";
}

std::string solution(const std::string& type) {
  return "HloModule m\nENTRY e {\n a = " + type + "[2,2] parameter(0)\n b = " + type + "[2,1] parameter(1)\n ROOT x = " + type +
         "[2,1] triangular-solve(a, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE\n}\n";
}

// What LAPACK takes column by column is here row by row, in operand and result.
constexpr const char* kLapack = R"(HloModule m
ENTRY e {
  x = f64[2,2]{1,0} parameter(0)
  f = (f64[2,2]{1,0}, s32[]) custom-call(x), custom_call_target="lapack_dpotrf_ffi", operand_layout_constraints={f64[2,2]{1,0}}, api_version=API_VERSION_TYPED_FFI, backend_config={uplo = 76 : ui8}
  l = f64[2,2]{1,0} get-tuple-element(f), index=0
  info = s32[] get-tuple-element(f), index=1
  ROOT r = (f64[2,2]{1,0}, s32[]) tuple(l, info)
})";

std::string tiled(const std::string& result, const std::string& body, const std::string& before = "") {
  return "HloModule m\nENTRY e {\n x = s32[3,5]{1,0} parameter(0)\n t = s32[3,5]{1,0:T(2,4)} copy(x)\n" + before + " ROOT r = " + result + body + "\n}\n";
}
const std::string kFifteen = "{{0, 1, 2, 3, 4}, {5, 6, 7, 8, 9}, {10, 11, 12, 13, 14}}";

// {48, 47, … 1} or the other way round: as many elements as the library sorts.
std::string numbers(bool falling) {
  std::string text = "{";
  for (int k = 1; k <= 48; ++k) text += (k > 1 ? "," : "") + std::to_string(falling ? 49 - k : k);
  return text + "}";
}

constexpr const char* kSortTwice = R"(HloModule m
less { a = s32[] parameter(0)
  b = s32[] parameter(1)
  c = s32[] parameter(2)
  d = s32[] parameter(3)
  f = s32[] parameter(4)
  g = s32[] parameter(5)
  ROOT r = pred[] compare(a, b), direction=LT }
ENTRY e {
  x = s32[48] parameter(0)
  y = s32[48] parameter(1)
  ROOT r = (s32[48], s32[48], s32[48]) sort(x, x, y), dimensions={0}, is_stable=true, to_apply=less
})";

const std::vector<Case> kCases = {
    {"CholeskyOfColumns", scheduled(kMatrix, "  ROOT l = f32[2,2]{0,1} cholesky(c), lower=true\n"), {kSquare}, {"{{2, 0}, {1, 2}}"}, kClose},
    {"CholeskyOfRowsToColumns", scheduled(kMatrix, "  l = f32[2,2]{0,1} cholesky(x), lower=false\n  ROOT r = f32[2,2]{1,0} copy(l)\n"),
     {kSquare}, {"{{2, 1}, {0, 2}}"}, kClose},
    {"TriangularSolveOfMixedLayouts",
     scheduled(kMatrix + "  b = f32[2,2]{1,0} parameter(1)\n",
               "  ROOT s = f32[2,2]{0,1} triangular-solve(c, b), left_side=true, lower=true, transpose_a=NO_TRANSPOSE\n"),
     {"{{2, 9}, {1, 4}}", "{{4, 2}, {6, 5}}"}, {"{{2, 1}, {1, 1}}"}, kClose},
    {"FourierTransformOfColumns",
     scheduled("  x = f32[2,2]{1,0} parameter(0)\n  c = f32[2,2]{0,1} copy(x)\n", "  ROOT f = c64[2,2]{0,1} fft(c), fft_type=RFFT, fft_length={2}\n"),
     {"{{1, 2}, {3, 5}}"}, {"{{(3, 0), (-1, 0)}, {(8, 0), (-2, 0)}}"}, kClose},
    {"SortOfColumns", scheduled(kMatrix, "  ROOT s = f32[2,2]{0,1} sort(c), dimensions={1}, to_apply=less\n"), {"{{3, 1}, {2, 4}}"}, {"{{1, 3}, {2, 4}}"}},
    {"TopKOfColumns",
     scheduled("  x = f32[2,3]{1,0} parameter(0)\n  c = f32[2,3]{0,1} copy(x)\n", "  ROOT s = (f32[2,2]{0,1}, s32[2,2]{0,1}) topk(c), k=2, largest=true\n"),
     {"{{3, 1, 2}, {2, 4, 6}}"}, {"{{3, 2}, {6, 4}}", "{{0, 2}, {2, 1}}"}},
    {"GatheredColumns", scheduled(kMatrix, "  ROOT g = f32[2,2]{1,0} all-gather(c), dimensions={0}, replica_groups={}\n"), {kSquare}, {kSquare}},
    {"ARoutineTakesAValueTwice",
     "HloModule m\nENTRY e {\n x = f32[2,2] parameter(0)\n ROOT s = f32[2,2] triangular-solve(x, x), left_side=true, lower=true, transpose_a=NO_TRANSPOSE\n}\n",
     {"{{2, 0}, {1, 4}}"}, {"{{1, 0}, {0, 1}}"}},
    {"ASortTakesAValueTwiceAndAnotherOnce", kSortTwice, {numbers(true), numbers(false)}, {numbers(false), numbers(false), numbers(true)}},
    {"LapackOfRows", kLapack, {kSquare}, {"{{2, 2}, {1, 2}}", "0"}, kClose},

    {"CholeskyOfBf16", factor("bf16"), {kSquare}, {"{{2, 0}, {1, 2}}"}},
    {"CholeskyOfF16", factor("f16"), {kSquare}, {"{{2, 0}, {1, 2}}"}},
    {"CholeskyOfF8", factor("f8e4m3fn"), {kSquare}, {"{{2, 0}, {1, 2}}"}},
    {"CholeskyOfANarrowMatrixThatIsNotPositive", factor("bf16"), {"{{-1, 2}, {2, 5}}"}, {"{{nan, nan}, {nan, nan}}"}},
    // 3 and 7/3 = 2.333…, rounded once: 2.328125 in bf16, 2.333984375 in f16.
    {"TriangularSolveOfBf16", solution("bf16"), {"{{1, 9}, {-2, 3}}", "{{3}, {1}}"}, {"{{3}, {2.328125}}"}},
    {"TriangularSolveOfF16", solution("f16"), {"{{1, 9}, {-2, 3}}", "{{3}, {1}}"}, {"{{3}, {2.333984375}}"}},
    {"TriangularSolveOfF8", solution("f8e5m2"), {"{{1, 8}, {-2, 4}}", "{{3}, {2}}"}, {"{{3}, {2}}"}},

    {"TilesDoNotChangeValues", tiled("s32[3,5]{1,0}", " add(t, t)"), {kFifteen},
     {"{{0, 2, 4, 6, 8}, {10, 12, 14, 16, 18}, {20, 22, 24, 26, 28}}"}},
    {"ABitcastTellsTiles", tiled("s32[32]{0}", " bitcast(t)"), {kFifteen},
     {"{0, 1, 2, 3, 5, 6, 7, 8, 4, 0, 0, 0, 9, 0, 0, 0, 10, 11, 12, 13, 0, 0, 0, 0, 14, 0, 0, 0, 0, 0, 0, 0}"}},
    // Places in turn: s32[4,8] of tiles of 4 by 4, the first of which is the first half.
    {"ABitcastBetweenTiles", tiled("s32[4,4]{1,0}", " slice(b), slice={[0:4], [0:4]}", " b = s32[4,8]{1,0:T(4,4)} bitcast(t)\n"), {kFifteen},
     {"{{0, 1, 2, 3}, {5, 6, 7, 8}, {4, 0, 0, 0}, {9, 0, 0, 0}}"}},
};

INSTANTIATE_TEST_SUITE_P(Layouts, Cases, testing::ValuesIn(kCases), name_of);

}  // namespace
}  // namespace hloom::cases

// The law of the text: print(parse(print(k))) == print(k), and what parses evaluates.
#include "kernels/print.h"

#include <gtest/gtest.h>

#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

// Every form of statement, attribute and constant, as print() writes it.
constexpr std::string_view kAll = R"(kernel "a kernel"(a: f32[64] align 64, arena: bytes[4096] written overlap, m: pred[64]) -> (y: f32[64], z: c64[8]) scratch 256 f32 blocks 2 cost 512 {
  zero = constant f32 0
  small = constant f32 1e-45
  nan = constant f32 0x7fc00001
  big = constant f64 1.7976931348623157e+308
  half = constant f16 0x3800
  low = constant s64 -9223372036854775808
  top = constant u64 18446744073709551615
  minus = constant s4 -8
  yes = constant pred true
  i.unit = constant c64 (0, 1)
  wide = constant c128 (0.5, -0)
  for i in 0..64 block 32 by 16 {
    x = load f32 a[i]
    p = load pred m[i]
    w = load f32 a[-1*i + 63] where p
    q = compare pred x, w lt float
    r = reduce-precision f32 x exponent 5 mantissa 10
    s = select f32 q, r, w
    t = multiply-add f32 s, x, w
    u = clamp f32 zero, t, x
    store y[i], u where p
  }
  for j in 0..4 block 4 by 4 {
    r0 = load f32 a[j]
    r1 = load f32 a[j + 4]
    c0, c1, c2, c3 = transpose f32 r0, r1, r0, r1
    store y[j], c0 streamed
    store y[j + 8], c3
  }
  for k until l in 0..10 block 5 {
    prefetch pred m[k + 8]
    v = load f32 a[k]
    store y[l], v
  }
}
)";

constexpr std::string_view kControl = R"(kernel control(n: s64[1], a: f32[100]) -> (y: f32[4]) checked {
  n.0 = load s64 n[0]
  zero = constant f32 0
  one = constant s64 1
  for j in 0..100 by 64 fold add acc = zero fold maximum top = zero {
    x = load f32 a[j]
    sum = add f32 acc, x
    largest = maximum f32 top, x
    next sum, largest
  } -> total, greatest
  for m in 0..100 by 32 best greatest first best least last {
    z = load f32 a[m]
    next z, z
  } -> top.at, low.at
  for k in one..n.0 carry c = total carry d = greatest {
    e = add f32 c, d
    next d, e
  } -> f, g
  while carry count = n.0 {
    goes = compare pred count, one gt signed
  } test goes do {
    fewer = index count - 1
    next fewer
  } -> last
  if last {
    next f
  } else {
    h = add f32 f, g
    next h
  } else {
    next g
  } -> chosen
  store y[last - one + 3], chosen
  call other(a, y + 8) blocks 7 scratch 64
}
)";

TEST(Print, IsParsedBackToTheLetter) {
  for (const std::string_view text : {kAll, kControl}) {
    const Expected<Kernel> kernel = parse(text);
    ASSERT_TRUE(kernel) << kernel.error().message();
    EXPECT_EQ(print(*kernel), text);
  }
}

TEST(Print, NamesWhatHasNoneOrTheSame) {
  Kernel k;
  k.name = "0";
  k.arguments = {{"next", DType::F32, 4, false}, {"", DType::F32, 4, false}, {"next", DType::F32, 4, true}};
  Loop loop;
  // Values made in another order than they are numbered, and terms sorted by number.
  const Value x = k.add_value(DType::F32, "if"), y = k.add_value(DType::F32), j = k.add_value(DType::S64, "j");
  loop.variable = k.add_value(DType::S64, "j");
  loop.to = 2;
  Loop inner;
  inner.variable = j;
  inner.to = 2;
  inner.body.push_back({Load{x, 0, index_of(j) + index_of(loop.variable, 2)}});
  inner.body.push_back({Line{y, hlo::Opcode::Negate, {x}, {}, {}}});
  inner.body.push_back({Store{2, index_of(j) + index_of(loop.variable, 2), y}});
  loop.body.push_back({inner});
  k.body.push_back({loop});
  const std::string text = print(k);
  EXPECT_EQ(text, R"(kernel "0"(next.1: f32[4], a0: f32[4]) -> (next.2: f32[4]) {
  for j in 0..2 {
    for j.1 in 0..2 {
      if.1 = load f32 next.1[2*j + j.1]
      v1 = negate f32 if.1
      store next.2[2*j + j.1], v1
    }
  }
}
)");
  const Expected<Kernel> again = parse(text);
  ASSERT_TRUE(again) << again.error().message();
  EXPECT_EQ(print(*again), text);
}

TEST(Print, AnonymousTextDependsOnNoName) {
  Kernel a = *parse("kernel a(x: f32[4]) -> (y: f32[4]) { for i in 0..4 { v = load f32 x[i] store y[i], v } }");
  Kernel b = *parse("kernel b(p: f32[4]) -> (q: f32[4]) { for j in 0..4 { w = load f32 p[j] store q[j], w } }");
  EXPECT_NE(print(a), print(b));
  EXPECT_EQ(print(a, true), print(b, true));
  Kernel c = *parse("kernel c(p: f32[4]) -> (q: f32[4]) { for j in 0..3 { w = load f32 p[j] store q[j], w } }");
  EXPECT_NE(print(a, true), print(c, true));
}

std::string error_of(std::string_view text) {
  const Expected<Kernel> kernel = parse(text);
  if (kernel) {
    const Expected<> verified = verify(*kernel);
    return verified ? "none" : verified.error().message();
  }
  EXPECT_EQ(kernel.error().code(), Code::InvalidArgument);
  return kernel.error().message();
}

TEST(Parse, ErrorsNameTheirPlace) {
  EXPECT_EQ(error_of("kernel"), "1:7: expects a kernel's name");
  EXPECT_EQ(error_of("kernel k() {\n  x = ad f32 y\n}"), "2:7: no line has the opcode 'ad'");
  EXPECT_EQ(error_of("kernel k() {\n  x = negate f32 y\n}"), "2:18: no value is called 'y' here");
  EXPECT_EQ(error_of("kernel k(a: f33[1]) {}"), "1:13: no element type is called 'f33'");
  EXPECT_EQ(error_of("kernel k(a: f32[99999999999999999999]) {}"), "1:17: expects an integer of 64 bits");
  EXPECT_EQ(error_of("kernel k(a: f32[1], a: f32[1]) {}"), "1:30: two arguments are called 'a'");
  EXPECT_EQ(error_of("kernel k() { x = constant f32 1 x = constant f32 2 }"), "1:52: two values are called 'x'");
  EXPECT_EQ(error_of("kernel k() { x = constant s8 1.5 }"), "1:30: is no s8");
  EXPECT_EQ(error_of("kernel \"k"), "1:8: a quote that does not end");
  EXPECT_EQ(error_of("kernel k() {} kernel l() {}"), "expects one kernel, found 2");
}

// No text may crash the parser: all prefixes, and each character changed.
TEST(Parse, TakesAnyText) {
  for (const std::string_view text : {kAll, kControl}) {
    for (std::size_t n = 0; n < text.size(); ++n) {
      EXPECT_FALSE(parse(text.substr(0, n - (n == text.size() - 1))));
      for (const char c : {'{', '}', '0', 'x', '-', '.', '"'}) {
        std::string changed(text);
        changed[n] = c;
        const Expected<Kernel> kernel = parse(changed);
        if (!kernel) continue;
        EXPECT_EQ(print(*parse(print(*kernel))), print(*kernel));
        (void)verify(*kernel).has_value();
      }
    }
  }
  std::string deep = "kernel k() {";
  for (int i = 0; i < 100000; ++i) deep += "for i" + std::to_string(i) + " in 0..1 {";
  EXPECT_FALSE(parse(deep));
}

TEST(Verify, TakesWhatIsRight) {
  EXPECT_EQ(error_of(kAll), "none");
  EXPECT_EQ(error_of(kControl), "none");
}

// Each rule, broken.
TEST(Verify, NamesWhatIsWrong) {
  const auto in_kernel = [](const std::string& body) {
    return error_of("kernel k(a: f32[8], b: bytes[8] written) -> (y: f32[8]) { z = constant f32 0 " + body + " }");
  };
  EXPECT_EQ(in_kernel("for i in 0..8 { x = load f32 a[i] store y[i], x }"), "none");
  EXPECT_EQ(in_kernel("for i in 0..9 { x = load f32 a[i] }"),
            "k: elements 0 to 8 of type f32 of a, which has 32 bytes");
  EXPECT_EQ(in_kernel("for i in 0..8 { j = index 7 - i x = load f32 a[i + j] }"), "none");
  EXPECT_EQ(in_kernel("for i in 0..8 { x = load f32 a[i - 1] }"),
            "k: elements -1 to 6 of type f32 of a, which has 32 bytes");
  EXPECT_EQ(in_kernel("for i in 0..0 { x = load f32 a[i + 99] }"), "none");
  EXPECT_EQ(in_kernel("p = compare pred z, z eq float x = load f32 a[99] where p"), "none");
  EXPECT_EQ(in_kernel("x = load f32 b[2]"), "k: elements 2 to 2 of type f32 of b, which has 8 bytes");
  EXPECT_EQ(in_kernel("x = load s32 a[0]"), "k: argument a holds f32, not s32");
  EXPECT_EQ(in_kernel("store a[0], z"), "k: stores to a, which is not written");
  EXPECT_EQ(in_kernel("for i in 0..8 by 8 { store y[0], z }"), "k: all lanes store to one element of argument 2");
  EXPECT_EQ(in_kernel("for i in 0..8 { prefetch f32 a[i] }"), "none");
  EXPECT_EQ(in_kernel("for i in 0..8 { prefetch f32 a[i + 1] }"), "k: elements 1 to 8 of type f32 of a, which has 32 bytes");
  EXPECT_EQ(in_kernel("for i in 0..8 { prefetch s32 a[i] }"), "k: argument a holds f32, not s32");
  EXPECT_EQ(in_kernel("for i in 0..8 by 8 { prefetch f32 a[i] }"), "k: a prefetch from argument 0 in a loop by lanes");
  EXPECT_EQ(in_kernel("for i in 0..8 by 6 { store y[i], z }"), "k: loop i: by 6 lanes");
  EXPECT_EQ(in_kernel("for i in 0..8 by 8 carry c = z { next c } -> d"), "k: loop i: carries in a loop by lanes");
  EXPECT_EQ(in_kernel("for i in 0..8 fold add c = z { next c } -> d"), "k: loop i: folds in a loop without lanes");
  EXPECT_EQ(in_kernel("for i in 0..8 by 8 fold subtract c = z { next c } -> d"), "k: fold d by subtract");
  EXPECT_EQ(in_kernel("for i in 0..8 by 8 { for j in 0..8 by 8 { store y[j], z } }"),
            "k: loop j: by lanes inside a loop by lanes");
  EXPECT_EQ(in_kernel("for i in 0..8 by 8 { p = compare pred z, z eq float if p { } }"),
            "k: loop i: a while, if or call in a loop by lanes");
  EXPECT_EQ(in_kernel("for i in 0..8 block 4 { store y[i], z }"), "k: loop i: 1 blocks do not cover it");
  EXPECT_EQ(in_kernel("for i until j in 0..8 { store y[i], z }"), "k: loop i: an end of a loop by lanes or without blocks");
  EXPECT_EQ(in_kernel("for i until j in 0..8 block 8 { store y[j], z }"), "k: elements 1 to 8 of type f32 of y, which has 32 bytes");
  EXPECT_EQ(error_of("kernel k() -> (y: f32[1]) blocks 2 { z = constant f32 0 store y[0], z }"),
            "k: has 2 blocks and a statement that each call would run");
  EXPECT_EQ(in_kernel("for i in 0..8 { x = load f32 a[i] } store y[0], x"), "k: x is used where it is not made");
  EXPECT_EQ(in_kernel("p = compare pred z, z eq float if p { x = negate f32 z } else { w = abs f32 x }"),
            "k: x is used where it is not made");
  EXPECT_EQ(in_kernel("x = add s32 z, z"), "k: x = add to s32 has an operand of type f32");
  EXPECT_EQ(in_kernel("x = popcnt f32 z"), "k: x = popcnt to f32 has an operand of type f32");
  EXPECT_EQ(in_kernel("p = compare pred z, z eq signed"), "k: p = compare to pred compares f32 in another type's order");
  EXPECT_EQ(in_kernel("x = bitcast-convert s16 z"), "k: x = bitcast-convert to s16 from f32");
  EXPECT_EQ(in_kernel("x = dot f32 z, z"), "1:82: no line has the opcode 'dot'");
}

TEST(Print, PlacesOfArgumentsComeBack) {
  const std::string text =
      "kernel k(a: f32[8] align 4 space 5 split 0 at 2 at 6 split 1 at 3) -> (y: f32[8] align 4 space 2) {\n}\n";
  const auto kernel = parse(text);
  ASSERT_TRUE(kernel) << kernel.error().message();
  EXPECT_EQ(kernel->arguments[0].memory_space, 5);
  EXPECT_EQ(kernel->arguments[0].splits, (std::vector<Layout::Split>{{0, {2, 6}}, {1, {3}}}));
  EXPECT_EQ(print(*kernel), text);
}

}  // namespace
}  // namespace hloom::kernels

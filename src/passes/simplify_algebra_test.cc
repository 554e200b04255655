#include "passes/testing.h"

namespace hloom::passes {
namespace {

// What a rule makes of `op`, whose operands a … d are parameters; the last line is the result.
std::string simplified(const std::string& type, const std::string& op) {
  const auto parameters = "a = " + type + " parameter(0)\nb = " + type +
                          " parameter(1)\np = pred[3] parameter(2)\nq = pred[3] parameter(3)\n" +
                          "zero = " + type.substr(0, 3) + "[] constant(0)\nzeros = " + type +
                          " broadcast(zero), dimensions={}\n" + "one = " + type.substr(0, 3) +
                          "[] constant(1)\nones = " + type + " broadcast(one), dimensions={}\n" +
                          "yes = pred[] constant(true)\nyeses = pred[3] broadcast(yes), dimensions={}\n" +
                          "no = pred[] constant(false)\nnoes = pred[3] broadcast(no), dimensions={}\n";
  const std::string left = testing::after_in_entry("simplify-algebra", parameters + op);
  const std::size_t root = left.find("ROOT ");
  std::string line = left.substr(root + 5, left.find('\n', root) - root - 5);
  // Without the result's name, which the rules are free to choose, unless it is a parameter itself.
  return line.find("parameter") != std::string::npos ? line.substr(0, line.find(' '))
                                                     : line.substr(line.find("= ") + 2);
}
std::string of_f32(const std::string& op) { return simplified("f32[3]", op); }
std::string of_s32(const std::string& op) { return simplified("s32[3]", op); }

TEST(SimplifyAlgebra, KeepsTheSignOfZero) {
  EXPECT_EQ(of_f32("ROOT r = f32[3] add(a, zeros)"), "f32[3] add(a, zeros)");
  EXPECT_EQ(of_f32("ROOT r = f32[3] subtract(a, zeros)"), "a");
  EXPECT_EQ(of_f32("minus = f32[] constant(-0)\nm = f32[3] broadcast(minus), dimensions={}\nROOT r = f32[3] add(m, a)"),
            "a");
  EXPECT_EQ(of_f32("ROOT r = f32[3] multiply(a, zeros)"), "f32[3] multiply(a, zeros)");
  EXPECT_EQ(of_s32("ROOT r = s32[3] add(a, zeros)"), "a");
}

TEST(SimplifyAlgebra, DropsNeutralOperands) {
  EXPECT_EQ(of_f32("ROOT r = f32[3] multiply(ones, a)"), "a");
  EXPECT_EQ(of_f32("ROOT r = f32[3] divide(a, ones)"), "a");
  EXPECT_EQ(of_f32("ROOT r = f32[3] maximum(a, a)"), "a");
  EXPECT_EQ(of_f32("i = f32[] constant(-inf)\nm = f32[3] broadcast(i), dimensions={}\nROOT r = f32[3] maximum(m, a)"),
            "a");
  EXPECT_EQ(of_f32("i = f32[] constant(-inf)\nm = f32[3] broadcast(i), dimensions={}\nROOT r = f32[3] minimum(m, a)"),
            "f32[3] minimum(m, a)");
  EXPECT_EQ(of_s32("ROOT r = s32[3] shift-left(a, zeros)"), "a");
}

TEST(SimplifyAlgebra, MovesNegations) {
  EXPECT_EQ(of_f32("n = f32[3] negate(b)\nROOT r = f32[3] add(a, n)"), "f32[3] subtract(a, b)");
  EXPECT_EQ(of_f32("n = f32[3] negate(b)\nROOT r = f32[3] subtract(a, n)"), "f32[3] add(a, b)");
  EXPECT_EQ(of_f32("n = f32[3] negate(b)\nROOT r = f32[3] negate(n)"), "b");
  EXPECT_EQ(of_f32("n = f32[3] subtract(a, b)\nROOT r = f32[3] negate(n)"), "f32[3] negate(n)");
}

TEST(SimplifyAlgebra, DividesByPowersOfTwoByMultiplying) {
  EXPECT_EQ(of_f32("c = f32[] constant(8)\nd = f32[3] broadcast(c), dimensions={}\nROOT r = f32[3] divide(a, d)"),
            "f32[3] multiply(a, r.1)");
  EXPECT_EQ(of_f32("c = f32[] constant(3)\nd = f32[3] broadcast(c), dimensions={}\nROOT r = f32[3] divide(a, d)"),
            "f32[3] divide(a, d)");
  // The inverse of the largest power is no normal number.
  EXPECT_EQ(
      of_f32(
          "c = f32[] constant(1.70141183e+38)\nd = f32[3] broadcast(c), dimensions={}\nROOT r = f32[3] divide(a, d)"),
      "f32[3] divide(a, d)");
}

TEST(SimplifyAlgebra, SimplifiesLogic) {
  EXPECT_EQ(of_f32("ROOT r = pred[3] and(p, yeses)"), "p");
  EXPECT_EQ(of_f32("ROOT r = pred[3] or(noes, p)"), "p");
  EXPECT_EQ(of_f32("o = pred[3] or(p, q)\nROOT r = pred[3] and(p, o)"), "p");
  EXPECT_EQ(of_f32("n = pred[3] not(p)\nROOT r = pred[3] or(p, n)"), "pred[3] broadcast(constant), dimensions={}");
  EXPECT_EQ(of_f32("ROOT r = pred[3] xor(p, yeses)"), "pred[3] not(p)");
  EXPECT_EQ(of_s32("c = pred[3] compare(a, b), direction=LT\nROOT r = pred[3] not(c)"),
            "pred[3] compare(a, b), direction=GE");
  // Either may be false of a NaN.
  EXPECT_EQ(of_f32("c = pred[3] compare(a, b), direction=LT\nROOT r = pred[3] not(c)"), "pred[3] not(c)");
}

TEST(SimplifyAlgebra, ComparesWhatWasMadeOfAPred) {
  EXPECT_EQ(of_s32("c = s32[3] convert(p)\nROOT r = pred[3] compare(c, zeros), direction=NE"), "p");
  EXPECT_EQ(of_s32("c = s32[3] convert(p)\nROOT r = pred[3] compare(ones, c), direction=GT"), "pred[3] not(p)");
  EXPECT_EQ(of_s32("c = s32[3] select(p, ones, zeros)\nROOT r = pred[3] compare(c, ones), direction=GE"), "p");
  EXPECT_EQ(of_s32("ROOT r = pred[3] compare(a, a), direction=LE"), "pred[3] broadcast(constant), dimensions={}");
  EXPECT_EQ(of_f32("ROOT r = pred[3] compare(a, a), direction=NE"), "pred[3] compare(a, a), direction=NE");
}

TEST(SimplifyAlgebra, SimplifiesSelects) {
  EXPECT_EQ(of_f32("ROOT r = f32[3] select(yeses, a, b)"), "a");
  EXPECT_EQ(of_f32("ROOT r = f32[3] select(p, b, b)"), "b");
  EXPECT_EQ(of_f32("n = pred[3] not(p)\nROOT r = f32[3] select(n, a, b)"), "f32[3] select(p, b, a)");
  EXPECT_EQ(of_f32("s = f32[3] select(p, a, b)\nROOT r = f32[3] select(p, s, ones)"), "f32[3] select(p, a, ones)");
  EXPECT_EQ(of_f32("ROOT r = pred[3] select(p, q, noes)"), "pred[3] and(p, q)");
  EXPECT_EQ(of_f32("ROOT r = pred[3] select(p, yeses, q)"), "pred[3] or(p, q)");
}

TEST(SimplifyAlgebra, DropsConversionsThatLoseNothing) {
  EXPECT_EQ(of_f32("w = f64[3] convert(a)\nROOT r = f32[3] convert(w)"), "a");
  EXPECT_EQ(of_f32("w = bf16[3] convert(a)\nROOT r = f32[3] convert(w)"), "f32[3] convert(w)");
  EXPECT_EQ(of_s32("w = s64[3] convert(a)\nROOT r = u8[3] convert(w)"), "u8[3] convert(a)");
  // A float saturates where an integer wraps.
  EXPECT_EQ(of_s32("w = f64[3] convert(a)\nROOT r = u8[3] convert(w)"), "u8[3] convert(w)");
  EXPECT_EQ(of_f32("w = s32[3] bitcast-convert(a)\nROOT r = f32[3] bitcast-convert(w)"), "a");
}

TEST(SimplifyAlgebra, CombinesSpreadScalarsFirst) {
  EXPECT_EQ(testing::after_in_entry(
                "simplify-algebra",
                "x = f32[] parameter(0)\ny = f32[] parameter(1)\nbx = f32[8] broadcast(x), dimensions={}\n"
                "by = f32[8] broadcast(y), dimensions={}\nROOT r = f32[8] add(bx, by)"),
            "x = f32[] parameter(0)\ny = f32[] parameter(1)\nr.1 = f32[] add(x, y)\nROOT r.2 = f32[8] broadcast(r.1), "
            "dimensions={}\n");
}

}  // namespace
}  // namespace hloom::passes

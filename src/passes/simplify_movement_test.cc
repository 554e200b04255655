#include "passes/testing.h"

namespace hloom::passes {
namespace {

// What is left of the entry below the parameters.
std::string simplified(const std::string& instructions) {
  const std::string left = testing::after_in_entry("simplify-movement", instructions);
  std::string result;
  for (std::size_t at = 0; at < left.size(); at = left.find('\n', at) + 1) {
    const std::string line = left.substr(at, left.find('\n', at) - at + 1);
    if (line.find(" parameter(") == std::string::npos || line.starts_with("ROOT")) result += line;
  }
  return result;
}

constexpr const char* kX = "x = f32[4,6] parameter(0)\n";

TEST(SimplifyMovement, UndoesWhatJaxPutsAroundABroadcast) {
  EXPECT_EQ(
      simplified("x = f32[9] parameter(0)\na = f32[1,9,1] reshape(x)\nb = f32[1,9,1] broadcast(a), dimensions={0,1,2}\n"
                 "c = f32[9] reshape(b)\nROOT r = f32[9,9,3] broadcast(c), dimensions={1}"),
      "ROOT r = f32[9,9,3] broadcast(x), dimensions={1}\n");
}

TEST(SimplifyMovement, MergesChains) {
  EXPECT_EQ(simplified(std::string(kX) + "a = f32[24] reshape(x)\nROOT r = f32[6,4] reshape(a)"),
            "ROOT r.1 = f32[6,4] reshape(x)\n");
  EXPECT_EQ(simplified(std::string(kX) +
                       "a = f32[6,4] transpose(x), dimensions={1,0}\nROOT r = f32[4,6] transpose(a), dimensions={1,0}"),
            "ROOT x = f32[4,6] parameter(0)\n");
  EXPECT_EQ(
      simplified(std::string(kX) +
                 "a = f32[2,6] slice(x), slice={[0:4:2], [0:6]}\nROOT r = f32[1,2] slice(a), slice={[1:2], [2:6:3]}"),
      "ROOT r.1 = f32[1,2] slice(x), slice={[2:3:2], [2:6:3]}\n");
  EXPECT_EQ(simplified(std::string(kX) +
                       "a = f32[4,6] reverse(x), dimensions={0,1}\nROOT r = f32[4,6] reverse(a), dimensions={1}"),
            "ROOT r.1 = f32[4,6] reverse(x), dimensions={0}\n");
}

TEST(SimplifyMovement, MovesNoUnits) {
  EXPECT_EQ(simplified("x = f32[1,6] parameter(0)\nROOT r = f32[6,1] transpose(x), dimensions={1,0}"),
            "ROOT r.1 = f32[6,1] reshape(x)\n");
  EXPECT_EQ(simplified("x = f32[6,1] parameter(0)\nROOT r = f32[6,1] reverse(x), dimensions={1}"),
            "ROOT x = f32[6,1] parameter(0)\n");
  EXPECT_EQ(simplified("x = f32[6,1] parameter(0)\nROOT r = f32[6,1,5] broadcast(x), dimensions={0,1}"),
            "r.1 = f32[6] reshape(x)\nROOT r.2 = f32[6,1,5] broadcast(r.1), dimensions={0}\n");
}

TEST(SimplifyMovement, SeesThroughConcatenateAndPad) {
  const std::string joined =
      std::string(kX) + "y = f32[2,6] parameter(1)\nc = f32[6,6] concatenate(x, y), dimensions={0}\n";
  EXPECT_EQ(simplified(joined + "ROOT r = f32[2,6] slice(c), slice={[4:6], [0:6]}"),
            "ROOT y = f32[2,6] parameter(1)\n");
  EXPECT_EQ(simplified(joined + "ROOT r = f32[2,6] slice(c), slice={[3:5], [0:6]}"),
            "c = f32[6,6] concatenate(x, y), dimensions={0}\nROOT r = f32[2,6] slice(c), slice={[3:5], [0:6]}\n");
  const std::string padded = std::string(kX) + "z = f32[] parameter(1)\np = f32[6,8] pad(x, z), padding=1_1x1_1\n";
  EXPECT_EQ(simplified(padded + "ROOT r = f32[4,5] slice(p), slice={[1:5], [2:7]}"),
            "ROOT r.1 = f32[4,5] slice(x), slice={[0:4], [1:6]}\n");
  EXPECT_EQ(simplified(std::string(kX) + "z = f32[] parameter(1)\nROOT r = f32[3,4] pad(x, z), padding=-1_0x0_-2"),
            "ROOT r.1 = f32[3,4] slice(x), slice={[1:4], [0:4]}\n");
}

TEST(SimplifyMovement, JoinsSlices) {
  EXPECT_EQ(simplified(std::string(kX) +
                       "a = f32[1,6] slice(x), slice={[0:1], [0:6]}\nb = f32[2,6] slice(x), slice={[1:3], [0:6]}\n"
                       "ROOT r = f32[3,6] concatenate(a, b), dimensions={0}"),
            "ROOT r.1 = f32[3,6] slice(x), slice={[0:3], [0:6]}\n");
}

TEST(SimplifyMovement, UpdatesAnArrayThatWasCutAroundSomethingNew) {
  const std::string cut = std::string(kX) +
                          "u = f32[1,6] parameter(1)\na = f32[1,6] slice(x), slice={[0:1], [0:6]}\nb = f32[2,6] "
                          "slice(x), slice={[2:4], [0:6]}\n";
  EXPECT_EQ(simplified(cut + "ROOT r = f32[4,6] concatenate(a, u, b), dimensions={0}"),
            "constant = s64[] constant(1)\nconstant.1 = s64[] constant(0)\nROOT r.1 = f32[4,6] dynamic-update-slice(x, "
            "u, constant, constant.1)\n");
  // A roll is none: the parts are not in their places.
  const std::string rolled =
      std::string(kX) + "a = f32[1,6] slice(x), slice={[3:4], [0:6]}\nb = f32[3,6] slice(x), slice={[0:3], [0:6]}\n";
  EXPECT_NE(simplified(rolled + "ROOT r = f32[4,6] concatenate(a, b), dimensions={0}").find("concatenate"),
            std::string::npos);
}

TEST(SimplifyMovement, KnowsConstantPlaces) {
  EXPECT_EQ(simplified(std::string(kX) + "i = s32[] constant(7)\nj = s32[] constant(-1)\n"
                                         "ROOT r = f32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}"),
            "ROOT r.1 = f32[2,3] slice(x), slice={[2:4], [0:3]}\n");
  // In its own type 255 is large, not -1.
  EXPECT_EQ(simplified("x = f32[6] parameter(0)\ni = u8[] constant(255)\nROOT r = f32[2] dynamic-slice(x, i), "
                       "dynamic_slice_sizes={2}"),
            "ROOT r.1 = f32[2] slice(x), slice={[4:6]}\n");
}

TEST(SimplifyMovement, ReadsWhatWasJustWritten) {
  const std::string update =
      std::string(kX) +
      "u = f32[1,6] parameter(1)\ni = s32[] parameter(2)\nj = s32[] parameter(3)\nz = s32[] constant(0)\n"
      "w = f32[4,6] dynamic-update-slice(x, u, i, z)\n";
  EXPECT_EQ(simplified(update + "ROOT r = f32[1,6] dynamic-slice(w, i, z), dynamic_slice_sizes={1,6}"),
            "ROOT u = f32[1,6] parameter(1)\n");
  const std::string other = simplified(update + "ROOT r = f32[1,6] dynamic-slice(w, j, z), dynamic_slice_sizes={1,6}");
  EXPECT_NE(other.find("dynamic-update-slice"), std::string::npos);
  EXPECT_EQ(simplified(update + "v = f32[1,6] parameter(4)\nROOT r = f32[4,6] dynamic-update-slice(w, v, i, z)"),
            "z = s32[] constant(0)\nROOT r = f32[4,6] dynamic-update-slice(x, v, i, z)\n");
  EXPECT_EQ(simplified(std::string(kX) + "i = s32[] parameter(1)\nz = s32[] constant(0)\ns = f32[1,6] dynamic-slice(x, "
                                         "i, z), dynamic_slice_sizes={1,6}\n"
                                         "ROOT r = f32[4,6] dynamic-update-slice(x, s, i, z)"),
            "ROOT x = f32[4,6] parameter(0)\n");
}

TEST(SimplifyMovement, ReadsMuchOfWhatIsComputedWhereItThenStands) {
  const auto kept = [](const std::string& update, const std::string& rest) {
    return simplified(std::string(kX) + "y = f32[2,6] parameter(1)\n" + update +
                      "i = s32[] constant(1)\nz = s32[] constant(0)\nw = f32[4,6] dynamic-update-slice(x, u, i, z)\n" + rest)
               .find("slice(w)") != std::string::npos;
  };
  const std::string computed = "u = f32[2,6] exponential(y)\n", there = "u = f32[2,6] parameter(2)\n",
                    row = "s = f32[1,6] slice(w), slice={[2:3], [0:6]}\n", element = "s = f32[1,1] slice(w), slice={[2:3], [0:1]}\n",
                    array_too = "ROOT t = (f32[4,6], f32[1,6]) tuple(w, s)", alone = "ROOT n = f32[1,6] negate(s)";
  EXPECT_TRUE(kept(computed, row + array_too));
  EXPECT_FALSE(kept(computed, row + alone));     // nobody wants the array
  EXPECT_FALSE(kept(there, row + array_too));    // what is written is an array in any case
  EXPECT_FALSE(kept(computed, element + "ROOT t = (f32[4,6], f32[1,1]) tuple(w, s)"));
}

// A sum and a maximum in one reduce are two; of what looks at several arrays, as a search for the place of the largest does, one.
TEST(SimplifyMovement, ReducesApartWhatHasNoSayInTheOther) {
  const auto reduces = [](const std::string& second) {
    const std::string text = testing::after(
        "simplify-movement",
        "HloModule m\nboth { a = f32[] parameter(0)\nb = f32[] parameter(1)\nc = f32[] parameter(2)\nd = f32[] parameter(3)\ns = f32[] add(a, c)\nm = f32[] maximum(" +
            second + ")\nROOT t = (f32[], f32[]) tuple(s, m) }\nENTRY e {\n" + kX +
            "y = f32[4,6] parameter(1)\nz = f32[] constant(0)\nr = (f32[4], f32[4]) reduce(x, y, z, z), dimensions={1}, to_apply=both\n"
            "a = f32[4] get-tuple-element(r), index=0\nb = f32[4] get-tuple-element(r), index=1\nROOT s = f32[4] subtract(a, b)\n}\n");
    return text.find("(f32[4], f32[4]) reduce") == std::string::npos;
  };
  EXPECT_TRUE(reduces("b, d"));
  EXPECT_TRUE(reduces("d, b"));
  EXPECT_FALSE(reduces("b, c"));
  EXPECT_FALSE(reduces("b, a"));
}

TEST(SimplifyMovement, WritesTheWindowWhateverThePredicate) {
  EXPECT_EQ(
      simplified(std::string(kX) +
                 "u = f32[1,6] parameter(1)\ni = s32[] parameter(2)\np = pred[] parameter(3)\nz = s32[] constant(0)\n"
                 "w = f32[4,6] dynamic-update-slice(x, u, i, z)\nb = pred[4,6] broadcast(p), dimensions={}\nROOT r = "
                 "f32[4,6] select(b, w, x)"),
      "z = s32[] constant(0)\nr.1 = f32[1,6] dynamic-slice(x, i, z), dynamic_slice_sizes={1,6}\nr.5 = pred[1,6] "
      "broadcast(p), dimensions={}\n"
      "r.3 = f32[1,6] select(r.5, u, r.1)\nROOT r.4 = f32[4,6] dynamic-update-slice(x, r.3, i, z)\n");
}

TEST(SimplifyMovement, TakesOneWindowOfAGather) {
  EXPECT_EQ(
      simplified(std::string(kX) +
                 "i = s32[1] parameter(1)\nROOT r = f32[6] gather(x, i), offset_dims={0}, collapsed_slice_dims={0}, "
                 "start_index_map={0}, index_vector_dim=0, slice_sizes={1,6}"),
      "r.1 = s32[] reshape(i)\nconstant = s32[] constant(0)\nr.2 = f32[1,6] dynamic-slice(x, r.1, constant), "
      "dynamic_slice_sizes={1,6}\n"
      "ROOT r.3 = f32[6] reshape(r.2)\n");
}

TEST(SimplifyMovement, ReadsThroughTheTransposeOfADot) {
  EXPECT_EQ(
      simplified("x = f32[5,4] parameter(0)\ny = f32[6,4] parameter(1)\nt = f32[4,6] transpose(y), dimensions={1,0}\n"
                 "ROOT r = f32[5,6] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}"),
      "ROOT r = f32[5,6] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n");
  // The free dimensions would come in another order.
  const std::string kept = simplified(
      "x = f32[5,4] parameter(0)\ny = f32[3,6,4] parameter(1)\nt = f32[4,6,3] transpose(y), dimensions={2,1,0}\n"
      "ROOT r = f32[5,6,3] dot(x, t), lhs_contracting_dims={1}, rhs_contracting_dims={0}");
  EXPECT_NE(kept.find("transpose"), std::string::npos);
}

TEST(SimplifyMovement, MultipliesWhereADotContractsNothing) {
  EXPECT_EQ(simplified("x = f32[2,4] parameter(0)\ny = f32[2,3] parameter(1)\n"
                       "ROOT r = f32[2,4,3] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}"),
            "r.1 = f32[2,4,3] broadcast(x), dimensions={0,1}\nr.2 = f32[2,4,3] broadcast(y), dimensions={0,2}\n"
            "r.3 = f32[2,4,3] multiply(r.1, r.2)\nconstant = f32[] constant(0)\n"
            "r.4 = f32[2,4,3] broadcast(constant), dimensions={}\nROOT r.5 = f32[2,4,3] add(r.3, r.4)\n");
  EXPECT_EQ(simplified("x = s32[4] parameter(0)\ny = s32[4] parameter(1)\n"
                       "ROOT r = s32[4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}"),
            "ROOT r.1 = s32[4] multiply(x, y)\n");
  // Rounded before it is multiplied.
  EXPECT_NE(simplified("x = f32[4] parameter(0)\ny = f32[4] parameter(1)\n"
                       "ROOT r = f32[4] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, algorithm=dot_bf16_bf16_f32")
                .find("dot("),
            std::string::npos);
}

// JAX sums up a sum over an axis of one element once more. From -0 on, or rounded to a narrower type, a sum may be -0.
TEST(SimplifyMovement, SumsUpASumOnce) {
  const auto adds = [](const std::string& type, const std::string& inner, const std::string& outer) {
    const std::string left = testing::after(
        "simplify-movement", "HloModule m\nadd { a = " + type + "[] parameter(0)\n b = " + type + "[] parameter(1)\n ROOT s = " + type +
                                 "[] add(a, b) }\nENTRY e {\nx = " + type + "[4,6] parameter(0)\nz = " + type + "[] constant(" + inner +
                                 ")\ny = " + type + "[] constant(" + outer + ")\nr = " + type +
                                 "[6] reduce(x, z), dimensions={0}, to_apply=add\nn = " + type + "[1,6] reshape(r)\nROOT t = " + type +
                                 "[6] reduce(n, y), dimensions={0}, to_apply=add\n}\n");
    return left.find("add(r") != std::string::npos || left.find(", r") != std::string::npos;
  };
  EXPECT_FALSE(adds("f32", "0", "0"));
  EXPECT_FALSE(adds("f64", "0", "0"));
  EXPECT_TRUE(adds("f32", "-0", "0"));
  EXPECT_TRUE(adds("f32", "0", "1"));
  EXPECT_TRUE(adds("bf16", "0", "0"));
}

// A scatter drops what is not inside; an update would move it: hence the select.
TEST(SimplifyMovement, GuardsTheOneWindowOfAScatter) {
  const std::string left =
      testing::after("simplify-movement",
                     "HloModule m\nsecond { a = f32[] parameter(0)\n ROOT b = f32[] parameter(1) }\nENTRY e {\n"
                     "x = f32[4,6] parameter(0)\ni = s32[1] parameter(1)\nu = f32[6] parameter(2)\n"
                     "ROOT r = f32[4,6] scatter(x, i, u), update_window_dims={0}, inserted_window_dims={0}, "
                     "scatter_dims_to_operand_dims={0}, index_vector_dim=0, to_apply=second\n}\n");
  EXPECT_EQ(left.find("scatter("), std::string::npos);
  EXPECT_NE(left.find("direction=GE"), std::string::npos);
  EXPECT_NE(left.find("direction=LE"), std::string::npos);
  EXPECT_NE(left.find("select("), std::string::npos);
  EXPECT_NE(left.find("dynamic-update-slice("), std::string::npos);
}

}  // namespace
}  // namespace hloom::passes

// The law: a map names an element of an operand for an element of the result exactly if changing the one changes the
// other, as the interpreter has it.
#include "indexing/of_instruction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include "interp/interpret.h"
#include "text/parse.h"

namespace hloom::indexing {
namespace {

using Coordinates = std::vector<std::int64_t>;
/// Linear result element, linear operand element.
using Reads = std::set<std::pair<std::int64_t, std::int64_t>>;

std::int64_t linear(const Coordinates& c, const hlo::Dims& dims) {
  std::int64_t n = 0;
  for (std::size_t d = 0; d < dims.size(); ++d) n = n * dims[d] + c[d];
  return n;
}

const Shape& array_of(const Shape& shape) { return shape.is_tuple() ? array_of(shape.element(0)) : shape; }

// What the maps say, with runtime values from the operands.
Reads reads_by_map(const hlo::Instruction& i, const OperandMap& map, std::int64_t operand,
                   const std::vector<hlo::Literal>& values) {
  Reads reads;
  for (const IndexMap& piece : map.map.pieces) {
    Domain variables = piece.domain();
    std::vector<Interval> all = variables.dimensions;
    all.insert(all.end(), variables.ranges.begin(), variables.ranges.end());
    Point p;
    p.dimensions.resize(variables.dimensions.size());
    p.ranges.resize(variables.ranges.size());
    const std::function<void(std::size_t)> visit = [&](std::size_t n) {
      const std::size_t dims = p.dimensions.size();
      if (n < all.size()) {
        for (std::int64_t v = all[n].low; v <= all[n].high; ++v) {
          (n < dims ? p.dimensions[n] : p.ranges[n - dims]) = v;
          visit(n + 1);
        }
        return;
      }
      p.runtime.clear();
      for (std::size_t r = 0; r < piece.sources().size(); ++r) {
        const RuntimeSource& s = piece.sources()[r];
        Coordinates at;
        Point here = p;
        for (const Expr& e : s.element) at.push_back(evaluate(e, here));
        const hlo::Literal& from = values[static_cast<std::size_t>(s.operand)];
        const std::int64_t value = hlo::element_as_int64(from, linear(at, from.shape().dims()));
        p.runtime.push_back(std::clamp(value, variables.runtime[r].low, variables.runtime[r].high));
      }
      if (piece.contains(p))
        reads.emplace(linear(p.dimensions, array_of(i.shape()).dims()),
                      linear(piece.evaluate(p), i.operand(operand)->shape().dims()));
    };
    visit(0);
  }
  return reads;
}

hlo::Literal arrays_of(const hlo::Literal& result) { return result.is_tuple() ? result.elements()[0] : result; }

// Which result elements change when an operand's element does.
Reads reads_by_changing(const hlo::Instruction& i, std::int64_t operand, const std::vector<hlo::Literal>& values) {
  Reads reads;
  const hlo::Literal before = arrays_of(*interp::evaluate_instruction(i, values));
  const std::int64_t n = values[static_cast<std::size_t>(operand)].num_elements();
  for (std::int64_t k = 0; k < n; ++k) {
    std::vector<hlo::Literal> changed = values;
    changed[static_cast<std::size_t>(operand)].mutable_data<std::int32_t>()[static_cast<std::size_t>(k)] += 1000;
    const hlo::Literal after = arrays_of(*interp::evaluate_instruction(i, changed));
    for (std::int64_t e = 0; e < before.num_elements(); ++e)
      if (hlo::element_as_int64(before, e) != hlo::element_as_int64(after, e)) reads.emplace(e, k);
  }
  return reads;
}

// Checks the root of an entry whose parameters are all s32; index operands, which are clamped, are not changed.
void check(const std::string& parameters, const std::string& op, std::int64_t num_data_operands, int draws = 3) {
  SCOPED_TRACE(op);
  const auto module = text::parse_module(
      "HloModule m\nsum { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = s32[] add(a, b) }\nENTRY e {\n" +
      parameters + "ROOT r = " + op + "\n}\n");
  ASSERT_TRUE(module) << module.error().message();
  const hlo::Instruction& root = *(*module)->entry()->root();
  const auto maps = operand_maps(root);
  ASSERT_TRUE(maps) << maps.error().message();
  ASSERT_EQ(static_cast<std::int64_t>(maps->size()), root.num_operands());
  std::mt19937 random(5);
  for (int draw = 0; draw < draws; ++draw) {
    std::vector<hlo::Literal> values;
    for (const hlo::Instruction* o : root.operands()) {
      if (o->opcode() == hlo::Opcode::Constant) {
        values.push_back(o->literal());
        continue;
      }
      hlo::Literal value(o->shape());
      const bool is_index = static_cast<std::int64_t>(values.size()) >= num_data_operands;
      for (std::int32_t& x : value.mutable_data<std::int32_t>())
        x = is_index ? static_cast<std::int32_t>(random() % 9) - 2 : 1 + static_cast<std::int32_t>(random() % 7);
      values.push_back(std::move(value));
    }
    for (std::int64_t n = 0; n < num_data_operands; ++n) {
      const OperandMap& map = (*maps)[static_cast<std::size_t>(n)];
      const Reads said = reads_by_map(root, map, n, values), found = reads_by_changing(root, n, values);
      if (map.exact)
        EXPECT_EQ(said, found) << "operand " << n << "\n" << to_string(map.map);
      else
        EXPECT_TRUE(std::includes(said.begin(), said.end(), found.begin(), found.end())) << to_string(map.map);
    }
  }
}

constexpr const char* kX = "x = s32[4,5] parameter(0)\n";

TEST(OperandMaps, OfElementwiseOps) {
  check(std::string(kX) + "y = s32[4,5] parameter(1)\n", "s32[4,5] add(x, y)", 2);
  check(kX, "s32[4,5] negate(x)", 1);
  check("x = s32[] parameter(0)\n", "s32[] negate(x)", 1);
}

TEST(OperandMaps, OfMovement) {
  check(kX, "s32[4,2,5] broadcast(x), dimensions={0,2}", 1);
  check(kX, "s32[5,4] transpose(x), dimensions={1,0}", 1);
  check("x = s32[2,3,4] parameter(0)\n", "s32[4,2,3] transpose(x), dimensions={2,0,1}", 1);
  check(kX, "s32[4,5] reverse(x), dimensions={1}", 1);
  check(kX, "s32[2,2] slice(x), slice={[1:4:2], [2:4]}", 1);
  check(std::string(kX) + "y = s32[4,2] parameter(1)\nz = s32[4,0] parameter(2)\n",
        "s32[4,12] concatenate(x, z, y, x), dimensions={1}", 4);
}

TEST(OperandMaps, OfPads) {
  for (const char* padding : {"1_2x0_0", "-1_1x2_-2", "0_0_2x1_1_1", "-2_0_1x-3_3_2", "-5_9x0_0"}) {
    const auto dims = [&] {
      const std::string p = padding;
      return p == "1_2x0_0"         ? "7,5"
             : p == "-1_1x2_-2"     ? "4,5"
             : p == "0_0_2x1_1_1"   ? "10,11"
             : p == "-2_0_1x-3_3_2" ? "5,13"
                                    : "8,5";
    }();
    check(std::string(kX) + "v = s32[] parameter(1)\n", std::string("s32[") + dims + "] pad(x, v), padding=" + padding,
          1);
  }
}

TEST(OperandMaps, OfReshapes) {
  for (const char* shapes :
       {"2,3,4|6,4", "6,4|2,3,4", "4,6|3,8", "2,1,6|1,12,1", "5,2,3|5,6", "12|2,2,3", "1,1|1", "2,3|6,1,1"}) {
    const std::string both = shapes;
    const std::string from = both.substr(0, both.find('|')), to = both.substr(both.find('|') + 1);
    check("x = s32[" + from + "] parameter(0)\n", "s32[" + to + "] reshape(x)", 1);
    check("x = s32[" + to + "] parameter(0)\n", "s32[" + from + "] reshape(x)", 1);
  }
}

TEST(OperandMaps, OfBitcastsOfLayouts) {
  check("x = s32[4,6]{0,1} parameter(0)\n", "s32[6,4]{1,0} bitcast(x)", 1);
  check("x = s32[4,6]{0,1} parameter(0)\n", "s32[2,3,4]{1,2,0} bitcast(x)", 1);
  check("x = s32[2,3,4]{0,2,1} parameter(0)\n", "s32[24]{0} bitcast(x)", 1);
}

TEST(OperandMaps, OfReductions) {
  const std::string zero = "z = s32[] parameter(1)\n";
  check(kX + zero, "s32[5] reduce(x, z), dimensions={0}, to_apply=sum", 2);
  check(kX + zero, "s32[] reduce(x, z), dimensions={0,1}, to_apply=sum", 2);
  check(kX + zero, "s32[3,3] reduce-window(x, z), window={size=2x3}, to_apply=sum", 2);
  check(kX + zero,
        "s32[3,4] reduce-window(x, z), window={size=2x2 stride=2x1 pad=1_1x0_1 rhs_dilate=1x2}, to_apply=sum", 1);
  check(kX + zero, "s32[6,8] reduce-window(x, z), window={size=2x3 pad=0_0x1_0 lhs_dilate=2x2}, to_apply=sum", 1);
}

TEST(OperandMaps, OfContractions) {
  check("x = s32[2,3,4] parameter(0)\ny = s32[2,4,2] parameter(1)\n",
        "s32[2,3,2] dot(x, y), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, "
        "rhs_contracting_dims={1}",
        2);
  check("x = s32[3,4] parameter(0)\ny = s32[4,3] parameter(1)\n",
        "s32[] dot(x, y), lhs_contracting_dims={0,1}, rhs_contracting_dims={1,0}", 2);
  check("x = s32[2,5,4] parameter(0)\nk = s32[3,2,4] parameter(1)\n",
        "s32[2,5,4] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=2", 2);
  check("x = s32[4,6,2] parameter(0)\nk = s32[2,2,4] parameter(1)\n",
        "s32[2,4,4] convolution(x, k), window={size=2 stride=1 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f, "
        "batch_group_count=2",
        2);
  check("x = s32[1,3,2] parameter(0)\nk = s32[2,2,3] parameter(1)\n",
        "s32[1,4,3] convolution(x, k), window={size=2 lhs_dilate=2}, dim_labels=b0f_0io->b0f", 2);
}

TEST(OperandMaps, OfSlicesAtRunTime) {
  const std::string starts = "i = s32[] parameter(1)\nj = s32[] parameter(2)\n",
                    constants = "i = s32[] constant(7)\nj = s32[] constant(-1)\n";
  check(kX + starts, "s32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}", 1, 8);
  check(kX + constants, "s32[2,3] dynamic-slice(x, i, j), dynamic_slice_sizes={2,3}", 1);
  check(std::string(kX) + "v = s32[2] parameter(1)\n", "s32[2,3] dynamic-slice(x, v), dynamic_slice_sizes={2,3}", 1, 8);
  const std::string update = "u = s32[2,3] parameter(1)\ni = s32[] parameter(2)\nj = s32[] parameter(3)\n";
  check(kX + update, "s32[4,5] dynamic-update-slice(x, u, i, j)", 2, 8);
  check(std::string(kX) + "u = s32[2,3] parameter(1)\n" + constants, "s32[4,5] dynamic-update-slice(x, u, i, j)", 2);
}

// At a place that is known the base has a hole.
TEST(OperandMaps, OfAnUpdateAtAKnownPlaceLeaveItOut) {
  const auto module = text::parse_module(
      "HloModule m\nENTRY e { x = s32[4] parameter(0)\n u = s32[2] parameter(1)\n i = s32[] constant(1)\n ROOT r = "
      "s32[4] dynamic-update-slice(x, u, i) }");
  const auto maps = operand_maps(*(*module)->entry()->root());
  EXPECT_EQ(to_string((*maps)[0].map), "(d0) -> (d0), domain: d0 in [0, 0]\n(d0) -> (d0), domain: d0 in [3, 3]\n");
  EXPECT_EQ(to_string((*maps)[1].map), "(d0) -> (d0 - 1), domain: d0 in [1, 2]\n");
}

TEST(OperandMaps, OfGathers) {
  check(std::string(kX) + "i = s32[3,1] parameter(1)\n",
        "s32[3,5] gather(x, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
        "slice_sizes={1,5}",
        1, 6);
  check(std::string(kX) + "i = s32[2,3] parameter(1)\n",
        "s32[3,2,2] gather(x, i), offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={1,0}, "
        "index_vector_dim=0, slice_sizes={2,2}",
        1, 6);
  check(std::string(kX) + "i = s32[3] parameter(1)\n",
        "s32[4,3] gather(x, i), offset_dims={0}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, "
        "slice_sizes={4,1}",
        1, 6);
  check(std::string(kX) + "i = s32[4,2,1] parameter(1)\n",
        "s32[4,2] gather(x, i), offset_dims={}, collapsed_slice_dims={1}, start_index_map={1}, "
        "operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=2, slice_sizes={1,1}",
        1, 6);
}

std::string map_of_fusion(const std::string& body, std::int64_t operand) {
  const auto module = text::parse_module(
      "HloModule m\nsum { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }\nfused {\nx = "
      "f32[4,5] parameter(0)\nz = f32[] constant(0)\n" +
          body + "\n}\nENTRY e {\nx = f32[4,5] parameter(0)\nROOT r = f32[4,5] fusion(x), kind=kLoop, calls=fused\n}\n",
      {.verify = false});
  if (!module) return module.error().message();
  const auto maps = operand_maps(*(*module)->entry()->root());
  return maps ? to_string((*maps)[static_cast<std::size_t>(operand)].map) : maps.error().message();
}

// The input itself, and all of its row.
TEST(OperandMaps, OfASoftmaxAreTwo) {
  EXPECT_EQ(map_of_fusion("e = f32[4,5] exponential(x)\ns = f32[4] reduce(e, z), dimensions={1}, to_apply=sum\nb = "
                          "f32[4,5] broadcast(s), dimensions={0}\nROOT d = f32[4,5] divide(e, b)",
                          0),
            "(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 4]\n(d0, d1)[s0] -> (d0, s0), domain: d0 in [0, 3], "
            "d1 in [0, 4], s0 in [0, 4]\n");
}

TEST(OperandMaps, OfEqualWaysAreOne) {
  EXPECT_EQ(map_of_fusion("a = f32[4,5] negate(x)\nb = f32[4,5] abs(x)\nROOT d = f32[4,5] add(a, b)", 0),
            "(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 4]\n");
}

// A roll by two rows: two pieces, no remainder.
TEST(OperandMaps, OfARollAreTwoBoxes) {
  EXPECT_EQ(map_of_fusion("a = f32[2,5] slice(x), slice={[2:4], [0:5]}\nb = f32[2,5] slice(x), slice={[0:2], "
                          "[0:5]}\nROOT c = f32[4,5] concatenate(a, b), dimensions={0}",
                          0),
            "(d0, d1) -> (d0 + 2, d1), domain: d0 in [0, 1], d1 in [0, 4]\n(d0, d1) -> (d0 - 2, d1), domain: d0 in [2, "
            "3], d1 in [0, 4]\n");
}

// 2^39 ways, one map.
TEST(OperandMaps, OfDiamondsAreQuicklyFound) {
  std::string body = "a0 = f32[4,5] negate(x)\n";
  for (int n = 1; n < 40; ++n)
    body +=
        "a" + std::to_string(n) + " = f32[4,5] add(a" + std::to_string(n - 1) + ", a" + std::to_string(n - 1) + ")\n";
  EXPECT_EQ(map_of_fusion(body + "ROOT r = f32[4,5] abs(a39)", 0),
            "(d0, d1) -> (d0, d1), domain: d0 in [0, 3], d1 in [0, 4]\n");
}

// Each level reads the one before at its place and so far to the left as all before could reach: 2^12 maps.
TEST(OperandMaps, AreRefusedWhereThereAreTooMany) {
  std::string body = "a0 = f32[5000] parameter(0)\nz = f32[] constant(0)\n";
  for (int n = 0; n < 12; ++n) {
    const std::string k = std::to_string(n), step = std::to_string(1 << n);
    body += "p" + k + " = f32[5000] pad(a" + k + ", z), padding=" + step + "_-" + step + "\na" + std::to_string(n + 1) +
            " = f32[5000] add(a" + k + ", p" + k + ")\n";
  }
  const auto module = text::parse_module("HloModule m\nfused {\n" + body +
                                         "ROOT r = f32[5000] abs(a12)\n}\nENTRY e { x = f32[5000] parameter(0)\n ROOT "
                                         "r = f32[5000] fusion(x), kind=kLoop, calls=fused }");
  ASSERT_TRUE(module) << module.error().message();
  const auto maps = operand_maps(*(*module)->entry()->root());
  ASSERT_FALSE(maps);
  EXPECT_EQ(maps.error().code(), Code::ResourceExhausted);
}

TEST(OperandMaps, AreNotDefinedForASort) {
  const auto module = text::parse_module(
      "HloModule m\nless { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT c = pred[] compare(a, b), "
      "direction=LT }\nENTRY e { x = s32[4] parameter(0)\n ROOT r = s32[4] sort(x), dimensions={0}, to_apply=less }");
  const auto maps = operand_maps(*(*module)->entry()->root());
  ASSERT_FALSE(maps);
  EXPECT_EQ(maps.error().code(), Code::Unimplemented);
}

}  // namespace
}  // namespace hloom::indexing

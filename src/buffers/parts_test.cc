// Arrays inside of others: which concatenates and slices are free, and that the checker sees what is not.
#include "buffers/parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "buffers/test_plan.h"

namespace hloom::buffers {
namespace {

using hlo::Instruction;

// Kernels, of which those that turn arrays around read them whole, so that nothing may be written over them.
const std::map<std::string, std::string> kKernels = {
    {"turn", "in0 = f32[8,16] parameter(0)\n ROOT out = f32[8,16] reverse(in0), dimensions={0,1}"},
    {"turn4", "in0 = f32[4,16] parameter(0)\n ROOT out = f32[4,16] reverse(in0), dimensions={0,1}"},
    {"turn16", "in0 = f32[16,16] parameter(0)\n ROOT out = f32[16,16] reverse(in0), dimensions={0,1}"},
    {"both", "in0 = f32[8,16] parameter(0)\n in1 = f32[8,16] parameter(1)\n"
             " ROOT out = f32[16,16] concatenate(in0, in1), dimensions={0}"},
    {"beside", "in0 = f32[8,16] parameter(0)\n in1 = f32[8,16] parameter(1)\n"
               " ROOT out = f32[8,32] concatenate(in0, in1), dimensions={1}"},
    {"low", "in0 = f32[16,16] parameter(0)\n ROOT out = f32[8,16] slice(in0), slice={[0:8],[0:16]}"},
    {"mid", "in0 = f32[16,16] parameter(0)\n ROOT out = f32[8,16] slice(in0), slice={[4:12],[0:16]}"},
    {"high4", "in0 = f32[8,16] parameter(0)\n ROOT out = f32[4,16] slice(in0), slice={[4:8],[0:16]}"},
    {"left", "in0 = f32[16,16] parameter(0)\n ROOT out = f32[16,8] slice(in0), slice={[0:16],[0:8]}"},
    {"meet", "in0 = f32[8,16] parameter(0)\n in1 = f32[8,16] parameter(1)\n turned = f32[8,16] reverse(in1), dimensions={0}\n"
             " ROOT out = f32[8,16] subtract(in0, turned)"}};

std::string call(const std::string& name, const std::string& shape, const std::string& operands, const std::string& callee,
                 bool is_root = false) {
  return (is_root ? " ROOT " : " ") + name + " = " + shape + " fusion(" + operands + "), kind=kLoop, calls=" + callee + "\n";
}

// Each call gets a computation of its own.
Plan plan_entry(const std::string& body) {
  const std::string_view calls = "calls=";
  std::string text = "HloModule m\n", entry;
  std::size_t from = 0;
  for (std::size_t at = body.find(calls); at != std::string::npos; at = body.find(calls, from)) {
    const std::size_t name = at + calls.size(), end = body.find('\n', name);
    const std::string callee = body.substr(name, end - name), own = callee + "." + std::to_string(at);
    text += own + " { " + kKernels.at(callee) + " }\n";
    entry += body.substr(from, name - from) + own;
    from = end;
  }
  return plan(text + "ENTRY e { x = f32[8,16] parameter(0)\n y = f32[8,16] parameter(1)\n" + entry + body.substr(from) + "}\n");
}

const std::string kTwo = call("a", "f32[8,16]", "x", "turn") + call("b", "f32[8,16]", "y", "turn");
const std::string kBoth = call("c", "f32[16,16]", "a, b", "both");
const std::string kEnd = call("d", "f32[16,16]", "c", "turn16", true);

const InPlaceDecision& decision(const Plan& p, std::string_view at) {
  const auto& all = p.assignment.decisions();
  const auto found = std::ranges::find_if(all, [&](const InPlaceDecision& d) {
    return d.at == at &&
           (d.kind == InPlaceDecision::Kind::Concatenate || d.kind == InPlaceDecision::Kind::Slice);
  });
  if (found == all.end()) ADD_FAILURE() << "nothing is said of " << at;
  return found == all.end() ? all.front() : *found;
}

TEST(Parts, PiecesAreWrittenWhereTheyBelong) {
  const Plan p = plan_entry(kTwo + kBoth + kEnd);
  EXPECT_TRUE(is_free(p.find("c")));
  EXPECT_TRUE(decision(p, "c").in_place);
  const Slice c = p.slice("c");
  EXPECT_EQ(p.slice("a"), (Slice{c.allocation, c.offset, 512}));
  EXPECT_EQ(p.slice("b"), (Slice{c.allocation, c.offset + 512, 512}));
  EXPECT_EQ(p.assignment.arena_bytes(), 1024);
}

TEST(Parts, PiecesAreWrittenIntoTheResult) {
  const Plan p = plan_entry(kTwo + call("c", "f32[16,16]", "a, b", "both", true));
  EXPECT_TRUE(is_free(p.find("c")));
  EXPECT_EQ(p.assignment.arena_bytes(), 0);
  EXPECT_EQ(p.slice("b").allocation, p.slice("c").allocation);
}

TEST(Parts, WhatHasToBeCopiedSaysWhy) {
  const auto why = [](const std::string& body) {
    const Plan p = plan_entry(body);
    EXPECT_FALSE(is_free(p.find("c")));
    EXPECT_FALSE(decision(p, "c").in_place);
    return decision(p, "c").reason;
  };
  EXPECT_EQ(why(kTwo + kBoth + call("f", "f32[16,16]", "c", "turn16") + call("g", "f32[8,16]", "b", "turn") +
                " ROOT t = (f32[16,16], f32[8,16]) tuple(f, g)\n"),
            "b is read again after it");
  // A bitcast is the same value.
  EXPECT_EQ(why(call("a", "f32[8,16]", "x", "turn") + " n = f32[8,16] bitcast(a)\n" +
                call("c", "f32[16,16]", "a, n", "both") + kEnd),
            "one value is several of its parts");
  EXPECT_EQ(why(call("a", "f32[8,16]", "x", "turn") + call("c", "f32[16,16]", "a, y", "both") + kEnd),
            "a or another part or c has to lie elsewhere");
}

TEST(Parts, OnlyStretchesOfBytesAreParts) {
  const Plan p = plan_entry(kTwo + kBoth + call("m", "f32[8,32]", "a, b", "beside") + call("l", "f32[16,8]", "c", "left") +
                            call("k", "f32[8,16]", "c", "mid") +
                            " ROOT t = (f32[8,32], f32[16,8], f32[8,16]) tuple(m, l, k)\n");
  EXPECT_FALSE(parts_of(p.find("m")));
  EXPECT_FALSE(parts_of(p.find("l")));
  EXPECT_EQ(parts_of(p.find("c"))->offsets, (std::vector<std::int64_t>{0, 512}));
  EXPECT_EQ(parts_of(p.find("k"))->offsets, std::vector<std::int64_t>{256});
}

// Slices of the same array, which overlap, of a slice, and of a parameter, that nobody may write.
const std::string kSlices = call("w", "f32[16,16]", "u", "turn16") + call("s", "f32[8,16]", "w", "low") +
                            call("t", "f32[8,16]", "w", "mid") + call("v", "f32[4,16]", "t", "high4") +
                            call("o", "f32[4,16]", "x", "high4") + call("f", "f32[8,16]", "s, t", "meet") +
                            call("g", "f32[4,16]", "v", "turn4") + call("h", "f32[4,16]", "o", "turn4") +
                            " ROOT r = (f32[8,16], f32[4,16], f32[4,16]) tuple(f, g, h)\n";

TEST(Parts, SlicesLieWhereTheirOperandDoes) {
  const Plan p = plan_entry(" u = f32[16,16] parameter(2)\n" + kSlices);
  for (const char* name : {"s", "t", "v", "o"}) EXPECT_TRUE(is_free(p.find(name))) << name;
  const Slice w = p.slice("w"), x = p.slice("x");
  EXPECT_EQ(p.slice("s"), (Slice{w.allocation, w.offset, 512}));
  EXPECT_EQ(p.slice("t"), (Slice{w.allocation, w.offset + 256, 512}));
  EXPECT_EQ(p.slice("v"), (Slice{w.allocation, w.offset + 512, 256}));
  EXPECT_EQ(p.slice("o"), (Slice{x.allocation, 256, 256}));
}

// Across the border of two parts, and of a slice again, all while the whole is needed: the same bytes under many names.
TEST(Parts, SlicesOfAConcatenateThatLivesOnAreFree) {
  const Plan p = plan_entry(kTwo + kBoth + call("k", "f32[8,16]", "c", "mid") + call("l", "f32[8,16]", "c", "low") +
                            call("v", "f32[4,16]", "k", "high4") + call("f", "f32[8,16]", "k, l", "meet") +
                            call("g", "f32[4,16]", "v", "turn4") + call("h", "f32[16,16]", "c", "turn16") +
                            " ROOT r = (f32[8,16], f32[4,16], f32[16,16]) tuple(f, g, h)\n");
  for (const char* name : {"c", "k", "l", "v"}) EXPECT_TRUE(is_free(p.find(name))) << name;
  const Slice c = p.slice("c");
  EXPECT_EQ(p.slice("k"), (Slice{c.allocation, c.offset + 256, 512}));
  EXPECT_EQ(p.slice("l"), (Slice{c.allocation, c.offset, 512}));
  EXPECT_EQ(p.slice("v"), (Slice{c.allocation, c.offset + 512, 256}));
  EXPECT_EQ(p.assignment.arena_bytes(), 1024);
}

// Every part moved to where it does not belong, and every other value moved onto a part while that is needed.
TEST(Parts, TheCheckerMissesPartsThatAreMoved) {
  for (const std::string& body : {kTwo + kBoth + kEnd, " u = f32[16,16] parameter(2)\n" + kSlices}) {
    const Plan p = plan_entry(body);
    for (const Instruction& i : p.module->entry()->instructions()) {
      const std::optional<Parts> parts = parts_of(i);
      if (!parts) continue;
      const bool is_slice = parts->kind == Parts::Kind::Slice;
      for (std::int64_t k = 0; k < i.num_operands(); ++k) {
        const Instruction& part = is_slice ? i : *i.operand(k);
        Assignment moved = p.assignment;
        Slice s = moved.slice(part);
        s.offset += s.offset >= 4 ? -4 : 4;
        moved.set_slice(part, 0, s);
        EXPECT_FALSE(check_assignment(moved).empty()) << part.name();
      }
    }
  }
}

TEST(Parts, TheCheckerSeesWhatIsWrittenOverAPart) {
  // b and then e are written between a and the concatenate.
  const Plan p = plan_entry(call("a", "f32[8,16]", "x", "turn") + call("e", "f32[8,16]", "y", "turn") +
                            call("b", "f32[8,16]", "e", "turn") + kBoth + kEnd);
  ASSERT_TRUE(is_free(p.find("c")));
  Assignment moved = p.assignment;
  moved.set_slice(p.find("e"), 0, p.slice("a"));
  EXPECT_FALSE(check_assignment(moved).empty());
  // The same for a slice.
  const Plan q = plan_entry(" u = f32[16,16] parameter(2)\n" + call("w", "f32[16,16]", "u", "turn16") +
                            call("t", "f32[8,16]", "w", "mid") + call("z", "f32[8,16]", "x", "turn") +
                            call("f", "f32[8,16]", "t, z", "meet") + " ROOT r = (f32[8,16], f32[16,16]) tuple(f, w)\n");
  ASSERT_TRUE(is_free(q.find("t")));
  moved = q.assignment;
  moved.set_slice(q.find("z"), 0, q.slice("t"));
  EXPECT_FALSE(check_assignment(moved).empty());
}

}  // namespace
}  // namespace hloom::buffers

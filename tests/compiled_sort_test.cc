// Sorts and top-k of every type, key, dimension and layout, long enough for the routine and short enough for kernels: compiled
// programs give what the interpreter's stable sort by the comparator gives, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "hlo/sort_form.h"
#include "interp/interpret.h"
#include "run_compiled.h"

namespace hloom {
namespace {

// Few different values, so that stability shows; floats of all kinds, NaN with and without sign and payload among them.
hlo::Literal random_literal(const Shape& shape, std::mt19937_64& random) {
  hlo::Literal literal(shape);
  const std::span<std::byte> bytes = literal.mutable_bytes();
  const auto width = static_cast<std::size_t>(byte_width(shape.dtype()));
  const bool few = random() % 2 == 0;
  for (std::size_t i = 0; i + width <= bytes.size(); i += width) {
    std::uint64_t bits = few ? (random() % 5) << (8 * width - 3) | random() % 2 : random();
    if (shape.dtype() == DType::Pred) bits &= 1;
    std::memcpy(&bytes[i], &bits, width);
  }
  return literal;
}

void expect_as_interpreted(const std::string& text, int threads) {
  SCOPED_TRACE(text);
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  std::mt19937_64 random(text.size());
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : (*module)->entry()->parameters()) arguments.push_back(random_literal(p->shape(), random));
  const auto want = interp::interpret(**module, arguments);
  ASSERT_TRUE(want) << want.error().message();
  const std::vector<hlo::Literal> got = run_compiled(std::move(*module), arguments, threads);
  ASSERT_FALSE(got.empty());
  for (std::size_t k = 0; k < got.size(); ++k) {
    const hlo::Literal& leaf = want->shape().is_tuple() ? want->elements()[k] : *want;
    EXPECT_TRUE(std::ranges::equal(got[k].bytes(), leaf.bytes())) << "leaf " << k;
  }
}

std::string array(const std::string& type, const std::string& dims, const std::string& layout = "") {
  return type + "[" + dims + "]" + layout;
}

const char* const kTypes[] = {"pred", "s8", "u8", "s16", "u16", "s32", "u32", "s64", "u64", "f16", "bf16", "f32", "f64"};

std::string compare(const std::string& type, const std::string& operands, const std::string& direction) {
  const bool is_float = type[0] == 'f' || type[0] == 'b';
  return " pred[] compare(" + operands + "), direction=" + direction + (is_float ? ", type=TOTALORDER" : "") + "\n";
}

// A sort of keys of a type with their positions, along a dimension of `dims`.
std::string sort_text(const std::string& type, const std::string& dims, int along, const std::string& direction,
                      const std::string& layout = "") {
  const std::string keys = array(type, dims, layout), positions = array("s32", dims, layout);
  return "HloModule m\nc { x = " + type + "[] parameter(0)\n y = " + type + "[] parameter(1)\n i = s32[] parameter(2)\n"
         " j = s32[] parameter(3)\n ROOT r =" + compare(type, "x, y", direction) + "}\n"
         "ENTRY e { p = " + keys + " parameter(0)\n q = " + positions + " parameter(1)\n ROOT s = (" + keys + ", " + positions +
         ") sort(p, q), dimensions={" + std::to_string(along) + "}, is_stable=true, to_apply=c }";
}

// Lines that all threads sort together: a part short, a digit that all keys share, keys of eight bytes, several keys.
TEST(CompiledSort, OfFewLongLinesByPartsOfThem) {
  for (const char* type : {"u8", "f32", "s64", "f64", "bf16"})
    for (const char* length : {"65536", "100003"})
      for (const int threads : {1, 2, 4}) expect_as_interpreted(sort_text(type, length, 0, "LT"), threads);
  for (const int threads : {1, 3}) {
    expect_as_interpreted(sort_text("f32", "3,70001", 1, "GT"), threads);
    expect_as_interpreted(sort_text("s32", "70001,2", 0, "LT"), threads);
  }
}
TEST(CompiledSort, OfFewLongLinesBySeveralKeys) {
  const std::string text =
      "c { a = s32[] parameter(0)\n b = s32[] parameter(1)\n x = f64[] parameter(2)\n y = f64[] parameter(3)\n e = pred[] compare(a, b), direction=EQ\n"
      " l = pred[] compare(a, b), direction=LT\n m = pred[] compare(x, y), direction=GT, type=TOTALORDER\n ROOT r = pred[] select(e, m, l) }\n"
      "ENTRY e { p = s32[90001] parameter(0)\n q = f64[90001] parameter(1)\n ROOT t = (s32[90001], f64[90001]) sort(p, q), dimensions={0}, "
      "is_stable=true, to_apply=c }";
  for (const int threads : {1, 2, 3}) expect_as_interpreted(text, threads);
}
TEST(CompiledSort, TheFirstOfLongLinesByPartsOfThem) {
  for (const char* k : {"1", "8", "33", "1000", "9000"})
    for (const char* dims : {"[100003]", "[2,80000]"})
      for (const int threads : {1, 4}) {
        const std::string outer = dims[1] == '2' ? "2," : "", result = "[" + outer + k + "]";
        expect_as_interpreted("ENTRY e { p = f32" + std::string(dims) + " parameter(0)\n ROOT r = (f32" + result + ", s32" + result + ") topk(p), k=" + k +
                                  ", largest=true }", threads);
      }
}

// What has no kernel of its own is the routine's.
TEST(CompiledSort, LongLinesByTotalOrdersNeedNoKernel) {
  const auto kernels = [](const std::string& text) {
    auto program = compiler::compile(*compiler::read_program(text), {});
    return program->code_report.kernels;
  };
  EXPECT_EQ(kernels(sort_text("f32", "48", 0, "LT")), 0);
  EXPECT_EQ(kernels(sort_text("f32", "47", 0, "LT")), 1);
}

TEST(CompiledSort, OfEveryType) {
  for (const char* type : kTypes)
    for (const char* direction : {"LT", "GT"}) {
      expect_as_interpreted(sort_text(type, "500", 0, direction), 1);
      expect_as_interpreted(sort_text(type, "20", 0, direction), 1);
    }
}

TEST(CompiledSort, AlongEachDimensionInEachLayout) {
  for (const char* layout : {"{2,1,0}", "{0,1,2}", "{1,2,0}"})
    for (int along = 0; along < 3; ++along)
      for (const int threads : {1, 3}) expect_as_interpreted(sort_text("f32", "50,51,52", along, "LT", layout), threads);
}

TEST(CompiledSort, OfAnyLength) {
  for (const char* dims : {"1", "31", "32", "33", "47", "48", "49", "255", "4096", "32767", "32768", "70000", "0,60"})
    for (const char* type : {"f32", "u64"}) expect_as_interpreted(sort_text(type, dims, dims[1] == ',' ? 1 : 0, "LT"), 2);
}

TEST(CompiledSort, ByKeysOfDifferentWidths) {
  for (const char* first : {"f64", "u8"})
    for (const char* second : {"s16", "f32"}) {
      const std::string f = first, s = second;
      expect_as_interpreted("HloModule m\nc { x = " + f + "[] parameter(0)\n y = " + f + "[] parameter(1)\n i = " + s +
                                "[] parameter(2)\n j = " + s + "[] parameter(3)\n a =" + compare(f, "x, y", "GT") + " b =" +
                                compare(f, "x, y", "EQ") + " d =" + compare(s, "i, j", "LT") +
                                " g = pred[] and(b, d)\n ROOT r = pred[] or(a, g) }\n"
                                "ENTRY e { p = " + f + "[9,300] parameter(0)\n q = " + s + "[9,300] parameter(1)\n"
                                " o = c64[9,300] parameter(2)\n"
                                " ROOT t = (" + f + "[9,300], " + s + "[9,300]) sort(p, q), dimensions={1}, to_apply=c }",
                            2);
    }
}

TEST(CompiledSort, AsJaxComparesFloats) {
  for (const char* type : {"f16", "bf16", "f32", "f64"}) {
    const std::string t = type;
    expect_as_interpreted(
        "HloModule m\nc { x = " + t + "[] parameter(0)\n y = " + t + "[] parameter(1)\n zero = " + t + "[] constant(0)\n quiet = " + t +
            "[] constant(nan)\n a = pred[] compare(x, x), direction=NE\n b = pred[] compare(x, zero), direction=EQ\n c = " + t +
            "[] select(b, zero, x)\n d = " + t + "[] select(a, quiet, c)\n f = pred[] compare(y, y), direction=NE\n"
            " g = pred[] compare(y, zero), direction=EQ\n h = " + t + "[] select(g, zero, y)\n k = " + t +
            "[] select(f, quiet, h)\n ROOT r = pred[] compare(d, k), direction=LT, type=TOTALORDER }\n"
            "ENTRY e { p = " + t + "[7,400] parameter(0)\n ROOT s = " + t + "[7,400] sort(p), dimensions={1}, to_apply=c }",
        1);
  }
}

// One array twice; elements of 16 bytes that go along.
TEST(CompiledSort, OfAnArrayTwiceAndOfWideElements) {
  expect_as_interpreted("HloModule m\nc { x = s32[] parameter(0)\n y = s32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n"
                        " ROOT r = pred[] compare(i, j), direction=GT }\n"
                        "ENTRY e { p = s32[90] parameter(0)\n ROOT s = (s32[90], s32[90]) sort(p, p), dimensions={0}, to_apply=c }", 1);
  expect_as_interpreted("HloModule m\nc { x = c128[] parameter(0)\n y = c128[] parameter(1)\n i = s8[] parameter(2)\n j = s8[] parameter(3)\n"
                        " ROOT r = pred[] compare(i, j), direction=LT }\n"
                        "ENTRY e { p = c128[90] parameter(0)\n q = s8[90] parameter(1)\n"
                        " ROOT s = (c128[90], s8[90]) sort(p, q), dimensions={0}, to_apply=c }", 1);
}

TEST(CompiledSort, OfTheFirstOfEachLine) {
  for (const char* type : {"s32", "u8", "bf16", "f32"})
    for (const char* largest : {"true", "false"})
      for (const int k : {0, 1, 7, 50, 200}) {
        const std::string t = type, kept = "[11," + std::to_string(k) + "]";
        expect_as_interpreted("HloModule m\nENTRY e { p = " + t + "[11,200] parameter(0)\n ROOT r = (" + t + kept + ", s32" + kept +
                                  ") topk(p), k=" + std::to_string(k) + ", largest=" + largest + " }", 2);
      }
}

// What a worker needs: a few entries for the first few of a line, however long; counts of digits only where there are some.
TEST(CompiledSort, NeedsRoomForWhatItKeeps) {
  const auto scratch = [](const std::string& text) {
    const auto compiled = compiler::compile(*compiler::read_program(text));
    EXPECT_TRUE(compiled) << (compiled ? "" : compiled.error().message());
    std::int64_t most = 0;
    for (const runtime::Step& step : compiled->program.steps)
      if (const auto* call = std::get_if<runtime::Call>(&step.of)) most = std::max(most, call->scratch_bytes);
    return most;
  };
  const auto topk = [](int n, int k) {
    return "ENTRY e { p = f32[16," + std::to_string(n) + "] parameter(0)\n ROOT r = (f32[16," + std::to_string(k) + "], s32[16," +
           std::to_string(k) + "]) topk(p), k=" + std::to_string(k) + ", largest=true }";
  };
  EXPECT_LE(scratch(topk(2000, 5)), 640);
  EXPECT_EQ(scratch(topk(2000, 5)), scratch(topk(20000, 5)));
  EXPECT_EQ(scratch(topk(2000, 40)), 2000 * 8) << "the entries of a line";
  const std::string sort = "less { a = u32[] parameter(0)\n b = u32[] parameter(1)\n ROOT l = pred[] compare(a, b), direction=LT }\n"
                           "ENTRY e { p = u32[16,1000] parameter(0)\n ROOT r = u32[16,1000] sort(p), dimensions={1}, to_apply=less }";
  EXPECT_EQ(scratch(sort), 2 * 1000 * 8 + 4 * 256 * 4) << "two sets of entries, and the counts of four digits";
}

// --- Of which a few are used

// The comparator of a type's floats or integers that JAX writes, or one that no total order is known for.
std::string comparator(const std::string& type, const std::string& kind) {
  const bool is_float = type[0] == 'f' || type[0] == 'b';
  std::string body;
  if (kind == "jax" && is_float) {
    for (const char* x : {"x", "y"}) {
      const std::string n = x;
      body += " z" + n + " = pred[] compare(" + n + ", zero), direction=EQ\n a" + n + " = " + type + "[] select(z" + n + ", zero, " + n + ")\n n" + n +
              " = pred[] compare(" + n + ", " + n + "), direction=NE\n b" + n + " = " + type + "[] select(n" + n + ", quiet, a" + n + ")\n";
    }
    body = " zero = " + type + "[] constant(0)\n quiet = " + type + "[] constant(nan)\n" + body + " ROOT r =" + compare(type, "bx, by", "LT");
  } else if (kind == "other") {
    body = " c = pred[] compare(i, j), direction=LT\n e =" + compare(type, "x, y", "EQ") + " l =" + compare(type, "x, y", "LT") +
           " ROOT r = pred[] select(e, c, l)\n";
  } else {
    body = " ROOT r =" + compare(type, "x, y", kind == "GT" ? "GT" : "LT");
  }
  return "c { x = " + type + "[] parameter(0)\n y = " + type + "[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n" + body + "}\n";
}

struct Cut {
  std::string dims, result, slice;  // of the sorted arrays, the results; the slice's text
  int along;
};
std::string sliced_text(const std::string& type, const std::string& kind, const Cut& cut, const std::string& used, bool reversed = false) {
  const std::string keys = array(type, cut.dims), positions = array("s32", cut.dims), along = std::to_string(cut.along);
  const auto first = [&](const std::string& n, const std::string& t, const std::string& from) {
    const std::string all = array(t, cut.dims), some = array(t, cut.result);
    std::string text = " g" + n + " = " + all + " get-tuple-element(s), index=" + from + "\n";
    if (reversed) text += " v" + n + " = " + all + " reverse(g" + n + "), dimensions={" + along + "}\n";
    return text + " r" + n + " = " + some + " slice(" + (reversed ? "v" : "g") + n + "), slice={" + cut.slice + "}\n";
  };
  std::string text = comparator(type, kind) + "ENTRY e { p = " + keys + " parameter(0)\n q = " + positions + " parameter(1)\n s = (" + keys + ", " + positions +
                     ") sort(p, q), dimensions={" + along + "}, is_stable=true, to_apply=c\n";
  if (used != "positions") text += first("0", type, "0");
  if (used != "keys") text += first("1", "s32", "1");
  if (used == "both") text += " ROOT t = (" + array(type, cut.result) + ", " + array("s32", cut.result) + ") tuple(r0, r1)\n";
  if (used == "keys") text += " ROOT t = " + array(type, cut.result) + " copy(r0)\n";
  if (used == "positions") text += " ROOT t = " + array("s32", cut.result) + " copy(r1)\n";
  return text + "}";
}

std::int64_t most_sorted(const std::string& text) {
  const auto program = compiler::compile(*compiler::read_program(text), {});
  EXPECT_TRUE(program) << text;
  std::int64_t most = 0;
  for (const hlo::Instruction& i : program->module->entry()->instructions())
    if (i.opcode() == hlo::Opcode::Fusion && hlo::sort_form(*i.called(0)->root()))
      for (const Shape* leaf : leaves(i.shape())) most = std::max(most, leaf->num_elements());
  return most;
}

const Cut kFew[] = {{"3,500", "3,7", "[0:3], [0:7]", 1},           {"3,500", "3,7", "[0:3], [493:500]", 1},
                    {"500,3", "40,3", "[0:40], [0:3]", 0},         {"500,3", "1,3", "[499:500], [0:3]", 0},
                    {"2,20", "2,3", "[0:2], [0:3]", 1},            {"2,20", "2,3", "[0:2], [17:20]", 1},
                    {"100003", "300", "[0:300]", 0},               {"100003", "9", "[99994:100003]", 0},
                    {"2,70001", "2,32", "[0:2], [69969:70001]", 1}, {"4,200", "4,150", "[0:4], [50:200]", 1}};

TEST(CompiledSort, OfWhichTheFirstOrLastAreUsed) {
  for (const Cut& cut : kFew)
    for (const char* used : {"both", "keys", "positions"}) {
      const std::string kind = std::array{"jax", "GT", "LT"}[static_cast<std::size_t>(used[0]) % 3];
      const std::string text = sliced_text("f32", kind, cut, used);
      for (const int threads : {1, 3}) expect_as_interpreted(text, threads);
      const hlo::Literal result(Shape::array(DType::S8, compiler::read_program("ENTRY e { ROOT p = s8[" + cut.result + "] parameter(0) }").value()->entry()->root()->shape().dims()));
      EXPECT_EQ(most_sorted(text), result.num_elements()) << text;
    }
}

TEST(CompiledSort, OfWhichTheFirstOrLastAreUsedInEachTypeAndOrder) {
  for (const char* type : kTypes)
    for (const char* kind : {"jax", "LT", "GT", "other"})
      for (const bool last : {false, true})
        expect_as_interpreted(sliced_text(type, kind, {"5,130", "5,9", last ? "[0:5], [121:130]" : "[0:5], [0:9]", 1}, "both"), 1);
}

TEST(CompiledSort, TurnedRoundAndOfWhichTheFirstAreUsed) {
  for (const Cut& cut : kFew) {
    const std::string text = sliced_text("f32", "jax", cut, "both", true);
    expect_as_interpreted(text, 2);
    if (cut.dims == "100003") {
      EXPECT_LE(most_sorted(text), 300);
    }
  }
}

// What is not the first or last of all lines, or is used besides, is sorted whole.
TEST(CompiledSort, OfWhichOthersAreUsedToo) {
  for (const Cut& cut : {Cut{"3,500", "3,7", "[0:3], [1:8]", 1}, Cut{"3,500", "2,7", "[1:3], [0:7]", 1}, Cut{"3,500", "3,7", "[0:3], [0:14:2]", 1}}) {
    const std::string text = sliced_text("f32", "LT", cut, "both");
    expect_as_interpreted(text, 1);
    EXPECT_EQ(most_sorted(text), 1500) << text;
  }
  const std::string two =
      "c { x = s32[] parameter(0)\n y = s32[] parameter(1)\n ROOT r = pred[] compare(x, y), direction=LT }\n"
      "ENTRY e { p = s32[300] parameter(0)\n s = s32[300] sort(p), dimensions={0}, to_apply=c\n a = s32[5] slice(s), slice={[0:5]}\n"
      " b = s32[5] slice(s), slice={[295:300]}\n ROOT t = (s32[5], s32[5]) tuple(a, b) }";
  expect_as_interpreted(two, 1);
  EXPECT_EQ(most_sorted(two), 300);
}

// --- Comparators that are no order

// They end, give a permutation of each line's pairs, and the same one on any number of threads.
TEST(CompiledSort, ByComparatorsThatAreNoOrder) {
  const char* const comparators[] = {
      " ROOT r = pred[] constant(true)\n",
      " ROOT r = pred[] constant(false)\n",
      " ROOT r = pred[] compare(x, y), direction=GE\n",
      " ROOT r = pred[] compare(x, y), direction=NE\n",
      " ROOT r = pred[] compare(x, y), direction=LT\n",  // NaN is neither before nor after
      " ROOT r = pred[] compare(x, j2), direction=GT\n",
      " a = f32[] subtract(x, y)\n b = f32[] sine(a)\n ROOT r = pred[] compare(b, zero), direction=GT\n",
  };
  for (const char* comparator : comparators)
    for (const char* dims : {"1", "2", "77", "5,1000", "9,333"}) {
      const std::string keys = array("f32", dims), places = array("s32", dims);
      const bool rows = dims[1] == ',';
      const std::string text = "c { x = f32[] parameter(0)\n y = f32[] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n j2 = f32[] convert(j)\n"
                               " zero = f32[] constant(0)\n" + std::string(comparator) + "}\nENTRY e { p = " + keys + " parameter(0)\n q = " + places +
                               " iota(), iota_dimension=" + (rows ? "1" : "0") + "\n ROOT s = (" + keys + ", " + places + ") sort(p, q), dimensions={" +
                               (rows ? "1" : "0") + "}, to_apply=c }";
      SCOPED_TRACE(text);
      const auto module = compiler::read_program(text);
      ASSERT_TRUE(module) << module.error().message();
      std::mt19937_64 random(text.size());
      const std::vector<hlo::Literal> arguments = {random_literal((*module)->entry()->parameter(0)->shape(), random)};
      const std::vector<hlo::Literal> got = run_compiled(*compiler::read_program(text), arguments, 1);
      ASSERT_EQ(got.size(), 2u);
      const std::int64_t n = got[0].shape().dims().back();
      const auto word = [](const hlo::Literal& l, std::int64_t e) {
        std::uint32_t bits;
        std::memcpy(&bits, l.bytes().data() + e * 4, 4);
        return bits;
      };
      for (std::int64_t line = 0; line < got[0].num_elements(); line += n) {
        std::vector<bool> seen(static_cast<std::size_t>(n));
        for (std::int64_t e = line; e < line + n; ++e) {
          const std::uint32_t from = word(got[1], e);
          ASSERT_LT(from, static_cast<std::uint32_t>(n));
          ASSERT_FALSE(seen[from]);
          seen[from] = true;
          ASSERT_EQ(word(got[0], e), word(arguments[0], line + from));
        }
      }
      for (const int threads : {2, 4}) {
        const std::vector<hlo::Literal> again = run_compiled(*compiler::read_program(text), arguments, threads);
        for (std::size_t k = 0; k < 2; ++k) EXPECT_TRUE(std::ranges::equal(got[k].bytes(), again[k].bytes()));
      }
    }
}

}  // namespace
}  // namespace hloom

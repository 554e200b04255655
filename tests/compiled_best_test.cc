// Reduces that search for one element: argmax and its like in many spellings, and reducers drawn at random. Compiled programs give
// the interpreter's results, which takes elements one by one, to the bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <random>

#include "arrays/compare.h"
#include "compiler/compile.h"
#include "compiler/read_program.h"
#include "hlo/best_element.h"
#include "interp/interpret.h"
#include "run_compiled.h"
#include "whole_numbers.h"

namespace hloom {
namespace {

using Random = std::mt19937_64;

// Few different values, so that there are equals: NaN and zeros of both signs among those of floats.
hlo::Literal few_values(const Shape& shape, Random& random) {
  hlo::Literal literal(shape);
  if (is_complex(shape.dtype())) {
    for (std::byte& byte : literal.mutable_bytes()) byte = static_cast<std::byte>(random() % 64);
    return literal;
  }
  const bool is_float = is_floating(shape.dtype()), has_nan = random() % 3 == 0;
  const double values[] = {0, 1, 2, -0.0, -1, -INFINITY, NAN};
  const std::size_t kinds = is_float ? (has_nan ? 7 : 2 + random() % 5) : 2 + random() % 2;
  for (std::int64_t n = 0; n < literal.num_elements(); ++n) {
    const std::size_t k = random() % kinds;
    // NaNs are few: what they do to the order is seen where they are not everywhere.
    put(literal, n, k == 6 && random() % 8 != 0 ? 1 : values[shape.dtype() == DType::Pred ? k % 2 : k]);
  }
  return literal;
}

// Whether the program's kernels search by lanes.
bool searches(const hlo::Module& module) {
  for (const auto& computation : module.computations())
    for (const hlo::Instruction& i : computation.instructions())
      if (i.opcode() == hlo::Opcode::Reduce && hlo::best_element(i)) return true;
  return false;
}

void expect_as_interpreted(const std::string& text, unsigned seed, int threads = 1) {
  SCOPED_TRACE(text);
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  Random random(seed);
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : (*module)->entry()->parameters()) arguments.push_back(few_values(p->shape(), random));
  const auto whole = interp::interpret(**module, arguments);
  ASSERT_TRUE(whole) << whole.error().message();
  std::vector<hlo::Literal> want;
  for (const hlo::Literal* leaf : hlo::leaves(*whole)) want.push_back(*leaf);
  const std::vector<hlo::Literal> got = run_compiled(std::move(*module), arguments, threads);
  EXPECT_EQ(arrays::compare_results(got, want, std::vector{arrays::Tolerance::exact()}), std::nullopt);
}

// Reducers over x, y (elements so far, and new) and their places i, j; T and I are their types.
struct Spelling {
  const char* name;
  std::string text;  // defines v and w
  bool of_floats_too = true;
};
std::string compare(const std::string& name, const std::string& operands, const std::string& direction) {
  return " " + name + " = pred[] compare(" + operands + "), direction=" + direction + "\n";
}
std::vector<Spelling> spellings(bool least) {
  const std::string strict = least ? "LT" : "GT", weak = least ? "LE" : "GE", other = least ? "GT" : "LT";
  const std::string jax = compare("g", "x, y", strict) + compare("n", "x, x", "NE") + " t = pred[] or(g, n)\n" + compare("q", "x, y", "EQ") +
                          compare("l", "i, j", "LT") + " u = pred[] and(q, l)\n k = pred[] or(t, u)\n";
  const std::string selects = " v = T[] select(t, x, y)\n w = I[] select(k, i, j)\n";
  return {
      {"jax", jax + selects},
      {"highest place", compare("g", "x, y", strict) + compare("n", "x, x", "NE") + " t = pred[] or(g, n)\n" + compare("q", "x, y", "EQ") +
                            compare("l", "i, j", "GT") + " u = pred[] and(q, l)\n k = pred[] or(t, u)\n" + selects},
      {"weak", compare("t", "x, y", weak) + " a = I[] select(t, i, j)\n" + compare("q", "x, y", "EQ") +
                   " b = I[] minimum(i, j)\n v = T[] select(t, x, y)\n w = I[] select(q, b, a)\n"},
      {"one choice", compare("t", "y, x", strict) + compare("n", "x, x", "NE") + " m = pred[] not(n)\n s = pred[] and(t, m)\n" +
                         compare("p", "y, y", "NE") + " z = pred[] and(p, m)\n k = pred[] or(s, z)\n v = T[] select(k, y, x)\n w = I[] select(k, j, i)\n"},
      {"negated", compare("t", "x, y", other) + compare("p", "y, y", "NE") + " z = pred[] or(t, p)\n" + compare("n", "x, x", "EQ") +
                      " k = pred[] and(z, n)\n v = T[] select(k, y, x)\n w = I[] select(k, j, i)\n"},
      {"selects of truths", compare("g", "x, y", strict) + compare("n", "x, x", "NE") + " yes = pred[] constant(true)\n t = pred[] select(n, yes, g)\n" +
                                compare("q", "x, y", "EQ") + compare("l", "i, j", "LE") + " k = pred[] select(q, l, t)\n v = T[] select(k, x, y)\n" +
                                " w = I[] select(k, i, j)\n"},
      {"strict", compare("t", "x, y", strict) + " v = T[] select(t, x, y)\n w = I[] select(t, i, j)\n"},
      {"extreme", std::string(" v = T[] ") + (least ? "minimum" : "maximum") + "(x, y)\n" + compare("q", "x, y", "EQ") + compare("g", "x, y", strict) +
                      " a = I[] select(g, i, j)\n b = I[] minimum(i, j)\n w = I[] select(q, b, a)\n",
       false},
  };
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

struct Search {
  std::string type = "f32", place_type = "s32", dims = "5,100", result = "5", reduced = "1", places;
  std::string initial = "1", initial_place = "3";
  bool whole = true;  // both results
};
std::string search_text(const Spelling& spelling, const Search& s) {
  const std::string v = s.type + "[" + s.result + "]", w = s.place_type + "[" + s.result + "]";
  std::string body = replaced(replaced(spelling.text, "T[]", s.type + "[]"), "I[]", s.place_type + "[]");
  return "HloModule m\nbest { x = " + s.type + "[] parameter(0)\n i = " + s.place_type + "[] parameter(1)\n y = " + s.type + "[] parameter(2)\n j = " +
         s.place_type + "[] parameter(3)\n" + body + " ROOT r = (" + s.type + "[], " + s.place_type + "[]) tuple(v, w) }\n" + "ENTRY e { p = " + s.type +
         "[" + s.dims + "] parameter(0)\n" + s.places + " z = " + s.type + "[] constant(" + s.initial + ")\n o = " + s.place_type + "[] constant(" +
         s.initial_place + ")\n " + (s.whole ? "ROOT " : "") + "f = (" + v + ", " + w + ") reduce(p, q, z, o), dimensions={" + s.reduced +
         "}, to_apply=best\n" + (s.whole ? "" : " ROOT g = " + w + " get-tuple-element(f), index=1\n") + "}";
}
std::string iota(const Search& s, int dimension) {
  return " q = " + s.place_type + "[" + s.dims + "] iota(), iota_dimension=" + std::to_string(dimension) + "\n";
}

TEST(CompiledBest, InEachSpellingOfEachType) {
  unsigned seed = 0;
  for (const bool least : {false, true})
    for (const Spelling& spelling : spellings(least))
      for (const char* type : {"f32", "f64", "bf16", "f16", "s32", "u8", "s64", "u32", "pred"}) {
        SCOPED_TRACE(spelling.name);
        Search s;
        const bool is_float = type[0] == 'f' || type[0] == 'b';
        s.type = type;
        s.place_type = std::array{"s32", "s64", "u32"}[seed % 3];
        s.initial = is_float ? (least ? "inf" : "-inf") : "1";
        if (type[0] == 'p') s.initial = least ? "true" : "false";
        s.initial_place = seed % 2 == 0 ? "0" : "7";
        s.whole = seed % 4 != 3;
        s.places = iota(s, 1);
        const std::string text = search_text(spelling, s);
        const auto module = compiler::read_program(text);
        ASSERT_TRUE(module) << text;
        EXPECT_EQ(searches(**module), !is_float || spelling.of_floats_too) << text;
        for (int round = 0; round < 2; ++round) expect_as_interpreted(text, ++seed);
      }
}

TEST(CompiledBest, OfAnyLength) {
  for (const char* columns : {"1", "7", "8", "9", "31", "63", "64", "65", "127", "200", "4099"})
    for (std::size_t k : {0, 1, 2}) {
      Search s;
      s.dims = std::string("6,") + columns;
      s.result = "6";
      s.places = iota(s, 1);
      expect_as_interpreted(search_text(spellings(false)[k], s), static_cast<unsigned>(k));
    }
}

TEST(CompiledBest, InitialValuesTakePart) {
  for (const char* initial : {"nan", "-0", "0", "2", "-inf", "-nan"})
    for (const char* place : {"-1", "4", "2147483647"})
      for (const Spelling& spelling : spellings(false)) {
        Search s;
        s.initial = initial;
        s.initial_place = place;
        s.places = iota(s, 1);
        expect_as_interpreted(search_text(spelling, s), 5);
      }
}

// Over other dimensions, several of them, all; places that count all through, backwards, in steps, or in no order.
TEST(CompiledBest, AlongDimensionsAndPlacesOfEachKind) {
  unsigned seed = 100;
  const std::string d = "4,9,70";
  const std::vector<std::string> places = {
      " q = s32[4,9,70] iota(), iota_dimension=2\n",
      " q = s32[4,9,70] iota(), iota_dimension=1\n",
      " a = s32[2520] iota(), iota_dimension=0\n q = s32[4,9,70] reshape(a)\n",
      " a = s32[70] iota(), iota_dimension=0\n q = s32[4,9,70] broadcast(a), dimensions={2}\n",
      " a = s32[4,9,70] iota(), iota_dimension=2\n c = s32[] constant(-3)\n m = s32[4,9,70] broadcast(c), dimensions={}\n q = s32[4,9,70] multiply(a, m)\n",
      " a = s32[4,9,70] iota(), iota_dimension=2\n q = s32[4,9,70] reverse(a), dimensions={2}\n",
      " a = s8[4,9,70] iota(), iota_dimension=2\n q = s32[4,9,70] convert(a)\n",
      " a = s32[4,9,70] iota(), iota_dimension=2\n c = s32[] constant(100000000)\n m = s32[4,9,70] broadcast(c), dimensions={}\n q = s32[4,9,70] multiply(a, m)\n",
      " q = s32[4,9,70] parameter(1)\n",
  };
  const std::pair<const char*, const char*> reduced[] = {{"2", "4,9"}, {"1,2", "4"}, {"0,2", "9"}, {"0,1,2", ""}, {"0", "9,70"}, {"1", "4,70"}};
  for (const std::string& q : places)
    for (const auto& [dimensions, result] : reduced)
      for (const std::size_t k : {0, 1, 2}) {
        Search s{.dims = d, .result = result, .reduced = dimensions, .places = q};
        expect_as_interpreted(search_text(spellings(k == 1)[k], s), ++seed);
      }
}

TEST(CompiledBest, PlacesThatGrowOrFall) {
  const auto direction = [](const std::string& body, const hlo::Dims& dimensions) {
    const auto module = compiler::read_program("ENTRY e {\n" + body + "}");
    EXPECT_TRUE(module) << module.error().message();
    return hlo::monotone(*(*module)->entry()->root(), dimensions);
  };
  EXPECT_EQ(direction(" ROOT q = s32[4,70] iota(), iota_dimension=1\n", {1}), 1);
  EXPECT_EQ(direction(" ROOT q = s32[4,70] iota(), iota_dimension=1\n", {0}), 0);
  EXPECT_EQ(direction(" ROOT q = s32[4,70] iota(), iota_dimension=1\n", {0, 1}), 0);
  EXPECT_EQ(direction(" a = s32[280] iota(), iota_dimension=0\n ROOT q = s32[4,70] reshape(a)\n", {0, 1}), 1);
  EXPECT_EQ(direction(" a = s32[4,70] iota(), iota_dimension=1\n ROOT q = s32[4,70] reverse(a), dimensions={1}\n", {1}), -1);
  EXPECT_EQ(direction(" ROOT q = s8[2,128] iota(), iota_dimension=1\n", {1}), 1);
  EXPECT_EQ(direction(" ROOT q = s8[2,129] iota(), iota_dimension=1\n", {1}), 0);
  EXPECT_EQ(direction(" a = s32[70] iota(), iota_dimension=0\n b = s32[4,70] broadcast(a), dimensions={1}\n ROOT q = s32[4,70] add(b, b)\n", {1}), 1);
}

// Several payloads, or none beside the key.
TEST(CompiledBest, OfOneArrayAndOfThree) {
  for (const char* direction : {"GT", "GE", "LT", "LE"}) {
    expect_as_interpreted("best { x = f32[] parameter(0)\n y = f32[] parameter(1)\n" + compare("t", "x, y", direction) +
                              " ROOT v = f32[] select(t, x, y) }\nENTRY e { p = f32[7,90] parameter(0)\n z = f32[] constant(0)\n"
                              " ROOT r = f32[7] reduce(p, z), dimensions={1}, to_apply=best }", 1);
    expect_as_interpreted("best { x = f32[] parameter(0)\n i = s32[] parameter(1)\n a = c64[] parameter(2)\n y = f32[] parameter(3)\n j = s32[] parameter(4)\n"
                          " b = c64[] parameter(5)\n" + compare("t", "x, y", direction) + compare("n", "x, x", "NE") + " k = pred[] or(t, n)\n"
                          " v = f32[] select(k, x, y)\n w = s32[] select(k, i, j)\n c = c64[] select(k, a, b)\n ROOT r = (f32[], s32[], c64[]) tuple(v, w, c) }\n"
                          "ENTRY e { p = f32[7,90] parameter(0)\n q = s32[7,90] parameter(1)\n o = c64[7,90] parameter(2)\n z = f32[] constant(0)\n"
                          " zi = s32[] constant(9)\n zc = c64[] constant((1,2))\n"
                          " ROOT s = (f32[7], s32[7], c64[7]) reduce(p, q, o, z, zi, zc), dimensions={1}, to_apply=best }", 2);
  }
}

// Reducers without a thought behind them: comparisons, logic and selects of what there is so far.
std::string random_reducer(Random& random) {
  std::vector<std::string> keys = {"x", "y"}, places = {"i", "j"}, truths;
  std::string text;
  const auto any = [&](const std::vector<std::string>& of) { return of[random() % of.size()]; };
  const char* const directions[] = {"LT", "LE", "GT", "GE", "EQ", "NE"};
  const auto define = [&](std::vector<std::string>& to, const std::string& what) {
    to.push_back("t" + std::to_string(text.size()));
    text += " " + to.back() + " = " + what + "\n";
  };
  const auto comparison = [&] {
    const auto& of = random() % 3 != 0 ? keys : places;
    define(truths, "pred[] compare(" + any(of) + ", " + any(of) + "), direction=" + directions[random() % 6]);
  };
  const std::size_t steps = 2 + random() % 6;
  comparison();
  for (std::size_t n = 0; n < steps; ++n) {
    switch (random() % 6) {
      case 0: define(truths, "pred[] " + std::string(random() % 2 ? "or(" : "and(") + any(truths) + ", " + any(truths) + ")"); break;
      case 1: define(truths, "pred[] not(" + any(truths) + ")"); break;
      case 2: define(places, "s32[] select(" + any(truths) + ", " + any(places) + ", " + any(places) + ")"); break;
      case 3: define(keys, random() % 2 ? "T[] select(" + any(truths) + ", " + any(keys) + ", " + any(keys) + ")"
                                        : "T[] " + std::string(random() % 2 ? "maximum(" : "minimum(") + any(keys) + ", " + any(keys) + ")");
        break;
      default: comparison();
    }
  }
  const std::string t = any(truths), u = random() % 2 ? t : any(truths);
  return text + " v = T[] select(" + t + ", x, y)\n w = I[] select(" + u + ", " + (random() % 2 ? "i, j" : any(places) + ", " + any(places)) + ")\n";
}

TEST(CompiledBest, WhateverTheReducer) {
  int found = 0;
  for (unsigned seed = 0; found < 60 && seed < 20'000; ++seed) {
    Random random(seed);
    Search s;
    s.type = random() % 3 != 0 ? "f32" : "s32";
    s.dims = "3,40";
    s.result = "3";
    s.places = iota(s, 1);
    const std::string text = search_text({"random", random_reducer(random)}, s);
    const auto module = compiler::read_program(text);
    ASSERT_TRUE(module) << text;
    if (!searches(**module)) continue;
    ++found;
    for (unsigned round = 0; round < 3; ++round) expect_as_interpreted(text, 3 * seed + round);
    if (HasFailure()) return;
  }
  EXPECT_GE(found, 60);
}

}  // namespace
}  // namespace hloom

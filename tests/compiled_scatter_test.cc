// Scatters of every form, small ones that one call does and large ones whose destination has owners: compiled programs give
// what the interpreter gives, to the bit and on any number of threads.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <random>
#include <string>

#include "compiler/read_program.h"
#include "interp/interpret.h"
#include "run_compiled.h"

namespace hloom {
namespace {

using Bounds = std::pair<std::int64_t, std::int64_t>;

/// What goes to a program: parameter 1 is the indices, in [first, second] and in ascending order if `sorted`, all different
/// if `unique`.
struct Indices {
  Bounds in = {-3, 40};
  bool sorted = false, unique = false;
};

template <class T>
void put(std::span<std::byte> bytes, std::size_t n, T x) {
  std::memcpy(&bytes[n * sizeof(T)], &x, sizeof(T));
}

// Numbers whose sum depends on the order: floats of several magnitudes.
hlo::Literal values_of(const Shape& shape, std::mt19937_64& random) {
  hlo::Literal literal(shape);
  const auto bytes = literal.mutable_bytes();
  const DType part = real_type(shape.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  for (std::size_t n = 0; n < bytes.size() / width; ++n) {
    const float x = static_cast<float>(static_cast<std::int64_t>(random() % 2001) - 1000) * (random() % 3 == 0 ? 1e-3F : 0.7F);
    const auto bits = std::bit_cast<std::uint32_t>(x);
    switch (part) {
      case DType::F32: put(bytes, n, x); break;
      case DType::F64: put(bytes, n, static_cast<double>(x)); break;
      case DType::BF16: put(bytes, n, static_cast<std::uint16_t>(bits >> 16)); break;
      case DType::F16: put(bytes, n, static_cast<std::uint16_t>(0x2C00 + random() % 0x1800 + (random() % 2) * 0x8000)); break;
      case DType::Pred: put(bytes, n, static_cast<std::uint8_t>(random() % 2)); break;
      default:
        for (std::size_t b = 0; b < width; ++b) bytes[n * width + b] = static_cast<std::byte>(random());
    }
  }
  return literal;
}

hlo::Literal indices_of(const Shape& shape, const Indices& how, std::mt19937_64& random) {
  hlo::Literal literal(shape);
  std::vector<std::int64_t> numbers(static_cast<std::size_t>(shape.num_elements()));
  for (std::size_t n = 0; n < numbers.size(); ++n)
    numbers[n] = how.unique ? static_cast<std::int64_t>(n)
                            : how.in.first + static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(how.in.second - how.in.first + 1));
  if (how.sorted) std::ranges::sort(numbers);
  if (how.unique && !how.sorted) std::ranges::shuffle(numbers, random);
  const auto width = static_cast<std::size_t>(byte_width(shape.dtype()));
  for (std::size_t n = 0; n < numbers.size(); ++n) std::memcpy(&literal.mutable_bytes()[n * width], &numbers[n], width);
  return literal;
}

std::vector<hlo::Literal> arguments_of(const hlo::Module& module, const Indices& indices) {
  std::mt19937_64 random(17);
  std::vector<hlo::Literal> arguments;
  for (const hlo::Instruction* p : module.entry()->parameters())
    arguments.push_back(p->parameter_number() == 1 ? indices_of(p->shape(), indices, random) : values_of(p->shape(), random));
  return arguments;
}

std::vector<hlo::Literal> results_of(const std::string& text, const Indices& indices, int threads) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << "\n" << text;
  if (!module) return {};
  const auto arguments = arguments_of(**module, indices);
  return run_compiled(std::move(*module), arguments, threads);
}

void expect_as_interpreted(const std::string& text, const Indices& indices) {
  SCOPED_TRACE(text);
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  const auto want = interp::interpret(**module, arguments_of(**module, indices));
  ASSERT_TRUE(want) << want.error().message();
  for (const int threads : {1, 2, 3, 4}) {
    const std::vector<hlo::Literal> got = results_of(text, indices, threads);
    ASSERT_FALSE(got.empty());
    for (std::size_t k = 0; k < got.size(); ++k) {
      const hlo::Literal& leaf = want->shape().is_tuple() ? want->elements()[k] : *want;
      EXPECT_TRUE(std::ranges::equal(got[k].bytes(), leaf.bytes())) << "leaf " << k << " on " << threads << " threads";
    }
  }
}

std::string with(std::string text, const std::string& letter, const std::string& value) {
  for (std::size_t at = text.find(letter); at != std::string::npos; at = text.find(letter, at + value.size()))
    text.replace(at, letter.size(), value);
  return text;
}
std::string with(const std::string& text, const std::string& letter, std::int64_t value) { return with(text, letter, std::to_string(value)); }

// In texts $T is the type of the values, $I that of the indices, $N the number of updates, $D the places.
std::string computation(const std::string& type, const std::string& body) {
  return "c { x = " + type + "[] parameter(0)\n y = " + type + "[] parameter(1)\n" + body + " }\n";
}
std::string add(const std::string& type) { return computation(type, " ROOT s = " + type + "[] add(x, y)"); }

const std::string kElements =
    "ENTRY e { p = $T[$D] parameter(0)\n i = $I[$N,1] parameter(1)\n u = $T[$N] parameter(2)\n ROOT r = $T[$D] scatter(p, i, u), "
    "update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c$H }";
const std::string kRows =
    "ENTRY e { p = $T[$D,$C] parameter(0)\n i = $I[$N,1] parameter(1)\n u = $T[$N,$C] parameter(2)\n ROOT r = $T[$D,$C] "
    "scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, "
    "to_apply=c$H }";

std::string elements(std::int64_t updates, std::int64_t places, const std::string& type = "f32", const std::string& index = "s32",
                     const std::string& hints = "") {
  return with(with(with(with(with(kElements, "$T", type), "$I", index), "$N", updates), "$D", places), "$H", hints);
}
std::string rows(std::int64_t updates, std::int64_t places, std::int64_t columns, const std::string& type = "f32",
                 const std::string& hints = "") {
  return with(with(with(with(with(with(kRows, "$T", type), "$I", "s32"), "$N", updates), "$D", places), "$C", columns), "$H", hints);
}

// One call's work, and that of several.
constexpr std::int64_t kFew = 37, kMany = 100'000;

// The blocks of the largest kernel: more than one where threads share the work.
std::int64_t blocks_of(const std::string& text) {
  auto program = compiler::compile(*compiler::read_program(text), {});
  EXPECT_TRUE(program);
  std::int64_t blocks = 0;
  for (const runtime::Step& step : program->program.steps)
    if (const auto* call = std::get_if<runtime::Call>(&step.of)) blocks = std::max(blocks, call->blocks);
  return blocks;
}
TEST(CompiledScatter, LargeOnesAreSharedOutAndSmallOnesAreNot) {
  EXPECT_EQ(blocks_of(add("f32") + elements(kFew, 300)), 1);
  EXPECT_GT(blocks_of(add("f32") + elements(kMany, 300)), 1);
  EXPECT_GT(blocks_of(add("f32") + rows(kMany, 300, 13)), 1);
  const std::string hint = ", unique_indices=true";
  const std::string header = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n";
  EXPECT_GT(blocks_of(header + add("f32") + elements(kMany, 7 * kMany, "f32", "s32", hint)), 1);
}

TEST(CompiledScatter, AnyCombinerIsAppliedInTheOrderOfTheUpdates) {
  for (const char* op : {"add", "multiply", "minimum", "maximum", "subtract"})
    for (const std::int64_t n : {kFew, kMany})
      expect_as_interpreted(computation("f32", std::string(" ROOT s = f32[] ") + op + "(x, y)") + elements(n, 300), {{-3, 303}});
  const std::string custom = " h = f32[] constant(0.5)\n a = f32[] multiply(x, h)\n t = f32[] multiply(y, y)\n ROOT s = f32[] add(a, t)";
  for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(computation("f32", custom) + elements(n, 300), {{0, 299}});
}
TEST(CompiledScatter, OfSeveralOverwritesTheLastStands) {
  for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(computation("f32", " ROOT s = f32[] copy(y)") + elements(n, 50), {{0, 49}});
}
TEST(CompiledScatter, SortedAndUniqueIndicesGiveTheSame) {
  for (const std::int64_t n : {kFew, kMany}) {
    expect_as_interpreted(add("f32") + elements(n, 500, "f32", "s32", ", indices_are_sorted=true"), {{-20, 520}, true});
    expect_as_interpreted(add("f32") + elements(n, 2 * n, "f32", "s32", ", unique_indices=true"), {{0, 0}, false, true});
    expect_as_interpreted(add("f32") + elements(n, n - 5, "f32", "s32", ", unique_indices=true, indices_are_sorted=true"),
                          {{0, 0}, true, true});
    expect_as_interpreted(add("f32") + rows(n / 9, 100, 13, "f32", ", indices_are_sorted=true"), {{-2, 101}, true});
  }
}
TEST(CompiledScatter, UniqueIndicesInPlaceGiveTheSame) {
  const std::string header = "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n";
  for (const std::int64_t n : {kFew, kMany})
    expect_as_interpreted(header + add("f32") + elements(n, 2 * n, "f32", "s32", ", unique_indices=true"), {{0, 0}, false, true});
}
TEST(CompiledScatter, AWrongHintEndsWellAndWritesNothingElse) {
  for (const char* hints : {", indices_are_sorted=true", ", unique_indices=true"}) {
    const std::string text = computation("f32", " ROOT s = f32[] copy(y)") + elements(kMany, 1000, "f32", "s32", hints);
    const auto got = results_of(text, {{0, 99}}, 3);
    ASSERT_EQ(got.size(), 1u);
    auto module = compiler::read_program(text);
    const auto before = arguments_of(**module, {{0, 99}});
    EXPECT_TRUE(std::ranges::equal(got[0].bytes().subspan(400), before[0].bytes().subspan(400)));
  }
}
TEST(CompiledScatter, AWindowPartlyOutsideIsDroppedWhole) {
  const std::string text =
      add("f32") + "ENTRY e { p = f32[64,5] parameter(0)\n i = s32[$N,2] parameter(1)\n u = f32[$N,3,2] parameter(2)\n ROOT r = f32[64,5] "
      "scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=1, to_apply=c }";
  for (const std::int64_t n : {kFew, kMany / 2}) expect_as_interpreted(with(text, "$N", n), {{-2, 66}});
}
TEST(CompiledScatter, IndicesOfEveryTypeAreBounded) {
  for (const char* index : {"s8", "s16", "s32", "s64", "u8", "u16", "u32", "u64"})
    for (const std::int64_t n : {kFew, kMany})
      expect_as_interpreted(add("f32") + elements(n, 100, "f32", index), {{-9, 120}});  // negative ones are large without a sign
}
TEST(CompiledScatter, IndexVectorsOfEveryLength) {
  // All coordinates, in another order than the dimensions.
  const std::string points =
      add("f32") + "ENTRY e { p = f32[9,40,6] parameter(0)\n i = s32[3,$N] parameter(1)\n u = f32[$N] parameter(2)\n ROOT r = f32[9,40,6] "
      "scatter(p, i, u), update_window_dims={}, inserted_window_dims={0,1,2}, scatter_dims_to_operand_dims={2,0,1}, index_vector_dim=0, to_apply=c }";
  // One of three.
  const std::string planes =
      add("f32") + "ENTRY e { p = f32[9,40,6] parameter(0)\n i = s32[$N] parameter(1)\n u = f32[9,6,$N] parameter(2)\n ROOT r = f32[9,40,6] "
      "scatter(p, i, u), update_window_dims={0,1}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, index_vector_dim=1, to_apply=c }";
  // None: every window begins at zero.
  const std::string none =
      add("f32") + "ENTRY e { p = f32[90,70] parameter(0)\n i = s32[$N,0] parameter(1)\n u = f32[$N,80,60] parameter(2)\n ROOT r = f32[90,70] "
      "scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={}, index_vector_dim=1, to_apply=c }";
  for (const std::int64_t n : {kFew, kMany}) {
    expect_as_interpreted(with(points, "$N", n), {{-1, 9}});
    expect_as_interpreted(with(planes, "$N", n / 10), {{-1, 40}});
  }
  for (const std::int64_t n : {1, 9}) expect_as_interpreted(with(none, "$N", n), {});
}
TEST(CompiledScatter, WindowsOfAnyLength) {
  for (const std::int64_t columns : {1, 3, 13, 32, 100})
    for (const std::int64_t n : {kFew, kMany / columns + 300}) expect_as_interpreted(add("f32") + rows(n, 90, columns), {{-2, 91}});
  // Several rows, which reach over the owners' borders.
  const std::string blocks =
      add("f32") + "ENTRY e { p = f32[300,7] parameter(0)\n i = s32[$N,1] parameter(1)\n u = f32[$N,20,7] parameter(2)\n ROOT r = f32[300,7] "
      "scatter(p, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c$H }";
  for (const char* hint : {"", ", indices_are_sorted=true"})
    for (const std::int64_t n : {3, 400})
      expect_as_interpreted(with(with(blocks, "$N", n), "$H", hint), {{-5, 290}, *hint != 0});
}
TEST(CompiledScatter, WindowsBeforeTheirBatchGoElementByElement) {
  const std::string text =
      add("f32") + "ENTRY e { p = f32[200] parameter(0)\n i = s32[$N,1] parameter(1)\n u = f32[4,$N] parameter(2)\n ROOT r = f32[200] "
      "scatter(p, i, u), update_window_dims={0}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }";
  for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(with(text, "$N", n), {{-1, 199}});
}
TEST(CompiledScatter, BatchingDimensionsKeepToTheirOwnPart) {
  const std::string text =
      add("f32") + "ENTRY e { p = f32[8,50] parameter(0)\n i = s32[8,$N,1] parameter(1)\n u = f32[8,$N] parameter(2)\n ROOT r = f32[8,50] "
      "scatter(p, i, u), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, input_batching_dims={0}, "
      "scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=c }";
  for (const std::int64_t n : {9, 2000}) expect_as_interpreted(with(text, "$N", n), {{-1, 50}});
}
TEST(CompiledScatter, SeveralArraysAreUpdatedTogether) {
  const std::string text =
      "c { a = f32[] parameter(0)\n b = s32[] parameter(1)\n x = f32[] parameter(2)\n y = s32[] parameter(3)\n l = pred[] compare(x, a), "
      "direction=LT\n v = f32[] select(l, x, a)\n w = s32[] select(l, y, b)\n ROOT t = (f32[], s32[]) tuple(v, w) }\n"
      "ENTRY e { p = f32[77] parameter(0)\n i = s32[$N,1] parameter(1)\n u = f32[$N] parameter(2)\n q = s32[77] parameter(3)\n "
      "k = s32[$N] iota(), iota_dimension=0\n ROOT r = (f32[77], s32[77]) scatter(p, q, i, u, k), update_window_dims={}, "
      "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }";
  for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(with(text, "$N", n), {{-1, 77}});
}
TEST(CompiledScatter, UpdatesIndicesAndResultMayBeComputedAlongside) {
  const std::string text =
      add("f32") + "ENTRY e { p = f32[300] parameter(0)\n i = s32[$N] parameter(1)\n u = f32[$N] parameter(2)\n z = s32[] constant(0)\n zs = "
      "s32[$N] broadcast(z), dimensions={}\n n = s32[] constant(300)\n ns = s32[$N] broadcast(n), dimensions={}\n l = pred[$N] compare(i, zs), "
      "direction=LT\n a = s32[$N] add(i, ns)\n s = s32[$N] select(l, a, i)\n j = s32[$N,1] reshape(s)\n v = f32[$N] multiply(u, u)\n b = f32[10,30] "
      "reshape(p)\n f = f32[300] bitcast(b)\n r = f32[300] scatter(f, j, v), update_window_dims={}, inserted_window_dims={0}, "
      "scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c\n o = f32[10,30] bitcast(r)\n ROOT m = f32[10,30] negate(o) }";
  for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(with(text, "$N", n), {{-300, 299}});
}
TEST(CompiledScatter, ValuesOfEveryKind) {
  for (const char* type : {"f16", "bf16", "f64", "c64", "c128", "s8", "u16", "s64"})
    for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(add(type) + elements(n, 130, type), {{-2, 131}});
  for (const std::int64_t n : {kFew, kMany})
    expect_as_interpreted(computation("pred", " ROOT s = pred[] xor(x, y)") + elements(n, 130, "pred"), {{-2, 131}});
}
TEST(CompiledScatter, AnyNumberOfUpdates) {
  for (const std::int64_t n : {0, 1, 2, 2047, 2048, 2049, 300'000}) expect_as_interpreted(add("f32") + elements(n, 4000), {{-5, 4005}});
}
TEST(CompiledScatter, AllUpdatesOfOneElementAreAddedInTheirOrder) {
  expect_as_interpreted(add("f32") + elements(kMany, 4000), {{1234, 1234}});
  expect_as_interpreted(add("f32") + rows(kMany / 4, 100, 16), {{99, 99}});
}
TEST(CompiledScatter, TheOldArrayIsReadWhereUpdatesAreTheArrayItself) {
  for (const char* header : {"", "HloModule m, input_output_alias={ {}: (0, {}, may-alias) }\n"})
    for (const std::int64_t n : {kFew, kMany})
      expect_as_interpreted(header + with(add("f32") + "ENTRY e { p = f32[$N] parameter(0)\n i = s32[$N,1] parameter(1)\n ROOT r = f32[$N] "
                                   "scatter(p, i, p), update_window_dims={}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
                                   "index_vector_dim=1, to_apply=c }", "$N", n), {{0, n - 1}});
}
TEST(CompiledScatter, IndicesMayBeJoinedCounters) {
  const std::string text =
      add("f32") + "ENTRY e { p = f32[120,100] parameter(0)\n k = s32[] parameter(1)\n u = f32[120,100] parameter(2)\n a = s32[120,100,1] iota(), "
      "iota_dimension=0\n b = s32[120,100,1] iota(), iota_dimension=1\n i = s32[120,100,2] concatenate(a, b), dimensions={2}\n ROOT r = f32[120,100] "
      "scatter(p, i, u), update_window_dims={}, inserted_window_dims={0,1}, scatter_dims_to_operand_dims={0,1}, index_vector_dim=2, to_apply=c }";
  expect_as_interpreted(text, {});
}
TEST(CompiledScatter, TheLastUpdateIsAppliedOnce) {
  // Each place gets one update, the last one the last: a step too many would add it twice.
  for (const std::int64_t n : {kFew, kMany}) expect_as_interpreted(add("s32") + elements(n, n, "s32"), {{0, 0}, true, true});
}
TEST(CompiledScatter, TheDestinationMayHaveAnyLayout) {
  const std::string text =
      "HloModule m, entry_computation_layout={(f32[60,90]{0,1}, s32[$N,1]{1,0}, f32[$N,90]{0,1})->f32[60,90]{0,1}}\n" + add("f32") +
      "ENTRY e { p = f32[60,90]{0,1} parameter(0)\n i = s32[$N,1] parameter(1)\n u = f32[$N,90]{0,1} parameter(2)\n ROOT r = f32[60,90]{0,1} "
      "scatter(p, i, u), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=c }";
  for (const std::int64_t n : {5, 900}) expect_as_interpreted(with(text, "$N", n), {{-1, 60}});
}

}  // namespace
}  // namespace hloom

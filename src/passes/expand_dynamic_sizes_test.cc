// Arrays with run-time sizes: the interpreter, which crops them, says what the arrays of bounds say.
#include <gtest/gtest.h>

#include <random>

#include "arrays/compare.h"
#include "interp/interpret.h"
#include "passes/pipeline.h"
#include "passes/testing.h"

namespace hloom::passes {
namespace {

using testing::checking;
using testing::parse;

constexpr const char* kComputations = R"(HloModule m
add { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] add(a, b) }
most { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT c = f32[] maximum(a, b) }
first { a = f32[] parameter(0)
 i = s32[] parameter(1)
 b = f32[] parameter(2)
 j = s32[] parameter(3)
 p = pred[] compare(b, a), direction=GT
 x = f32[] select(p, b, a)
 k = s32[] select(p, j, i)
 ROOT t = (f32[], s32[]) tuple(x, k) }
less { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT p = pred[] compare(a, b), direction=LT }
largest { a = f32[] parameter(0)
 b = f32[] parameter(1)
 ROOT p = pred[] compare(a, b), direction=GE }
less2 { a = f32[] parameter(0)
 b = f32[] parameter(1)
 i = s32[] parameter(2)
 j = s32[] parameter(3)
 ROOT p = pred[] compare(a, b), direction=GT }
body { s = (s32[], f32[<=6,3]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 x = f32[<=6,3] get-tuple-element(s), index=1
 one = s32[] constant(1)
 j = s32[] add(i, one)
 n = s32[] get-dimension-size(x), dimensions={0}
 m = s32[] subtract(n, one)
 z = s32[] constant(0)
 k = s32[] maximum(m, z)
 y = f32[<=6,3] set-dimension-size(x, k), dimensions={0}
 w = f32[<=6,3] add(y, y)
 ROOT t = (s32[], f32[<=6,3]) tuple(j, w) }
more { s = (s32[], f32[<=6,3]) parameter(0)
 i = s32[] get-tuple-element(s), index=0
 n = s32[] constant(2)
 ROOT p = pred[] compare(i, n), direction=LT }
twice { x = f32[<=6,3] parameter(0)
 ROOT y = f32[<=6,3] add(x, x) }
same { x = f32[<=6,3] parameter(0)
 ROOT y = f32[<=6,3] copy(x) }
ENTRY e { p = f32[6,3] parameter(0)
 n = s32[] parameter(1)
 k = s32[] parameter(2)
 q = f32[4,3] parameter(3)
 zero = f32[] constant(0)
 low = f32[] constant(-inf)
 five = f32[] constant(5)
 izero = s32[] constant(0)
 x = f32[<=6,3] set-dimension-size(p, n), dimensions={0}
 y = f32[<=4,3] set-dimension-size(q, k), dimensions={0}
)";

hlo::Literal argument(const Shape& shape, std::mt19937& random) {
  hlo::Literal literal(shape);
  for (float& v : literal.mutable_data<float>()) {
    v = static_cast<float>(static_cast<int>(random() % 41) - 20) / 4;
    if (random() % 8 == 0) v = std::numeric_limits<float>::quiet_NaN();
  }
  return literal;
}

hlo::Literal size(std::int32_t n) {
  hlo::Literal literal(Shape::scalar(DType::S32));
  literal.mutable_data<std::int32_t>()[0] = n;
  return literal;
}

std::vector<hlo::Literal> leaves_of(const hlo::Literal& result) {
  std::vector<hlo::Literal> copies;
  for (const hlo::Literal* leaf : hlo::leaves(result)) copies.push_back(*leaf);
  return copies;
}

// Past the sizes both have zeros. What the expansion gives behind all else are sizes.
void expect_same(const hlo::Literal& got, const hlo::Literal& want, const arrays::Tolerance& tolerance) {
  std::vector<hlo::Literal> values = leaves_of(got), expected = leaves_of(want);
  ASSERT_GE(values.size(), expected.size());
  values.resize(expected.size());
  for (std::size_t k = 0; k < expected.size(); ++k) {
    const auto bytes = expected[k].bytes();
    expected[k] = hlo::Literal::from_bytes(values[k].shape(), {bytes.begin(), bytes.end()});
  }
  const auto difference = arrays::compare_results(values, expected, {&tolerance, 1});
  EXPECT_FALSE(difference) << *difference;
}

void expect_same(const hlo::Module& before, const hlo::Module& after, std::span<const hlo::Literal> arguments,
                 const arrays::Tolerance& tolerance) {
  const auto want = interp::interpret(before, arguments), got = interp::interpret(after, arguments);
  ASSERT_TRUE(want) << want.error().message();
  ASSERT_TRUE(got) << got.error().message();
  SCOPED_TRACE(testing::body(after));
  expect_same(*got, *want, tolerance);
}

void expect_law(const std::string& instructions, const arrays::Tolerance& tolerance = arrays::Tolerance::exact()) {
  const std::string text = kComputations + instructions + "\n}\n";
  SCOPED_TRACE(instructions);
  const auto before = parse(text), after = parse(text), simplified = parse(text);
  ASSERT_TRUE(before && after && simplified);
  EXPECT_EQ(testing::run("expand-dynamic-sizes", *after), Changed::Yes);
  EXPECT_EQ(testing::run("expand-dynamic-sizes", *after), Changed::No);
  const auto done = run_standard(*simplified, checking());
  ASSERT_TRUE(done) << done.error().message();
  std::mt19937 random(3);
  for (std::int32_t n = 0; n <= 6; ++n)
    for (const std::int32_t k : {0, 1, 3, 4}) {
      SCOPED_TRACE("sizes " + std::to_string(n) + " and " + std::to_string(k));
      const std::vector<hlo::Literal> arguments = {argument(Shape::array(DType::F32, {6, 3}), random), size(n), size(k),
                                                   argument(Shape::array(DType::F32, {4, 3}), random)};
      expect_same(*before, *after, arguments, tolerance);
      expect_same(*before, *simplified, arguments, tolerance);
    }
}

// On three devices, whose sizes may differ.
void expect_law_on_devices(const std::string& instructions) {
  std::string text = kComputations + instructions + "\n}\n";
  text.replace(0, 11, "HloModule m, num_partitions=3");
  SCOPED_TRACE(instructions);
  const auto before = parse(text), after = parse(text);
  ASSERT_TRUE(before && after);
  EXPECT_EQ(testing::run("expand-dynamic-sizes", *after), Changed::Yes);
  std::mt19937 random(5);
  for (const std::vector<std::int32_t>& n : {std::vector<std::int32_t>{2, 5, 3}, {6, 6, 6}, {6, 0, 4}, {1, 6, 6}}) {
    std::vector<std::vector<hlo::Literal>> arguments;
    for (const std::int32_t own : n)
      arguments.push_back({argument(Shape::array(DType::F32, {6, 3}), random), size(own), size(own / 2),
                           argument(Shape::array(DType::F32, {4, 3}), random)});
    const interp::Options options{.partitions = 3, .sums_in_f64 = false};
    const auto want = interp::interpret_devices(*before, arguments, options), got = interp::interpret_devices(*after, arguments, options);
    ASSERT_TRUE(want) << want.error().message();
    ASSERT_TRUE(got) << got.error().message();
    for (std::size_t d = 0; d < n.size(); ++d) {
      SCOPED_TRACE("device " + std::to_string(d) + " with " + std::to_string(n[d]));
      expect_same((*got)[d], (*want)[d], arrays::Tolerance::exact());
    }
  }
}

TEST(ExpandDynamicSizes, GivesSizes) {
  expect_law("ROOT r = s32[] get-dimension-size(x), dimensions={0}");
  expect_law("ROOT r = s32[] get-dimension-size(x), dimensions={1}");
  expect_law("six = s32[] constant(6)\nf = f32[6,3] set-dimension-size(x, six), dimensions={0}\nROOT r = f32[6,3] negate(f)");
  expect_law("s = s32[] constant(2)\nROOT r = f32[<=6,<=3] set-dimension-size(x, s), dimensions={1}");
}

TEST(ExpandDynamicSizes, Elementwise) {
  expect_law("ROOT r = f32[<=6,3] multiply(x, x)");
  // The smaller size counts.
  expect_law("z = f32[<=6,3] set-dimension-size(p, k), dimensions={0}\nROOT r = f32[<=6,3] add(x, z)");
  expect_law("c = pred[<=6,3] compare(x, x), direction=LT\nROOT r = f32[<=6,3] select(c, x, p)");
}

TEST(ExpandDynamicSizes, Movement) {
  expect_law("ROOT r = f32[3,<=6] transpose(x), dimensions={1,0}");
  expect_law("ROOT r = f32[2,<=6,3] broadcast(x), dimensions={1,2}");
  expect_law("ROOT r = f32[<=6,3] reverse(x), dimensions={0}");
  expect_law("ROOT r = f32[<=6,3] reverse(x), dimensions={0,1}");
  expect_law("ROOT r = f32[<=10,3] concatenate(x, y), dimensions={0}");
  expect_law("ROOT r = f32[<=14,3] concatenate(y, x, y), dimensions={0}");
  expect_law("ROOT r = f32[<=10,3] concatenate(q, x), dimensions={0}");
  expect_law("ROOT r = f32[<=6,6] concatenate(x, x), dimensions={1}");
  expect_law("ROOT r = f32[<=9,4] pad(x, five), padding=1_2x0_1");
  expect_law("ROOT r = f32[<=13,3] pad(x, five), padding=1_1_1x0_0");
  expect_law("ROOT r = f32[<=4,3] pad(x, five), padding=-1_-1x0_0");
  expect_law("ROOT r = f32[<=6,2] slice(x), slice={[0:6], [1:3]}");
  expect_law("ROOT r = f32[3,3] slice(x), slice={[1:6:2], [0:3]}");
}

TEST(ExpandDynamicSizes, Reshapes) {
  expect_law("ROOT r = f32[<=18] reshape(x)");
  expect_law("t = f32[3,<=6] transpose(x), dimensions={1,0}\nROOT r = f32[<=18] reshape(t)");
  expect_law("t = f32[3,<=6] transpose(x), dimensions={1,0}\nROOT r = f32[<=6,3] reshape(t)");
  expect_law("a = f32[<=18] reshape(x)\nROOT r = f32[3,<=6] reshape(a)");
  expect_law("c = s32[] constant(3)\nROOT r = f32[3,<=6] dynamic-reshape(x, c, n)");
}

TEST(ExpandDynamicSizes, Folds) {
  expect_law("ROOT r = f32[3] reduce(x, zero), dimensions={0}, to_apply=add");
  expect_law("ROOT r = f32[3] reduce(x, five), dimensions={0}, to_apply=add");
  expect_law("ROOT r = f32[] reduce(x, low), dimensions={0,1}, to_apply=most");
  expect_law("ROOT r = f32[<=6] reduce(x, low), dimensions={1}, to_apply=most");
  expect_law("i = s32[6,3] iota(), iota_dimension=0\n"
             "ROOT r = (f32[3], s32[3]) reduce(x, i, low, izero), dimensions={0}, to_apply=first");
  expect_law("i = s32[6,3] iota(), iota_dimension=1\n"
             "ROOT r = (f32[<=6], s32[<=6]) reduce(x, i, low, izero), dimensions={1}, to_apply=first");
}

TEST(ExpandDynamicSizes, Windows) {
  expect_law("ROOT r = f32[<=4,3] reduce-window(x, zero), window={size=3x1}, to_apply=add");
  expect_law("ROOT r = f32[<=4,3] reduce-window(x, low), window={size=2x1 stride=2x1 pad=1_2x0_0}, to_apply=most");
  expect_law("ROOT r = f32[<=6,1] reduce-window(x, low), window={size=1x3}, to_apply=most");
}

TEST(ExpandDynamicSizes, Dots) {
  expect_law("ROOT r = f32[<=6,4] dot(x, q), lhs_contracting_dims={1}, rhs_contracting_dims={1}");
  expect_law("ROOT r = f32[3,3] dot(x, x), lhs_contracting_dims={0}, rhs_contracting_dims={0}");
  expect_law("z = f32[<=6,3] set-dimension-size(p, k), dimensions={0}\n"
             "ROOT r = f32[3,3] dot(x, z), lhs_contracting_dims={0}, rhs_contracting_dims={0}");
  expect_law("ROOT r = f32[<=6] dot(x, p), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={1}, "
             "rhs_contracting_dims={1}");
}

TEST(ExpandDynamicSizes, Sorts) {
  expect_law("m = f32[<=6,3] abs(x)\nROOT r = f32[<=6,3] sort(m), dimensions={1}, to_apply=less");
  const std::string numbers = "c = s32[<=6,3] convert(x)\nf = f32[<=6,3] convert(c)\n";
  expect_law(numbers + "ROOT r = f32[<=6,3] sort(f), dimensions={0}, is_stable=true, to_apply=less");
  expect_law(numbers + "j = s32[6,3] iota(), iota_dimension=0\ni = s32[<=6,3] set-dimension-size(j, n), dimensions={0}\n"
                       "ROOT r = (f32[<=6,3], s32[<=6,3]) sort(f, i), dimensions={0}, is_stable=true, to_apply=less2");
}

TEST(ExpandDynamicSizes, Gathers) {
  expect_law("c = s32[<=6,3] convert(x)\nROOT r = f32[<=6,3] gather(q, c), offset_dims={}, collapsed_slice_dims={0,1}, "
             "start_index_map={0}, index_vector_dim=2, slice_sizes={1,1}");
}

// Updates that do not count go nowhere, and nothing goes past a size.
TEST(ExpandDynamicSizes, Scatters) {
  const std::string rows = "c = s32[<=6,3] convert(x)\ni = s32[<=6,1] slice(c), slice={[0:6], [0:1]}\n";
  const std::string whole = "update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=";
  expect_law(rows + "ROOT r = f32[4,3] scatter(q, i, x), " + whole + "add");
  expect_law(rows + "ROOT r = f32[<=4,3] scatter(y, i, x), " + whole + "most");
  expect_law(rows + "ROOT r = f32[4,3] scatter(q, i, p), " + whole + "add");
  // The hint is of the indices that count.
  expect_law("j = s32[6,1] iota(), iota_dimension=0\ni = s32[<=6,1] set-dimension-size(j, k), dimensions={0}\n"
             "ROOT r = f32[<=6,3] scatter(x, i, p), indices_are_sorted=true, unique_indices=true, " + whole + "add");
  expect_law("t = f32[3,<=6] transpose(x), dimensions={1,0}\nu = f32[2,<=6] slice(t), slice={[0:2], [0:6]}\n"
             "j = s32[2,1] constant({{2},{0}})\nROOT r = f32[3,<=6] scatter(t, j, u), " + whole + "add");
  expect_law("i = s32[4] constant({1,1,5,3})\nh = s32[<=4] set-dimension-size(i, k), dimensions={0}\n"
             "ROOT r = f32[6,3] scatter(p, h, y), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, "
             "index_vector_dim=1, to_apply=add");
}

TEST(ExpandDynamicSizes, Convolutions) {
  const std::string kernel = "w = f32[2,3,2] constant({{{1,2},{3,-1},{0.5,4}},{{2,2},{-3,1},{5,0.25}}})\n";
  // Images, their places, and the features that are summed or made.
  expect_law(kernel + "v = f32[<=6,4,3] broadcast(x), dimensions={0,2}\n"
                      "ROOT r = f32[<=6,3,2] convolution(v, w), window={size=2}, dim_labels=b0f_0io->b0f");
  expect_law(kernel + "v = f32[2,<=6,3] broadcast(x), dimensions={1,2}\n"
                      "ROOT r = f32[2,<=5,2] convolution(v, w), window={size=2}, dim_labels=b0f_0io->b0f");
  expect_law(kernel + "v = f32[2,<=6,3] broadcast(x), dimensions={1,2}\n"
                      "ROOT r = f32[2,<=4,2] convolution(v, w), window={size=2 stride=2 pad=1_2 rhs_dilate=2}, dim_labels=b0f_0io->b0f");
  expect_law(kernel + "v = f32[2,<=6,3] broadcast(x), dimensions={1,2}\n"
                      "ROOT r = f32[2,<=10,2] convolution(v, w), window={size=2 lhs_dilate=2}, dim_labels=b0f_0io->b0f");
  expect_law("s = f32[<=6] reduce(x, zero), dimensions={1}, to_apply=add\nv = f32[2,5,<=6] broadcast(s), dimensions={2}\nw = f32[2,<=6,3] broadcast(x), dimensions={1,2}\n"
             "ROOT r = f32[2,4,3] convolution(v, w), window={size=2}, dim_labels=b0f_0io->b0f");
  expect_law("v = f32[2,5,3] broadcast(five), dimensions={}\nw = f32[2,3,<=6] broadcast(x), dimensions={2,1}\n"
             "ROOT r = f32[2,4,<=6] convolution(v, w), window={size=2}, dim_labels=b0f_0io->b0f");
}

// Sums are of what counts, and divided by how much that is.
TEST(ExpandDynamicSizes, BatchNorms) {
  const arrays::Tolerance near = arrays::Tolerance::close(1e-5, 1e-5);
  const std::string numbers = "c = s32[<=6,3] convert(x)\nf = f32[<=6,3] convert(c)\ns = f32[3] constant({1,2,-0.5})\no = f32[3] constant({0,1,3})\n"
                              "v = f32[3] constant({1,4,0.25})\n";
  expect_law(numbers + "ROOT r = (f32[<=6,3], f32[3], f32[3]) batch-norm-training(f, s, o), epsilon=0.5, feature_index=1", near);
  expect_law(numbers + "ROOT r = f32[<=6,3] batch-norm-inference(f, s, o, o, v), epsilon=0.5, feature_index=1", near);
  expect_law(numbers + "z = f32[<=6,3] add(f, f)\nd = f32[<=6,3] set-dimension-size(z, k), dimensions={0}\n"
                       "ROOT r = (f32[<=6,3], f32[3], f32[3]) batch-norm-grad(f, s, o, v, d), epsilon=0.5, feature_index=1", near);
  expect_law(numbers + "b = f32[<=6,3,2] broadcast(f), dimensions={0,1}\n"
                       "ROOT r = (f32[<=6,3,2], f32[3], f32[3]) batch-norm-training(b, s, o), epsilon=0.5, feature_index=1", near);
}

TEST(ExpandDynamicSizes, SelectAndScatter) {
  expect_law("s = f32[<=6,2] slice(x), slice={[0:6], [1:3]}\n"
             "ROOT r = f32[<=6,3] select-and-scatter(x, s, five), window={size=1x2}, select=largest, scatter=add");
}

// The smallest size of a group counts; what goes elsewhere takes its size along.
TEST(ExpandDynamicSizes, Collectives) {
  const std::string all = ", channel_id=1, replica_groups={{0,1,2}}, use_global_device_ids=true";
  expect_law_on_devices("ROOT r = f32[<=6,3] all-reduce(x), to_apply=add" + all);
  expect_law_on_devices("ROOT r = (f32[<=6,3], f32[<=4,3]) all-reduce(x, y), to_apply=add" + all);
  expect_law_on_devices("ROOT r = f32[<=6,3] all-reduce(x), to_apply=most, channel_id=1, replica_groups={{0,2},{1}}, use_global_device_ids=true");
  expect_law_on_devices("ROOT r = f32[<=6,9] all-gather(x), dimensions={1}" + all);
  expect_law_on_devices("ROOT r = f32[<=6,1] reduce-scatter(x), dimensions={1}, to_apply=add" + all);
  expect_law_on_devices("ROOT r = f32[<=6,3] all-to-all(x), dimensions={1}, channel_id=1, replica_groups={{0,1,2}}");
  expect_law_on_devices("ROOT r = f32[<=6,3] collective-permute(x), channel_id=1, source_target_pairs={{0,1},{1,2}}");
  expect_law_on_devices("b = f32[<=6,3] collective-broadcast(x), channel_id=1, replica_groups={{2,0}}\n"
                        "ROOT r = (f32[<=6,3], f32[<=6,3]) tuple(b, x)");
}

TEST(ExpandDynamicSizes, TransformsAndSolutions) {
  expect_law("ROOT r = c64[<=6,2] fft(x), fft_type=RFFT, fft_length={3}");
  expect_law("c = c64[<=6,3] convert(x)\nROOT r = c64[<=6,3] fft(c), fft_type=IFFT, fft_length={3}");
  expect_law("b = f32[<=6,3,3] broadcast(x), dimensions={0,1}\nROOT r = f32[<=6,3,3] cholesky(b), lower=true");
  expect_law("b = f32[<=6,3,3] broadcast(x), dimensions={0,1}\nz = f32[<=6,3] set-dimension-size(p, k), dimensions={0}\n"
             "d = f32[<=6,3,2] broadcast(z), dimensions={0,1}\n"
             "ROOT r = f32[<=6,3,2] triangular-solve(b, d), left_side=true, lower=true, transpose_a=NO_TRANSPOSE");
}

TEST(ExpandDynamicSizes, GoesThroughControlFlow) {
  expect_law("t = (s32[], f32[<=6,3]) tuple(izero, x)\nw = (s32[], f32[<=6,3]) while(t), condition=more, body=body\n"
             "y1 = f32[<=6,3] get-tuple-element(w), index=1\nROOT r = f32[3] reduce(y1, zero), dimensions={0}, to_apply=add");
  expect_law("t = (s32[], f32[<=6,3]) tuple(izero, x)\n"
             "ROOT w = (s32[], f32[<=6,3]) while(t), condition=more, body=body");
  expect_law("o = s32[] constant(3)\nc = pred[] compare(n, o), direction=LT\n"
             "ROOT r = f32[<=6,3] conditional(c, x, x), true_computation=twice, false_computation=same");
  expect_law("ROOT r = f32[<=6,3] call(x), to_apply=twice");
  expect_law("t = (f32[<=6,3], s32[]) tuple(x, n)\nb = (f32[<=6,3], s32[]) opt-barrier(t)\n"
             "ROOT r = f32[<=6,3] get-tuple-element(b), index=0");
}

// A parameter's sizes come behind all parameters, a result's behind all results.
TEST(ExpandDynamicSizes, SaysSizesAtTheBorder) {
  const auto module = parse("HloModule m\nENTRY e { x = f32[<=5,<=2] parameter(0)\n y = s32[3] parameter(1)\n"
                            "ROOT t = (f32[<=5,<=2], s32[3], f32[<=5,<=2]) tuple(x, y, x) }");
  ASSERT_TRUE(module);
  testing::run("expand-dynamic-sizes", *module);
  const hlo::ModuleConfig& config = module->config();
  ASSERT_EQ(config.entry_parameters.size(), 3u);
  EXPECT_EQ(to_string(config.entry_parameters[0], false), "f32[5,2]");
  EXPECT_EQ(to_string(config.entry_parameters[2], false), "s32[2]");
  EXPECT_EQ(to_string(config.entry_result, false), "(f32[5,2], s32[3], f32[5,2], s32[2], s32[2])");
}

TEST(ExpandDynamicSizes, EndsARunWithASizeOutOfRange) {
  const std::string text = std::string(kComputations) + "ROOT r = s32[] get-dimension-size(x), dimensions={0}\n}\n";
  const auto module = parse(text);
  ASSERT_TRUE(module);
  ASSERT_TRUE(run_standard(*module, checking()));
  for (const std::int32_t n : {-1, 7}) {
    const std::vector<hlo::Literal> arguments = {hlo::Literal(Shape::array(DType::F32, {6, 3})), size(n), size(0),
                                                 hlo::Literal(Shape::array(DType::F32, {4, 3}))};
    const auto result = interp::interpret(*module, arguments);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code(), Code::InvalidArgument);
  }
}

TEST(ExpandDynamicSizes, RefusesByName) {
  for (const char* what : {"ROOT r = f32[<=6,3] custom-call(x), custom_call_target=\"DynamicConvolutionForward\"",
                           "f = f32[6] constant({1,2,3,4,5,6})\n"
                           "h = f32[<=6] set-dimension-size(f, n), dimensions={0}\n"
                           "ROOT r = (f32[<=6,3], f32[<=6], f32[<=6]) batch-norm-training(x, h, h), epsilon=1, feature_index=0",
                           "ROOT r = f32[<=6,3] select-and-scatter(x, y, zero), window={size=3x1}, select=largest, scatter=add",
                           "ROOT r = f32[<=6,3] all-gather(x), dimensions={0}, replica_groups={}",
                           "ROOT r = (f32[<=6,3]) all-to-all(x), replica_groups={}"}) {
    const auto module = parse(std::string(kComputations) + what + "\n}\n");
    ASSERT_TRUE(module);
    const auto done = run_standard(*module, checking());
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::Unimplemented);
    EXPECT_EQ(done.error().message().substr(0, 3), "r: ");
  }
}

}  // namespace
}  // namespace hloom::passes

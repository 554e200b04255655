// Scenarios of what only moves elements (pads, slices, rolls, broadcasts, reverses, gathers, copies), by the number in
// their list. Elements are random bits, signalling NaNs among them, and arrive as the interpreter's to the bit on one
// thread and on three. What a program moves is counted from its plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <numeric>
#include <random>

#include "arrays/compare.h"
#include "compiler/execute_literals.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "interp/interpret.h"
#include "kernels/print.h"
#include "traffic.h"
#include "whole_numbers.h"

namespace hloom {
namespace {

using Values = std::vector<hlo::Literal>;
using Dims = std::vector<std::int64_t>;

std::string joined(const Dims& numbers) {
  std::string text;
  for (const std::int64_t n : numbers) text += (text.empty() ? "" : ",") + std::to_string(n);
  return text;
}

std::string array(const std::string& type, const Dims& dims) { return type + "[" + joined(dims) + "]"; }

// A program whose result is the tuple of all that is given.
class Several {
 public:
  // The name of the next parameter; `layout` as "{0,1}", or nothing.
  std::string parameter(const std::string& shape, const std::string& layout = "") {
    const std::string name = "p" + std::to_string(parameters_);
    body_ += " " + name + " = " + shape + layout + " parameter(" + std::to_string(parameters_++) + ")\n";
    return name;
  }
  std::string add(const std::string& shape, const std::string& call) {
    const std::string name = "v" + std::to_string(values_++);
    body_ += " " + name + " = " + shape + " " + call + "\n";
    return name;
  }
  std::string give(const std::string& shape, const std::string& call) {
    const std::string name = add(shape, call);
    shapes_ += (shapes_.empty() ? "" : ", ") + shape;
    names_ += (names_.empty() ? "" : ", ") + name;
    return name;
  }
  std::string text(const std::string& computations = "") const {
    return "HloModule m\n" + computations + "ENTRY e {\n" + body_ + " ROOT all = (" + shapes_ + ") tuple(" + names_ + ")\n}\n";
  }

 private:
  int parameters_ = 0, values_ = 0;
  std::string body_, shapes_, names_;
};

std::unique_ptr<hlo::Module> parse(const std::string& text) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << "\n" << text;
  return module ? *std::move(module) : nullptr;
}

// s32 and s64, which serve as indices: from -4 to 15. Types of less than a byte: from -8 to 7, or to 15. Else random bits.
Values random_arguments(const hlo::Module& module) {
  std::mt19937 random(5);
  Values values;
  for (const Shape& shape : compiler::parameter_leaves(module)) {
    hlo::Literal l(shape);
    const DType type = shape.dtype();
    const auto number = [&](int from, int to) { return static_cast<double>(std::uniform_int_distribution(from, to)(random)); };
    if (type == DType::S32 || type == DType::S64 || type == DType::S4)
      for (std::int64_t n = 0; n < l.num_elements(); ++n) put(l, n, type == DType::S4 ? number(-8, 7) : number(-4, 15));
    else
      for (std::byte& b : l.mutable_bytes()) b = static_cast<std::byte>(random() & (type == DType::U4 ? 15U : 255U));
    values.push_back(std::move(l));
  }
  return values;
}

Values interpreted(const hlo::Module& module, const Values& arguments) {
  const auto whole = interp::interpret(module, compiler::arguments_of(module, arguments));
  EXPECT_TRUE(whole) << whole.error().message();
  Values leaves;
  if (whole)
    for (const hlo::Literal* leaf : hlo::leaves(*whole)) leaves.push_back(*leaf);
  return leaves;
}

void expect_values(const std::string& text, const Values& arguments, const Values& want) {
  compiler::Options options;
  options.threads = 3;
  auto compiled = compiler::compile(parse(text), options);
  ASSERT_TRUE(compiled) << compiled.error().message() << "\n" << text;
  const auto parameters = compiler::parameter_leaves(*compiled->module), results = compiler::result_leaves(*compiled->module);
  const auto executor = runtime::Executor::create(std::move(compiled->program));
  ASSERT_TRUE(executor) << executor.error().message();
  for (const int threads : {1, 3}) {
    runtime::ThreadPool pool(threads);
    const auto got = compiler::execute_literals(**executor, parameters, results, arguments, pool);
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(arrays::compare_results(*got, want, std::vector{arrays::Tolerance::bits()}), std::nullopt)
        << threads << " threads\n" << text;
  }
}

void expect_interpreted(const std::string& text) {
  const auto module = parse(text);
  if (module == nullptr) return;
  const Values arguments = random_arguments(*module);
  expect_values(text, arguments, interpreted(*module, arguments));
}

// --- Plans -----------------------------------------------------------------------------------------------------------

compiler::Compiled compile(const std::string& text, bool generate_code) {
  compiler::Options options;
  options.regions = false;
  options.generate_code = generate_code;
  auto compiled = compiler::compile(parse(text), options);
  EXPECT_TRUE(compiled) << compiled.error().message() << "\n" << text;
  if (!compiled) std::abort();
  return *std::move(compiled);
}

struct Moved {
  traffic::Bytes bytes;
  std::size_t kernels = 0;
  std::int64_t arena_bytes = 0;
  bool operator==(const Moved&) const = default;
};

Moved moved(const std::string& text) {
  const compiler::Compiled c = compile(text, false);
  return {traffic::of(c, *c.module->entry()), c.kernels.size(), c.assignment.arena_bytes()};
}

const hlo::Instruction& loop_of(const compiler::Compiled& c) {
  for (const hlo::Instruction& i : c.module->entry()->instructions())
    if (i.opcode() == hlo::Opcode::While) return i;
  ADD_FAILURE() << "no loop";
  std::abort();
}

// Bytes that the program's copies bring to another place, those of loops once.
std::int64_t bytes_copied(const runtime::Steps& steps) {
  std::int64_t bytes = 0;
  for (const runtime::Step& step : steps) {
    if (const auto* copy = std::get_if<runtime::Copy>(&step.of)) bytes += copy->from == copy->to ? 0 : copy->from.size_bytes;
    if (const auto* loop = std::get_if<runtime::While>(&step.of)) bytes += bytes_copied(loop->condition) + bytes_copied(loop->body);
    if (const auto* start = std::get_if<runtime::Start>(&step.of))
      if (const auto* copy = std::get_if<runtime::Copy>(&start->of)) bytes += copy->from.size_bytes;
  }
  return bytes;
}

// --- Single instructions ---------------------------------------------------------------------------------------------

struct Padding {
  std::int64_t low, high, interior;
};

// Gives the padded array, if there is one: its dimensions may not be less than nothing.
void give_pad(Several& program, const std::string& type, const std::string& x, const Dims& dims, const std::string& value,
              const std::vector<Padding>& padding) {
  Dims result;
  std::string text;
  for (std::size_t d = 0; d < dims.size(); ++d) {
    const Padding& p = padding[d];
    result.push_back(p.low + p.high + dims[d] + std::max<std::int64_t>(0, dims[d] - 1) * p.interior);
    if (result.back() < 0) return;
    text += (d == 0 ? "" : "x") + std::to_string(p.low) + "_" + std::to_string(p.high) + "_" + std::to_string(p.interior);
  }
  program.give(array(type, result), "pad(" + x + ", " + value + "), padding=" + text);
}

struct Range {
  std::int64_t from, to, step = 1;
};

// The call, and its dimensions.
std::pair<std::string, Dims> slice_of(const std::string& x, const std::vector<Range>& ranges) {
  std::string text;
  Dims dims;
  for (const Range& r : ranges) {
    text += (text.empty() ? "[" : ",[") + std::to_string(r.from) + ":" + std::to_string(r.to) + ":" + std::to_string(r.step) + "]";
    dims.push_back((r.to - r.from + r.step - 1) / r.step);
  }
  return {"slice(" + x + "), slice={" + text + "}", dims};
}

std::string add_slice(Several& program, const std::string& type, const std::string& x, const std::vector<Range>& ranges) {
  const auto [call, dims] = slice_of(x, ranges);
  return program.add(array(type, dims), call);
}

// As numpy rolls: elements move up by `by`, and those at the end come round.
void give_roll(Several& program, const std::string& type, const std::string& x, const Dims& dims, std::size_t dimension,
               std::int64_t by) {
  const std::int64_t n = dims[dimension], cut = by == n ? 0 : n - ((by % n) + n) % n;
  std::vector<Range> head, tail;
  for (const std::int64_t size : dims) head.push_back({0, size});
  tail = head;
  head[dimension].to = tail[dimension].from = cut;
  const std::string last = add_slice(program, type, x, tail), first = add_slice(program, type, x, head);
  program.give(array(type, dims), "concatenate(" + last + ", " + first + "), dimensions={" + std::to_string(dimension) + "}");
}

// --- The scenarios ---------------------------------------------------------------------------------------------------

TEST(MovementScenarios, S01_PadsLowHighInteriorNegativeAndAllOfThem) {
  for (const std::string type : {"u8", "f32"}) {
    Several program;
    const std::string x = program.parameter(type + "[5]"), v = program.parameter(type + "[]");
    for (const std::int64_t low : {-5, -2, 0, 1, 3})
      for (const std::int64_t high : {-2, 0, 4})
        for (const std::int64_t interior : {0, 1, 2}) give_pad(program, type, x, {5}, v, {{low, high, interior}});
    expect_interpreted(program.text());
  }
}

TEST(MovementScenarios, S01_PadsOfSeveralDimensionsInEveryLayout) {
  for (const std::string layout : {"{2,1,0}", "{0,1,2}", "{1,2,0}"})
    for (const std::string type : {"bf16", "c128"}) {
      Several program;
      const std::string x = program.parameter(type + "[3,4,6]", layout), v = program.parameter(type + "[]");
      for (const std::vector<Padding>& p : std::vector<std::vector<Padding>>{{{1, 2, 0}, {0, 0, 0}, {0, 0, 0}},
                                                                             {{0, 0, 0}, {1, 0, 1}, {0, 3, 0}},
                                                                             {{-1, 2, 1}, {2, -3, 2}, {-2, -1, 0}},
                                                                             {{0, 0, 2}, {-1, -1, 1}, {20, -22, 3}}})
        give_pad(program, type, x, {3, 4, 6}, v, p);
      expect_interpreted(program.text());
    }
}

TEST(MovementScenarios, S01_PadsThatLeaveNothingAndPadsOfNothing) {
  Several program;
  const std::string x = program.parameter("f32[4,3]"), none = program.parameter("f32[0,3]"), v = program.parameter("f32[]");
  give_pad(program, "f32", x, {4, 3}, v, {{-2, -2, 0}, {1, 1, 0}});
  give_pad(program, "f32", x, {4, 3}, v, {{0, 0, 0}, {-9, 4, 1}});
  give_pad(program, "f32", none, {0, 3}, v, {{2, 3, 5}, {0, 0, 0}});
  give_pad(program, "f32", none, {0, 3}, v, {{0, 0, 0}, {1, 1, 1}});
  give_pad(program, "f32", x, {4, 3}, v, {{7, -9, 0}, {0, 0, 0}});  // all that is left is the value
  expect_interpreted(program.text());
}

TEST(MovementScenarios, S01_ALargePadByManyWorkers) {
  Several program;
  const std::string x = program.parameter("f32[300,333]"), v = program.parameter("f32[]");
  give_pad(program, "f32", x, {300, 333}, v, {{3, 5, 1}, {-1, 7, 0}});
  expect_interpreted(program.text());
}

TEST(MovementScenarios, S02_ThePaddingIsThatNanToTheBit) {
  Several program;
  const std::string x = program.parameter("f32[5]"), v = program.parameter("f32[]"), n = program.add("f32[]", "constant(nan)");
  for (const std::string& value : {v, n}) give_pad(program, "f32", x, {5}, value, {{2, 1, 1}});
  const auto module = parse(program.text());
  for (const std::uint32_t nan : {0x7FC00000U, 0xFFC00001U, 0x7F800001U, 0xFFBFFFFFU}) {
    Values arguments = random_arguments(*module);
    arguments[1].mutable_data<std::uint32_t>()[0] = nan;
    const Values want = interpreted(*module, arguments);
    EXPECT_EQ(want[0].data<std::uint32_t>()[3], nan);  // between the first two elements
    expect_values(program.text(), arguments, want);
  }
}

TEST(MovementScenarios, S03_SlicesByOneTwoAndSevenAndBackwards) {
  for (const std::string layout : {"{1,0}", "{0,1}"}) {
    Several program;
    const std::string x = program.parameter("f32[23,50]", layout), back = program.add("f32[23,50]", "reverse(" + x + "), dimensions={0,1}");
    for (const std::int64_t rows : {1, 2, 7})
      for (const std::int64_t columns : {1, 2, 7})
        for (const std::int64_t from : {0, 5}) {
          const auto [call, dims] = slice_of(x, {{from, 23, rows}, {from + 1, 49, columns}});
          const std::string shape = array("f32", dims), s = program.give(shape, call);
          program.give(shape, "reverse(" + s + "), dimensions={1}");
          program.give(shape, slice_of(back, {{from, 23, rows}, {from + 1, 49, columns}}).first);
        }
    expect_interpreted(program.text());
  }
  Several large;
  const std::string x = large.parameter("u8[700,1001]");
  large.give("u8[350,143]", slice_of(x, {{1, 700, 2}, {0, 1001, 7}}).first);
  expect_interpreted(large.text());
}

// Each says all of x in another way, and so costs nothing: neither bytes nor kernels nor memory.
TEST(MovementScenarios, S04_AllOfAnArrayIsTheArray) {
  const std::array<std::string, 7> all = {"slice(x), slice={[0:64],[0:96]}", "slice(x), slice={[0:64:1],[0:96:1]}",
                                          "dynamic-slice(x, i, i), dynamic_slice_sizes={64,96}", "pad(x, f), padding=0_0x0_0",
                                          "concatenate(x), dimensions={1}", "transpose(x), dimensions={0,1}",
                                          "broadcast(x), dimensions={0,1}"};
  const std::array<std::string, 4> uses = {
      " ROOT r = f32[64,96] negate(s)\n", " ROOT r = f32[96] reduce(s, f), dimensions={0}, to_apply=add\n",
      " ROOT r = f32[64,64] dot(s, p), lhs_contracting_dims={1}, rhs_contracting_dims={1}\n", " ROOT r = (f32[64,96], f32[]) tuple(s, f)\n"};
  const auto text = [&](const std::string& made, const std::string& call, const std::string& use) {
    return "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e {\n p = f32[64,96] parameter(0)\n f = f32[] parameter(1)\n i = s32[] parameter(2)\n x = f32[64,96] " + made +
           "\n s = f32[64,96] " + call + "\n" + use + "}\n";
  };
  for (const std::string& made : {std::string("bitcast(p)"), std::string("sine(p)")})
    for (const std::string& use : uses) {
      const Moved plain = moved(text(made, "bitcast(x)", use));
      for (const std::string& call : all) EXPECT_EQ(moved(text(made, call, use)), plain) << call << use;
    }
  EXPECT_NE(moved(text("bitcast(p)", "reverse(x), dimensions={0}", uses[3])), moved(text("bitcast(p)", "bitcast(x)", uses[1])));
}

TEST(MovementScenarios, S05_RollsByAnythingAlongEachDimension) {
  const Dims dims = {4, 9, 33};
  for (const std::string layout : {"{2,1,0}", "{0,2,1}"}) {
    Several program;
    const std::string x = program.parameter("u32[4,9,33]", layout);
    for (std::size_t d = 0; d < 3; ++d)
      for (const std::int64_t by : {std::int64_t{0}, std::int64_t{1}, dims[d] - 1, dims[d], std::int64_t{-1}, -dims[d] - 2})
        give_roll(program, "u32", x, dims, d, by);
    expect_interpreted(program.text());
  }
}

TEST(MovementScenarios, S05_RollsOfManyElementsAndByRunTimeNumbers) {
  Several program;
  const std::string x = program.parameter("u16[400,500]"), by = program.parameter("s32[]"), zero = program.add("s32[]", "constant(0)");
  for (const std::size_t d : {0U, 1U}) give_roll(program, "u16", x, {400, 500}, d, 123);
  const std::string twice = program.add("u16[400,1000]", "concatenate(" + x + ", " + x + "), dimensions={1}");
  program.give("u16[400,500]", "dynamic-slice(" + twice + ", " + zero + ", " + by + "), dynamic_slice_sizes={400,500}");
  expect_interpreted(program.text());
}

TEST(MovementScenarios, S06_BroadcastsOfScalarsRowsColumnsAndInnerDimensions) {
  for (const std::string type : {"u8", "f32", "c64"}) {
    Several program;
    const std::string s = program.parameter(type + "[]"), row = program.parameter(type + "[70]"), one = program.parameter(type + "[1,70]"),
                      column = program.parameter(type + "[40]"), square = program.parameter(type + "[40,70]", "{0,1}");
    program.give(type + "[40,70]", "broadcast(" + s + "), dimensions={}");
    program.give(type + "[40,70]", "broadcast(" + row + "), dimensions={1}");
    program.give(type + "[40,70]", "broadcast(" + column + "), dimensions={0}");
    program.give(type + "[40,3,70]", "broadcast(" + square + "), dimensions={0,2}");
    program.give(type + "[40,70,3]", "broadcast(" + square + "), dimensions={0,1}");
    program.give(type + "[3,40,70]", "broadcast(" + square + "), dimensions={1,2}");
    program.give(type + "[1,5,70]", "broadcast(" + one + "), dimensions={0,2}");
    program.give(type + "[0,70]", "broadcast(" + row + "), dimensions={1}");
    program.give(type + "[600,70]", "broadcast(" + row + "), dimensions={1}");
    program.give(type + "[70,600]", "broadcast(" + row + "), dimensions={0}");
    expect_interpreted(program.text());
  }
}

TEST(MovementScenarios, S07_ReversesOfEachDimensionAndOfAll) {
  for (const std::string layout : {"{2,1,0}", "{0,1,2}", "{1,0,2}"}) {
    Several program;
    const std::string x = program.parameter("u16[5,7,69]", layout);
    for (unsigned subset = 0; subset < 8; ++subset) {
      Dims along;
      for (unsigned d = 0; d < 3; ++d)
        if ((subset >> d & 1U) != 0) along.push_back(d);
      program.give("u16[5,7,69]", "reverse(" + x + "), dimensions={" + joined(along) + "}");
    }
    expect_interpreted(program.text());
  }
  Several large;
  const std::string x = large.parameter("f32[300,500]");
  for (const std::string along : {"0", "1", "0,1"}) large.give("f32[300,500]", "reverse(" + x + "), dimensions={" + along + "}");
  expect_interpreted(large.text());
}

// Indices are from -4 to 15, so some are outside at both ends, and some are there twice.
TEST(MovementScenarios, S08_GathersOfEveryForm) {
  for (const std::string index : {"s32", "s64"}) {
    Several program;
    const std::string x = program.parameter("f32[10,7]"), wide = program.parameter("f32[10,100]"), cube = program.parameter("f32[10,7,4]"),
                      one = program.parameter(index + "[30]"), two = program.parameter(index + "[6,2]"), across = program.parameter(index + "[2,6]"),
                      batched = program.parameter(index + "[10,3,1]"), column = program.parameter(index + "[30,1]"), none = program.parameter(index + "[0]");
    const auto give = [&](const std::string& dims, const std::string& of, const std::string& at, const std::string& how) {
      program.give("f32[" + dims + "]", "gather(" + of + ", " + at + "), " + how);
    };
    const std::string rows = "collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, ";
    give("30,7", x, one, "offset_dims={1}, " + rows + "slice_sizes={1,7}");
    give("30,100", wide, one, "offset_dims={1}, " + rows + "slice_sizes={1,100}");
    give("30,5", x, column, "offset_dims={1}, " + rows + "slice_sizes={1,5}");
    give("7,30", x, one, "offset_dims={0}, " + rows + "slice_sizes={1,7}");
    give("0,7", x, none, "offset_dims={1}, " + rows + "slice_sizes={1,7}");
    give("30,0", x, one, "offset_dims={1}, " + rows + "slice_sizes={1,0}");
    give("30,3,7", x, one, "offset_dims={1,2}, collapsed_slice_dims={}, start_index_map={0}, index_vector_dim=1, slice_sizes={3,7}");
    give("30,10", x, one, "offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, index_vector_dim=1, slice_sizes={10,1}");
    give("6,2,7,3", cube, two, "offset_dims={1,2,3}, collapsed_slice_dims={}, start_index_map={2,0}, index_vector_dim=1, slice_sizes={2,7,3}");
    give("6", x, two, "offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,1}");
    give("6,4", cube, across, "offset_dims={1}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=0, slice_sizes={1,1,4}");
    give("10,3,4", cube, batched,
         "offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, "
         "index_vector_dim=2, slice_sizes={1,1,4}");
    expect_interpreted(program.text());
  }
}

TEST(MovementScenarios, S08_ManyRowsInOrderAndOutOfIt) {
  for (const std::string width : {"6", "64"}) {
    Several program;
    const std::string x = program.parameter("f32[16," + width + "]"), at = program.parameter("s32[4000]"), counter = program.add("s32[12]", "iota(), iota_dimension=0"),
                      rows = "), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1," + width + "}";
    program.give("f32[4000," + width + "]", "gather(" + x + ", " + at + rows);
    program.give("f32[12," + width + "]", "gather(" + x + ", " + counter + rows + ", indices_are_sorted=true");
    expect_interpreted(program.text());
  }
}

std::string lookup_in_table(int rows) {
  std::string table;
  for (int n = 0; n < rows; ++n) table += (n == 0 ? "{" : ", {") + std::to_string(n * 7 % 8191) + ", " + std::to_string(-n) + "}";
  return "HloModule m\nENTRY e {\n i = s32[50] parameter(0)\n t = s32[" + std::to_string(rows) + ",2] constant({" + table +
         "})\n ROOT g = s32[50,2] gather(t, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, "
         "slice_sizes={1,2}\n}\n";
}

TEST(MovementScenarios, S09_AConstantTableIsReadWhereItLiesAndIsNotCode) {
  std::vector<std::int64_t> code_bytes;
  for (const int rows : {4000, 8000}) {
    expect_interpreted(lookup_in_table(rows));
    const compiler::Compiled c = compile(lookup_in_table(rows), true);
    std::size_t length = 0;
    for (const kernels::Kernel& k : c.kernels) length += kernels::print(k).size();
    EXPECT_LT(length, 1000U);
    const auto carved = c.code->statistics().carved_bytes;
    code_bytes.push_back(std::accumulate(carved.begin(), carved.end(), std::int64_t{0}));
    std::int64_t constants = 0;
    for (const auto& bytes : c.program.constants) constants += std::ssize(bytes);
    EXPECT_EQ(constants, rows * 8);
    EXPECT_EQ(traffic::of(c, *c.module->entry()), (traffic::Bytes{50 * 2 * 3 * 4, 0}));  // an index, an element, a result
  }
  EXPECT_EQ(code_bytes[0], code_bytes[1]);
}

// Sums of rows of a table, with weights; as whole numbers they are exact.
std::string embedding_bag(int bags) {
  const std::string b = std::to_string(bags), rows = "f32[" + b + ",5,16]";
  return "HloModule m\nadd { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\nENTRY e {\n"
         " t = f32[12,16] parameter(0)\n i = s32[" + b + ",5,1] parameter(1)\n w = f32[" + b + ",5] parameter(2)\n z = f32[] constant(0)\n g = " + rows +
         " gather(t, i), offset_dims={2}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=2, slice_sizes={1,16}\n wb = " + rows +
         " broadcast(w), dimensions={0,1}\n m = " + rows + " multiply(g, wb)\n ROOT r = f32[" + b + ",16] reduce(m, z), dimensions={1}, to_apply=add\n}\n";
}

TEST(MovementScenarios, S10_SumsOfRowsOfATableMakeNoArrayOfThem) {
  for (const int bags : {7, 3000}) {
    const std::string text = embedding_bag(bags);
    const auto module = parse(text);
    Values arguments = random_arguments(*module);
    for (const std::size_t k : {0U, 2U})
      for (std::int64_t n = 0; n < arguments[k].num_elements(); ++n) put(arguments[k], n, static_cast<double>(n * 37 % 7 - 3));
    expect_values(text, arguments, interpreted(*module, arguments));
    EXPECT_EQ(moved(text).arena_bytes, 0);
  }
}

TEST(MovementScenarios, S11_ArraysOfFourBits) {
  for (const std::string type : {"s4", "u4"})
    for (const std::string layout : {"{1,0}", "{1,0:E(4)}", "{0,1:E(4)}"}) {
      Several program;
      const std::string x = program.parameter(type + "[6,9]", layout), v = program.parameter(type + "[]"), at = program.parameter("s32[8]"),
                        row = program.parameter(type + "[9]"), i = program.parameter("s32[]");
      give_pad(program, type, x, {6, 9}, v, {{1, 2, 1}, {-1, 3, 0}});
      for (const std::int64_t step : {1, 2, 7}) {
        const auto [call, dims] = slice_of(x, {{1, 6, 1}, {1, 9, step}});
        program.give(array(type, dims), call);
      }
      give_roll(program, type, x, {6, 9}, 1, 4);
      program.give(type + "[6,9]", "reverse(" + x + "), dimensions={0,1}");
      program.give(type + "[9,6]", "transpose(" + x + "), dimensions={1,0}");
      program.give(type + "[5,9]", "broadcast(" + row + "), dimensions={1}");
      program.give(type + "[8,9]", "gather(" + x + ", " + at +
                                       "), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,9}");
      program.give(type + "[3,5]", "dynamic-slice(" + x + ", " + i + ", " + i + "), dynamic_slice_sizes={3,5}");
      expect_interpreted(program.text());
    }
}

// Twelve rounds sum up rows of x, the last of which is taken again where the counter goes beyond it.
std::string sum_of_rows(int rows, const std::string& from) {
  const std::string x = "f32[" + std::to_string(rows) + ",16]", state = "(s32[], " + x + ", f32[16])";
  return "HloModule m\nbody { s = " + state + " parameter(0)\n i = s32[] get-tuple-element(s), index=0\n x = " + x +
         " get-tuple-element(s), index=1\n a = f32[16] get-tuple-element(s), index=2\n z = s32[] constant(0)\n one = s32[] constant(1)\n"
         " k = s32[] constant(" + from + ")\n at = s32[] add(i, k)\n w = f32[1,16] dynamic-slice(x, at, z), dynamic_slice_sizes={1,16}\n"
         " r = f32[16] reshape(w)\n b = f32[16] add(a, r)\n j = s32[] add(i, one)\n ROOT t = " + state + " tuple(j, x, b) }\n"
         "cond { s = " + state + " parameter(0)\n i = s32[] get-tuple-element(s), index=0\n n = s32[] constant(12)\n"
         " ROOT c = pred[] compare(i, n), direction=LT }\nENTRY e {\n x = " + x + " parameter(0)\n a = f32[16] parameter(1)\n"
         " z = s32[] constant(0)\n init = " + state + " tuple(z, x, a)\n l = " + state + " while(init), condition=cond, body=body\n"
         " ROOT r = f32[16] get-tuple-element(l), index=2\n}\n";
}

TEST(MovementScenarios, S12_AWindowInALoopIsAllThatIsRead) {
  for (const std::string from : {"-3", "0", "10"}) {
    const std::string text = sum_of_rows(16, from);
    const auto module = parse(text);
    Values arguments = random_arguments(*module);
    for (hlo::Literal& a : arguments)
      for (std::int64_t n = 0; n < a.num_elements(); ++n) put(a, n, static_cast<double>(n * 37 % 23 - 11));
    expect_values(text, arguments, interpreted(*module, arguments));
  }
  traffic::Bytes bytes[2];
  for (const bool large : {false, true}) {
    const compiler::Compiled c = compile(sum_of_rows(large ? 1 << 20 : 16, "2"), false);
    bytes[large] = traffic::of(c, *loop_of(c).body());
    EXPECT_LE(bytes[large].kernels, traffic::steps_a_round(loop_of(c)) * (3 * 64 + 32));  // a window, the sum twice, counters
    EXPECT_EQ(c.assignment.arena_bytes() / 1024, 0);
  }
  EXPECT_EQ(bytes[0], bytes[1]);
  EXPECT_LE(bytes[0].copies, 64);
}

std::string passed_on(const std::string& results) {
  return "HloModule m, input_output_alias={ {0}: (0, {}, must-alias), {1}: (1, {}, must-alias), {2}: (2, {}, must-alias) }\nENTRY e {\n"
         " x = f32[1000] parameter(0)\n y = f32[1000] parameter(1)\n z = f32[1000] parameter(2)\n cx = f32[1000] copy(x)\n cy = f32[1000] copy(y)\n"
         " n = f32[1000] negate(z)\n ROOT t = (f32[1000], f32[1000], f32[1000]) tuple(" + results + ")\n}\n";
}

TEST(MovementScenarios, S13_WhatStaysWhereItIsIsNotCopied) {
  for (const std::string results : {"cx, cy, n", "x, cy, n", "x, y, n"}) {
    const compiler::Compiled c = compile(passed_on(results), true);
    EXPECT_EQ(bytes_copied(c.program.steps), 0) << results;
    EXPECT_EQ(traffic::of(c, *c.module->entry()), (traffic::Bytes{2 * 4000, 0})) << results;
    expect_interpreted(passed_on(results));
  }
  const compiler::Compiled swapped = compile(passed_on("cy, cx, n"), true);
  const traffic::Bytes bytes = traffic::of(swapped, *swapped.module->entry());
  EXPECT_GE(bytes.kernels + 2 * bytes.copies, 3 * 2 * 4000);
  expect_interpreted(passed_on("cy, cx, n"));
}

// Slices at every start, of arrays at every address that their elements may have.
TEST(MovementScenarios, S14_NothingNeedsToStartAtALine) {
  for (const auto& [type, width] : {std::pair<std::string, std::size_t>("u8", 1), {"u16", 2}, {"f32", 4}}) {
    Several program;
    const std::string x = program.parameter(type + "[3001]"), v = program.parameter(type + "[]");
    for (std::int64_t from = 1; from < 20; from += 3) program.give(type + "[2900]", slice_of(x, {{from, from + 2900}}).first);
    program.give(type + "[3001]", "reverse(" + x + "), dimensions={0}");
    give_pad(program, type, x, {3001}, v, {{3, 5, 0}});
    give_roll(program, type, x, {3001}, 0, 13);
    const auto module = parse(program.text());
    const Values arguments = random_arguments(*module), want = interpreted(*module, arguments);
    for (const int threads : {1, 3}) {
      const auto compiled = Executable::compile(program.text(), {.threads = threads});
      ASSERT_TRUE(compiled) << compiled.error().message();
      for (std::size_t shift = width; shift < 64; shift += 3 * width) {
        std::vector<std::vector<std::byte>> rooms;
        std::vector<std::span<std::byte>> in, out;
        for (const Values* values : {&arguments, &want})
          for (const hlo::Literal& l : *values) {
            std::vector<std::byte>& room = rooms.emplace_back(l.bytes().size() + 128);
            const std::size_t address = reinterpret_cast<std::uintptr_t>(room.data()) % 64;
            const auto at = std::span(room).subspan(64 - address + shift * rooms.size() % 64, l.bytes().size());
            (values == &want ? out : in).push_back(at);
            if (values == &arguments) std::ranges::copy(l.bytes(), at.begin());
          }
        const auto done = compiled->run_into(in, out);
        ASSERT_TRUE(done) << done.error().message();
        for (std::size_t n = 0; n < want.size(); ++n) EXPECT_TRUE(std::ranges::equal(out[n], want[n].bytes())) << type << " " << shift << ", result " << n;
      }
    }
  }
}

// As s32 half of these would be before the first element, not behind the last.
TEST(MovementScenarios, S15_IndicesWithoutSignAreNeverNegative) {
  Several program;
  const std::string x = program.parameter("f32[10,7]"), at = program.parameter("u32[40]"), i = program.parameter("u32[]"), u = program.parameter("f32[3,7]"),
                    zero = program.add("u32[]", "constant(0)"), far = program.add("u32[]", "constant(2147483649)");
  program.give("f32[40,7]", "gather(" + x + ", " + at + "), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,7}");
  for (const std::string& start : {i, far}) {
    program.give("f32[3,7]", "dynamic-slice(" + x + ", " + start + ", " + zero + "), dynamic_slice_sizes={3,7}");
    program.give("f32[10,7]", "dynamic-update-slice(" + x + ", " + u + ", " + start + ", " + zero + ")");
  }
  const auto module = parse(program.text());
  Values arguments = random_arguments(*module);
  const std::array<std::uint32_t, 6> edges = {0, 9, 10, 0x7FFFFFFFU, 0x80000000U, 0xFFFFFFFFU};
  std::ranges::copy(edges, arguments[1].mutable_data<std::uint32_t>().begin());
  arguments[2].mutable_data<std::uint32_t>()[0] = 0x80000003U;
  const Values want = interpreted(*module, arguments);
  EXPECT_EQ(std::memcmp(want[1].bytes().data(), arguments[0].bytes().data() + std::size_t{7} * 7 * 4, std::size_t{3} * 7 * 4), 0);  // the last three rows
  expect_values(program.text(), arguments, want);
}

// Elements beyond the 2^31st, of an array that nobody makes.
TEST(MovementScenarios, S15_PlacesBeyondTwoToTheThirtyFirst) {
  const auto program = Executable::compile(
      "HloModule m\nENTRY e {\n x = u32[3000000000] iota(), iota_dimension=0\n at = u32[4] parameter(0)\n i = u32[] parameter(1)\n"
      " g = u32[4] gather(x, at), offset_dims={}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1}\n"
      " d = u32[4] dynamic-slice(x, i), dynamic_slice_sizes={4}\n ROOT t = (u32[4], u32[4]) tuple(g, d)\n}\n");
  ASSERT_TRUE(program) << program.error().message();
  ASSERT_EQ(program->memory().temp_bytes, 0);
  std::array<std::uint32_t, 4> at = {5, 2147483649U, 2999999999U, 4294967295U}, gathered = {}, sliced = {};
  std::array<std::uint32_t, 1> start = {2500000000U};
  const std::vector<std::span<std::byte>> in = {std::as_writable_bytes(std::span(at)), std::as_writable_bytes(std::span(start))},
                                          out = {std::as_writable_bytes(std::span(gathered)), std::as_writable_bytes(std::span(sliced))};
  const auto done = program->run_into(in, out);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(gathered, (std::array<std::uint32_t, 4>{5, 2147483649U, 2999999999U, 2999999999U}));
  EXPECT_EQ(sliced, (std::array<std::uint32_t, 4>{2500000000U, 2500000001U, 2500000002U, 2500000003U}));
}

}  // namespace
}  // namespace hloom

// Every element type through whole programs: compiled ones give what the interpreter gives, over all values where they
// can be counted, else over edges and random bits.

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "arrays/compare.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "hlo/narrow_float.h"
#include "interp/interpret.h"

namespace hloom {
namespace {

using arrays::Tolerance;

constexpr DType kTypes[] = {
    DType::Pred,       DType::S1,         DType::S2,        DType::S4,       DType::S8,
    DType::S16,        DType::S32,        DType::S64,       DType::U1,       DType::U2,
    DType::U4,         DType::U8,         DType::U16,       DType::U32,      DType::U64,
    DType::F8E5M2,     DType::F8E4M3,     DType::F8E3M4,    DType::F8E4M3FN, DType::F8E4M3B11FNUZ,
    DType::F8E5M2FNUZ, DType::F8E4M3FNUZ, DType::F8E8M0FNU, DType::F4E2M1FN, DType::BF16,
    DType::F16,        DType::F32,        DType::F64,       DType::C64,      DType::C128};

using Values = std::vector<hlo::Literal>;

// --- Values --------------------------------------------------------------------------------------------------------

/// Bytes of an element brought into the form in which the type is stored.
void normalise(std::byte* at, DType type) {
  if (type == DType::Pred) *at &= std::byte{1};
  const int unused = 8 - bit_width(type);
  if (type == DType::Pred || unused <= 0) return;
  const auto top = static_cast<std::uint8_t>(std::to_integer<unsigned>(*at) << unused);
  *at = is_signed(type) ? std::byte(static_cast<std::uint8_t>(static_cast<std::int8_t>(top) >> unused))
                        : std::byte(static_cast<std::uint8_t>(top >> unused));
}

/// `count` elements of random bits, so that every kind of value is among them.
hlo::Literal random_bits(DType type, std::vector<std::int64_t> dims, std::uint64_t seed) {
  hlo::Literal literal(Shape::array(type, std::move(dims)));
  std::mt19937_64 random(seed);
  const auto bytes = literal.mutable_bytes();
  for (std::byte& b : bytes) b = std::byte(static_cast<std::uint8_t>(random()));
  const auto width = static_cast<std::size_t>(byte_width(type));
  for (std::size_t at = 0; at < bytes.size(); at += width) normalise(&bytes[at], type);
  return literal;
}

/// The number in the type, as bits; of complex types the real part.
std::uint64_t bits_of(DType type, double x) {
  if (is_floating(real_type(type))) return hlo::encode_float(hlo::float_format(real_type(type)), x);
  if (type == DType::Pred) return x != 0;
  std::uint64_t bits = static_cast<std::uint64_t>(static_cast<std::int64_t>(x));
  std::byte low = std::byte(static_cast<std::uint8_t>(bits));
  normalise(&low, type);
  return bit_width(type) < 8 ? std::to_integer<std::uint64_t>(low) : bits;
}

/// Random small whole numbers from `low` to `high`, whose sums and products are exact.
hlo::Literal small_numbers(DType type, std::vector<std::int64_t> dims, std::uint64_t seed, int low, int high) {
  hlo::Literal literal(Shape::array(type, std::move(dims)));
  std::mt19937_64 random(seed);
  const auto bytes = literal.mutable_bytes();
  const auto width = static_cast<std::size_t>(byte_width(real_type(type)));
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    const int n = low + static_cast<int>(random() % static_cast<std::uint64_t>(high - low + 1));
    const std::uint64_t bits = bits_of(type, n);
    std::memcpy(&bytes[at], &bits, width);
  }
  return literal;
}

/// All values of a type of at most 16 bits; of a wider one, edges and random bits.
hlo::Literal all_values(DType type) {
  const int width = bit_width(type);
  if (width > 16) {
    hlo::Literal literal = random_bits(type, {1 << 14}, 11);
    const hlo::Literal narrow = all_values(DType::F16);
    // The first ones are numbers of moderate size with few bits, where roundings to narrow types meet.
    const auto bytes = literal.mutable_bytes();
    const auto size = static_cast<std::size_t>(byte_width(real_type(type)));
    for (std::size_t i = 0; i < bytes.size() / size / 2; ++i) {
      const double x = hlo::decode_float(hlo::float_format(DType::F16), i * 7 & 0xFFFF);
      if (!is_floating(real_type(type)) && !(std::abs(x) < 1e5)) continue;
      const std::uint64_t bits = bits_of(type, x);
      std::memcpy(&bytes[i * size], &bits, size);
    }
    return literal;
  }
  hlo::Literal literal(Shape::array(type, {std::int64_t{1} << width}));
  const auto bytes = literal.mutable_bytes();
  for (std::size_t i = 0; i < std::size_t{1} << width; ++i) {
    std::memcpy(&bytes[i * static_cast<std::size_t>(byte_width(type))], &i, static_cast<std::size_t>(byte_width(type)));
    if (width < 16) normalise(&bytes[i], type);
  }
  return literal;
}

// --- Programs ------------------------------------------------------------------------------------------------------

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

Values leaves_of(const hlo::Literal& value) {
  Values result;
  for (const hlo::Literal* leaf : hlo::leaves(value)) result.push_back(*leaf);
  return result;
}

Expected<Values> compiled(const std::string& text, const Values& arguments, bool regions) {
  auto module = compiler::read_program(text);
  if (!module) return module.error();
  compiler::Options options;
  options.threads = 1;
  options.regions = regions;
  auto program = compiler::compile(std::move(*module), options);
  if (!program) return program.error();
  const std::vector<Shape> parameters = compiler::parameter_leaves(*program->module),
                           results = compiler::result_leaves(*program->module);
  const auto executor = runtime::Executor::create(std::move(program->program));
  if (!executor) return executor.error();
  static runtime::ThreadPool two(2);
  return compiler::execute_literals(**executor, parameters, results, arguments, two);
}

void expect_as_interpreted(const std::string& text, const Values& arguments,
                           const Tolerance& tolerance = Tolerance::exact(), bool regions = true) {
  const auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message() << "\n" << text;
  const auto want = interp::interpret(**module, arguments);
  ASSERT_TRUE(want) << want.error().message() << "\n" << text;
  const auto got = compiled(text, arguments, regions);
  ASSERT_TRUE(got) << got.error().message() << "\n" << text;
  EXPECT_EQ(arrays::compare_results(*got, leaves_of(*want), {&tolerance, 1}), std::nullopt) << text;
}

std::string shape(DType type, std::int64_t n) { return std::string(name(type)) + "[" + std::to_string(n) + "]"; }

/// A program of lines `TYPE[n] OP`, each a result.
class Program {
 public:
  Program(std::int64_t n) : n_(n) {}
  void parameter(DType type) { add(type, "parameter(" + std::to_string(num_parameters_++) + ")", false); }
  void add(DType type, const std::string& op, bool result = true) {
    lines_ += "  v" + std::to_string(count_) + " = " + shape(type, n_) + " " + op + "\n";
    if (result) {
      results_ += (results_.empty() ? "v" : ", v") + std::to_string(count_);
      shapes_ += (shapes_.empty() ? "" : ", ") + shape(type, n_);
    }
    ++count_;
  }
  std::string text() const {
    return "HloModule m\nENTRY e {\n" + lines_ + "  ROOT r = (" + shapes_ + ") tuple(" + results_ + ")\n}\n";
  }

 private:
  std::int64_t n_;
  int count_ = 0, num_parameters_ = 0;
  std::string lines_, results_, shapes_;
};

class Types : public testing::TestWithParam<DType> {};

// --- Elementwise ---------------------------------------------------------------------------------------------------

TEST_P(Types, ConvertToEveryType) {
  const hlo::Literal x = all_values(GetParam());
  Program program(x.num_elements());
  program.parameter(GetParam());
  for (const DType to : kTypes)
    if (!is_complex(GetParam()) || is_complex(to)) program.add(to, "convert(v0)");
  expect_as_interpreted(program.text(), {x});
}

/// Every pair of values of a narrow type.
std::pair<hlo::Literal, hlo::Literal> all_pairs(DType type) {
  const hlo::Literal all = all_values(type);
  const auto n = static_cast<std::size_t>(all.num_elements()), width = static_cast<std::size_t>(byte_width(type));
  hlo::Literal a(Shape::array(type, {static_cast<std::int64_t>(n * n)})), b = a;
  const auto to_a = a.mutable_bytes(), to_b = b.mutable_bytes();
  for (std::size_t i = 0; i < n * n; ++i) {
    std::memcpy(&to_a[i * width], &all.bytes()[i / n * width], width);
    std::memcpy(&to_b[i * width], &all.bytes()[i % n * width], width);
  }
  return {a, b};
}

TEST_P(Types, BinaryOpsOverAllPairs) {
  const DType type = GetParam();
  const bool narrow = bit_width(type) <= 8;
  auto [a, b] = narrow ? all_pairs(type) : std::pair(random_bits(type, {4096}, 1), random_bits(type, {4096}, 2));
  Program program(a.num_elements());
  program.parameter(type);
  program.parameter(type);
  std::vector<std::string> ops;
  const bool complex = is_complex(type), integer = is_integral(type), floating = is_floating(type);
  if (type == DType::Pred) ops = {"add", "multiply", "and", "or", "xor", "maximum", "minimum"};
  if (integer)
    ops = {"add",
           "subtract",
           "multiply",
           "divide",
           "remainder",
           "maximum",
           "minimum",
           "and",
           "or",
           "xor",
           "shift-left",
           "shift-right-arithmetic",
           "shift-right-logical",
           "power"};
  if (floating) ops = {"add", "subtract", "multiply", "divide", "maximum", "minimum", "remainder"};
  if (complex) ops = {"add", "subtract"};
  for (const std::string& op : ops) program.add(type, op + "(v0, v1)");
  for (const char* direction : {"EQ", "NE", "LT", "LE", "GT", "GE"}) {
    if (complex && direction[0] != 'E' && direction[0] != 'N') continue;
    program.add(DType::Pred, std::string("compare(v0, v1), direction=") + direction);
    if (floating)
      program.add(DType::Pred, std::string("compare(v0, v1), direction=") + direction + ", type=TOTALORDER");
  }
  expect_as_interpreted(program.text(), {a, b});
}

TEST_P(Types, UnaryOpsOverAllValues) {
  const DType type = GetParam();
  const hlo::Literal x = all_values(type);
  Program program(x.num_elements());
  program.parameter(type);
  std::vector<std::string> ops = {"copy"};
  const auto add = [&](std::initializer_list<const char*> more) { ops.insert(ops.end(), more.begin(), more.end()); };
  if (type == DType::Pred) add({"not"});
  if (is_integral(type)) add({"negate", "not", "popcnt", "count-leading-zeros"});
  if (is_signed(type)) add({"abs", "sign"});
  if (is_floating(type))
    add({"abs", "negate", "sign", "floor", "ceil", "round-nearest-afz", "round-nearest-even", "sqrt"});
  for (const std::string& op : ops) program.add(type, op + "(v0)");
  if (is_floating(type)) {
    program.add(DType::Pred, "is-finite(v0)");
    for (const char* bits : {"exponent_bits=5, mantissa_bits=2", "exponent_bits=4, mantissa_bits=3",
                             "exponent_bits=8, mantissa_bits=7", "exponent_bits=3, mantissa_bits=1"})
      program.add(type, std::string("reduce-precision(v0), ") + bits);
  }
  expect_as_interpreted(program.text(), {x});
}

// Functions have bounds in units of the last place; on types of few bits that leaves hardly anything but the nearest.
TEST_P(Types, FunctionsOverAllValues) {
  const DType type = GetParam();
  if (!is_floating(type) || bit_width(type) > 8) GTEST_SKIP() << "has a test of accuracy of its own";
  const hlo::Literal x = all_values(type);
  Program program(x.num_elements());
  program.parameter(type);
  for (const char* op : {"exponential",
                         "log",
                         "tanh",
                         "logistic",
                         "sine",
                         "cosine",
                         "tan",
                         "rsqrt",
                         "cbrt",
                         "erf",
                         "exponential-minus-one",
                         "log-plus-one",
                         "atanh",
                         "acosh",
                         "asinh",
                         "acos",
                         "asin",
                         "atan",
                         "sinh",
                         "cosh"})
    program.add(type, std::string(op) + "(v0)");
  expect_as_interpreted(program.text(), {x});
}

// --- Everything else -----------------------------------------------------------------------------------------------

/// `text` with $T for the type, $A for what adds and $S for the unsigned type as wide in memory.
std::string of_type(std::string text, DType type) {
  const bool complex = is_complex(type);
  text = replaced(std::move(text), "$T", std::string(name(type)));
  text = replaced(std::move(text), "$A", type == DType::Pred ? "or" : "add");
  return replaced(std::move(text), "$M", type == DType::Pred ? "and" : complex ? "multiply" : "maximum");
}

// Data is moved to the bit.
constexpr const char* kMovements[] = {
    R"(HloModule m
ENTRY e {
  x = $T[6,35] parameter(0)
  y = $T[6,35] parameter(1)
  z = $T[] parameter(2)
  i = s32[] parameter(3)
  t = $T[35,6] transpose(x), dimensions={1,0}
  r = $T[6,35] reverse(x), dimensions={0,1}
  s = $T[2,11] slice(x), slice={[1:5:2],[2:34:3]}
  p = $T[9,80] pad(x, z), padding=1_2x3_8_1
  c = $T[6,105] concatenate(x, y, x), dimensions={1}
  d = $T[2,9] dynamic-slice(x, i, i), dynamic_slice_sizes={2,9}
  u = $T[6,35] dynamic-update-slice(y, d, i, i)
  b = $T[3,6,35] broadcast(x), dimensions={1,2}
  h = $T[15,14] reshape(x)
  q = pred[] compare(i, i), direction=LT
  w = $T[6,35] select(q, x, y)
  ROOT o = ($T[35,6], $T[6,35], $T[2,11], $T[9,80], $T[6,105], $T[6,35], $T[3,6,35], $T[15,14], $T[6,35])
    tuple(t, r, s, p, c, u, b, h, w)
})",
    R"(HloModule m
assign { o = $T[] parameter(0) ROOT n = $T[] parameter(1) }
ENTRY e {
  x = $T[6,35] parameter(0)
  y = $T[6,35] parameter(1)
  z = $T[] parameter(2)
  i = s32[] parameter(3)
  k = s32[4,1] constant({{3},{0},{5},{3}})
  n = s32[3,1] constant({{3},{0},{5}})
  g = $T[4,35] gather(x, k), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1,
    slice_sizes={1,35}
  v = $T[3,35] slice(y), slice={[1:4],[0:35]}
  s = $T[6,35] scatter(x, n, v), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=assign, unique_indices=true
  ROOT o = ($T[4,35], $T[6,35]) tuple(g, s)
})",
    R"(HloModule m
going { c = (s32[], $T[6,35], $T[6,35]) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  l = s32[] constant(6)
  ROOT q = pred[] compare(n, l), direction=LT }
body { c = (s32[], $T[6,35], $T[6,35]) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  x = $T[6,35] get-tuple-element(c), index=1
  y = $T[6,35] get-tuple-element(c), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  row = $T[1,35] dynamic-slice(x, n, zero), dynamic_slice_sizes={1,35}
  back = $T[1,35] reverse(row), dimensions={1}
  u = $T[6,35] dynamic-update-slice(y, back, n, zero)
  ROOT r = (s32[], $T[6,35], $T[6,35]) tuple(next, x, u) }
one { x = $T[6,35] parameter(0) ROOT r = $T[6,35] reverse(x), dimensions={0} }
other { x = $T[6,35] parameter(0) ROOT r = $T[6,35] copy(x) }
ENTRY e {
  x = $T[6,35] parameter(0)
  y = $T[6,35]{0,1} parameter(1)
  z = $T[] parameter(2)
  i = s32[] parameter(3)
  zero = s32[] constant(0)
  c = (s32[], $T[6,35], $T[6,35]) tuple(zero, x, y)
  w = (s32[], $T[6,35], $T[6,35]) while(c), condition=going, body=body
  v = $T[6,35] get-tuple-element(w), index=2
  b = $T[6,35] conditional(i, x, y), branch_computations={one, other}
  ROOT r = ($T[6,35]{0,1}, $T[6,35]) tuple(v, b)
})"};

TEST_P(Types, Movements) {
  const DType type = GetParam();
  hlo::Literal start(Shape::scalar(DType::S32));
  start.mutable_data<std::int32_t>()[0] = 1;
  for (const char* program : kMovements)
    for (const bool regions : {true, false})
      expect_as_interpreted(
          of_type(program, type),
          {random_bits(type, {6, 35}, 1), random_bits(type, {6, 35}, 2), random_bits(type, {}, 3), start},
          Tolerance::bits(), regions);
}

// Numbers small enough that every type holds all sums.
constexpr const char* kSums[] = {
    R"(HloModule m
sum { a = $T[] parameter(0) b = $T[] parameter(1) ROOT r = $T[] $A(a, b) }
most { a = $T[] parameter(0) b = $T[] parameter(1) ROOT r = $T[] $M(a, b) }
ENTRY e {
  x = $T[4,70] parameter(0)
  z = $T[] parameter(1)
  r = $T[4] reduce(x, z), dimensions={1}, to_apply=sum
  c = $T[70] reduce(x, z), dimensions={0}, to_apply=sum
  m = $T[4] reduce(x, z), dimensions={1}, to_apply=most
  n = $T[70] reduce(x, z), dimensions={0}, to_apply=most
  f = $T[] reduce(x, z), dimensions={0,1}, to_apply=most
  w = $T[4,35] reduce-window(x, z), window={size=1x3 stride=1x2 pad=0_0x1_0}, to_apply=sum
  v = $T[4,70] reduce-window(x, z), window={size=2x3 pad=1_0x1_1}, to_apply=most
  ROOT o = ($T[4], $T[70], $T[4], $T[70], $T[], $T[4,35], $T[4,70]) tuple(r, c, m, n, f, w, v)
})",
    R"(HloModule m
sum { a = $T[] parameter(0) b = $T[] parameter(1) ROOT r = $T[] $A(a, b) }
ENTRY e {
  x = $T[4,70] parameter(0)
  z = $T[] parameter(1)
  k = s32[3,1] constant({{3},{0},{3}})
  s = $T[3,70] slice(x), slice={[0:3],[0:70]}
  a = $T[4,70] scatter(x, k, s), update_window_dims={1}, inserted_window_dims={0}, scatter_dims_to_operand_dims={0},
    index_vector_dim=1, to_apply=sum
  ROOT o = ($T[4,70]) tuple(a)
})",
    R"(HloModule m
ENTRY e {
  x = $T[4,70] parameter(0)
  z = $T[] parameter(1)
  l = $T[4,6] slice(x), slice={[0:4],[0:6]}
  r.0 = $T[4,30] slice(x), slice={[0:4],[9:39]}
  r = $T[6,20] reshape(r.0)
  d = $T[4,20] dot(l, r), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  v.0 = $T[1,70] slice(x), slice={[1:2],[0:70]}
  v.1 = $T[70] reshape(v.0)
  v = $T[4] dot(x, v.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b.0 = $T[4,20] slice(x), slice={[0:4],[0:20]}
  b.1 = $T[4,20] slice(x), slice={[0:4],[20:40]}
  b.2 = $T[4,4,5] reshape(b.0)
  b.3 = $T[4,5,4] reshape(b.1)
  b = $T[4,4,4] dot(b.2, b.3), lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1}
  i.0 = $T[4,10] slice(x), slice={[0:4],[0:10]}
  i = $T[2,10,2] reshape(i.0)
  k.0 = $T[4,6] slice(x), slice={[0:4],[0:6]}
  k = $T[3,2,4] reshape(k.0)
  c = $T[2,10,4] convolution(i, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f
  ROOT o = ($T[4,20], $T[4], $T[4,4,4], $T[2,10,4]) tuple(d, v, b, c)
})",
};

TEST_P(Types, Sums) {
  const DType type = GetParam();
  // Few ones among zeros: sums of 70 would leave the narrowest types. f8e8m0fnu has no zero.
  const bool no_zero = type == DType::F8E8M0FNU;
  hlo::Literal x = small_numbers(type, {4, 70}, 5, no_zero ? 1 : 0, no_zero ? 2 : 1);
  const hlo::Literal rare = small_numbers(DType::S32, {4, 70}, 6, 0, 15);
  const auto width = static_cast<std::size_t>(byte_width(type));
  for (std::size_t i = 0; i < 280 && !no_zero; ++i)
    if (rare.data<std::int32_t>()[i] != 0) std::memset(&x.mutable_bytes()[i * width], 0, width);
  for (const char* program : kSums)
    for (const bool regions : {true, false})
      expect_as_interpreted(of_type(program, type), {x, small_numbers(type, {}, 1, 1, 1)}, Tolerance::exact(), regions);
}

TEST_P(Types, Sorts) {
  const DType type = GetParam();
  if (is_complex(type)) GTEST_SKIP() << "has no order";
  const std::string text = of_type(R"(HloModule m
less { a = $T[] parameter(0) b = $T[] parameter(1) c = s32[] parameter(2) d = s32[] parameter(3)
  ROOT r = pred[] compare(a, b), direction=LT$O }
argmax { a = $T[] parameter(0) i = s32[] parameter(1) b = $T[] parameter(2) j = s32[] parameter(3)
  q = pred[] compare(a, b), direction=GE
  v = $T[] select(q, a, b)
  k = s32[] select(q, i, j)
  ROOT r = ($T[], s32[]) tuple(v, k) }
ENTRY e {
  x = $T[4,70] parameter(0)
  z = $T[] parameter(1)
  i = s32[4,70] iota(), iota_dimension=1
  s = ($T[4,70], s32[4,70]) sort(x, i), dimensions={1}, is_stable=true, to_apply=less
  n = s32[] constant(-1)
  m = ($T[4], s32[4]) reduce(x, i, z, n), dimensions={1}, to_apply=argmax
  ROOT o = (($T[4,70], s32[4,70]), ($T[4], s32[4])) tuple(s, m)
})",
                                   type);
  for (const bool regions : {true, false})
    expect_as_interpreted(replaced(text, "$O", is_floating(type) ? ", type=TOTALORDER" : ""),
                          {random_bits(type, {4, 70}, 9), random_bits(type, {}, 10)}, Tolerance::bits(), regions);
}

// As text: the largest number that small types have, and 1 where there is room.
std::string listed(DType type, int n) {
  const bool one_bit = type == DType::S1, no_zero = type == DType::F8E8M0FNU;
  std::string list;
  for (int i = 0; i < n; ++i)
    list += std::string(i ? ", " : "") + (i % 3 == 0 ? no_zero ? "2" : "0" : one_bit ? "-1" : "1");
  return list;
}

TEST_P(Types, ConstantsAndIotas) {
  const DType type = GetParam();
  const std::string add = R"(HloModule m
ENTRY e {
  x = $T[37] parameter(0)
  c = $T[37] constant({$L})
  y = $T[37] add(x, c)
  i = $T[5,37] iota(), iota_dimension=1
  ROOT r = ($T[37], $T[37], $T[5,37]) tuple(c, y, i)
})",
                    exclude = R"(HloModule m
ENTRY e {
  x = pred[37] parameter(0)
  c = pred[37] constant({$L})
  y = pred[37] xor(x, c)
  ROOT r = (pred[37], pred[37]) tuple(c, y)
})";
  const std::string text = replaced(type == DType::Pred ? exclude : add, "$L", listed(type, 37));
  expect_as_interpreted(of_type(text, type), {small_numbers(type, {37}, 4, 0, 1)});
}

TEST_P(Types, BitcastsToBytesAndBack) {
  const DType type = GetParam();
  if (type == DType::Pred || is_complex(type)) GTEST_SKIP() << "has no integer as wide";
  const int width = bit_width(type);
  const std::string per_byte = std::to_string(8 / std::min(width, 8)), bytes = std::to_string(width / 8);
  // s4[80,4,2] is u8[80,4]; f32[80,4] is u8[80,4,4].
  const std::string dims = width < 8 ? "80,4," + per_byte : "80,4", as_bytes = width > 8 ? "80,4," + bytes : "80,4";
  std::string text = R"(HloModule m
ENTRY e {
  x = $T[$D] parameter(0)
  a = u$W[$D] bitcast-convert(x)
  b = $T[$D] bitcast-convert(a)
  c = u8[$B] bitcast-convert(x)
  d = $T[$D] bitcast-convert(c)
  ROOT r = (u$W[$D], $T[$D], u8[$B], $T[$D]) tuple(a, b, c, d)
})";
  text = replaced(replaced(replaced(text, "$D", dims), "$B", as_bytes), "$W", std::to_string(width));
  std::vector<std::int64_t> sizes = {80, 4};
  if (width < 8) sizes.push_back(8 / width);
  expect_as_interpreted(of_type(text, type), {random_bits(type, sizes, 3)}, Tolerance::bits());
}

// A sub-byte element is the low bits of its byte, whatever stands above them in what the caller gives.
TEST_P(Types, UpperBitsOfBytesAreIgnored) {
  const DType type = GetParam();
  if (bit_width(type) >= 8) GTEST_SKIP() << "fills its bytes";
  hlo::Literal dirty = random_bits(DType::U8, {300}, 12);
  if (type == DType::Pred) dirty = small_numbers(DType::U8, {300}, 12, 0, 255);
  const std::vector<std::byte> bytes(dirty.bytes().begin(), dirty.bytes().end());
  const hlo::Literal given = hlo::Literal::from_bytes(Shape::array(type, {300}), bytes);
  hlo::Literal clean = given;
  for (std::byte& b : clean.mutable_bytes())
    if (type == DType::Pred)
      b = b == std::byte{0} ? b : std::byte{1};
    else
      normalise(&b, type);
  const std::string text = of_type(
      "HloModule m\nENTRY e {\n x = $T[300] parameter(0)\n r = $T[300] reverse(x), dimensions={0}\n"
      " c = f32[300] convert(x)\n ROOT t = ($T[300], f32[300]) tuple(r, c)\n}\n",
      type);
  const auto got = compiled(text, {given}, true), want = compiled(text, {clean}, true);
  ASSERT_TRUE(got && want);
  const Tolerance bits = Tolerance::bits();
  EXPECT_EQ(arrays::compare_results(*got, *want, {&bits, 1}), std::nullopt);
}

TEST_P(Types, StochasticConvert) {
  const DType from = GetParam();
  if (!is_floating(from) || bit_width(from) < 8) GTEST_SKIP() << "no floats";
  const hlo::Literal x = all_values(from);
  const DType bits = bit_width(from) == 8    ? DType::U8
                     : bit_width(from) == 16 ? DType::U16
                     : bit_width(from) == 32 ? DType::U32
                                             : DType::U64;
  Program program(x.num_elements());
  program.parameter(from);
  program.parameter(bits);
  for (const DType to : {DType::S2, DType::S4, DType::S8, DType::S16, DType::S32, DType::S64})
    program.add(to, "stochastic-convert(v0, v1)");
  expect_as_interpreted(program.text(), {x, random_bits(bits, {x.num_elements()}, 8)});
}

// --- Packed layouts ------------------------------------------------------------------------------------------------

// $P is the layout of packed elements.
constexpr const char* kPacked[] = {
    // parameters, results, both orders of dimensions
    R"(HloModule m, entry_computation_layout={($T[6,35]{1,0$P}, $T[6,35]{0,1$P}, $T[]{$P})->($T[6,35]{1,0$P}, $T[35,6]{0,1$P}, $T[6,35]{1,0}, $T[8,37]{1,0$P})}
ENTRY e {
  x = $T[6,35] parameter(0)
  y = $T[6,35] parameter(1)
  z = $T[] parameter(2)
  r = $T[6,35] reverse(y), dimensions={1}
  t = $T[35,6] transpose(x), dimensions={1,0}
  p = $T[8,37] pad(x, z), padding=1_1x2_0
  ROOT o = ($T[6,35], $T[35,6], $T[6,35], $T[8,37]) tuple(r, t, y, p)
})",
    // a constant, what is only passed through, a loop that updates
    R"(HloModule m, entry_computation_layout={($T[6,35]{1,0$P}, $T[6,35]{1,0$P}, $T[]{$P})->($T[6,35]{1,0$P}, $T[6,35]{1,0$P}, $T[5]{0$P})},
  input_output_alias={ {0}: (0, {}, may-alias) }
going { c = (s32[], $T[6,35], $T[6,35]) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  l = s32[] constant(6)
  ROOT q = pred[] compare(n, l), direction=LT }
body { c = (s32[], $T[6,35]{1,0$P}, $T[6,35]{1,0$P}) parameter(0)
  n = s32[] get-tuple-element(c), index=0
  x = $T[6,35]{1,0$P} get-tuple-element(c), index=1
  y = $T[6,35]{1,0$P} get-tuple-element(c), index=2
  one = s32[] constant(1)
  zero = s32[] constant(0)
  next = s32[] add(n, one)
  row = $T[1,33]{1,0$P} dynamic-slice(y, n, one), dynamic_slice_sizes={1,33}
  back = $T[1,33]{1,0$P} reverse(row), dimensions={1}
  u = $T[6,35]{1,0$P} dynamic-update-slice(x, back, n, one)
  ROOT r = (s32[], $T[6,35]{1,0$P}, $T[6,35]{1,0$P}) tuple(next, u, y) }
ENTRY e {
  x = $T[6,35]{1,0$P} parameter(0)
  y = $T[6,35]{1,0$P} parameter(1)
  z = $T[]{$P} parameter(2)
  zero = s32[] constant(0)
  c = (s32[], $T[6,35]{1,0$P}, $T[6,35]{1,0$P}) tuple(zero, x, y)
  w = (s32[], $T[6,35]{1,0$P}, $T[6,35]{1,0$P}) while(c), condition=going, body=body
  v = $T[6,35]{1,0$P} get-tuple-element(w), index=1
  k = $T[9]{0$P} constant({$L})
  s = $T[5]{0$P} slice(k), slice={[3:8]}
  ROOT o = ($T[6,35]{1,0$P}, $T[6,35]{1,0$P}, $T[5]{0$P}) tuple(v, y, s)
})",
    // copies that say it, and a bitcast of a buffer
    R"(HloModule m, entry_computation_layout={($T[6,35]{1,0}, $T[6,35]{1,0$P}, $T[]{$P})->($T[6,35]{0,1}, u8[$B]{0}, $T[6,35]{1,0})}
ENTRY e {
  x = $T[6,35] parameter(0)
  y = $T[6,35] parameter(1)
  z = $T[] parameter(2)
  a = $T[6,35]{0,1$P} copy(x)
  b = $T[6,35]{1,0} copy(a)
  c = $T[6,35]{1,0$P} copy(y)
  d = u8[$B]{0} bitcast(c)
  e = $T[6,35]{1,0$P} bitcast(d)
  ROOT o = ($T[6,35], u8[$B], $T[6,35]) tuple(b, d, e)
})"};

std::string packed_program(std::string text, DType type, int bits) {
  const int per_byte = 8 / bits;
  text = replaced(std::move(text), "{$P}", "{:E(" + std::to_string(bits) + ")}");
  text = replaced(std::move(text), "$P", ":E(" + std::to_string(bits) + ")");
  text = replaced(std::move(text), "$B", std::to_string((210 + per_byte - 1) / per_byte));
  return of_type(replaced(std::move(text), "$L", listed(type, 9)), type);
}

TEST_P(Types, PackedLayouts) {
  const DType type = GetParam();
  if (bit_width(type) >= 8) GTEST_SKIP() << "fills its bytes";
  for (const int bits : {1, 2, 4}) {
    if (bits < bit_width(type)) continue;
    for (const char* program : kPacked)
      for (const bool regions : {true, false}) {
        const std::string text = packed_program(program, type, bits);
        const Values arguments = {random_bits(type, {6, 35}, 1), random_bits(type, {6, 35}, 2),
                                  random_bits(type, {}, 3)};
        expect_as_interpreted(text, arguments, Tolerance::bits(), regions);
        const std::string scheduled = replaced(text, "HloModule m,", "HloModule m, is_scheduled=true,");
        expect_as_interpreted(scheduled, arguments, Tolerance::bits(), regions);
      }
  }
}

// The order in a byte: the first element has the lowest bits.
TEST(Packed, BytesOfAProgramsBuffers) {
  auto module = compiler::read_program(R"(HloModule m, entry_computation_layout={(s4[5]{0:E(4)})->s4[5]{0:E(4)}}
ENTRY e {
  x = s4[5] parameter(0)
  ROOT r = s4[5] reverse(x), dimensions={0}
})");
  ASSERT_TRUE(module) << module.error().message();
  auto program = compiler::compile(std::move(*module), {});
  ASSERT_TRUE(program) << program.error().message();
  ASSERT_EQ(program->program.parameters[0].size_bytes, 3);
  const auto executor = runtime::Executor::create(std::move(program->program));
  ASSERT_TRUE(executor);
  alignas(64) std::byte in[64] = {std::byte{0x21}, std::byte{0x43}, std::byte{0xF8}}, out[64] = {};
  const std::span<std::byte> from(in, 3), to(out, 3);
  runtime::ThreadPool one(1);
  const auto done = (*executor)->execute({{from}}, {{to}}, one, {});
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(out[0], std::byte{0x48});
  EXPECT_EQ(out[1], std::byte{0x23});
  EXPECT_EQ(out[2], std::byte{0x01});
}

TEST(Packed, ManyBlocks) {
  const std::string text = R"(HloModule m, entry_computation_layout={(u2[300001]{0:E(2)})->(u2[300001]{0:E(2)}, s32[])}
sum { a = s32[] parameter(0) b = s32[] parameter(1) ROOT r = s32[] add(a, b) }
ENTRY e {
  x = u2[300001] parameter(0)
  r = u2[300001] reverse(x), dimensions={0}
  c = s32[300001] convert(x)
  z = s32[] constant(0)
  s = s32[] reduce(c, z), dimensions={0}, to_apply=sum
  ROOT o = (u2[300001], s32[]) tuple(r, s)
})";
  expect_as_interpreted(text, {random_bits(DType::U2, {300001}, 5)}, Tolerance::bits());
}

TEST(Packed, TilesAtTheEntryAreRefusedByName) {
  const auto got = compiled(
      "HloModule m, entry_computation_layout={(f32[8,128]{1,0:T(8,128)})->f32[8,128]}\n"
      "ENTRY e { x = f32[8,128] parameter(0) ROOT r = f32[8,128] negate(x) }",
      {hlo::Literal(Shape::array(DType::F32, {8, 128}))}, true);
  ASSERT_FALSE(got);
  EXPECT_EQ(got.error().code(), Code::Unimplemented) << got.error().message();
  EXPECT_NE(got.error().message().find("x: "), std::string::npos) << got.error().message();
}

INSTANTIATE_TEST_SUITE_P(All, Types, testing::ValuesIn(kTypes),
                         [](const auto& type) { return std::string(name(type.param)); });

}  // namespace
}  // namespace hloom

// The laws of dots: a kernel evaluated is a kernel compiled, to the bit; both are the sum of products within
// n·eps·Σ|x|; any split of the grid gives the same bits.
#include "kernels/plan_dot.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstring>
#include <functional>
#include <random>
#include <string>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hlo/narrow_float.h"
#include "jit/compile.h"
#include "kernels/dot_form.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;
using Dims = std::vector<std::int64_t>;

struct Product {
  Shape lhs, rhs, out;
  hlo::DotAttr dot;
};

/// The dot's result shape.
Shape result_of(const Product& p, DType type) {
  const auto in = [](const Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); };
  Dims dims;
  for (const std::int64_t d : p.dot.lhs_batch) dims.push_back(p.lhs.dim(d));
  for (std::int64_t d = 0; d < p.lhs.rank(); ++d)
    if (!in(p.dot.lhs_batch, d) && !in(p.dot.lhs_contracting, d)) dims.push_back(p.lhs.dim(d));
  for (std::int64_t d = 0; d < p.rhs.rank(); ++d)
    if (!in(p.dot.rhs_batch, d) && !in(p.dot.rhs_contracting, d)) dims.push_back(p.rhs.dim(d));
  return Shape::array(type, dims);
}

Product product(DType type, Dims lhs, Dims rhs, hlo::DotAttr dot, DType out = DType::Invalid) {
  Product p{Shape::array(type, std::move(lhs)), Shape::array(type, std::move(rhs)), {}, std::move(dot)};
  p.out = result_of(p, out == DType::Invalid ? type : out);
  return p;
}

/// [m,k]·[k,n], either transposed.
Product matrices(std::int64_t m, std::int64_t n, std::int64_t k, bool lhs_transposed = false, bool rhs_transposed = false,
                 DType type = DType::F32, DType out = DType::Invalid) {
  hlo::DotAttr dot;
  dot.lhs_contracting = {lhs_transposed ? 0 : 1};
  dot.rhs_contracting = {rhs_transposed ? 1 : 0};
  return product(type, lhs_transposed ? Dims{k, m} : Dims{m, k}, rhs_transposed ? Dims{n, k} : Dims{k, n}, dot, out);
}

/// Builds the fused computation's root from its dot; may add parameters, whose shapes are the fusion's operands.
using Epilogue = std::function<Instruction*(hlo::Computation&, Instruction* dot)>;

/// A module whose entry is one fusion around a dot.
struct Program {
  hlo::Module module{"m"};
  Instruction* fusion = nullptr;
  Product p;

  explicit Program(Product given, const Epilogue& epilogue = {}, const std::string& name = "dot") : p(std::move(given)) {
    hlo::Computation* fused = module.add_computation("fused");
    Instruction* lhs = fused->add_parameter(0, p.lhs);
    Instruction* rhs = fused->add_parameter(1, p.rhs);
    Instruction* dot = fused->add(Opcode::Dot, p.out, {lhs, rhs});
    dot->mutable_attr<hlo::DotAttr>() = p.dot;
    Instruction* root = epilogue ? epilogue(*fused, dot) : dot;
    fused->set_root(root);
    hlo::Computation* entry = module.add_computation("main");
    std::vector<Instruction*> operands;
    for (const Instruction* i : fused->parameters())
      operands.push_back(entry->add_parameter(i->parameter_number(), i->shape()));
    fusion = entry->add(Opcode::Fusion, root->shape(), operands, name);
    fusion->set_called({fused});
    entry->set_root(fusion);
    module.set_entry(entry);
  }
};

std::uint64_t small_bits(DType type, std::mt19937& random) {
  const int i = static_cast<int>(random() % 17) - 8;
  if (type == DType::Pred) return random() % 4 == 0;
  if (is_integral(type)) return static_cast<std::uint64_t>(is_unsigned(type) ? i + 8 : i);
  const double x = static_cast<double>(static_cast<int>(random() % 2001) - 1000) / 500;
  if (type == DType::F64) return std::bit_cast<std::uint64_t>(x);
  if (type == DType::F32) return std::bit_cast<std::uint32_t>(static_cast<float>(x));
  return hlo::encode_float(hlo::float_format(type), x);
}

hlo::Literal random_array(const Shape& shape, std::mt19937& random) {
  hlo::Literal literal(shape);
  const DType part = real_type(shape.dtype());
  const auto width = static_cast<std::size_t>(byte_width(part));
  const auto bytes = literal.mutable_bytes();
  for (std::size_t at = 0; at < bytes.size(); at += width) {
    const std::uint64_t bits = small_bits(part, random);
    std::memcpy(bytes.data() + at, &bits, width);
  }
  return literal;
}

std::complex<double> part_at(const hlo::Literal& literal, std::int64_t i) {
  if (literal.dtype() == DType::C64) {
    const auto x = literal.data<std::complex<float>>()[static_cast<std::size_t>(i)];
    return {x.real(), x.imag()};
  }
  if (literal.dtype() == DType::C128) return literal.data<std::complex<double>>()[static_cast<std::size_t>(i)];
  return hlo::element_as_double(literal, i);
}

// Memory for a run: 64-aligned copies, so that nothing is written out of place unseen by the evaluator's bounds.
struct Aligned {
  explicit Aligned(std::size_t size) : bytes(size + 64) {}
  std::byte* data() {
    const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
    return bytes.data() + (64 - at % 64) % 64;
  }
  std::vector<std::byte> bytes;
};

using Runner = std::function<void(void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch)>;

/// Runs block by block, the last first: no block may need another.
std::vector<std::byte> run_blocks(const Kernel& kernel, const std::vector<hlo::Literal>& operands, std::int64_t size,
                                  std::int64_t step, const Runner& run) {
  std::vector<Aligned> memory;
  std::vector<void*> buffers;
  for (const hlo::Literal& o : operands) {
    memory.emplace_back(o.bytes().size());
    std::memcpy(memory.back().data(), o.bytes().data(), o.bytes().size());
  }
  memory.emplace_back(static_cast<std::size_t>(size));
  for (Aligned& a : memory) buffers.push_back(a.data());
  std::memset(buffers.back(), 0x7b, static_cast<std::size_t>(size));
  Aligned scratch(static_cast<std::size_t>(kernel.scratch_bytes));
  for (std::int64_t begin = (kernel.blocks - 1) / step * step; begin >= 0; begin -= step)
    run(buffers.data(), begin, std::min(begin + step, kernel.blocks), scratch.data());
  const auto* result = static_cast<std::byte*>(buffers.back());
  return {result, result + size};
}

Runner evaluator(const Kernel& kernel) {
  return [&](void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
    const auto done = evaluate(kernel, buffers, begin, end, scratch);
    ASSERT_TRUE(done) << done.error().message();
  };
}

/// Strides of each dimension of a shape in its elements, and an odometer over dimensions.
bool next_point(Dims& point, const Dims& dims) {
  for (std::size_t d = dims.size(); d-- > 0;) {
    if (++point[d] < dims[d]) return true;
    point[d] = 0;
  }
  return false;
}
std::int64_t offset_of(const Dims& point, const Shape& shape) {
  const auto strides = strides_of(shape);
  std::int64_t at = 0;
  for (std::size_t d = 0; d < point.size(); ++d) at += point[d] * strides[d];
  return at;
}

struct Sum {
  std::complex<double> value = 0;
  double magnitude = 0;  ///< Σ|a·b|
  std::int64_t terms = 0;
};

/// Plain sums of products for all points of the result, row-major.
std::vector<Sum> sums_of(const Product& p, const hlo::Literal& lhs, const hlo::Literal& rhs) {
  const auto in = [](const Dims& dims, std::int64_t d) { return std::ranges::find(dims, d) != dims.end(); };
  Dims contracted;
  for (const std::int64_t d : p.dot.lhs_contracting) contracted.push_back(p.lhs.dim(d));
  std::vector<Sum> sums;
  Dims out(p.out.dims().size());
  if (p.out.num_elements() == 0) return sums;
  do {
    Dims a(p.lhs.dims().size()), b(p.rhs.dims().size());
    std::size_t next = 0;
    for (std::size_t n = 0; n < p.dot.lhs_batch.size(); ++n, ++next) {
      a[static_cast<std::size_t>(p.dot.lhs_batch[n])] = out[next];
      b[static_cast<std::size_t>(p.dot.rhs_batch[n])] = out[next];
    }
    for (std::int64_t d = 0; d < p.lhs.rank(); ++d)
      if (!in(p.dot.lhs_batch, d) && !in(p.dot.lhs_contracting, d)) a[static_cast<std::size_t>(d)] = out[next++];
    for (std::int64_t d = 0; d < p.rhs.rank(); ++d)
      if (!in(p.dot.rhs_batch, d) && !in(p.dot.rhs_contracting, d)) b[static_cast<std::size_t>(d)] = out[next++];
    Sum sum;
    Dims k(contracted.size());
    if (std::ranges::find(contracted, 0) == contracted.end()) do {
        for (std::size_t n = 0; n < k.size(); ++n) {
          a[static_cast<std::size_t>(p.dot.lhs_contracting[n])] = k[n];
          b[static_cast<std::size_t>(p.dot.rhs_contracting[n])] = k[n];
        }
        const auto x = part_at(lhs, offset_of(a, p.lhs)), y = part_at(rhs, offset_of(b, p.rhs));
        sum.value += x * y;
        sum.magnitude += std::abs(x) * std::abs(y);
        ++sum.terms;
      } while (next_point(k, contracted));
    sums.push_back(sum);
  } while (next_point(out, p.out.dims()));
  return sums;
}

double epsilon_of(DType type) {
  const DType part = real_type(type);
  if (part == DType::F64) return 0x1p-53;
  if (part == DType::F32) return 0x1p-24;
  return std::ldexp(1.0, -1 - hlo::float_format(part).mantissa_bits);
}

/// Each of the n products and n-1 sums rounds once, by at most eps of what stands there, which is at most Σ|a·b|; the
/// result is rounded once more. Complex products are two products and a sum.
double bound_of(const Sum& sum, DType out) {
  const DType summed = is_floating(out) && bit_width(out) < 32 ? DType::F32 : out;
  const double n = static_cast<double>(sum.terms) * (is_complex(out) ? 4 : 1) + 1;
  const double narrowed = summed == out ? 0 : epsilon_of(out) * std::abs(sum.value) * 1.01 + 1e-38;
  return n * epsilon_of(summed) * sum.magnitude * 1.01 + narrowed;
}

::testing::AssertionResult is_product(const Product& p, const std::vector<hlo::Literal>& operands,
                                      const std::vector<std::byte>& bytes) {
  const hlo::Literal result = hlo::Literal::from_bytes(p.out, bytes);
  const std::vector<Sum> sums = sums_of(p, operands[0], operands[1]);
  Dims point(p.out.dims().size());
  for (const Sum& sum : sums) {
    const auto found = part_at(result, offset_of(point, p.out));
    std::complex<double> expected = sum.value;
    if (p.out.dtype() == DType::Pred) expected = expected.real() != 0;
    if (p.out.dtype() == DType::S8) expected = static_cast<std::int8_t>(static_cast<std::int64_t>(expected.real()));
    const bool exact = p.out.dtype() == DType::Pred || is_integral(p.out.dtype());
    if (!(std::abs(found - expected) <= (exact ? 0 : bound_of(sum, p.out.dtype()))))
      return ::testing::AssertionFailure() << "at " << offset_of(point, p.out) << ": " << found << ", not " << expected;
    next_point(point, p.out.dims());
  }
  return ::testing::AssertionSuccess();
}

std::string describe(const Product& p) {
  return to_string(p.lhs) + " · " + to_string(p.rhs) + " → " + to_string(p.out);
}

std::vector<hlo::Literal> operands_of(const Instruction& fusion, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<hlo::Literal> operands;
  for (const Instruction* o : fusion.operands()) operands.push_back(random_array(o->shape(), random));
  return operands;
}

/// Plans and checks the kernel's form.
Kernel planned(const Program& program, const VectorUnit& unit = {}) {
  EXPECT_TRUE(is_dot_fusion(*program.fusion)) << to_string(program.p.lhs) << " · " << to_string(program.p.rhs);
  auto kernel = plan_dot(*program.fusion, unit);
  EXPECT_TRUE(kernel) << kernel.error().message();
  const auto valid = verify(*kernel);
  EXPECT_TRUE(valid) << valid.error().message() << "\n" << print(*kernel);
  return *std::move(kernel);
}

void expect_evaluates(const Program& program, unsigned seed) {
  const Kernel kernel = planned(program);
  const auto operands = operands_of(*program.fusion, seed);
  const auto bytes = run_blocks(kernel, operands, program.p.out.size_bytes(), 1, evaluator(kernel));
  ASSERT_TRUE(is_product(program.p, operands, bytes)) << describe(program.p) << "\n" << print(kernel);
}

/// Compiles many at once, and holds them against sums and, where that is quick, against the evaluator.
void expect_compiles(const std::vector<std::unique_ptr<Program>>& programs, const VectorUnit& unit = {}) {
  std::vector<Kernel> kernels;
  for (std::size_t n = 0; n < programs.size(); ++n) {
    kernels.push_back(planned(*programs[n], unit));
    kernels.back().name = "dot" + std::to_string(n);
  }
  const auto code = jit::compile(kernels);
  ASSERT_TRUE(code) << code.error().message();
  for (std::size_t n = 0; n < programs.size(); ++n) {
    const Program& program = *programs[n];
    const auto function = *jit::kernel_function(**code, kernels[n].name);
    const auto operands = operands_of(*program.fusion, static_cast<unsigned>(n));
    const std::int64_t size = program.p.out.size_bytes();
    const auto once = run_blocks(kernels[n], operands, size, kernels[n].blocks, function);
    ASSERT_TRUE(is_product(program.p, operands, once)) << describe(program.p) << "\n" << print(kernels[n]);
    ASSERT_EQ(once, run_blocks(kernels[n], operands, size, 1, function)) << describe(program.p);
    ASSERT_EQ(once, run_blocks(kernels[n], operands, size, 1, evaluator(kernels[n]))) << describe(program.p) << "\n" << print(kernels[n]);
  }
}

// --- Matrices ------------------------------------------------------------------------------------------------------

TEST(PlanDot, AllSmallSizes) {
  for (std::int64_t m = 1; m <= 20; ++m)
    for (std::int64_t n = 1; n <= 20; ++n)
      for (std::int64_t k = 1; k <= 20; k += k < 6 ? 1 : 3) {
        const std::int64_t form = m + n + k;
        expect_evaluates(Program(matrices(m, n, k, form % 2 == 0, form / 2 % 2 == 0)), 1);
        if (HasFatalFailure()) return;
      }
}

TEST(PlanDot, SizesAroundTheEdgesOfTiles) {
  std::mt19937 random(7);
  const std::int64_t sizes[] = {1, 2, 3, 7, 8, 9, 13, 14, 15, 16, 17, 27, 28, 29, 31, 32, 33, 47, 48, 49, 63, 64, 65, 100};
  const auto draw = [&] { return sizes[random() % std::size(sizes)]; };
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 120; ++i)
    programs.push_back(std::make_unique<Program>(matrices(draw(), draw(), draw(), i % 2 == 0, i / 2 % 2 == 0)));
  expect_compiles(programs);
}

TEST(PlanDot, SizesThatAreSharedOut) {
  std::vector<std::unique_ptr<Program>> programs;
  for (const bool lhs : {false, true})
    for (const bool rhs : {false, true}) {
      programs.push_back(std::make_unique<Program>(matrices(131, 150, 130, lhs, rhs)));
      programs.push_back(std::make_unique<Program>(matrices(1, 1000, 300, lhs, rhs)));
      programs.push_back(std::make_unique<Program>(matrices(1000, 1, 300, lhs, rhs)));
      programs.push_back(std::make_unique<Program>(matrices(3, 500, 257, lhs, rhs)));
      programs.push_back(std::make_unique<Program>(matrices(500, 5, 257, lhs, rhs)));
      programs.push_back(std::make_unique<Program>(matrices(1, 1, 5000, lhs, rhs)));
    }
  expect_compiles(programs);
  EXPECT_GT(planned(*programs[0]).blocks, 1);
}

TEST(PlanDot, NothingToSumOrToStore) {
  expect_evaluates(Program(matrices(3, 5, 0)), 1);
  expect_evaluates(Program(matrices(0, 5, 3)), 1);
  expect_evaluates(Program(matrices(3, 0, 3)), 1);
}

TEST(PlanDot, NarrowRegistersGiveTheSameBits) {
  std::mt19937 random(3);
  for (int i = 0; i < 40; ++i) {
    const auto draw = [&] { return static_cast<std::int64_t>(random() % 70) + 1; };
    const Program program(matrices(draw(), draw(), draw(), i % 2 == 0, i / 2 % 2 == 0));
    const Kernel wide = planned(program), narrow = planned(program, {.vector_bytes = 16, .num_registers = 16, .has_masks = false});
    const auto operands = operands_of(*program.fusion, 1);
    const std::int64_t size = program.p.out.size_bytes();
    ASSERT_EQ(run_blocks(wide, operands, size, 1, evaluator(wide)), run_blocks(narrow, operands, size, 1, evaluator(narrow)))
        << describe(program.p);
  }
}

// --- Types ---------------------------------------------------------------------------------------------------------

TEST(PlanDot, Types) {
  std::vector<std::unique_ptr<Program>> programs;
  const std::pair<DType, DType> types[] = {
      {DType::F64, DType::F64}, {DType::BF16, DType::BF16}, {DType::BF16, DType::F32}, {DType::F16, DType::F16},
      {DType::S32, DType::S32}, {DType::S8, DType::S32},    {DType::S8, DType::S8},    {DType::U8, DType::U32},
      {DType::S64, DType::S64}, {DType::Pred, DType::Pred}, {DType::C64, DType::C64},  {DType::C128, DType::C128}};
  int form = 0;
  for (const auto& [in, out] : types)
    for (const auto& [m, n, k] : {std::tuple(5, 7, 9), std::tuple(33, 50, 40), std::tuple(1, 70, 65), std::tuple(40, 1, 70)}) {
      programs.push_back(std::make_unique<Program>(matrices(m, n, k, form % 2 == 0, form / 2 % 2 == 0, in, out)));
      ++form;
    }
  expect_compiles(programs);
}

// Four products at a time, where a processor has them: sizes that are no multiple of anything, each side without sign, one block
// of steps and several, long sums, batches.
TEST(PlanDot, ProductsOfBytes) {
  std::vector<std::unique_ptr<Program>> programs;
  const auto add = [&](DType lhs, DType rhs, std::int64_t m, std::int64_t n, std::int64_t k, DType out) {
    Product p = matrices(m, n, k, (m + k) % 2 == 0, n % 2 == 0, lhs, out);
    p.rhs.set_dtype(rhs);
    programs.push_back(std::make_unique<Program>(std::move(p)));
  };
  const std::pair<DType, DType> types[] = {{DType::S8, DType::S8}, {DType::U8, DType::S8}, {DType::S8, DType::U8}, {DType::U8, DType::U8},
                                           {DType::S4, DType::U4}};
  for (const auto& [lhs, rhs] : types)
    for (const auto& [m, n, k] : {std::tuple(4, 5, 16), std::tuple(5, 17, 19), std::tuple(33, 50, 66), std::tuple(40, 16, 129), std::tuple(9, 70, 301)})
      add(lhs, rhs, m, n, k, k % 3 == 0 ? DType::S64 : k % 3 == 1 ? DType::S32 : DType::S8);
  add(DType::S8, DType::S8, 20, 300, 3001, DType::S32);
  hlo::DotAttr batched;
  batched.lhs_batch = batched.rhs_batch = {0};
  batched.lhs_contracting = {2};
  batched.rhs_contracting = {1};
  programs.push_back(std::make_unique<Program>(product(DType::S8, {3, 12, 40}, {3, 40, 21}, batched, DType::S32)));
  VectorUnit unit;
  unit.has_byte_products = true;
  EXPECT_NE(print(planned(*programs[0], unit)).find("multiply-add s32"), std::string::npos);
  expect_compiles(programs, unit);
}

// Sums of short integers up to where they are largest: short ones within f32, longer ones block by block.
TEST(PlanDot, IntegersAtTheirLargest) {
  std::vector<std::unique_ptr<Program>> programs;
  for (const auto& [in, out] : {std::pair(DType::S8, DType::S32), {DType::U8, DType::U32}, {DType::S8, DType::S8},
                                {DType::S8, DType::S64}, {DType::U4, DType::S32}})
    for (const auto& [m, n, k] : {std::tuple(5, 20, 1024), std::tuple(20, 33, 1040), std::tuple(1, 40, 2500),
                                  std::tuple(40, 1, 1025), std::tuple(70, 64, 600)})
      programs.push_back(std::make_unique<Program>(matrices(m, n, k, false, (m + n) % 2 == 0, in, out)));
  std::vector<Kernel> kernels;
  for (std::size_t i = 0; i < programs.size(); ++i) {
    kernels.push_back(*plan_dot(*programs[i]->fusion));
    kernels.back().name = "dot." + std::to_string(i);
  }
  const auto code = *jit::compile(kernels);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    const Product& p = programs[i]->p;
    // The lowest: -128, or 255 and 15.
    std::vector<hlo::Literal> operands;
    for (const Shape* shape : {&p.lhs, &p.rhs}) {
      operands.emplace_back(*shape);
      const auto bytes = operands.back().mutable_bytes();
      std::ranges::fill(bytes, shape->dtype() == DType::S8 ? std::byte{0x80} : shape->dtype() == DType::U8 ? std::byte{0xFF} : std::byte{15});
      bytes[0] = std::byte{1};
    }
    const auto compiled = [&](void* const* buffers, std::int64_t begin, std::int64_t end, void* scratch) {
      (*jit::kernel_function(*code, kernels[i].name))(buffers, begin, end, scratch);
    };
    const auto result = run_blocks(kernels[i], operands, p.out.size_bytes(), 1, compiled);
    EXPECT_TRUE(is_product(p, operands, result)) << describe(p);
  }
}

// --- Dimensions ----------------------------------------------------------------------------------------------------

hlo::DotAttr dims_of(Dims lhs_batch, Dims lhs, Dims rhs_batch, Dims rhs) {
  hlo::DotAttr dot;
  dot.lhs_batch = std::move(lhs_batch);
  dot.lhs_contracting = std::move(lhs);
  dot.rhs_batch = std::move(rhs_batch);
  dot.rhs_contracting = std::move(rhs);
  return dot;
}

TEST(PlanDot, BatchesAndSeveralDimensions) {
  const DType t = DType::F32;
  std::vector<std::unique_ptr<Program>> programs;
  const auto add = [&](Product p) { programs.push_back(std::make_unique<Program>(std::move(p))); };
  add(product(t, {6, 4, 5}, {6, 5, 7}, dims_of({0}, {2}, {0}, {1})));
  add(product(t, {2, 9, 3, 8}, {2, 11, 3, 8}, dims_of({0, 2}, {3}, {0, 2}, {3})));   // scores of attention
  add(product(t, {2, 3, 9, 11}, {2, 11, 3, 8}, dims_of({0, 1}, {3}, {0, 2}, {1})));  // and its values
  add(product(t, {4, 5, 6}, {5, 6, 7}, dims_of({}, {1, 2}, {}, {0, 1})));            // two summed, one loop
  add(product(t, {4, 5, 6}, {6, 5, 7}, dims_of({}, {1, 2}, {}, {1, 0})));            // two summed, two loops
  add(product(t, {3, 4, 5, 6}, {6, 2, 7}, dims_of({}, {3}, {}, {0})));               // several free
  add(product(t, {3, 6, 5}, {2, 6, 7}, dims_of({}, {1}, {}, {1})));                  // that do not merge
  add(product(t, {6}, {6}, dims_of({}, {0}, {}, {0})));
  add(product(t, {6}, {5}, dims_of({}, {}, {}, {})));                                // outer product
  add(product(t, {3, 5, 300}, {3, 300, 40}, dims_of({0}, {2}, {0}, {1})));
  add(product(t, {300, 8, 8}, {300, 8, 8}, dims_of({0}, {2}, {0}, {1})));
  add(product(t, {24, 50, 60}, {24, 60, 50}, dims_of({0}, {2}, {0}, {1})));          // batches as the grid
  expect_compiles(programs);
}

TEST(PlanDot, Layouts) {
  std::mt19937 random(5);
  const auto shuffled = [&](Shape s) {
    Layout layout = s.layout();
    std::ranges::shuffle(layout.minor_to_major, random);
    s.set_layout(layout);
    return s;
  };
  std::vector<std::unique_ptr<Program>> programs;
  for (int i = 0; i < 30; ++i) {
    Product p = i % 2 == 0 ? product(DType::F32, {2, 9, 3, 8}, {2, 11, 3, 8}, dims_of({0, 2}, {3}, {0, 2}, {3}))
                           : product(DType::F32, {4, 17, 6}, {6, 17, 18}, dims_of({}, {1, 2}, {}, {1, 0}));
    p.lhs = shuffled(p.lhs);
    p.rhs = shuffled(p.rhs);
    p.out = shuffled(p.out);
    programs.push_back(std::make_unique<Program>(std::move(p)));
  }
  expect_compiles(programs);
}

// --- Before and after ----------------------------------------------------------------------------------------------

// f32 as the test's own arithmetic, applied to the plain dot's result, gives the fused kernel's bits.
void expect_epilogue(const Product& p, const Epilogue& epilogue,
                     const std::function<float(float sum, const std::vector<hlo::Literal>&, std::int64_t at)>& apply) {
  const Program plain(p), fused(p, epilogue);
  const Kernel plain_kernel = planned(plain), kernel = planned(fused);
  const auto operands = operands_of(*fused.fusion, 9);
  const std::vector<hlo::Literal> two(operands.begin(), operands.begin() + 2);
  const auto sums = run_blocks(plain_kernel, two, p.out.size_bytes(), 1, evaluator(plain_kernel));
  const auto found = run_blocks(kernel, operands, fused.fusion->shape().size_bytes(), 1, evaluator(kernel));
  for (std::int64_t i = 0; i < p.out.num_elements(); ++i) {
    float sum, result;
    std::memcpy(&sum, sums.data() + 4 * i, 4);
    std::memcpy(&result, found.data() + 4 * i, 4);
    ASSERT_EQ(result, apply(sum, operands, i)) << "at " << i << "\n" << print(kernel);
  }
  const auto code = jit::compile(std::span(&kernel, 1));
  ASSERT_TRUE(code) << code.error().message();
  const auto function = *jit::kernel_function(**code, kernel.name);
  EXPECT_EQ(found, run_blocks(kernel, operands, fused.fusion->shape().size_bytes(), 1, function));
}

Product epilogue_sizes(int i) {
  const Product sizes[] = {matrices(5, 7, 9), matrices(33, 50, 40), matrices(1, 300, 40), matrices(60, 1, 50),
                           matrices(150, 150, 100), matrices(40, 35, 64, false, true)};
  return sizes[i];
}

TEST(PlanDot, BiasAndRelu) {
  for (int i = 0; i < 6; ++i) {
    const Product p = epilogue_sizes(i);
    const std::int64_t n = p.out.dim(1);
    expect_epilogue(
        p,
        [&](hlo::Computation& c, Instruction* dot) {
          Instruction* bias = c.add_broadcast(c.add_parameter(2, Shape::array(DType::F32, {n})), p.out.dims(), {1});
          Instruction* zero = c.add_broadcast(c.add_constant(hlo::Literal(Shape::scalar(DType::F32))), p.out.dims(), {});
          return c.add(Opcode::Maximum, p.out, {c.add(Opcode::Add, p.out, {dot, bias}), zero});
        },
        [n](float sum, const auto& operands, std::int64_t at) {
          return std::max(sum + operands[2].template data<float>()[static_cast<std::size_t>(at % n)], 0.0F);
        });
  }
}

TEST(PlanDot, LongEpiloguesGoThroughScratch) {
  for (int i = 0; i < 6; ++i) {
    const Product p = epilogue_sizes(i);
    expect_epilogue(
        p,
        [&](hlo::Computation& c, Instruction* dot) {
          Instruction* other = c.add_parameter(2, p.out);
          Instruction* x = dot;
          for (int n = 0; n < 6; ++n) x = c.add(Opcode::Add, p.out, {c.add(Opcode::Multiply, p.out, {x, other}), dot});
          return x;
        },
        [](float sum, const auto& operands, std::int64_t at) {
          float x = sum;
          for (int n = 0; n < 6; ++n) {
            const float product = x * operands[2].template data<float>()[static_cast<std::size_t>(at)];
            x = product + sum;
          }
          return x;
        });
  }
}

TEST(PlanDot, ResultsThatMove) {
  const Product p = matrices(12, 20, 9);
  expect_epilogue(
      p,
      [&](hlo::Computation& c, Instruction* dot) {
        Instruction* negated = c.add(Opcode::Negate, p.out, {dot});
        return c.add_reshape(negated, {3, 4, 20});
      },
      [](float sum, const auto&, std::int64_t) { return -sum; });
  const Program transposed(p, [](hlo::Computation& c, Instruction* dot) { return c.add_transpose(dot, {1, 0}); });
  const Kernel kernel = planned(transposed);
  const auto operands = operands_of(*transposed.fusion, 1);
  const auto bytes = run_blocks(kernel, operands, p.out.size_bytes(), 1, evaluator(kernel));
  Product laid = p;
  laid.out.set_layout({{0, 1}, nullptr});
  EXPECT_TRUE(is_product(laid, operands, bytes));
}

TEST(PlanDot, OperandsThatMoveOrAreComputed) {
  // The dot of (transposed, negated, converted) parameters is the negated dot of the moved arrays.
  hlo::Module module("m");
  hlo::Computation* fused = module.add_computation("fused");
  Instruction* a = fused->add_parameter(0, Shape::array(DType::BF16, {6, 40, 5}));
  Instruction* moved = fused->add_reshape(fused->add_transpose(a, {1, 0, 2}), {40, 30});
  Instruction* lhs = fused->add(Opcode::Convert, Shape::array(DType::F32, {40, 30}), {moved});
  Instruction* b = fused->add_parameter(1, Shape::array(DType::F32, {30, 50}));
  Instruction* rhs = fused->add(Opcode::Negate, b->shape(), {b});
  Instruction* dot = fused->add(Opcode::Dot, Shape::array(DType::F32, {40, 50}), {lhs, rhs});
  dot->mutable_attr<hlo::DotAttr>().lhs_contracting = {1};
  dot->mutable_attr<hlo::DotAttr>().rhs_contracting = {0};
  fused->set_root(dot);
  hlo::Computation* entry = module.add_computation("main");
  Instruction* x = entry->add_parameter(0, a->shape());
  Instruction* y = entry->add_parameter(1, b->shape());
  Instruction* fusion = entry->add(Opcode::Fusion, dot->shape(), {x, y}, "dot");
  fusion->set_called({fused});
  entry->set_root(fusion);
  module.set_entry(entry);

  const auto kernel = plan_dot(*fusion);
  ASSERT_TRUE(kernel) << kernel.error().message();
  ASSERT_TRUE(verify(*kernel)) << print(*kernel);
  const auto operands = operands_of(*fusion, 1);
  const auto bytes = run_blocks(*kernel, operands, dot->shape().size_bytes(), 1, evaluator(*kernel));
  for (std::int64_t m = 0; m < 40; ++m)
    for (std::int64_t n = 0; n < 50; ++n) {
      double sum = 0, magnitude = 0;
      for (std::int64_t k = 0; k < 30; ++k) {
        const double p = hlo::element_as_double(operands[0], (k / 5 * 40 + m) * 5 + k % 5) *
                         -hlo::element_as_double(operands[1], k * 50 + n);
        sum += p;
        magnitude += std::abs(p);
      }
      float found;
      std::memcpy(&found, bytes.data() + 4 * (m * 50 + n), 4);
      ASSERT_NEAR(found, sum, 31 * 0x1p-24 * magnitude) << m << ", " << n << "\n" << print(*kernel);
    }
}

TEST(PlanDot, OnlyElementwiseWorkFollows) {
  const Product p = matrices(4, 5, 6);
  const Program reversed(p, [&](hlo::Computation& c, Instruction* dot) {
    Instruction* r = c.add(Opcode::Reverse, p.out, {dot});
    r->set_dimensions({0});
    return r;
  });
  EXPECT_FALSE(is_dot_fusion(*reversed.fusion));
  const Program twice(p, [&](hlo::Computation& c, Instruction* dot) {
    Instruction* second = c.add_clone(*dot, dot->operands());
    return c.add(Opcode::Add, p.out, {dot, second});
  });
  EXPECT_FALSE(is_dot_fusion(*twice.fusion));
  EXPECT_FALSE(is_dot_fusion(*reversed.fusion->operand(0)));
  // One short product for each batch: loops over elements have the better lanes.
  const Program elementwise(product(DType::F32, {6}, {6}, dims_of({0}, {}, {0}, {})));
  EXPECT_FALSE(is_dot_fusion(*elementwise.fusion));
}

TEST(PlanDot, BalancedRuns) {
  for (std::int64_t total = 1; total < 80; ++total)
    for (std::int64_t largest = 1; largest < 30; ++largest) {
      std::int64_t next = 0, tile = 0;
      for (const DotRun& r : balanced_runs(total, largest)) {
        EXPECT_EQ(r.first, next);
        EXPECT_EQ(r.tile, tile);
        EXPECT_LE(r.size, largest);
        next += r.size * r.count;
        tile += r.count;
      }
      EXPECT_EQ(next, total);
      EXPECT_EQ(tile, (total + largest - 1) / largest);
    }
}

}  // namespace
}  // namespace hloom::kernels

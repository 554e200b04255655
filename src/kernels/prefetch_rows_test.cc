// Which rows are called for: each line once where that pays, none where it does not, and never outside of the table.
#include "kernels/prefetch_rows.h"

#include <gtest/gtest.h>

#include <random>

#include "fusion/fuse.h"
#include "jit/compile.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/test_run_fused.h"
#include "kernels/verify.h"

namespace hloom::kernels {
namespace {

std::int64_t count(const std::string& text, const std::string& word) {
  std::int64_t n = 0;
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++n;
  return n;
}

Kernel planned(const hlo::Module& module) {
  auto kernel = plan(*module.entry()->root());
  EXPECT_TRUE(kernel) << kernel.error().message();
  EXPECT_TRUE(verify(*kernel));
  return *std::move(kernel);
}

std::string fused(const std::string& text) {
  const auto module = parse(text);
  EXPECT_TRUE(fusion::fuse(*module));
  return print(planned(*module));
}

std::string rows_of(const std::string& type, std::int64_t table_rows, std::int64_t columns, std::int64_t picked) {
  const std::string c = std::to_string(columns), n = std::to_string(picked), row = "," + c + "]";
  return "ENTRY e { p = " + type + "[" + std::to_string(table_rows) + row + " parameter(0)\n i = s32[" + n + ",1] parameter(1)\n ROOT r = " + type + "[" +
         n + row + " gather(p, i), offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1," + c + "} }";
}

TEST(PrefetchRows, EachLineOfShortRowsOnce) {
  const auto prefetches = [](const std::string& text) { return count(fused(text), "prefetch "); };
  EXPECT_EQ(prefetches(rows_of("f32", 100000, 16, 1000)), 1);
  EXPECT_EQ(prefetches(rows_of("f32", 40000, 64, 1000)), 4);
  EXPECT_EQ(prefetches(rows_of("bf16", 40000, 64, 1100)), 2);
  EXPECT_EQ(prefetches(rows_of("s8", 100000, 128, 1000)), 2);
  EXPECT_EQ(prefetches(rows_of("c128", 40000, 16, 1000)), 4);
  EXPECT_EQ(prefetches(rows_of("f32", 20000, 128, 1000)), 8);
  EXPECT_EQ(prefetches(rows_of("f32", 100000, 20, 1000)), 3) << "80 bytes at any place: two lines, and that of the last element";
}

TEST(PrefetchRows, NoneWhereItDoesNotPay) {
  EXPECT_EQ(fused(rows_of("f32", 10000, 16, 1000)).find("prefetch"), std::string::npos) << "a small table";
  EXPECT_EQ(fused(rows_of("f32", 100000, 16, 63)).find("prefetch"), std::string::npos) << "few rows";
  EXPECT_EQ(fused(rows_of("f32", 10000, 256, 1000)).find("prefetch"), std::string::npos) << "long rows";
  EXPECT_EQ(fused(rows_of("f32", 2000000, 1, 1000)).find("prefetch"), std::string::npos) << "elements";
  EXPECT_EQ(fused("ENTRY e { p = f32[100000,16] parameter(0)\n ROOT r = f32[100000,16] negate(p) }").find("prefetch"), std::string::npos)
      << "rows in order";
}

TEST(PrefetchRows, TheRowIsFoundAsItWillBe) {
  const std::string text = fused(rows_of("f32", 100000, 16, 1000));
  EXPECT_EQ(count(text, "minimum s64"), 3) << "of the iteration, and of both indices\n" << text;
  EXPECT_EQ(count(text, "maximum s64"), 2) << text;
  EXPECT_NE(text.find("constant s64 999\n"), std::string::npos) << "the last row picked\n" << text;
}

// A loop over rows as `body` says, from 8 MiB.
std::string added(const std::string& body, const std::string& arguments = "t: f32[2097152], p: s64[1000]") {
  const std::string text = "kernel k(" + arguments + ") -> (y: f32[64000]) { one = constant f32 1 for r in 0..1000 { " + body + " } }";
  auto kernel = parse(std::string_view(text));
  EXPECT_TRUE(kernel) << kernel.error().message();
  EXPECT_TRUE(verify(*kernel));
  prefetch_rows(*kernel);
  const auto done = verify(*kernel);
  EXPECT_TRUE(done) << done.error().message();
  return print(*kernel);
}

TEST(PrefetchRows, AllFormsOfARow) {
  const std::string pick = "i = load s64 p[r] ", store = "store y[16*r + c], x } ";
  const auto prefetches = [](const std::string& body) { return count(added(body), "prefetch "); };
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[16*i + c] " + store), 1);
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[16*i + c + 16] " + store), 1);
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[16*i - c + 15] " + store), 1) << "backwards";
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[16*i + c + 8] " + store), 2) << "parts of two lines";
  EXPECT_EQ(prefetches(pick + "for b in 0..2 { for c in 0..16 by 16 { x = load f32 t[64*i + 16*b + c] " + store + "}"), 2);
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[16*i + c] z = load f32 t[16*i + c] w = add f32 x, z store y[16*r + c], w }"), 1);
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[32*i + c] z = load f32 t[32*i + c + 16] w = add f32 x, z store y[16*r + c], w }"), 2)
      << "halves of a row";
  EXPECT_EQ(prefetches(pick + "for c in 0..16 by 16 { x = load f32 t[32*i + 16*r + c] " + store), 1) << "batches";
  EXPECT_EQ(prefetches("i = load s64 p[r] j = load s64 p[r] k = index 2*i + j for c in 0..16 by 16 { x = load f32 t[16*k + c] " + store), 1);
}

TEST(PrefetchRows, WhatCannotBeFoundAhead) {
  const std::string pick = "i = load s64 p[r] ", row = "for c in 0..16 by 16 { x = load f32 t[16*i + c] store y[16*r + c], x } ";
  const auto has = [](const std::string& text) { return text.find("prefetch") != std::string::npos; };
  EXPECT_TRUE(has(added(pick + row)));
  EXPECT_FALSE(has(added(pick + row, "t: f32[2097152], p: s64[1000] written"))) << "an index that is written";
  EXPECT_FALSE(has(added(pick + row, "t: f32[2097152] written, p: s64[1000]"))) << "a table that is written";
  EXPECT_FALSE(has(added("q = compare pred one, one eq float i = load s64 p[r] where q " + row))) << "an index that is not always there";
  EXPECT_FALSE(has(added(pick + "q = compare pred one, one eq float for c in 0..16 by 16 { x = load f32 t[16*i + c] where q store y[16*r + c], x }")));
  EXPECT_FALSE(has(added(pick + "q = compare pred one, one eq float if q { } " + row))) << "branches";
  EXPECT_FALSE(has(added("i = index r + 1 " + row))) << "no load has a part in it";
  std::string long_chain = "i0 = load s64 p[r] ";
  for (int n = 0; n < 30; ++n) long_chain += "i" + std::to_string(n + 1) + " = negate s64 i" + std::to_string(n) + " ";
  EXPECT_FALSE(has(added(long_chain + "for c in 0..16 by 16 { x = load f32 t[16*i30 + c] store y[16*r + c], x }"))) << "much work";
}

// Values are what they are without, with indices on both sides of the table; the evaluator sees each prefetch inside of it.
TEST(PrefetchRows, ValuesStayTheSame) {
  struct Gather {
    std::string table, indices, result, attributes;
  };
  const Gather gathers[] = {
      {"f32[70000,16]", "s32[100,1]", "f32[100,16]", "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,16}"},
      {"bf16[40000,64]", "s64[90]", "bf16[90,64]", "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,64}"},
      {"s8[70000,70]", "u8[80,1]", "s8[80,70]", "offset_dims={1}, collapsed_slice_dims={0}, start_index_map={0}, index_vector_dim=1, slice_sizes={1,70}"},
      {"f32[35000,2,16]", "s32[100,2]", "f32[100,2,16]", "offset_dims={1,2}, collapsed_slice_dims={0}, start_index_map={0,1}, index_vector_dim=1, slice_sizes={1,2,16}"},
      {"f64[100,5300]", "s32[5,20,2]", "f64[5,20,9]", "offset_dims={2}, collapsed_slice_dims={0}, start_index_map={1,0}, index_vector_dim=2, slice_sizes={1,9}"},
      {"f32[80,1000,16]", "s32[80,1]", "f32[80,16]",
       "offset_dims={1}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, start_indices_batching_dims={0}, index_vector_dim=1, slice_sizes={1,1,16}"},
  };
  std::mt19937_64 random(1);
  for (const Gather& g : gathers) {
    SCOPED_TRACE(g.table + " by " + g.indices);
    const auto module = parse("ENTRY e { p = " + g.table + " parameter(0)\n i = " + g.indices + " parameter(1)\n ROOT r = " + g.result + " gather(p, i), " +
                              g.attributes + " }");
    std::vector<Literal> arguments;
    for (std::int64_t n = 0; n < 2; ++n) {
      const Shape& shape = module->entry()->parameter(n)->shape();
      std::vector<std::byte> bytes(static_cast<std::size_t>(shape.size_bytes()));
      const auto width = static_cast<std::size_t>(byte_width(shape.dtype()));
      for (std::size_t at = 0; at < bytes.size(); at += width) {
        // Small floats of any kind have small bits; indices lie around the table.
        const std::int64_t x = n == 0 ? static_cast<std::int64_t>(random() % 16000) : static_cast<std::int64_t>(random() % 90000) - 9000;
        std::memcpy(&bytes[at], &x, width);
      }
      arguments.push_back(Literal::from_bytes(shape, std::move(bytes)));
    }
    const auto want = interp::interpret(*module, arguments);
    ASSERT_TRUE(want) << want.error().message();
    ASSERT_TRUE(fusion::fuse(*module));
    const Kernel kernel = planned(*module);
    EXPECT_NE(print(kernel).find("prefetch"), std::string::npos) << print(kernel);
    const auto code = jit::compile(std::vector<Kernel>{kernel});
    ASSERT_TRUE(code) << code.error().message();
    const Instruction& fusion = *module->entry()->root();
    Buffers evaluated(fusion, arguments), compiled(fusion, arguments);
    const auto done = evaluate(kernel, evaluated.pointers.data(), 0, kernel.blocks, nullptr);
    ASSERT_TRUE(done) << done.error().message();
    const auto function = jit::kernel_function(**code, kernel.name);
    ASSERT_TRUE(function);
    (*function)(compiled.pointers.data(), 0, kernel.blocks, nullptr);
    for (Buffers* buffers : {&evaluated, &compiled})
      EXPECT_FALSE(arrays::compare(buffers->result(fusion.shape()), *want, arrays::Tolerance::equal())) << print(kernel);
  }
}

}  // namespace
}  // namespace hloom::kernels

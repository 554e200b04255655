// The law of forms: how tiles, panels, cells and blocks of sums are cut changes no bit of the result.
#include "kernels/dot_form.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "kernels/dot_builder.h"
#include "kernels/dot_problem.h"
#include "kernels/evaluate.h"
#include "kernels/print.h"
#include "kernels/verify.h"
#include "text/parse.h"

namespace hloom::kernels {
namespace {

using hlo::Instruction;
using Floats = std::vector<float>;

// A kernel of this form for a fusion of two operands and one result.
Expected<Kernel> build(const Instruction& fusion, const DotForm& form) {
  Builder b("dot");
  Places places;
  for (std::int64_t o = 0; o < 2; ++o) {
    places.operands.push_back({static_cast<int>(o), 0, fusion.operand(o)->shape()});
    b.kernel().arguments.push_back(argument_of(fusion.operand(o)->shape(), "a" + std::to_string(o), false));
  }
  places.results.push_back({2, 0, fusion.shape()});
  b.kernel().arguments.push_back(argument_of(fusion.shape(), "y0", true));
  const DotFusion found = find_dot(fusion);
  auto problem = analyse_dot(found, places);
  if (!problem) return problem.error();
  auto blocks = DotBuilder(b, found, places, *problem, form).build();
  if (!blocks) return blocks.error();
  Kernel kernel = std::move(b).finish();
  kernel.blocks = *blocks;
  if (kernel.scratch_bytes > 0) kernel.scratch_type = found.sum_type;
  if (auto valid = verify(kernel); !valid) return valid.error();
  return kernel;
}

Floats random_floats(std::int64_t count, unsigned seed) {
  std::mt19937 random(seed);
  Floats f(static_cast<std::size_t>(count));
  for (float& x : f) x = static_cast<float>(static_cast<int>(random() % 2001) - 1000) / 999;
  return f;
}

Floats run(const Instruction& fusion, const Kernel& kernel) {
  Floats lhs = random_floats(fusion.operand(0)->shape().num_elements(), 1), rhs = random_floats(fusion.operand(1)->shape().num_elements(), 2);
  Floats result(static_cast<std::size_t>(fusion.shape().num_elements()), -7.0F);
  // Scratch as other kernels leave it.
  Floats scratch(static_cast<std::size_t>(kernel.scratch_bytes / 4), 1e30F);
  void* buffers[] = {lhs.data(), rhs.data(), result.data()};
  for (std::int64_t block = kernel.blocks; block-- > 0;) {
    const auto done = evaluate(kernel, buffers, block, block + 1, scratch.data());
    EXPECT_TRUE(done) << done.error().message();
  }
  return result;
}

// What an odometer over all choices gives; not all go together.
struct Choices {
  int pack, block, cells, tile;
  bool swapped, shared;
};

DotForm form_of(const Choices& c, const DotProblem& problem) {
  DotForm f;
  f.swapped = c.swapped;
  f.rows = c.tile == 0 ? 1 : 4;
  f.vectors = c.tile == 0 ? 2 : 1;
  f.pack_rows = c.pack == 3 || c.pack == 4;
  f.pack_lanes = c.pack != 0 && c.pack != 3;
  f.pack_at_once = c.pack == 2;
  f.share_panels = c.shared;
  const auto sums = static_cast<std::int64_t>(problem.axes.size() - problem.rhs_axis - 1);
  f.sum_outer = c.block == 0 ? 0 : c.block == 1 ? sums - 1 : std::min<std::int64_t>(1, sums - 1);
  f.sum_block = c.block == 1 ? 3 : 0;
  f.row_cells = c.cells == 1 ? 2 : 1;
  f.lane_cells = c.cells > 0 ? 2 : 1;
  f.shared_cells = c.shared && c.cells == 2 ? 2 : 1;
  f.blocks = c.cells == 0 ? 1 : 64;
  return f;
}

void expect_same_bits_in_all_forms(const std::string& text) {
  SCOPED_TRACE(text);
  auto module = text::parse_module(text);
  ASSERT_TRUE(module) << module.error().message();
  const Instruction& fusion = *(*module)->entry()->root();
  Builder b("trial");
  Places places;
  for (std::int64_t o = 0; o < 2; ++o) places.operands.push_back({static_cast<int>(o), 0, fusion.operand(o)->shape()});
  places.results.push_back({2, 0, fusion.shape()});
  const auto problem = analyse_dot(find_dot(fusion), places);
  ASSERT_TRUE(problem);
  Floats want;
  for (const bool swapped : {false, true})
    for (const bool shared : {false, true})
      for (int pack = 0; pack < 5; ++pack)
        for (int block = 0; block < 3; ++block)
          for (int cells = 0; cells < 3; ++cells)
            for (int tile = 0; tile < 2; ++tile) {
              const DotForm form = form_of({pack, block, cells, tile, swapped, shared}, *problem);
              if (shared && (form.pack_rows || !form.pack_lanes)) continue;
              const auto kernel = build(fusion, form);
              ASSERT_TRUE(kernel) << kernel.error().message() << "\n" << to_string(form);
              const Floats got = run(fusion, *kernel);
              if (want.empty()) want = got;
              ASSERT_EQ(std::memcmp(want.data(), got.data(), want.size() * sizeof(float)), 0) << to_string(form) << "\n" << print(*kernel);
            }
}

std::string convolution(const std::string& input, const std::string& kernel, const std::string& result, const std::string& attributes) {
  const std::string f = "f32[" + input + "]", k = "f32[" + kernel + "]", r = "f32[" + result + "]";
  return "HloModule m\nfused { p = " + f + " parameter(0)\n q = " + k + " parameter(1)\n ROOT r = " + r + " convolution(p, q), " +
         attributes + " }\nENTRY e { p = " + f + " parameter(0)\n q = " + k + " parameter(1)\n ROOT r = " + r +
         " fusion(p, q), kind=kLoop, calls=fused }";
}

TEST(DotForm, ChangesNoBitOfConvolutions) {
  expect_same_bits_in_all_forms(convolution("2,5,7,5", "3,2,5,37", "2,3,6,37", "window={size=3x2}, dim_labels=b01f_01io->b01f"));
  expect_same_bits_in_all_forms(convolution("2,7,9,5", "2,3,37,5", "2,3,4,37", "window={size=2x3 stride=2x2}, dim_labels=b01f_01oi->b01f"));
  expect_same_bits_in_all_forms(convolution("3,7,6,18", "3,5,4,9", "3,3,18,9", "window={size=5x4}, dim_labels=f01b_i01o->01bf"));
  expect_same_bits_in_all_forms(convolution("1,4,5,12", "2,2,4,33", "1,3,4,33", "window={size=2x2}, dim_labels=b01f_01io->b01f, feature_group_count=3"));
  expect_same_bits_in_all_forms(convolution("2,3,6,7", "35,3,2,2", "2,35,5,6", "window={size=2x2}, dim_labels=bf01_oi01->bf01"));
}

TEST(DotForm, ChangesNoBitOfDots) {
  expect_same_bits_in_all_forms(
      "HloModule m\nfused { p = f32[2,9,11] parameter(0)\n q = f32[2,11,37] parameter(1)\n ROOT r = f32[2,9,37] dot(p, q), "
      "lhs_batch_dims={0}, rhs_batch_dims={0}, lhs_contracting_dims={2}, rhs_contracting_dims={1} }\n"
      "ENTRY e { p = f32[2,9,11] parameter(0)\n q = f32[2,11,37] parameter(1)\n ROOT r = f32[2,9,37] fusion(p, q), kind=kLoop, calls=fused }");
}

}  // namespace
}  // namespace hloom::kernels

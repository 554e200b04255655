// Law: what a smaller instruction gives is the box of what the whole one gives.
#include "compiler/smaller.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

#include "compiler/box_values.h"
#include "compiler/leaves.h"
#include "compiler/read_program.h"
#include "generate/generate.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

/// Runs a program and holds every instruction of it that has a smaller form to the law.
class Law {
 public:
  explicit Law(std::uint64_t seed) : random_(seed) {}

  void hold(const hlo::Module& module, std::span<const Literal> arguments) {
    const interp::BeforeObserver before = [&](const Instruction& i, const auto& operands) { operands_[&i] = operands(); };
    const interp::Observer after = [&](std::int64_t, const Instruction& i, const Literal& result) { look(i, result); };
    interp::Options options;
    options.before = &before;
    options.observer = &after;
    options.max_steps = 20000;
    const auto result = interp::interpret(module, arguments_of(module, arguments), options);
    ASSERT_TRUE(result) << result.error().message();
  }
  const std::map<Opcode, int>& held() const { return held_; }

 private:
  void look(const Instruction& i, const Literal& whole) {
    const auto found = operands_.find(&i);
    if (found == operands_.end() || !has_boxes(i.shape()) || ++looked_[&i] > 2) return;
    const Shape& array = i.shape().is_tuple() ? i.shape().element(0) : i.shape();
    const auto elements = static_cast<std::int64_t>(1 + random_() % 40);
    for (const Box& box : sample_boxes(array, elements, 4, random_())) hold_at(i, box, found->second, whole);
  }

  void hold_at(const Instruction& i, const Box& box, const std::vector<Literal>& operands, const Literal& whole) {
    const auto small =
        smaller(i, box, [&](std::int64_t k) { return Expected<Literal>(operands[static_cast<std::size_t>(k)]); });
    ASSERT_TRUE(small) << small.error().message();
    if (!*small) return;
    const Smaller& s = **small;
    std::vector<Literal> parts;
    for (std::size_t k = 0; k < operands.size(); ++k)
      parts.push_back(s.operands[k].value ? *s.operands[k].value
                      : s.operands[k].box ? crop(operands[k], *s.operands[k].box)
                                          : operands[k]);
    const auto got = interp::evaluate_instruction(*s.instruction, parts);
    ASSERT_TRUE(got) << i.name() << ": " << got.error().message();
    const Box inner = within(box, s.result);
    for (std::size_t d = 0; d < box.start.size(); ++d) {
      ASSERT_GE(inner.start[d], 0) << i.name();
      ASSERT_LE(inner.start[d] + box.size[d], s.result.size[d]) << i.name();
    }
    const Literal want = crop(whole, s.result);
    const auto a = hlo::leaves(*got), b = hlo::leaves(want);
    for (std::size_t l = 0; l < a.size(); ++l)
      ASSERT_TRUE(std::ranges::equal(a[l]->bytes(), b[l]->bytes()))
          << hlo::name(i.opcode()) << " " << i.name() << " " << to_string(i.shape()) << " at " << to_string(box);
    ++held_[i.opcode()];
  }

  std::mt19937_64 random_;
  std::map<const Instruction*, std::vector<Literal>> operands_;
  std::map<const Instruction*, int> looked_;
  std::map<Opcode, int> held_;
};

TEST(Smaller, GivesTheBoxOfTheWholeInRandomPrograms) {
  std::map<Opcode, int> held;
  for (std::uint64_t seed = 1; seed <= 600; ++seed) {
    const auto module = generate::module(seed);
    Law law(seed);
    law.hold(*module, generate::arguments(*module, seed));
    ASSERT_FALSE(testing::Test::HasFatalFailure()) << "seed " << seed;
    for (const auto& [opcode, count] : law.held()) held[opcode] += count;
  }
  for (const Opcode opcode : {Opcode::Add, Opcode::Broadcast, Opcode::Reshape, Opcode::Transpose, Opcode::Slice, Opcode::Pad,
                              Opcode::Concatenate, Opcode::Reverse, Opcode::DynamicSlice, Opcode::DynamicUpdateSlice,
                              Opcode::Gather, Opcode::Scatter, Opcode::Dot, Opcode::Reduce, Opcode::Sort, Opcode::Iota})
    EXPECT_GT(held[opcode], 3) << hlo::name(opcode);
}

constexpr const char* kComputations = R"(
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT s = f32[] add(a, b) }
last { a = f32[] parameter(0)
  ROOT b = f32[] parameter(1) }
ge { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = pred[] compare(a, b), direction=GE }
)";

// A program of one line, with its parameters before.
void hold_line(const std::string& line) {
  const auto module = read_program("HloModule m\n" + std::string(kComputations) + "ENTRY e {\n" + line + "\n}");
  ASSERT_TRUE(module) << module.error().message();
  std::mt19937_64 random(line.size());
  std::vector<Literal> arguments;
  for (const Instruction* p : (*module)->entry()->parameters()) {
    Literal& value = arguments.emplace_back(p->shape());
    if (value.dtype() == DType::S32)
      for (std::int32_t& e : value.mutable_data<std::int32_t>()) e = static_cast<std::int32_t>(random() % 9) - 1;
    else
      for (float& e : value.mutable_data<float>()) e = static_cast<float>(random() % 17) - 8;
  }
  Law law(7);
  for (int n = 0; n < 4; ++n) law.hold(**module, arguments);
  EXPECT_GT(law.held().at((*module)->entry()->root()->opcode()), 1) << line;
}

TEST(Smaller, GivesTheBoxOfTheWholeInAllFormsOfWindows) {
  hold_line("x = f32[2,9,8,4] parameter(0)\n k = f32[3,2,4,6] parameter(1)\n"
            "ROOT c = f32[2,9,5,6] convolution(x, k), window={size=3x2 pad=1_1x1_1 stride=1x2}, dim_labels=b01f_01io->b01f");
  hold_line("x = f32[2,5,4] parameter(0)\n k = f32[3,4,6] parameter(1)\n"
            "ROOT c = f32[2,7,6] convolution(x, k), window={size=3 pad=-1_3 lhs_dilate=2 rhs_dilate=2 rhs_reversal=1}, dim_labels=b0f_0io->b0f");
  hold_line("x = f32[2,7,4] parameter(0)\n k = f32[3,2,6] parameter(1)\n"
            "ROOT c = f32[2,7,6] convolution(x, k), window={size=3 pad=1_1}, dim_labels=b0f_0io->b0f, feature_group_count=2");
  hold_line("x = f32[4,7,3] parameter(0)\n k = f32[3,3,6] parameter(1)\n"
            "ROOT c = f32[2,5,6] convolution(x, k), window={size=3}, dim_labels=b0f_0io->b0f, batch_group_count=2");
  hold_line("x = f32[9,8] parameter(0)\n z = f32[] parameter(1)\n"
            "ROOT r = f32[5,9] reduce-window(x, z), window={size=3x2 stride=2x1 pad=1_1x1_1}, to_apply=add");
  hold_line("x = f32[9,8] parameter(0)\n z = f32[] parameter(1)\n"
            "ROOT r = f32[13,11] reduce-window(x, z), window={size=3x2 pad=-1_-1x-1_-1 lhs_dilate=2x2 rhs_dilate=1x2}, to_apply=add");
  hold_line("x = f32[40] parameter(0)\n z = f32[] parameter(1)\n"
            "ROOT r = f32[40] reduce-window(x, z), window={size=40 pad=39_0}, to_apply=add");
  hold_line("x = f32[3,8,2] parameter(0)\n s = f32[3,4,2] parameter(1)\n z = f32[] parameter(2)\n"
            "ROOT r = f32[3,8,2] select-and-scatter(x, s, z), window={size=1x2x1 stride=1x2x1}, select=ge, scatter=add");
}

TEST(Smaller, GivesTheBoxOfTheWholeWithIndicesOfAllKinds) {
  hold_line("x = f32[3,9,5] parameter(0)\n i = s32[4,3,1] parameter(1)\n"
            "ROOT g = f32[4,3,2] gather(x, i), offset_dims={2}, collapsed_slice_dims={1}, start_index_map={1}, operand_batching_dims={0}, "
            "start_indices_batching_dims={1}, index_vector_dim=2, slice_sizes={1,1,2}");
  hold_line("x = f32[9,5] parameter(0)\n i = s32[7,2] parameter(1)\n"
            "ROOT g = f32[7] gather(x, i), offset_dims={}, collapsed_slice_dims={0,1}, start_index_map={1,0}, index_vector_dim=1, slice_sizes={1,1}");
  hold_line("x = f32[3,9] parameter(0)\n i = s32[3,20,1] parameter(1)\n u = f32[3,20] parameter(2)\n"
            "ROOT s = f32[3,9] scatter(x, i, u), update_window_dims={}, inserted_window_dims={1}, scatter_dims_to_operand_dims={1}, "
            "input_batching_dims={0}, scatter_indices_batching_dims={0}, index_vector_dim=2, to_apply=last");
  hold_line("x = f32[9,8] parameter(0)\n i = s32[6,1] parameter(1)\n u = f32[6,1,3] parameter(2)\n"
            "ROOT s = f32[9,8] scatter(x, i, u), update_window_dims={1,2}, inserted_window_dims={}, scatter_dims_to_operand_dims={0}, "
            "index_vector_dim=1, to_apply=last");
  hold_line("x = f32[9,8] parameter(0)\n u = f32[3,4] parameter(1)\n i = s32[] parameter(2)\n j = s32[] parameter(3)\n"
            "ROOT d = f32[9,8] dynamic-update-slice(x, u, i, j)");
  hold_line("x = f32[9,8] parameter(0)\n i = s32[] parameter(1)\n j = s32[] parameter(2)\n"
            "ROOT d = f32[3,4] dynamic-slice(x, i, j), dynamic_slice_sizes={3,4}");
}

TEST(Smaller, GivesTheBoxOfTheWholeOfLinesAndLayouts) {
  hold_line("x = f32[4,9] parameter(0)\nROOT f = c64[4,5] fft(x), fft_type=RFFT, fft_length={9}");
  hold_line("x = f32[4,9] parameter(0)\nROOT t = (f32[4,3], s32[4,3]) topk(x), k=3, largest=true");
  hold_line("x = f32[6,4]{0,1} parameter(0)\nROOT b = f32[3,8]{1,0} bitcast(x)");
  hold_line("x = f32[6,4,2]{0,2,1} parameter(0)\nROOT b = f32[4,2,6]{2,1,0} bitcast(x)");
  hold_line("x = f32[6,4] parameter(0)\nROOT b = u8[6,4,4] bitcast-convert(x)");
  hold_line("x = f32[2,3,4,5] parameter(0)\nROOT b = f32[6,1,10,2] reshape(x)");
  hold_line("x = f32[9,5] parameter(0)\n z = f32[] parameter(1)\nROOT b = f32[16,7] pad(x, z), padding=-2_1_1x1_1");
}

}  // namespace
}  // namespace hloom::compiler

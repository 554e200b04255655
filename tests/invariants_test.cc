// Invariants between the stages that no one folder can hold; docs/invariants.md has the whole list.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "arrays/compare.h"
#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "base/aligned_bytes.h"
#include "buffers/in_place.h"
#include "buffers/steps.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/read_program.h"
#include "indexing/plan_window_update.h"
#include "kernels/evaluate.h"
#include "literals.h"
#include "loops.h"

namespace hloom {
namespace {

using hlo::Instruction;
using hlo::Opcode;

compiler::Compiled compile(std::string_view text, bool generate_code = false) {
  auto module = compiler::read_program(text);
  EXPECT_TRUE(module) << module.error().message() << text;
  if (!module) std::abort();
  compiler::Options options;
  options.regions = false;
  options.generate_code = generate_code;
  auto compiled = compiler::compile(*std::move(module), options);
  EXPECT_TRUE(compiled) << compiled.error().message();
  if (!compiled) std::abort();
  return *std::move(compiled);
}

// The texts of programs/ and, where it is at hand, of the corpus.
std::vector<std::string> programs() {
  std::vector<std::string> texts;
  for (const std::string folder : {HLOOM_SOURCE_DIR "/tests/programs", HLOOM_SOURCE_DIR "/../shared/corpus"}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
      if (!arrays::is_corpus_folder(entry.path().string())) continue;
      const auto bytes = arrays::read_file(entry.path().string() + "/program.hlo");
      EXPECT_TRUE(bytes) << bytes.error().message();
      if (bytes) texts.emplace_back(reinterpret_cast<const char*>(bytes->data()), bytes->size());
    }
  }
  return texts;
}

template <typename F>
void for_steps(const compiler::Compiled& c, const F& visit) {
  for (const hlo::Computation* computation : buffers::step_computations(*c.module))
    for (const Instruction& i : computation->instructions())
      if (buffers::step_computations(i).empty() && !buffers::is_alias(i)) visit(i);
}

std::string decision(const Instruction& i, const char* key) {
  const auto found = i.annotations().decisions.find(key);
  return found == i.annotations().decisions.end() ? "" : found->second;
}

// --- 1 -------------------------------------------------------------------------------------------------------------

// What fusion left, aliasing wrote on the instruction and the placement all say what plan_window_update() says.
void expect_one_plan(const compiler::Compiled& c, int& seen) {
  for_steps(c, [&](const Instruction& i) {
    const auto pairs = buffers::in_place_pairs(i);
    for (std::int64_t leaf = 0; leaf < num_leaves(i.shape()); ++leaf) {
      if (!indexing::is_window_update(i, leaf)) continue;
      ++seen;
      const indexing::WindowUpdatePlan plan = indexing::plan_window_update(i, leaf);
      EXPECT_TRUE(decision(i, "update_plan").find(indexing::name(plan.kind)) != std::string::npos) << i.name();
      const auto pair = std::ranges::find(pairs, leaf, &buffers::InPlacePair::result);
      EXPECT_TRUE(plan.in_place() || pair == pairs.end()) << i.name();
      if (pair == pairs.end()) continue;
      EXPECT_EQ(pair->operand, plan.base_operand) << i.name();
      EXPECT_EQ(c.assignment.slice(i, leaf), c.assignment.slice(*i.operand(pair->operand), pair->operand_leaf));
    }
  });
}

TEST(Invariants, OnePlanForAllOfTheStages) {
  int seen = 0;
  for (const loops::Loop& loop : loops::loops(1024, 5, true)) expect_one_plan(compile(loop.text), seen);
  for (const std::string& text : programs()) expect_one_plan(compile(text), seen);
  EXPECT_GT(seen, 20);
}

// --- 5 -------------------------------------------------------------------------------------------------------------

using Bytes = std::vector<unsigned char>;

// All arguments' bytes after block `b`, where all were `fill` before.
Bytes after_block(const kernels::Kernel& kernel, std::int64_t b, unsigned char fill) {
  std::vector<base::AlignedBytes> memory;
  std::vector<void*> pointers;
  for (const kernels::Argument& a : kernel.arguments) {
    memory.emplace_back(kernels::argument_bytes(a) + 64);
    std::fill_n(reinterpret_cast<unsigned char*>(memory.back().data()), kernels::argument_bytes(a), fill);
    pointers.push_back(memory.back().data());
  }
  std::vector<std::max_align_t> scratch(static_cast<std::size_t>(kernel.scratch_bytes) / sizeof(std::max_align_t) + 8);
  const auto done = kernels::evaluate(kernel, pointers.data(), b, b + 1, scratch.data());
  EXPECT_TRUE(done) << done.error().message();
  Bytes bytes;
  for (std::size_t k = 0; k < memory.size(); ++k) {
    const auto* begin = reinterpret_cast<const unsigned char*>(memory[k].data());
    bytes.insert(bytes.end(), begin, begin + kernels::argument_bytes(kernel.arguments[k]));
  }
  return bytes;
}

// A byte is written by a block if it is not what it was, whether that was zeros or something else.
void expect_disjoint(const kernels::Kernel& kernel) {
  Bytes written;
  for (std::int64_t b = 0; b < kernel.blocks; ++b) {
    const Bytes zeros = after_block(kernel, b, 0), ones = after_block(kernel, b, 1);
    written.resize(zeros.size());
    for (std::size_t k = 0; k < zeros.size(); ++k) {
      if (zeros[k] == 0 && ones[k] == 1) continue;
      ASSERT_EQ(written[k]++, 0) << kernel.name << ": block " << b << " writes byte " << k << " too";
    }
  }
}

TEST(Invariants, PartsOfAGridWriteDisjointBytes) {
  const std::string sum = "sum { a = f32[] parameter(0)\n  b = f32[] parameter(1)\n  ROOT s = f32[] add(a, b) }\n";
  const std::vector<std::string> texts = {
      "ENTRY e { x = f32[400000] parameter(0)\n  ROOT n = f32[400000] negate(x) }",
      "ENTRY e { x = s4[999999] parameter(0)\n  ROOT n = s4[999999] negate(x) }",
      "ENTRY e { x = u2[777777] parameter(0)\n  ROOT n = u2[777777] not(x) }",
      "ENTRY e { x = s4[1001,999] parameter(0)\n  ROOT n = s4[999,1001] transpose(x), dimensions={1,0} }",
      "ENTRY e { x = f32[700,600] parameter(0)\n  ROOT n = f32[600,700] transpose(x), dimensions={1,0} }",
      "ENTRY e { x = pred[3,200001] parameter(0)\n  ROOT n = pred[200001,3] transpose(x), dimensions={1,0} }",
      "ENTRY e { x = s4[300001] parameter(0)\n  y = s4[300001] parameter(1)\n"
      "  ROOT n = s4[600002] concatenate(x, y), dimensions={0} }",
      sum + "ENTRY e { x = f32[3000,100] parameter(0)\n  z = f32[] constant(0)\n"
            "  ROOT r = f32[3000] reduce(x, z), dimensions={1}, to_apply=sum }",
      sum + "ENTRY e { x = f32[3000,100] parameter(0)\n  z = f32[] constant(0)\n"
            "  ROOT r = f32[100] reduce(x, z), dimensions={0}, to_apply=sum }",
      "ENTRY e { x = f32[200,128] parameter(0)\n  y = f32[128,300] parameter(1)\n"
      "  ROOT d = f32[200,300] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0} }",
  };
  int checked = 0;
  for (const std::string& text : texts)
    for (const kernels::Kernel& kernel : compile("HloModule m\n" + text).kernels) {
      if (kernel.blocks < 2) continue;
      expect_disjoint(kernel);
      ++checked;
    }
  EXPECT_GE(checked, 8);
}

// --- 6 -------------------------------------------------------------------------------------------------------------

std::vector<hlo::Literal> run(const std::string& text) {
  compiler::Compiled c = compile(text, true);
  const auto parameters = compiler::parameter_leaves(*c.module), results = compiler::result_leaves(*c.module);
  std::vector<hlo::Literal> arguments;
  for (const Shape& shape : parameters) arguments.push_back(tests::numbered(shape, std::ssize(arguments)));
  const auto executor = runtime::Executor::create(std::move(c.program));
  EXPECT_TRUE(executor) << executor.error().message();
  auto values = compiler::execute_literals(**executor, parameters, results, arguments);
  EXPECT_TRUE(values) << values.error().message();
  return values ? *std::move(values) : std::vector<hlo::Literal>();
}

TEST(Invariants, ResultsDependOnNoDonation) {
  for (const loops::Loop& loop : loops::loops(256, 5, true)) {
    std::string kept = loop.text;
    kept.erase(kept.find(", input_output_alias"), kept.find('\n') - kept.find(", input_output_alias"));
    ASSERT_NE(kept, loop.text);
    EXPECT_EQ(arrays::compare_results(run(kept), run(loop.text), std::vector{arrays::Tolerance::exact()}), std::nullopt)
        << loop.name;
  }
}

// --- 10 ------------------------------------------------------------------------------------------------------------

// A kernel of its own says why; the initial state of a loop and the base of an update are arrays by their use.
bool is_for_a_reason(const Instruction& i) {
  if (!decision(i, "not_fused").empty()) return true;
  return std::ranges::any_of(i.users(), [&](const Instruction* user) {
    if (user->opcode() != Opcode::Fusion) return true;
    const auto pairs = buffers::in_place_pairs(*user);
    return std::ranges::any_of(pairs, [&](const auto& p) { return user->operand(p.operand) == &i; });
  });
}

TEST(Invariants, NoIntermediateIsLargerThanWhatComesInAndGoesOut) {
  for (const std::string& text : programs()) {
    const compiler::Compiled c = compile(text);
    std::int64_t outside = 0;
    for (const buffers::Allocation& a : c.assignment.allocations())
      if (a.kind != buffers::Allocation::Kind::Arena) outside += a.bytes;
    for_steps(c, [&](const Instruction& i) {
      if (i.opcode() != Opcode::Fusion || !i.shape().is_array() || buffers::leaf_bytes(i.shape()) <= outside) return;
      EXPECT_TRUE(is_for_a_reason(i)) << c.module->name() << ": " << i.name();
    });
  }
}

}  // namespace
}  // namespace hloom

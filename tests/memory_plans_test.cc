// The memory plans of real programs: they hold, by a check that knows nothing of how they were made, and the check
// objects when any one copy is left out.

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <unordered_set>

#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "buffers/check_assignment.h"
#include "buffers/steps.h"
#include "buffers/values.h"
#include "compiler/compile.h"
#include "compiler/read_program.h"
#include "library/lapack_library.h"

namespace hloom {
namespace {

using buffers::ValueId;
using buffers::Values;
using hlo::Instruction;
using hlo::Opcode;

const std::string kPrograms = HLOOM_SOURCE_DIR "/tests/programs", kCorpus = HLOOM_SOURCE_DIR "/../shared/corpus";

// Paths of programs, by a name that serves a test.
std::vector<std::string> programs() {
  std::vector<std::string> paths;
  for (const std::string& folder : {kPrograms, kCorpus}) {
    std::error_code none;
    for (const auto& entry : std::filesystem::directory_iterator(folder, none))
      if (arrays::is_corpus_folder(entry.path().string())) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// Values that decide what the program gives: its results, what loops and branches ask, and what these are made from. A
// copy of another one may be left out without harm.
std::vector<bool> observed_values(const hlo::Module& module, const Values& values) {
  std::vector<bool> observed(static_cast<std::size_t>(values.size()));
  std::vector<ValueId> list;
  const auto observe = [&](std::span<const ValueId> of) {
    for (const ValueId v : of) {
      if (observed[static_cast<std::size_t>(v)]) continue;
      observed[static_cast<std::size_t>(v)] = true;
      list.push_back(v);
    }
  };
  observe(values.of(*module.entry()->root()));
  for (const hlo::Computation* c : buffers::step_computations(module))
    for (const Instruction& i : c->instructions()) {
      if (i.opcode() == Opcode::While) observe(values.of(*i.condition()->root()));
      if (i.opcode() == Opcode::Conditional) observe(values.of(*i.operand(0)));
    }
  while (!list.empty()) {
    const buffers::Value& v = values[list.back()];
    list.pop_back();
    observe(v.inputs);
    if (v.kind == buffers::Value::Kind::Made)
      for (const Instruction* operand : v.definer->operands()) observe(values.of(*operand));
  }
  return observed;
}

void expect_sound(const buffers::Assignment& assignment) {
  const hlo::Module& module = assignment.module();
  const auto found = buffers::check_assignment(assignment);
  ASSERT_TRUE(found.empty()) << found.front();
  const Values values(module);
  const std::vector<bool> observed = observed_values(module, values);
  for (const hlo::Computation* c : buffers::step_computations(module))
    for (const Instruction& i : c->instructions()) {
      if (i.opcode() != Opcode::Copy || !observed[static_cast<std::size_t>(values.of(i, 0))]) continue;
      EXPECT_FALSE(buffers::check_assignment(assignment, &i).empty()) << i.name() << " is not needed, or not missed";
    }
}

class Plans : public testing::TestWithParam<std::string> {};

// Invariant 3 of the memory pipeline: no two values that are alive together overlap.
TEST_P(Plans, HoldAndMissEachCopyLeftOut) {
  const auto bytes = arrays::read_file(GetParam() + "/program.hlo");
  ASSERT_TRUE(bytes) << bytes.error().message();
  const std::string_view text(reinterpret_cast<const char*>(bytes->data()), bytes->size());
  auto module = compiler::read_program(text);
  ASSERT_TRUE(module) << module.error().message();
  compiler::Options options;
  options.generate_code = false;
  const auto compiled = compiler::compile(std::move(*module), options);
  if (!compiled && compiled.error().message().find("LAPACK") != std::string::npos && !library::want_lapack())
    GTEST_SKIP() << compiled.error().message();
  ASSERT_TRUE(compiled) << compiled.error().message();
  expect_sound(compiled->assignment);
}

std::string name_of(const testing::TestParamInfo<std::string>& info) {
  std::string name = std::filesystem::path(info.param).filename().string();
  if (info.param.starts_with(kPrograms)) name += "_own";
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

TEST(Corpus, IsAtHand) {
  if (!std::filesystem::exists(kCorpus)) GTEST_SKIP() << "../shared/corpus is not here";
}

INSTANTIATE_TEST_SUITE_P(All, Plans, testing::ValuesIn(programs()), name_of);

}  // namespace
}  // namespace hloom

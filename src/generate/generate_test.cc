// Modules drawn at random verify, are the same for the same seed, read back from text, and run in the interpreter.
#include "generate/generate.h"

#include <gtest/gtest.h>

#include <map>

#include "hlo/verify.h"
#include "interp/interpret.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::generate {
namespace {

TEST(Generate, ModulesVerifyAndReadBack) {
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const auto drawn = module(seed);
    const auto good = hlo::check_module(*drawn);
    ASSERT_TRUE(good) << seed << ": " << good.error().message() << "\n" << text::print(*drawn);
    const auto read = text::parse_module(text::print(*drawn));
    ASSERT_TRUE(read) << seed << ": " << read.error().message() << "\n" << text::print(*drawn);
    EXPECT_EQ(text::print(**read), text::print(*drawn));
  }
}

TEST(Generate, TheSameSeedGivesTheSameModule) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const auto a = module(seed), b = module(seed);
    EXPECT_TRUE(hlo::equal(*a, *b));
    EXPECT_EQ(arguments(*a, seed), arguments(*b, seed));
    EXPECT_FALSE(hlo::equal(*a, *module(seed + 1)));
  }
}

TEST(Generate, ModulesRunInTheInterpreter) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto drawn = module(seed);
    const auto result = interp::interpret(*drawn, arguments(*drawn, seed));
    EXPECT_TRUE(result) << seed << ": " << result.error().message() << "\n" << text::print(*drawn);
  }
}

Options on_devices() {
  Options options;
  options.on_devices = true;
  return options;
}

TEST(Generate, ModulesForDevicesVerifyReadBackAndRun) {
  std::map<hlo::Opcode, int> seen;
  std::map<hlo::ReplicaGroups::Form, int> forms;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto drawn = module(seed, on_devices());
    const auto good = hlo::check_module(*drawn);
    ASSERT_TRUE(good) << seed << ": " << good.error().message() << "\n" << text::print(*drawn);
    const auto read = text::parse_module(text::print(*drawn));
    ASSERT_TRUE(read) << seed << ": " << read.error().message() << "\n" << text::print(*drawn);
    EXPECT_EQ(text::print(**read), text::print(*drawn));
    interp::Options options;
    options.replicas = drawn->config().replica_count;
    options.partitions = drawn->config().num_partitions;
    EXPECT_GT(options.replicas * options.partitions, 1);
    const auto result = interp::interpret_devices(*drawn, device_arguments(*drawn, seed), options);
    ASSERT_TRUE(result) << seed << ": " << result.error().message() << "\n" << text::print(*drawn);
    for (const hlo::Computation& c : drawn->computations())
      for (const hlo::Instruction& i : c.instructions()) {
        ++seen[i.opcode()];
        if (const auto* attr = i.attributes().get_if<hlo::CollectiveAttr>()) ++forms[attr->groups.form];
      }
  }
  using hlo::Opcode;
  for (const Opcode opcode : {Opcode::AllReduce, Opcode::AllReduceStart, Opcode::AllGather, Opcode::AllGatherStart, Opcode::ReduceScatter,
                              Opcode::AllToAll, Opcode::CollectivePermute, Opcode::CollectivePermuteStart, Opcode::CollectiveBroadcast,
                              Opcode::CollectiveReduce, Opcode::RaggedAllToAll, Opcode::Send, Opcode::RecvDone, Opcode::PartitionId, Opcode::ReplicaId})
    EXPECT_GT(seen[opcode], 20) << hlo::name(opcode);
  for (const auto form : {hlo::ReplicaGroups::Form::Explicit, hlo::ReplicaGroups::Form::Iota, hlo::ReplicaGroups::Form::Mesh})
    EXPECT_GT(forms[form], 50);
}

// What real programs have comes, and the rare things too.
TEST(Generate, EveryKindOfInstructionComes) {
  std::map<hlo::Opcode, int> seen;
  int scheduled = 0, donating = 0, wild = 0, placed = 0, split = 0;
  for (std::uint64_t seed = 0; seed < 1500; ++seed) {
    const auto drawn = module(seed);
    scheduled += drawn->config().is_scheduled;
    donating += !drawn->config().aliases.empty();
    wild += is_wild(seed);
    for (const hlo::Computation& c : drawn->computations())
      for (const hlo::Instruction& i : c.instructions()) {
        ++seen[i.opcode()];
        if (!i.shape().is_array() || !i.shape().has_layout()) continue;
        placed += i.shape().layout().memory_space() != 0;
        split += !i.shape().layout().parts().splits.empty();
      }
  }
  using hlo::Opcode;
  for (const Opcode op : {Opcode::While,
                          Opcode::Conditional,
                          Opcode::Call,
                          Opcode::Map,
                          Opcode::Fusion,
                          Opcode::Reduce,
                          Opcode::ReduceWindow,
                          Opcode::SelectAndScatter,
                          Opcode::Sort,
                          Opcode::Topk,
                          Opcode::Gather,
                          Opcode::Scatter,
                          Opcode::DynamicSlice,
                          Opcode::DynamicUpdateSlice,
                          Opcode::Dot,
                          Opcode::Convolution,
                          Opcode::Pad,
                          Opcode::Concatenate,
                          Opcode::Transpose,
                          Opcode::Reverse,
                          Opcode::RngBitGenerator,
                          Opcode::Exponential,
                          Opcode::Complex,
                          Opcode::BitcastConvert,
                          Opcode::OptBarrier,
                          Opcode::Clamp,
                          Opcode::Copy,
                          Opcode::CopyStart,
                          Opcode::IsFinite,
                          Opcode::ReducePrecision,
                          Opcode::Fft,
                          Opcode::Cholesky,
                          Opcode::TriangularSolve,
                          Opcode::BatchNormTraining,
                          Opcode::AllReduce,
                          Opcode::CollectivePermute,
                          Opcode::SetDimensionSize,
                          Opcode::Tuple})
    EXPECT_GE(seen[op], 10) << op;
  EXPECT_GE(scheduled, 50);
  EXPECT_GE(donating, 50);
  EXPECT_GE(wild, 100);
  EXPECT_GE(placed, 100);
  EXPECT_GE(split, 50);
}

}  // namespace
}  // namespace hloom::generate

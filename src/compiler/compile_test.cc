// What holds of whole programs whatever they compute: loops move only what they change, regions and threads change no
// bit, the check finds a wrong kernel, the API keeps its promises.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "arrays/compare.h"
#include "compiler/check.h"
#include "compiler/compile.h"
#include "compiler/layout_bytes.h"
#include "compiler/read_program.h"
#include "hloom/executable.h"
#include "interp/interpret.h"
#include "runtime/executor.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

std::string updating_loop(std::int64_t n) {
  const std::string s = std::to_string(n);
  return "HloModule updating, input_output_alias={ {}: (0, {}, may-alias) }\n"
         "body { c = (s32[], f32[" +
         s +
         "], s32[]) parameter(0)\n"
         "  i = s32[] get-tuple-element(c), index=0\n  x = f32[" +
         s +
         "] get-tuple-element(c), index=1\n"
         "  n = s32[] get-tuple-element(c), index=2\n"
         "  seven = s32[] constant(7)\n  at = s32[] multiply(i, seven)\n"
         "  w = f32[8] dynamic-slice(x, at), dynamic_slice_sizes={8}\n  one = f32[] constant(1)\n"
         "  ones = f32[8] broadcast(one), dimensions={}\n  u = f32[8] add(w, ones)\n"
         "  y = f32[" +
         s +
         "] dynamic-update-slice(x, u, at)\n  k = s32[] constant(1)\n  j = s32[] add(i, k)\n"
         "  ROOT r = (s32[], f32[" +
         s +
         "], s32[]) tuple(j, y, n) }\n"
         "condition { c = (s32[], f32[" +
         s +
         "], s32[]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n"
         "  n = s32[] get-tuple-element(c), index=2\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
         "ENTRY main { x = f32[" +
         s +
         "] parameter(0)\n  n = s32[] parameter(1)\n  z = s32[] constant(0)\n"
         "  t = (s32[], f32[" +
         s +
         "], s32[]) tuple(z, x, n)\n"
         "  w = (s32[], f32[" +
         s +
         "], s32[]) while(t), condition=condition, body=body\n"
         "  ROOT r = f32[" +
         s + "] get-tuple-element(w), index=1 }\n";
}

Compiled compile_text(const std::string& text, const Options& options = {}) {
  auto module = read_program(text);
  EXPECT_TRUE(module) << module.error().message();
  auto compiled = compile(*std::move(module), options);
  EXPECT_TRUE(compiled) << compiled.error().message();
  return *std::move(compiled);
}

// Bytes that one iteration of the module's loops copies or writes, by the plan.
std::int64_t bytes_in_loops(const hlo::Module& module) {
  std::int64_t bytes = 0;
  for (const hlo::Computation& c : module.computations()) {
    if (&c == module.entry()) continue;
    for (const Instruction& i : c.instructions()) {
      if (i.opcode() == Opcode::Copy) bytes += i.shape().size_bytes();
      if (i.opcode() != Opcode::Fusion) continue;
      const Instruction& root = *i.called(0)->root();
      bytes +=
          root.opcode() == Opcode::DynamicUpdateSlice ? root.operand(1)->shape().size_bytes() : i.shape().size_bytes();
    }
  }
  return bytes;
}

TEST(Compile, ALoopMovesOnlyItsWindow) {
  Options options;
  options.generate_code = false;
  const std::int64_t small = bytes_in_loops(*compile_text(updating_loop(10'000), options).module);
  const std::int64_t large = bytes_in_loops(*compile_text(updating_loop(10'000'000), options).module);
  EXPECT_EQ(small, large);
  EXPECT_LE(large, 100);  // the window, what is added to it, counters
}

TEST(Compile, ADonatedArrayIsUpdatedInPlace) {
  auto program = Executable::compile(updating_loop(1000));
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->donated_parameter(0), 0);
  EXPECT_LT(program->memory().temp_bytes, 1000);
  std::vector<float> x(1000, 2);
  std::int32_t n = 10;
  const std::span<std::byte> array(reinterpret_cast<std::byte*>(x.data()), 4000);
  const std::span<std::byte> inputs[] = {array, {reinterpret_cast<std::byte*>(&n), 4}};
  const std::span<std::byte> outputs[] = {array};
  const auto done = program->run(inputs, outputs);
  ASSERT_TRUE(done) << done.error().message();
  EXPECT_EQ(x[0], 3);
  EXPECT_EQ(x[7], 4);  // windows overlap by one
  EXPECT_EQ(x[71], 2);
}

// A kernel over rows has read a row before it writes it.
TEST(Compile, ADonatedArrayGoesRowByRowInPlace) {
  const auto softmax = [](const std::string& alias) {
    return "HloModule softmax" + alias +
           "\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
           "max { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] maximum(a, b) }\n"
           "ENTRY main { x = f32[40,133] parameter(0)\n  zero = f32[] constant(0)\n  low = f32[] constant(-inf)\n"
           "  m = f32[40] reduce(x, low), dimensions={1}, to_apply=max\n  mb = f32[40,133] broadcast(m), "
           "dimensions={0}\n"
           "  d = f32[40,133] subtract(x, mb)\n  e = f32[40,133] exponential(d)\n"
           "  s = f32[40] reduce(e, zero), dimensions={1}, to_apply=add\n  sb = f32[40,133] broadcast(s), "
           "dimensions={0}\n"
           "  ROOT y = f32[40,133] divide(e, sb) }\n";
  };
  std::vector<float> x(40 * 133);
  std::mt19937 random(5);
  for (float& v : x) v = std::normal_distribution<float>(0, 3)(random);
  std::vector<float> apart(x.size());
  const auto bytes = [](std::vector<float>& v) { return std::as_writable_bytes(std::span(v)); };
  const auto plain = Executable::compile(softmax(""));
  ASSERT_TRUE(plain) << plain.error().message();
  const std::span<std::byte> inputs[] = {bytes(x)}, outputs[] = {bytes(apart)};
  ASSERT_TRUE(plain->run(inputs, outputs));
  const auto donated = Executable::compile(softmax(", input_output_alias={ {}: (0, {}, may-alias) }"));
  ASSERT_TRUE(donated) << donated.error().message();
  for (const UpdateReport& update : donated->memory().updates) EXPECT_TRUE(update.in_place) << update.reason;
  EXPECT_LT(donated->memory().temp_bytes, 40 * 133 * 4);
  ASSERT_TRUE(donated->run(inputs, inputs));
  EXPECT_EQ(std::memcmp(x.data(), apart.data(), 4 * x.size()), 0);
}

// A sum over the rows reads them in a pass of its own: nothing lies over what that pass reads, unless it is the last to write.
TEST(Compile, SumsOverTheRowsReadThemBeforeTheyAreWritten) {
  for (const char* summed : {"x", "w"}) {
    const auto program = [&](const std::string& alias) {
      return "HloModule sums" + alias +
             "\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
             "ENTRY main { x = f32[40,133] parameter(0)\n zero = f32[] constant(0)\n"
             "  s = f32[40] reduce(x, zero), dimensions={1}, to_apply=add\n sb = f32[40,133] broadcast(s), dimensions={0}\n"
             "  y = f32[40,133] subtract(x, sb)\n q = f32[40,133] multiply(y, x)\n"
             "  t = f32[40] reduce(q, zero), dimensions={1}, to_apply=add\n tb = f32[40,133] broadcast(t), dimensions={0}\n"
             "  w = f32[40,133] multiply(x, tb)\n c = f32[133] reduce(" + summed + ", zero), dimensions={0}, to_apply=add\n"
             "  ROOT r = (f32[40,133], f32[133]) tuple(y, c) }\n";
    };
    std::vector<float> x(40 * 133), y(x.size()), c(133), sums(133);
    std::mt19937 random(6);
    for (float& v : x) v = std::normal_distribution<float>(0, 3)(random);
    const auto bytes = [](std::vector<float>& v) { return std::as_writable_bytes(std::span(v)); };
    const auto plain = Executable::compile(program("")),
               donated = Executable::compile(program(", input_output_alias={ {0}: (0, {}, may-alias) }"));
    ASSERT_TRUE(plain && donated);
    const std::span<std::byte> inputs[] = {bytes(x)}, outputs[] = {bytes(y), bytes(sums)}, over[] = {bytes(x), bytes(c)};
    ASSERT_TRUE(plain->run(inputs, outputs));
    ASSERT_TRUE(donated->run(inputs, over));
    EXPECT_EQ(std::memcmp(x.data(), y.data(), 4 * x.size()), 0) << summed;
    EXPECT_EQ(std::memcmp(c.data(), sums.data(), 4 * c.size()), 0) << summed;
  }
}

TEST(Compile, ADonatedArrayElsewhereIsKept) {
  auto program = Executable::compile(updating_loop(100));
  ASSERT_TRUE(program);
  std::vector<float> x(100, 2), y(100, 0);
  std::int32_t n = 3;
  const std::span<std::byte> inputs[] = {{reinterpret_cast<std::byte*>(x.data()), 400},
                                         {reinterpret_cast<std::byte*>(&n), 4}};
  const std::span<std::byte> outputs[] = {{reinterpret_cast<std::byte*>(y.data()), 400}};
  ASSERT_TRUE(program->run(inputs, outputs));
  EXPECT_EQ(x[0], 2);
  EXPECT_EQ(y[0], 3);
  const std::span<std::byte> overlapping[] = {{reinterpret_cast<std::byte*>(x.data()) + 4, 396}};
  EXPECT_FALSE(program->run(inputs, overlapping));
}

Buffer buffer_of(const auto& values) { return *Buffer::copy_of(std::as_bytes(std::span(values))); }

TEST(Compile, BuffersGoInAndOut) {
  const auto program = Executable::compile(updating_loop(1000));
  ASSERT_TRUE(program) << program.error().message();
  std::vector<Buffer> args = {buffer_of(std::vector<float>(1000, 2)), buffer_of(std::vector<std::int32_t>{10})};
  for (const bool donated : {false, true}) {
    const std::byte* const memory = args[0].data();
    if (donated) args[0] = donate(std::move(args[0]));
    const auto results = program->run(args);
    ASSERT_TRUE(results) << results.error().message();
    EXPECT_EQ((*results)[0].as<float>()[7], 4);
    EXPECT_EQ((*results)[0].as<float>()[71], 2);
    EXPECT_EQ((*results)[0].data() == memory, donated);
    EXPECT_EQ(args[0].data() == memory, !donated);
  }
}

TEST(Compile, DonationsAreReportedBeforeTheRun) {
  const auto program = Executable::compile(
      "HloModule m, input_output_alias={ {0}: (0, {}, may-alias), {1}: (1, {}, may-alias) }, buffer_donor={ (2, {1}) },"
      " entry_computation_layout={(f32[4,3]{1,0}, f32[4,3]{1,0}, (f32[2], f32[2]))->(f32[4,3]{1,0}, f32[4,3]{0,1}, f32[2])}\n"
      "ENTRY e { a = f32[4,3] parameter(0)\n b = f32[4,3] parameter(1)\n t = (f32[2], f32[2]) parameter(2)\n"
      "  x = f32[2] get-tuple-element(t), index=0\n y = f32[2] get-tuple-element(t), index=1\n"
      "  na = f32[4,3] negate(a)\n nb = f32[4,3] negate(b)\n s = f32[2] add(x, y)\n"
      "  ROOT r = (f32[4,3], f32[4,3], f32[2]) tuple(na, nb, s) }");
  ASSERT_TRUE(program) << program.error().message();
  const std::vector<DonationReport> donations = program->memory().donations;
  ASSERT_EQ(donations.size(), 3u);
  EXPECT_EQ(donations[0].parameter, 0);
  EXPECT_EQ(donations[0].result, 0);
  EXPECT_EQ(donations[0].reason, "");
  EXPECT_EQ(donations[1].parameter, 1);
  EXPECT_EQ(donations[1].result, -1);
  EXPECT_NE(donations[1].reason.find("layout"), std::string::npos);
  EXPECT_EQ(donations[2].parameter, 3);
  EXPECT_EQ(donations[2].result, -1);
  EXPECT_NE(donations[2].reason.find("buffer_donor"), std::string::npos);
  // What is donated in vain serves the run, and what is not donated is kept.
  std::vector<Buffer> args = {buffer_of(std::vector<float>(12, 1)), buffer_of(std::vector<float>(12, 2)),
                              buffer_of(std::vector<float>{1, 2}), buffer_of(std::vector<float>{3, 4})};
  const auto results = program->run(args);
  ASSERT_TRUE(results) << results.error().message();
  EXPECT_EQ((*results)[2].as<float>()[1], 6);
  EXPECT_EQ(args[3].as<float>()[1], 4);
}

TEST(Compile, TheCallersPoolAllocatorAndTokenAreUsed) {
  class Counting final : public WorkerPool {
   public:
    int num_threads() const override { return 3; }
    void run(int parts, Body body, void* context) override {
      ++calls;
      for (int p = 0; p < parts; ++p) body(context, p, parts);
    }
    std::atomic<int> calls = 0;
  } pool;
  HostAllocator allocator;
  CompileOptions options;
  options.pool = &pool;
  options.allocator = &allocator;
  const auto program = Executable::compile(
      "ENTRY e { a = f32[1000,1000] parameter(0)\n b = f32[1000,1000] exponential(a)\n"
      "  ROOT c = f32[1000,1000] transpose(b), dimensions={1,0} }",
      options);
  ASSERT_TRUE(program) << program.error().message();
  std::vector<Buffer> args = {buffer_of(std::vector<float>(1'000'000))};
  const auto results = program->run(args);
  ASSERT_TRUE(results) << results.error().message();
  EXPECT_EQ((*results)[0].as<float>()[999'999], 1);
  EXPECT_GE(pool.calls, 1);
  EXPECT_GE(allocator.statistics().bytes_in_use, 4'000'000);
  CancelToken token;
  token.cancel();
  EXPECT_EQ(program->run(args, {.cancel = &token}).error().code(), Code::Cancelled);
}

// The prediction of the memory is true: with so much a run succeeds, with a page less it names the owners.
TEST(Compile, ARunTakesThePredictedMemory) {
  const char* const text =
      "ENTRY e { a = f32[512,512] parameter(0)\n s = f32[512,512] dot(a, a), lhs_contracting_dims={1}, "
      "rhs_contracting_dims={0}\n u = f32[512,512] dot(s, a), lhs_contracting_dims={1}, rhs_contracting_dims={0}\n"
      "  ROOT r = f32[512,512] dot(u, s), lhs_contracting_dims={1}, rhs_contracting_dims={0} }";
  const auto plan = Executable::compile(text);
  ASSERT_TRUE(plan) << plan.error().message();
  const MemoryReport memory = plan->memory();
  EXPECT_GE(memory.temp_bytes, 512 * 512 * 4);
  const std::int64_t predicted = memory.temp_bytes + memory.result_bytes + (memory.scratch_bytes + 63) / 64 * 64;
  for (const std::int64_t less : {0, 4096}) {
    HostAllocator capped({.max_bytes = predicted - less});
    CompileOptions options;
    options.allocator = &capped;
    const auto program = Executable::compile(text, options);
    std::vector<Buffer> args = {buffer_of(std::vector<float>(512 * 512))};
    const auto results = program->run(args);
    EXPECT_EQ(results.has_value(), less == 0) << (results ? "" : results.error().message());
    if (results) continue;
    EXPECT_EQ(results.error().code(), Code::ResourceExhausted);
    EXPECT_NE(results.error().message().find("at its peak owned by"), std::string::npos) << results.error().message();
  }
}

TEST(Compile, ErrorsNameTheInstructionAndThePlace) {
  const auto unknown = Executable::compile("ENTRY e { a = f32[2] parameter(0)\n  ROOT b = f32[2] frobnicate(a) }");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().message().find("2:"), std::string::npos) << unknown.error().message();
  const auto no_kernel = Executable::compile(
      "ENTRY e { a = f32[2,2] parameter(0)\n  ROOT b = f32[2,2] custom-call(a), custom_call_target=\"mine\" }");
  ASSERT_FALSE(no_kernel);
  EXPECT_EQ(no_kernel.error().code(), Code::Unimplemented);
  EXPECT_NE(no_kernel.error().message().find("b:"), std::string::npos) << no_kernel.error().message();
}

// Sizes known at run time go in and out beside arrays of their bounds.
TEST(Compile, SizesGoBesideArraysOfTheirBounds) {
  const auto program = Executable::compile(
      "ENTRY e { a = f32[<=4] parameter(0)\n n = f32[<=4] negate(a)\n ROOT c = f32[<=8] concatenate(n, a), dimensions={0} }");
  ASSERT_TRUE(program) << program.error().message();
  ASSERT_EQ(program->parameter_shapes().size(), 2u);
  EXPECT_EQ(to_string(program->parameter_shapes()[0], false), "f32[<=4]");
  EXPECT_EQ(to_string(program->parameter_shapes()[1], false), "s32[1]");
  ASSERT_EQ(program->result_shapes().size(), 2u);
  EXPECT_EQ(to_string(program->result_shapes()[0], false), "f32[<=8]");
  for (std::int32_t size = -1; size <= 5; ++size) {
    float a[4] = {1, 2, 3, 4}, c[8] = {9, 9, 9, 9, 9, 9, 9, 9};
    std::int32_t result_size = -1;
    const std::span<std::byte> inputs[] = {std::as_writable_bytes(std::span(a)),
                                           std::as_writable_bytes(std::span(&size, 1))};
    const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(c)),
                                            std::as_writable_bytes(std::span(&result_size, 1))};
    const auto done = program->run(inputs, outputs);
    if (size < 0 || size > 4) {
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code(), Code::InvalidArgument);
      continue;
    }
    ASSERT_TRUE(done) << done.error().message();
    EXPECT_EQ(result_size, 2 * size);
    for (std::int32_t k = 0; k < 8; ++k)
      EXPECT_EQ(c[k], k < size ? -a[k] : k < 2 * size ? a[k - size] : 0) << size << ", " << k;
  }
}

// A bitcast in a comparator gives the bits, not the number.
TEST(Compile, ComparatorsMayLookAtBits) {
  const auto program = Executable::compile(
      "less { a = f32[] parameter(0)\n b = f32[] parameter(1)\n x = s32[] bitcast(a)\n y = s32[] bitcast(b)\n"
      " ROOT p = pred[] compare(x, y), direction=LT }\n"
      "ENTRY e { a = f32[4] parameter(0)\n ROOT s = f32[4] sort(a), dimensions={0}, to_apply=less }");
  ASSERT_TRUE(program) << program.error().message();
  float a[4] = {1, -2, 0.5, -1}, sorted[4] = {};
  const std::span<std::byte> inputs[] = {std::as_writable_bytes(std::span(a))};
  const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(sorted))};
  ASSERT_TRUE(program->run(inputs, outputs));
  const float expected[4] = {-1, -2, 0.5, 1};  // of negative numbers the bits grow with the magnitude
  for (int k = 0; k < 4; ++k) EXPECT_EQ(sorted[k], expected[k]);
}

// The state of random numbers is the program's: runs after each other draw on.
TEST(Compile, RunsDrawFromOneRandomState) {
  const auto program = Executable::compile("ENTRY e { ROOT s = u64[2] rng-get-and-update-state(), delta=3 }");
  ASSERT_TRUE(program) << program.error().message();
  for (const std::uint64_t low : {1u, 4u, 7u}) {
    std::uint64_t state[2] = {};
    const std::span<std::byte> outputs[] = {std::as_writable_bytes(std::span(state))};
    ASSERT_TRUE(program->run({}, outputs));
    EXPECT_EQ(state[0], low);
    EXPECT_EQ(state[1], 0u);
  }
}

TEST(Compile, WhatIsNotSupportedIsRefusedByName) {
  const auto refusal = [](const char* text) {
    const auto program = Executable::compile(text);
    EXPECT_FALSE(program) << text;
    return program ? std::string() : program.error().message();
  };
  EXPECT_NE(refusal("ENTRY e { a = f32[<=4] parameter(0)\n ROOT b = f32[<=4] custom-call(a), custom_call_target=\"f\" }")
                .find("b: "),
            std::string::npos);
  EXPECT_NE(refusal("ENTRY e { a = f32[8]{0:T(8)} parameter(0)\n ROOT b = f32[8] negate(a) }").find("a: "), std::string::npos);
  EXPECT_NE(refusal("ENTRY e { a = f32[8]{0:S(7)} parameter(0)\n ROOT b = f32[8] negate(a) }").find("memory space 7"),
            std::string::npos);
  EXPECT_NE(refusal("HloModule m, replica_count=2000\nENTRY e { a = f32[8] parameter(0)\n ROOT b = f32[8] negate(a) }")
                .find("1 to 1024 devices"),
            std::string::npos);
}

// Two replicas of three partitions: each gets its numbers, and the sum of the others' in its replica.
const char* const kNumbers =
    "HloModule numbers, replica_count=2, num_partitions=3\n"
    "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] add(a, b) }\n"
    "ENTRY e { x = s32[] parameter(0)\n r = u32[] replica-id()\n p = u32[] partition-id()\n"
    "  s = s32[] all-reduce(x), channel_id=1, replica_groups={{0,1,2},{3,4,5}}, use_global_device_ids=true, "
    "to_apply=add\n"
    "  ROOT t = (u32[], u32[], s32[]) tuple(r, p, s) }";

template <typename T>
std::span<std::byte> bytes_of(T& value) {
  return {reinterpret_cast<std::byte*>(&value), sizeof(value)};
}

TEST(Compile, RunsOnSeveralDevices) {
  for (const int threads : {1, 12}) {
    CompileOptions options;
    options.threads = threads;
    const auto program = Executable::compile(kNumbers, options);
    ASSERT_TRUE(program) << program.error().message();
    EXPECT_EQ(program->num_replicas(), 2);
    EXPECT_EQ(program->num_partitions(), 3);
    struct Device {
      std::int32_t x = 0, replica = -1, partition = -1, sum = -1;
      std::vector<std::span<std::byte>> inputs, outputs;
    } devices[6];
    std::vector<DeviceArrays> arrays;
    for (int k = 0; k < 6; ++k) {
      Device& d = devices[k];
      d.x = 1 << k;
      d.inputs = {bytes_of(d.x)};
      d.outputs = {bytes_of(d.replica), bytes_of(d.partition), bytes_of(d.sum)};
      arrays.push_back({d.inputs, d.outputs});
    }
    for (int run = 0; run < 3; ++run) {
      const auto done = program->run_devices(arrays);
      ASSERT_TRUE(done) << done.error().message();
      for (int k = 0; k < 6; ++k) {
        EXPECT_EQ(devices[k].replica, k / 3);
        EXPECT_EQ(devices[k].partition, k % 3);
        EXPECT_EQ(devices[k].sum, k < 3 ? 7 : 56);
        devices[k].sum = devices[k].partition = -1;
      }
    }
    EXPECT_EQ(program->run(arrays[0].inputs, arrays[0].outputs).error().code(), Code::InvalidArgument);
    const auto few = program->run_devices(std::span(arrays).first(5));
    ASSERT_FALSE(few);
    EXPECT_NE(few.error().message().find("6 devices"), std::string::npos);
    // Two devices that write to one place.
    std::vector<std::span<std::byte>> outputs = devices[4].outputs;
    outputs[2] = devices[1].outputs[2];
    arrays[4].outputs = outputs;
    const auto overlap = program->run_devices(arrays);
    ASSERT_FALSE(overlap);
    EXPECT_NE(overlap.error().message().find("devices 1 and 4"), std::string::npos) << overlap.error().message();
    // What is only read may be everybody's.
    for (int k = 0; k < 6; ++k) devices[k].inputs[0] = bytes_of(devices[0].x);
    arrays[4].outputs = devices[4].outputs;
    ASSERT_TRUE(program->run_devices(arrays));
    EXPECT_EQ(devices[5].sum, 3);
  }
}

TEST(Compile, TheNumberOfDevicesIsTheCallersToChoose) {
  CompileOptions options;
  options.partitions = 2;
  const char* const text =
      "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] add(a, b) }\n"
      "ENTRY e { x = s32[] parameter(0)\n"
      "  ROOT s = s32[] all-reduce(x), channel_id=1, replica_groups={{1,0}}, use_global_device_ids=true, to_apply=add "
      "}";
  const auto program = Executable::compile(text, options);
  ASSERT_TRUE(program) << program.error().message();
  EXPECT_EQ(program->num_devices(), 2);
  EXPECT_FALSE(Executable::compile(text));  // there is no device 1
}

// Replica 0 goes round a loop for ever and never comes to the all-reduce.
TEST(Compile, NamesTheDeviceThatDoesNotCome) {
  const char* const text =
      "HloModule late, replica_count=2\n"
      "add { a = s32[] parameter(0)\n b = s32[] parameter(1)\n ROOT s = s32[] add(a, b) }\n"
      "body { x = s32[] parameter(0)\n ROOT y = s32[] all-reduce(x), replica_groups={{0},{1}}, to_apply=add }\n"
      "condition { x = s32[] parameter(0)\n z = s32[] constant(0)\n ROOT l = pred[] compare(x, z), direction=NE }\n"
      "ENTRY e { x = s32[] parameter(0)\n w = s32[] while(x), condition=condition, body=body\n"
      "  ROOT sum = s32[] all-reduce(w), replica_groups={{0,1}}, to_apply=add }";
  CompileOptions options;
  options.collective_timeout = std::chrono::milliseconds(50);
  const auto program = Executable::compile(text, options);
  ASSERT_TRUE(program) << program.error().message();
  for (const std::int32_t first : {1, 0, 1}) {
    std::int32_t x[] = {first, 0}, sum[] = {-1, -1};
    std::vector<std::span<std::byte>> spans;
    for (std::int32_t* p : {x, x + 1, sum, sum + 1}) spans.push_back(bytes_of(*p));
    const std::span<std::span<std::byte>> all(spans);
    const DeviceArrays arrays[] = {{all.subspan(0, 1), all.subspan(2, 1)}, {all.subspan(1, 1), all.subspan(3, 1)}};
    const auto done = program->run_devices(arrays);
    EXPECT_EQ(done.has_value(), first == 0);
    if (done) continue;
    EXPECT_EQ(done.error().code(), Code::DeadlineExceeded);
    EXPECT_NE(done.error().message().find("sum: device 1 has waited 50 ms"), std::string::npos)
        << done.error().message();
    EXPECT_NE(done.error().message().find("missing: device 0"), std::string::npos);
  }
}

const char* const kMixed =
    "HloModule mixed\n"
    "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT s = f32[] add(a, b) }\n"
    "body { c = (s32[], f32[64,300]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n"
    "  x = f32[64,300] get-tuple-element(c), index=1\n  e = f32[64,300] tanh(x)\n  z = f32[] constant(0)\n"
    "  s = f32[64] reduce(e, z), dimensions={1}, to_apply=add\n  b = f32[64,300] broadcast(s), dimensions={0}\n"
    "  y = f32[64,300] subtract(x, b)\n  k = s32[] constant(1)\n  j = s32[] add(i, k)\n"
    "  ROOT r = (s32[], f32[64,300]) tuple(j, y) }\n"
    "condition { c = (s32[], f32[64,300]) parameter(0)\n  i = s32[] get-tuple-element(c), index=0\n"
    "  n = s32[] constant(3)\n  ROOT l = pred[] compare(i, n), direction=LT }\n"
    "yes { p = f32[64,300] parameter(0)\n ROOT q = f32[64,300] negate(p) }\n"
    "no { p = f32[64,300] parameter(0)\n ROOT q = f32[64,300] exponential(p) }\n"
    "ENTRY main { x = f32[64,300] parameter(0)\n  z = s32[] constant(0)\n  t = (s32[], f32[64,300]) tuple(z, x)\n"
    "  w = (s32[], f32[64,300]) while(t), condition=condition, body=body\n  y = f32[64,300] get-tuple-element(w), "
    "index=1\n"
    "  f = f32[1,1] slice(y), slice={[0:1], [0:1]}\n  g = f32[] reshape(f)\n  zero = f32[] constant(0)\n"
    "  p = pred[] compare(g, zero), direction=LT\n"
    "  d = f32[64,300] conditional(p, y, y), true_computation=yes, false_computation=no\n"
    "  ROOT r = (f32[64,300], f32[64]) tuple(d, q)\n}\n";

std::string mixed() {
  std::string text = kMixed;
  const std::string root = "  ROOT r = (f32[64,300], f32[64])";
  text.insert(text.find(root), "  q = f32[64] reduce(d, zero), dimensions={1}, to_apply=add\n");
  return text;
}

std::vector<std::byte> run_bytes(const std::string& text, const Literal& x, const Options& options, int threads) {
  Compiled compiled = compile_text(text, options);
  std::vector<std::vector<std::byte>> outputs;
  std::vector<std::span<std::byte>> results;
  for (const runtime::Port& port : compiled.program.results)
    outputs.emplace_back(static_cast<std::size_t>(port.size_bytes));
  for (auto& o : outputs) results.push_back(o);
  Literal copy = x;
  const std::span<std::byte> inputs[] = {copy.mutable_bytes()};
  auto executor = runtime::Executor::create(std::move(compiled.program));
  EXPECT_TRUE(executor);
  runtime::ThreadPool pool(threads);
  const auto done = (*executor)->execute(inputs, results, pool);
  EXPECT_TRUE(done) << done.error().message();
  std::vector<std::byte> all;
  for (const auto& o : outputs) all.insert(all.end(), o.begin(), o.end());
  return all;
}

Literal random_array(Shape shape) {
  Literal x(std::move(shape));
  std::mt19937 random(7);
  for (float& f : x.mutable_data<float>()) f = std::uniform_real_distribution<float>(-1, 1)(random);
  return x;
}

TEST(Compile, RegionsAndThreadsChangeNoBit) {
  const Literal x = random_array(Shape::array(DType::F32, {64, 300}));
  Options with, without;
  without.regions = false;
  const auto reference = run_bytes(mixed(), x, with, 1);
  EXPECT_EQ(reference, run_bytes(mixed(), x, without, 1));
  for (const int threads : {2, 3, 7}) {
    EXPECT_EQ(reference, run_bytes(mixed(), x, with, threads)) << threads;
    EXPECT_EQ(reference, run_bytes(mixed(), x, without, threads)) << threads;
  }
}

// A loop with one large kernel among many small instructions.
std::string one_large(int trips) {
  return "HloModule m\nadd { a = f32[] parameter(0) b = f32[] parameter(1) ROOT s = f32[] add(a, b) }\n"
         "body {\nq = (s32[], f32[19200], f32[8], f32[]) parameter(0) i = s32[] get-tuple-element(q), index=0\n"
         "x = f32[19200] get-tuple-element(q), index=1 v = f32[8] get-tuple-element(q), index=2\n"
         "s = f32[] get-tuple-element(q), index=3 one = s32[] constant(1) j = s32[] add(i, one) z = f32[] constant(0)\n"
         "a = f32[8] sine(v) b = f32[8] reverse(a), dimensions={0} c = f32[8] subtract(b, v)\n"
         "d = f32[] reduce(c, z), dimensions={0}, to_apply=add e = f32[] multiply(d, s) f = f32[8] broadcast(e), dimensions={}\n"
         "g = f32[8] add(f, c) h = f32[] reduce(g, z), dimensions={0}, to_apply=add\n"
         "k = f32[19200] broadcast(h), dimensions={} y = f32[19200] subtract(x, k)\n"
         "w = f32[8] slice(y), slice={[100:108]} m = f32[8] maximum(w, g) n = f32[] reduce(m, z), dimensions={0}, to_apply=add\n"
         "ROOT t = (s32[], f32[19200], f32[8], f32[]) tuple(j, y, m, n) }\n"
         "cond {\nq = (s32[], f32[19200], f32[8], f32[]) parameter(0) i = s32[] get-tuple-element(q), index=0\n"
         "n = s32[] constant(" + std::to_string(trips) + ") ROOT c = pred[] compare(i, n), direction=LT }\n"
         "ENTRY e {\nx = f32[64,300] parameter(0) u = f32[19200] reshape(x) v = f32[8] slice(u), slice={[0:8]}\n"
         "z = s32[] constant(0) s = f32[] constant(0.5) t = (s32[], f32[19200], f32[8], f32[]) tuple(z, u, v, s)\n"
         "l = (s32[], f32[19200], f32[8], f32[]) while(t), condition=cond, body=body\n"
         "ROOT r = f32[19200] get-tuple-element(l), index=1 }";
}

TEST(Compile, ARegionCallsALargeKernelForAllThreads) {
  auto module = read_program(one_large(6));
  ASSERT_TRUE(module) << module.error().message();
  const auto compiled = compile(*std::move(module));
  ASSERT_TRUE(compiled) << compiled.error().message();
  const std::string steps = runtime::to_string(compiled->program);
  EXPECT_THAT(steps, testing::HasSubstr("forks"));
  EXPECT_THAT(steps, testing::Not(testing::HasSubstr("body"))) << "the loop is inside";
  const Literal x = random_array(Shape::array(DType::F32, {64, 300}));
  Options without;
  without.regions = false;
  for (const int trips : {1, 2, 6, 7}) {
    const auto reference = run_bytes(one_large(trips), x, without, 1);
    for (const int threads : {1, 2, 3, 4}) EXPECT_EQ(reference, run_bytes(one_large(trips), x, {}, threads)) << trips;
  }
}

// The loop in one of as many iterations.
std::string one_large_in_a_loop(int trips) {
  std::string text = one_large(trips);
  const std::string entry = "ENTRY e {\nx = f32[64,300] parameter(0) u = f32[19200] reshape(x)", root = "ROOT r =";
  text.replace(text.find(entry), entry.size(),
               "outer {\np = (s32[], f32[19200]) parameter(0) u = f32[19200] get-tuple-element(p), index=1");
  text.replace(text.rfind(root), root.size(), "r =");
  text.replace(text.rfind('}'), 1,
               "b = s32[] get-tuple-element(p), index=0 one = s32[] constant(1) c = s32[] add(b, one)\n"
               "ROOT o = (s32[], f32[19200]) tuple(c, r) }\n"
               "more {\np = (s32[], f32[19200]) parameter(0) b = s32[] get-tuple-element(p), index=0 n = s32[] constant(" +
                   std::to_string(trips) + ")\nROOT c = pred[] compare(b, n), direction=LT }\n"
                   "ENTRY e {\nx = f32[64,300] parameter(0) u = f32[19200] reshape(x) z = s32[] constant(0)\n"
                   "t = (s32[], f32[19200]) tuple(z, u) w = (s32[], f32[19200]) while(t), condition=more, body=outer\n"
                   "ROOT r = f32[19200] get-tuple-element(w), index=1 }");
  return text;
}

// Each is short, both together are not.
TEST(Compile, ALongNestWithALargeKernelIsNoRegion) {
  for (const int trips : {3, 1000}) {
    auto module = read_program(one_large_in_a_loop(trips));
    ASSERT_TRUE(module) << module.error().message();
    const auto compiled = compile(*std::move(module));
    ASSERT_TRUE(compiled) << compiled.error().message();
    const std::string steps = runtime::to_string(compiled->program);
    EXPECT_EQ(steps.find("body") != std::string::npos, trips == 1000) << steps;
  }
}

// Who watches a long run wants to see it step by step.
TEST(Compile, ALongLoopWithALargeKernelIsNoRegion) {
  auto module = read_program(one_large(100'000));
  ASSERT_TRUE(module) << module.error().message();
  const auto compiled = compile(*std::move(module));
  ASSERT_TRUE(compiled) << compiled.error().message();
  EXPECT_THAT(runtime::to_string(compiled->program), testing::HasSubstr("repeat 100000"));
}

// The API asks what the command line does.
TEST(Compile, WhatMustBeInPlaceIsAskedForByTheApiToo) {
  const auto refusal = [](const CompileOptions& options) {
    const auto program = Executable::compile(
        "HloModule m\nENTRY e { x = f32[4096] parameter(0) u = f32[8] parameter(1) i = s32[] parameter(2)\n"
        "ROOT y = f32[4096] dynamic-update-slice(x, u, i) }",
        options);
    return program ? std::string() : std::string(program.error().message());
  };
  EXPECT_EQ(refusal({}), "");
  EXPECT_THAT(refusal({.require_in_place = std::vector<std::string>()}), testing::HasSubstr("parameter x is not donated"));
  EXPECT_THAT(refusal({.require_in_place = std::vector<std::string>{"nobody"}}), testing::HasSubstr("nobody"));
  EXPECT_THAT(refusal({.memory_budget = R"({"peak_bytes": 16384})"}), testing::HasSubstr("16384"));
  EXPECT_EQ(refusal({.memory_budget = R"({"temp_bytes": 0})"}), "");
  EXPECT_THAT(refusal({.memory_budget = "{"}), testing::HasSubstr("CompileOptions::memory_budget"));
}

TEST(Check, IsCleanAndSeesInsideKernels) {
  auto module = read_program(mixed());
  ASSERT_TRUE(module);
  const Literal x = random_array(Shape::array(DType::F32, {64, 300}));
  CheckOptions options;
  options.every_run = true;
  const auto report = check(*std::move(module), std::span(&x, 1), options);
  ASSERT_TRUE(report) << report.error().message();
  EXPECT_TRUE(report->differences.empty()) << report->differences[0].message;
  // The hyperbolic tangent is inside the kernel of the reduce; it is seen in each of three iterations.
  EXPECT_GE(report->checks, 3 * 3 + 2);
}

TEST(Compile, TwoMemoryReportsAreComparedByTheApiToo) {
  const auto small = Executable::compile(updating_loop(100), {.memory_json = true});
  ASSERT_TRUE(small) << small.error().message();
  ASSERT_FALSE(small->memory().json.empty());
  EXPECT_EQ(small->memory().changes, "");
  const auto same = Executable::compile(updating_loop(100), {.memory_against = small->memory().json});
  ASSERT_TRUE(same) << same.error().message();
  EXPECT_EQ(same->memory().changes, "no change\n");
  EXPECT_EQ(same->memory().json, "");
  const auto other = Executable::compile(updating_loop(1000), {.memory_against = small->memory().json});
  ASSERT_TRUE(other) << other.error().message();
  EXPECT_THAT(other->memory().changes, testing::HasSubstr("parameter_bytes"));
  const auto wrong = Executable::compile(updating_loop(100), {.memory_against = "{"});
  ASSERT_FALSE(wrong);
  EXPECT_THAT(wrong.error().message(), testing::HasSubstr("CompileOptions::memory_against"));
}

}  // namespace
}  // namespace hloom::compiler

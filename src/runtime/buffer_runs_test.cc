#include "runtime/buffer_runs.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <numeric>
#include <vector>

#include "base/fail.h"
#include "runtime/allocations_test.h"

namespace hloom::runtime {
namespace {

using Kind = Allocation::Kind;
using Ints = std::vector<std::int32_t>;

// x += y
void add_to(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  auto* x = static_cast<std::int32_t*>(buffers[0]);
  const auto* y = static_cast<const std::int32_t*>(buffers[1]);
  for (std::int64_t i = begin; i < end; ++i) x[i] += y[i];
}

Step add_step(std::int32_t x, std::int32_t y, std::int64_t n) {
  Call call;
  call.function = add_to;
  call.arguments = {{x, 0, 4 * n}, {y, 0, 4 * n}};
  call.blocks = n;
  return {std::move(call)};
}

// Result 0 = x + y in x, which is donated. Result 1 = y.
Program donating(std::int64_t n) {
  Program program;
  program.name = "donating";
  program.parameters = {{4 * n, 4}, {4 * n, 4}};
  program.results = {{4 * n, 4}, {4 * n, 4}};
  program.aliases = {{0, 0}};
  program.allocations = {{Kind::Result, 0, 4 * n}, {Kind::Parameter, 1, 4 * n}, {Kind::Result, 1, 4 * n}};
  program.steps = {add_step(0, 1, n), {Copy{{1, 0, 4 * n}, {2, 0, 4 * n}}}};
  return program;
}

struct Runs {
  explicit Runs(Program program) : executor(*Executor::create(std::move(program))) {}
  Expected<Results> run(std::vector<Buffer>& args) { return runs.run(args, pool, {}); }

  HostAllocator allocator;
  std::unique_ptr<Executor> executor;
  ThreadPool pool{1};
  BufferRuns runs{*executor, allocator};
};

Buffer of(const Ints& values) { return *Buffer::copy_of(std::as_bytes(std::span(values))); }
Ints values_of(const Buffer& buffer) {
  const auto span = buffer.as<std::int32_t>();
  return {span.begin(), span.end()};
}

TEST(BufferRuns, ArgumentsThatAreNotDonatedAreKept) {
  Runs runs(donating(3));
  std::vector<Buffer> args = {of({1, 2, 3}), of({10, 20, 30})};
  const Expected<Results> results = runs.run(args);
  ASSERT_TRUE(results) << results.error().message();
  ASSERT_EQ(results->size(), 2u);
  EXPECT_EQ(values_of((*results)[0]), (Ints{11, 22, 33}));
  EXPECT_EQ(values_of((*results)[1]), (Ints{10, 20, 30}));
  EXPECT_EQ(values_of(args[0]), (Ints{1, 2, 3}));
  EXPECT_TRUE(results->donations().empty());
}

TEST(BufferRuns, ADonatedArgumentIsTheResult) {
  Runs runs(donating(3));
  std::vector<Buffer> args = {donate(of({1, 2, 3})), of({10, 20, 30})};
  const std::byte* const memory = args[0].data();
  Expected<Results> results = runs.run(args);
  ASSERT_TRUE(results);
  EXPECT_EQ((*results)[0].data(), memory);
  EXPECT_EQ(values_of((*results)[0]), (Ints{11, 22, 33}));
  EXPECT_FALSE((*results)[0].is_donated());
  EXPECT_EQ(args[0].data(), nullptr);
  ASSERT_EQ(results->donations().size(), 1u);
  EXPECT_EQ(results->donations()[0].parameter, 0);
  EXPECT_EQ(results->donations()[0].result, 0);
  EXPECT_EQ(results->donations()[0].reason, "");
  args[0] = donate(std::move((*results)[0]));
  EXPECT_EQ(values_of((*runs.run(args))[0]), (Ints{21, 42, 63}));
}

// The value is right and the memory untouched, and the report has the reason.
void expect_refused(Buffer donated, const Ints& kept, std::string_view reason, std::int64_t parameter = 0) {
  Runs runs(donating(3));
  std::vector<Buffer> args = {of({1, 2, 3}), of({10, 20, 30})};
  args[static_cast<std::size_t>(parameter)] = donate(std::move(donated));
  const Ints sum = {kept[0] + (parameter == 0 ? 10 : 1), kept[1] + (parameter == 0 ? 20 : 2),
                    kept[2] + (parameter == 0 ? 30 : 3)};
  const Expected<Results> results = runs.run(args);
  ASSERT_TRUE(results);
  EXPECT_EQ(values_of((*results)[0]), sum);
  ASSERT_EQ(results->donations().size(), 1u);
  EXPECT_EQ(results->donations()[0].parameter, parameter);
  EXPECT_EQ(results->donations()[0].result, -1);
  EXPECT_EQ(results->donations()[0].reason, reason);
  EXPECT_EQ(args[static_cast<std::size_t>(parameter)].data(), nullptr);
}

TEST(BufferRuns, DonationsThatCannotBeUsedAreReported) {
  const Ints memory = {5, 6, 7};
  int released = 0;
  expect_refused(Buffer::borrow_immutable(std::as_bytes(std::span(memory)), [&] { ++released; }), memory,
                 "its memory is immutable");
  EXPECT_EQ(memory, (Ints{5, 6, 7}));
  EXPECT_EQ(released, 1);
  const Buffer shared = of({5, 6, 7});
  expect_refused(shared, {5, 6, 7}, "another handle holds its memory");
  expect_refused(shared.slice(0, 12), {5, 6, 7}, "another handle holds its memory");
  EXPECT_EQ(values_of(shared), (Ints{5, 6, 7}));
  expect_refused(of({5, 6, 7}), {5, 6, 7}, "the program aliases no result with it", 1);
}

TEST(BufferRuns, OneMemoryDonatedTwiceIsCopied) {
  Program program = donating(3);
  program.aliases = {{0, 0}, {1, 1}};
  program.steps = {add_step(0, 1, 3), add_step(2, 0, 3)};
  Runs runs(std::move(program));
  Buffer both = of({1, 2, 3});
  std::vector<Buffer> args = {donate(Buffer(both)), donate(std::move(both))};
  const Expected<Results> results = runs.run(args);
  ASSERT_TRUE(results);
  EXPECT_EQ(values_of((*results)[0]), (Ints{2, 4, 6}));
  EXPECT_EQ(values_of((*results)[1]), (Ints{3, 6, 9}));
  for (const Donation& donation : results->donations()) EXPECT_FALSE(donation.reason.empty());
}

// A program that uses a parameter's memory for other values does not spoil what the caller kept.
TEST(BufferRuns, WhatIsOverwrittenWithoutAliasIsCopiedUnlessDonated) {
  Program program;
  program.parameters = {{12, 4, true}};
  program.results = {{12, 4}};
  program.allocations = {{Kind::Parameter, 0, 12}, {Kind::Result, 0, 12}};
  program.steps = {add_step(0, 0, 3), {Copy{{0, 0, 12}, {1, 0, 12}}}};
  Runs runs(std::move(program));
  std::vector<Buffer> args = {of({1, 2, 3})};
  EXPECT_EQ(values_of((*runs.run(args))[0]), (Ints{2, 4, 6}));
  EXPECT_EQ(values_of(args[0]), (Ints{1, 2, 3}));
  args[0] = donate(std::move(args[0]));
  const std::int64_t before = runs.allocator.statistics().num_buffers;
  const Expected<Results> results = runs.run(args);
  EXPECT_EQ(values_of((*results)[0]), (Ints{2, 4, 6}));
  EXPECT_EQ(runs.allocator.statistics().num_buffers, before + 1);  // the result, and no copy
}

TEST(BufferRuns, ErrorsLeaveTheArguments) {
  Runs runs(donating(3));
  std::vector<Buffer> args = {donate(of({1, 2, 3}))};
  EXPECT_EQ(runs.run(args).error().code(), Code::InvalidArgument);
  args.push_back(of({1, 2}));
  EXPECT_EQ(runs.run(args).error().code(), Code::InvalidArgument);
  EXPECT_EQ(values_of(args[0]), (Ints{1, 2, 3}));
  EXPECT_TRUE(args[0].is_donated());
  args[1] = of({1, 1, 1});
  EXPECT_EQ(values_of((*runs.run(args))[0]), (Ints{2, 3, 4}));
}

TEST(BufferRuns, AnyElementAlignmentWillDo) {
  Runs runs(donating(3));
  alignas(64) std::byte memory[16];
  const Ints x = {1, 2, 3};
  std::memcpy(memory + 4, x.data(), 12);
  std::vector<Buffer> args = {Buffer::borrow(std::span(memory).subspan(4, 12)), of({10, 20, 30})};
  EXPECT_EQ(values_of((*runs.run(args))[0]), (Ints{11, 22, 33}));
  args[0] = Buffer::borrow(std::span(memory).subspan(2, 12));
  EXPECT_EQ(runs.run(args).error().code(), Code::InvalidArgument);
}

TEST(BufferRuns, ResultsOutliveTheProgram) {
  Expected<Results> kept = fail(Code::Unknown, "none");
  {
    Runs runs(donating(3));
    std::vector<Buffer> args = {of({1, 2, 3}), of({10, 20, 30})};
    kept = runs.run(args);
  }
  EXPECT_EQ(values_of((*kept)[0]), (Ints{11, 22, 33}));
}

// Results that were released serve the next run: no page is touched for the first time, nothing is allocated.
TEST(BufferRuns, LaterRunsTakeTheMemoryOfReleasedResults) {
  constexpr std::int64_t n = 1 << 20;
  Runs runs(donating(n));
  std::vector<Buffer> args = {of(Ints(n, 1)), of(Ints(n, 2))};
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(runs.run(args));
  const std::int64_t allocations = num_allocations();
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (int i = 0; i < 5; ++i) EXPECT_EQ((*runs.run(args))[0].as<std::int32_t>()[n - 1], 3);
  getrusage(RUSAGE_SELF, &after);
  EXPECT_EQ(num_allocations(), allocations);
  EXPECT_LE(after.ru_minflt - before.ru_minflt, 64);  // fresh pages would be 2048 each time
}

TEST(BufferRuns, AResultThatIsHeldIsNotWritten) {
  Runs runs(donating(3));
  std::vector<Buffer> args = {of({1, 2, 3}), of({10, 20, 30})};
  const Buffer held = (*runs.run(args))[0];
  args[1] = of({0, 0, 0});
  EXPECT_EQ(values_of((*runs.run(args))[0]), (Ints{1, 2, 3}));
  EXPECT_EQ(values_of(held), (Ints{11, 22, 33}));
}

TEST(BufferRuns, NoMemoryForResultsIsAnError) {
  const auto executor = *Executor::create(donating(1 << 20));
  HostAllocator small({.max_bytes = 5 << 20});
  ThreadPool pool(1);
  const BufferRuns runs(*executor, small);
  std::vector<Buffer> args = {of(Ints(1 << 20)), of(Ints(1 << 20))};
  EXPECT_EQ(runs.run(args, pool, {}).error().code(), Code::ResourceExhausted);
  EXPECT_EQ(small.statistics().num_buffers, 0);
  args[0] = donate(std::move(args[0]));
  EXPECT_TRUE(runs.run(args, pool, {}));
}

}  // namespace
}  // namespace hloom::runtime

#include "runtime/devices.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <numeric>
#include <thread>

#include "base/run_status.h"
#include "runtime/allocations_test.h"

namespace hloom::runtime {
namespace {

using testing::HasSubstr;
using Ints = std::vector<std::int32_t>;

constexpr std::int64_t kDevices = 4, kBlock = 16, kTrips = 5;

std::span<std::byte> bytes(Ints& v) { return {reinterpret_cast<std::byte*>(v.data()), v.size() * sizeof(v[0])}; }

// ((a·3 + b)·3 + c)·3 + d for everybody: the order matters.
void fold(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  for (std::int64_t i = begin * kBlock; i < end * kBlock; ++i) {
    std::uint32_t sum = 0;
    for (int m = 0; m < kDevices; ++m) sum = sum * 3 + static_cast<const std::uint32_t*>(buffers[m])[i];
    for (int m = 0; m < kDevices; ++m) static_cast<std::uint32_t*>(buffers[kDevices + m])[i] = sum;
  }
}

// x[0] += x[1], the number of the partition
void add_number(void* const* buffers, std::int64_t, std::int64_t, void*) {
  *static_cast<std::int32_t*>(buffers[0]) += *static_cast<const std::int32_t*>(buffers[1]);
}

// Fails where x[1] is negative.
void refuse_negative(void* const* buffers, std::int64_t, std::int64_t, void*) {
  if (static_cast<const std::int32_t*>(buffers[1])[1] >= 0) return;
  base::report_failure(*static_cast<base::RunStatus*>(buffers[0]), 0, Error(Code::DataLoss, "is negative"));
}
void is_zero(void* const* buffers, std::int64_t, std::int64_t, void*) {
  *static_cast<std::uint8_t*>(buffers[1]) = static_cast<const std::int32_t*>(buffers[0])[1] == 0;
}

Step call(std::string name, base::KernelFunction function, std::vector<Slice> arguments) {
  Call result;
  result.name = std::move(name);
  result.function = function;
  result.arguments = std::move(arguments);
  return {std::move(result)};
}

// Memory: 0 the parameter, 1 the result, 2 an arena: the value, the number at 4n, a predicate at 4n + 8; 3 the status.
// The value is refused if negative, waited for while zero (in its element 1); then in each of kTrips the partition's
// number is added to its element 0 and all values are folded, which the next trip begins with.
Program fold_program(std::int64_t n) {
  using Kind = Allocation::Kind;
  using Part = Collective::Part;
  Program p;
  p.name = "folds";
  p.replicas = 2;
  p.partitions = kDevices / 2;
  p.parameters = {{4 * n, 4}};
  p.results = {{4 * n, 4}};
  p.allocations = {{Kind::Parameter, 0, 4 * n},
                   {Kind::Result, 0, 4 * n},
                   {Kind::Arena, 0, 4 * n + 64},
                   {Kind::Status, 0, sizeof(base::RunStatus)}};
  collectives::Operation o;
  o.name = "all-reduce.1";
  o.kind = collectives::Kind::AllReduce;
  collectives::set_groups(o, {{2, 0, 3, 1}}, kDevices);
  o.arrays.push_back({1, 4 * n, {{kDevices, fold, n / kBlock}}});
  p.collectives.push_back(std::move(o));
  const Slice parameter{0, 0, 4 * n}, result{1, 0, 4 * n}, value{2, 0, 4 * n}, number{2, 4 * n, 4},
      predicate{2, 4 * n + 8, 1}, status{3, 0, sizeof(base::RunStatus)};
  While wait;
  wait.condition.push_back(call("is_zero", is_zero, {value, predicate}));
  wait.predicate = predicate;
  While trips;
  trips.trip_count = kTrips;
  trips.body.push_back(call("add_number", add_number, {value, number}));
  trips.body.push_back({Collective{Part::Start, 0, {value, result}}});
  trips.body.push_back({Collective{Part::Done, 0, {value, result}}});
  trips.body.push_back({Copy{result, value}});
  p.steps.push_back({DeviceNumber{DeviceNumber::Of::Partition, number}});
  p.steps.push_back({Copy{parameter, value}});
  Step refuse = call("refuse", refuse_negative, {status, value});
  std::get<Call>(refuse.of).may_fail = true;
  p.steps.push_back(std::move(refuse));
  p.steps.push_back({std::move(wait)});
  p.steps.push_back({std::move(trips)});
  return p;
}

std::vector<Ints> inputs(std::int64_t n, std::int32_t seed) {
  std::vector<Ints> all(kDevices, Ints(static_cast<std::size_t>(n)));
  for (std::size_t k = 0; k < all.size(); ++k)
    std::iota(all[k].begin(), all[k].end(), seed + 1000 * static_cast<std::int32_t>(k));
  return all;
}

Ints expected(std::vector<Ints> values) {
  for (std::int64_t trip = 0; trip < kTrips; ++trip) {
    for (std::size_t k = 0; k < values.size(); ++k) values[k][0] += static_cast<std::int32_t>(k) % 2;
    Ints sum(values[0].size());
    for (std::size_t i = 0; i < sum.size(); ++i) {
      std::uint32_t s = 0;
      for (const std::size_t k : {2, 0, 3, 1}) s = s * 3 + static_cast<std::uint32_t>(values[k][i]);
      sum[i] = static_cast<std::int32_t>(s);
    }
    std::fill(values.begin(), values.end(), sum);
  }
  return values[0];
}

// One caller's memory.
struct Caller {
  explicit Caller(std::vector<Ints> in) : in_(std::move(in)), out_(kDevices, Ints(in_[0].size(), -1)) {
    for (Ints& v : in_) parameters_.push_back(bytes(v));
    for (Ints& v : out_) results_.push_back(bytes(v));
    for (std::size_t k = 0; k < kDevices; ++k)
      values.push_back({std::span(parameters_).subspan(k, 1), std::span(results_).subspan(k, 1)});
  }
  void expect_good() const {
    const Ints want = expected(in_);
    for (const Ints& out : out_) EXPECT_EQ(out, want);
  }

  std::vector<Ints> in_, out_;
  std::vector<std::span<std::byte>> parameters_, results_;
  std::vector<DeviceValues> values;
};

TEST(Devices, FoldInTheOrderOfRanksOnAnyNumberOfThreads) {
  for (const std::int64_t n : {std::int64_t{16}, std::int64_t{64} << 12}) {
    const auto executor = Executor::create(fold_program(n));
    ASSERT_TRUE(executor) << executor.error().message();
    for (const int threads : {1, 4, 6, 9}) {
      const Devices devices(**executor, threads);
      for (int run = 0; run < 3; ++run) {
        Caller caller(inputs(n, 10 + run));
        const auto done = devices.execute(caller.values);
        ASSERT_TRUE(done) << done.error().message();
        caller.expect_good();
      }
    }
  }
}

TEST(Devices, CallsAtTheSameTimeHaveDevicesOfTheirOwn) {
  const auto executor = Executor::create(fold_program(160));
  ASSERT_TRUE(executor);
  const Devices devices(**executor, 4);
  std::vector<std::thread> callers;
  for (int c = 0; c < 3; ++c)
    callers.emplace_back([&, c] {
      for (int run = 0; run < 20; ++run) {
        Caller caller(inputs(160, 100 * c + run + 1));
        EXPECT_TRUE(devices.execute(caller.values));
        caller.expect_good();
      }
    });
  for (std::thread& caller : callers) caller.join();
}

TEST(Devices, ALaterRunAllocatesNothing) {
  const auto executor = Executor::create(fold_program(160));
  ASSERT_TRUE(executor);
  const Devices devices(**executor, 8);
  Caller caller(inputs(160, 1));
  for (int run = 0; run < 2; ++run) EXPECT_TRUE(devices.execute(caller.values));
  const std::int64_t before = num_allocations();
  EXPECT_TRUE(devices.execute(caller.values));
  EXPECT_EQ(num_allocations(), before);
  EXPECT_EQ((*executor)->num_kept(), kDevices);
}

TEST(Devices, WhatOneFailsWithAllStopWith) {
  const auto executor = Executor::create(fold_program(160));
  ASSERT_TRUE(executor);
  const Devices devices(**executor, 4);
  for (int run = 0; run < 10; ++run) {
    Caller caller(inputs(160, 1));
    caller.in_[static_cast<std::size_t>(run % kDevices)][1] = -1;
    const auto done = devices.execute(caller.values, {}, std::chrono::milliseconds(0));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::DataLoss);
    EXPECT_THAT(done.error().message(), HasSubstr("refuse: is negative"));
    Caller next(inputs(160, run + 1));
    ASSERT_TRUE(devices.execute(next.values));
    next.expect_good();
  }
}

TEST(Devices, TheOneThatDoesNotComeIsNamed) {
  const auto executor = Executor::create(fold_program(160));
  ASSERT_TRUE(executor);
  const Devices devices(**executor, 4);
  for (std::size_t late = 0; late < kDevices; ++late) {
    Caller caller(inputs(160, 1));
    caller.in_[late][1] = 0;
    const auto done = devices.execute(caller.values, {}, std::chrono::milliseconds(30));
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), Code::DeadlineExceeded);
    EXPECT_THAT(done.error().message(), HasSubstr("all-reduce.1"));
    EXPECT_THAT(done.error().message(), HasSubstr("missing: device " + std::to_string(late) + " has met nobody yet"));
  }
}

TEST(Devices, ValuesThatDoNotFitAreRefusedBeforeAnythingRuns) {
  const auto executor = Executor::create(fold_program(160));
  ASSERT_TRUE(executor);
  const Devices devices(**executor, 4);
  Caller caller(inputs(160, 1));
  const auto refusal = [&] {
    const auto done = devices.execute(caller.values);
    EXPECT_FALSE(done);
    EXPECT_EQ(caller.out_[0][0], -1);
    return done ? std::string() : done.error().message();
  };
  Ints small(3);
  const std::span<std::byte> few[] = {bytes(small)};
  const std::span<const std::span<std::byte>> good = caller.values[2].results;
  caller.values[2].results = few;
  EXPECT_THAT(refusal(), HasSubstr("device 2: result 0"));
  caller.values[2].results = caller.values[3].parameters;
  EXPECT_THAT(refusal(), HasSubstr("devices 2 and 3 overlap"));
  caller.values[2].results = caller.values[1].results;
  EXPECT_THAT(refusal(), HasSubstr("devices 1 and 2 overlap"));
  caller.values[2].results = good;
  caller.values.pop_back();
  EXPECT_THAT(refusal(), HasSubstr("runs on 4 devices"));
}

TEST(Devices, ProgramsPrintTheirCollectives) {
  const std::string text = to_string(fold_program(16));
  EXPECT_THAT(text, HasSubstr("devices 2 replicas x 2 partitions"));
  EXPECT_THAT(text, HasSubstr("partition number to 2[64:68]"));
  EXPECT_THAT(text, HasSubstr("start all-reduce.1(2[0:64], 1[0:64])"));
  EXPECT_THAT(text, HasSubstr("done all-reduce.1("));
}

TEST(Devices, InconsistentCollectivesAreRefused) {
  const auto refusal = [](void (*change)(Program&)) {
    Program p = fold_program(16);
    change(p);
    const auto executor = Executor::create(std::move(p));
    EXPECT_FALSE(executor);
    return executor ? std::string() : executor.error().message();
  };
  EXPECT_THAT(refusal([](Program& p) { p.replicas = 3; }), HasSubstr("other devices"));
  EXPECT_THAT(refusal([](Program& p) { p.collectives[0].number = 1; }), HasSubstr("number"));
  EXPECT_THAT(refusal([](Program& p) { p.steps.push_back({Collective{Collective::Part::Whole, 1, {}}}); }),
              HasSubstr("not there"));
  EXPECT_THAT(refusal([](Program& p) { p.steps.push_back({Collective{Collective::Part::Whole, 0, {}}}); }),
              HasSubstr("number of arguments"));
}

}  // namespace
}  // namespace hloom::runtime

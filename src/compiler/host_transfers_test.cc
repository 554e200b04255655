// Programs that exchange values with their host, compiled and interpreted.

#include <gtest/gtest.h>

#include <cstring>
#include <thread>

#include "hloom/executable.h"
#include "interp/interpret.h"
#include "text/parse.h"

namespace hloom {
namespace {

using namespace std::chrono_literals;

template <typename T>
HostArray array_of(DType type, const std::vector<T>& values, std::vector<std::int64_t> dims) {
  const auto bytes = std::as_bytes(std::span(values));
  return {Shape::array(type, std::move(dims)), {bytes.begin(), bytes.end()}};
}
HostArray floats(const std::vector<float>& values) {
  return array_of(DType::F32, values, {std::ssize(values)});
}

std::vector<float> floats_of(const HostArray& array) {
  std::vector<float> values(array.bytes.size() / 4);
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

/// How a program without parameters is run.
enum class Way { Compiled, Interpreted };

struct RunWith {
  std::span<HostTransfers> hosts;
  std::chrono::milliseconds timeout = 10s;
  const CancelToken* cancel = nullptr;
};

/// The bytes of each device's results.
using Bytes = std::vector<std::vector<std::vector<std::byte>>>;

Expected<Bytes> run_compiled(const std::string& text, const RunWith& with) {
  const auto program = Executable::compile(text);
  if (!program) return program.error();
  Bytes results;
  for (std::int64_t k = 0; k < program->num_devices(); ++k) {
    results.emplace_back();
    for (const Shape& shape : program->result_shapes()) results.back().emplace_back(static_cast<std::size_t>(shape.size_bytes()));
  }
  std::vector<std::vector<std::span<std::byte>>> spans;
  for (auto& of_device : results) spans.emplace_back(of_device.begin(), of_device.end());
  std::vector<DeviceArrays> arrays;
  for (auto& of_device : spans) arrays.push_back({{}, of_device});
  const Expected<> done =
      program->run_devices(arrays, {.cancel = with.cancel, .hosts = with.hosts, .host_timeout = with.timeout});
  if (!done) return done.error();
  return results;
}

Expected<Bytes> run_interpreted(const std::string& text, const RunWith& with) {
  const auto module = text::parse_module(text, {.file_name = "test"});
  if (!module) return module.error();
  interp::Options options;
  options.replicas = (*module)->config().replica_count;
  options.hosts = with.hosts;
  options.host_wait.timeout = with.timeout;
  options.host_wait.cancel = with.cancel;
  const std::vector<std::vector<hlo::Literal>> none(static_cast<std::size_t>(options.replicas));
  const auto values = interp::interpret_devices(**module, none, options);
  if (!values) return values.error();
  Bytes results;
  for (const hlo::Literal& value : *values) {
    results.emplace_back();
    for (const hlo::Literal* leaf : hlo::leaves(value))
      results.back().emplace_back(leaf->bytes().begin(), leaf->bytes().end());
  }
  return results;
}

class Transfers : public testing::TestWithParam<Way> {
 protected:
  static Expected<Bytes> run(const std::string& text, const RunWith& with) {
    return GetParam() == Way::Compiled ? run_compiled(text, with) : run_interpreted(text, with);
  }
  static std::vector<float> result(const Bytes& bytes, std::size_t device = 0, std::size_t leaf = 0) {
    std::vector<float> values(bytes[device][leaf].size() / 4);
    std::memcpy(values.data(), bytes[device][leaf].data(), bytes[device][leaf].size());
    return values;
  }
  static std::string error_of(const std::string& text, const RunWith& with, Code code) {
    const auto got = run(text, with);
    EXPECT_FALSE(got);
    if (got) return "none";
    EXPECT_EQ(got.error().code(), code) << got.error().message();
    return got.error().message();
  }
};

// Takes twice, ordered by tokens, and gives a sum and then a tuple.
constexpr const char* kFeeds = R"(HloModule m
ENTRY e {
  start = token[] after-all()
  first.1 = ((f32[2], s32[]), token[]) infeed(start)
  one = (f32[2], s32[]) get-tuple-element(first.1), index=0
  x = f32[2] get-tuple-element(one), index=0
  n = s32[] get-tuple-element(one), index=1
  t1 = token[] get-tuple-element(first.1), index=1
  second.2 = (f32[2]{0}, token[]) infeed(t1)
  y = f32[2] get-tuple-element(second.2), index=0
  t2 = token[] get-tuple-element(second.2), index=1
  sum = f32[2] add(x, y)
  o1 = token[] outfeed(sum, t2), outfeed_shape=f32[2]{0}
  both = (s32[], f32[2]) tuple(n, y)
  o2 = token[] outfeed(both, o1), outfeed_shape=(s32[], f32[2]{0})
  ROOT r = f32[2] multiply(x, y)
})";

TEST_P(Transfers, ValuesGoInTheOrderOfTokens) {
  std::vector<HostTransfers> host(1);
  ASSERT_TRUE(host[0].infeed().push({floats({1, 2}), array_of<std::int32_t>(DType::S32, {7}, {})}));
  ASSERT_TRUE(host[0].infeed().push({floats({10, 20})}));
  const auto got = run(kFeeds, {host});
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(result(*got), (std::vector<float>{10, 40}));
  const auto first = host[0].outfeed().pop(), second = host[0].outfeed().pop();
  ASSERT_TRUE(first && second);
  EXPECT_EQ(floats_of(first->at(0)), (std::vector<float>{11, 22}));
  ASSERT_EQ(second->size(), 2u);
  EXPECT_EQ(second->at(0).shape.dtype(), DType::S32);
  EXPECT_EQ(floats_of(second->at(1)), (std::vector<float>{10, 20}));
  EXPECT_EQ(host[0].outfeed().size(), 0u);
}

// A value has the order of its rows, whatever the layout says.
constexpr const char* kColumns = R"(HloModule m, is_scheduled=true
ENTRY e {
  start = token[] after-all()
  in = (f32[2,3]{0,1}, token[]) infeed(start)
  x = f32[2,3]{0,1} get-tuple-element(in), index=0
  t = token[] get-tuple-element(in), index=1
  y = f32[2,3]{0,1} add(x, x)
  out = token[] outfeed(y, t), outfeed_shape=f32[2,3]{0,1}
  ROOT r = f32[2,3]{1,0} copy(y)
})";

TEST_P(Transfers, LayoutsDoNotChangeValues) {
  std::vector<HostTransfers> host(1);
  ASSERT_TRUE(host[0].infeed().push({array_of<float>(DType::F32, {1, 2, 3, 4, 5, 6}, {2, 3})}));
  const auto got = run(kColumns, {host});
  ASSERT_TRUE(got) << got.error().message();
  const std::vector<float> twice = {2, 4, 6, 8, 10, 12};
  EXPECT_EQ(result(*got), twice);
  EXPECT_EQ(floats_of(host[0].outfeed().pop()->at(0)), twice);
}

// The host answers what it is sent, in a loop.
constexpr const char* kTalk = R"(HloModule m
more { s = (s32[], f32[2], token[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  k = s32[] constant(3)
  ROOT p = pred[] compare(n, k), direction=LT }
body { s = (s32[], f32[2], token[]) parameter(0)
  n = s32[] get-tuple-element(s), index=0
  x = f32[2] get-tuple-element(s), index=1
  t = token[] get-tuple-element(s), index=2
  answer = (f32[2], u32[], token[]) recv(t), channel_id=6, is_host_transfer=true
  question = (f32[2], u32[], token[]) send(x, t), channel_id=5, is_host_transfer=true
  sent = token[] send-done(question), channel_id=5, is_host_transfer=true
  came = (f32[2], token[]) recv-done(answer), channel_id=6, is_host_transfer=true, control-predecessors={sent}
  y = f32[2] get-tuple-element(came), index=0
  u = token[] get-tuple-element(came), index=1
  one = s32[] constant(1)
  m = s32[] add(n, one)
  ROOT r = (s32[], f32[2], token[]) tuple(m, y, u) }
ENTRY e {
  zero = s32[] constant(0)
  x = f32[2] constant({1, 2})
  t = token[] after-all()
  s = (s32[], f32[2], token[]) tuple(zero, x, t)
  w = (s32[], f32[2], token[]) while(s), condition=more, body=body
  ROOT r = f32[2] get-tuple-element(w), index=1
})";

TEST_P(Transfers, TheHostAnswersWhatItIsSent) {
  std::vector<HostTransfers> host(1);
  std::thread answers([&] {
    for (;;) {
      const auto question = host[0].from_device(5).pop();
      if (!question) return;
      std::vector<float> values = floats_of(question->at(0));
      for (float& v : values) v = 10 * v + 1;
      EXPECT_TRUE(host[0].to_device(6).push({floats(values)}));
    }
  });
  const auto got = run(kTalk, {host});
  host[0].close();
  answers.join();
  ASSERT_TRUE(got) << got.error().message();
  EXPECT_EQ(result(*got), (std::vector<float>{1111, 2111}));
}

// Device 0 is given a value only when device 1 has given its own; both then meet.
constexpr const char* kTwo = R"(HloModule m, replica_count=2
add { a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT c = f32[] add(a, b) }
ENTRY e {
  start = token[] after-all()
  in = (f32[2], token[]) infeed(start)
  x = f32[2] get-tuple-element(in), index=0
  t = token[] get-tuple-element(in), index=1
  out = token[] outfeed(x, t), outfeed_shape=f32[2]{0}
  y = f32[2] add-dependency(x, out)
  ROOT r = f32[2] all-reduce(y), replica_groups={}, to_apply=add
})";

TEST_P(Transfers, EachDeviceHasQueuesOfItsOwn) {
  std::vector<HostTransfers> host(2);
  std::thread feeds([&] {
    EXPECT_TRUE(host[1].infeed().push({floats({3, 4})}));
    const auto second = host[1].outfeed().pop();
    EXPECT_EQ(second ? floats_of(second->at(0)) : std::vector<float>(), (std::vector<float>{3, 4}));
    EXPECT_TRUE(host[0].infeed().push({floats({1, 2})}));
  });
  const auto got = run(kTwo, {host});
  feeds.join();
  ASSERT_TRUE(got) << got.error().message();
  for (const std::size_t device : {0u, 1u}) EXPECT_EQ(result(*got, device), (std::vector<float>{4, 6}));
}

TEST_P(Transfers, AnErrorOfOneDeviceEndsTheWaitOfTheOther) {
  std::vector<HostTransfers> host(2);
  ASSERT_TRUE(host[1].infeed().push({floats({3, 4, 5})}));  // device 0 gets nothing
  EXPECT_NE(error_of(kTwo, {host, 0ms}, Code::InvalidArgument).find("in: takes (f32[2]), the host gave (f32[3])"), std::string::npos);
}

// --- What goes wrong -----------------------------------------------------------------------------------------------

constexpr const char* kOne = R"(HloModule m
ENTRY e {
  start = token[] after-all()
  infeed.7 = (f32[2], token[]) infeed(start)
  ROOT x = f32[2] get-tuple-element(infeed.7), index=0
})";

TEST_P(Transfers, AnotherValueIsAnErrorThatNamesTheInstruction) {
  const HostValue wrong[] = {{floats({1, 2, 3})}, {array_of<std::int32_t>(DType::S32, {1, 2}, {2})}, {}, {floats({1, 2}), floats({})}};
  const char* words[] = {"(f32[3])", "(s32[2])", "()", "(f32[2], f32[0])"};
  for (std::size_t k = 0; k < std::size(wrong); ++k) {
    std::vector<HostTransfers> host(1);
    ASSERT_TRUE(host[0].infeed().push(wrong[k]));
    EXPECT_EQ(error_of(kOne, {host}, Code::InvalidArgument), std::string("infeed.7: takes (f32[2]), the host gave ") + words[k]);
    EXPECT_EQ(host[0].infeed().size(), 0u);
    ASSERT_TRUE(host[0].infeed().push({floats({5, 6})}));  // the next run is as any
    const auto got = run(kOne, {host});
    ASSERT_TRUE(got) << got.error().message();
    EXPECT_EQ(result(*got), (std::vector<float>{5, 6}));
  }
  std::vector<HostTransfers> host(1);
  HostArray few = floats({1, 2});
  few.bytes.pop_back();
  ASSERT_TRUE(host[0].infeed().push({few}));
  EXPECT_EQ(error_of(kOne, {host}, Code::InvalidArgument), "infeed.7: takes 8 bytes of f32[2], the host gave 7");
}

TEST_P(Transfers, WithoutAHostTheInstructionIsNamed) {
  EXPECT_EQ(error_of(kOne, {}, Code::FailedPrecondition), "infeed.7: the run has no host for its infeed (RunOptions::hosts)");
}

TEST_P(Transfers, AClosedQueueIsAnError) {
  std::vector<HostTransfers> host(1);
  host[0].close();
  EXPECT_NE(error_of(kOne, {host}, Code::FailedPrecondition).find("infeed.7: takes from the host's infeed: the queue is closed"), std::string::npos);
}

TEST_P(Transfers, AHostThatGivesNothingInTimeIsAnError) {
  std::vector<HostTransfers> host(1);
  EXPECT_NE(error_of(kOne, {host, 20ms}, Code::DeadlineExceeded).find("infeed.7: takes from the host's infeed: waited for 20 ms"), std::string::npos);
}

TEST_P(Transfers, AWaitCanBeCancelled) {
  std::vector<HostTransfers> host(1);
  CancelToken stop;
  std::thread stops([&] { stop.cancel(); });
  error_of(kOne, {host, 0ms, &stop}, Code::Cancelled);
  stops.join();
}

TEST_P(Transfers, BetweenDevicesSayWhoSendsToWhom) {
  std::vector<HostTransfers> host(1);
  const std::string text = R"(HloModule m
ENTRY e {
  t = token[] after-all()
  x = f32[2] constant({1, 2})
  s.3 = (f32[2], u32[], token[]) send(x, t), channel_id=5
  ROOT d = token[] send-done(s.3), channel_id=5
})";
  EXPECT_NE(error_of(text, {host}, Code::Unimplemented).find("s.3: "), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Ways, Transfers, testing::Values(Way::Compiled, Way::Interpreted), [](const auto& test) {
  return test.param == Way::Compiled ? "Compiled" : "Interpreted";
});

// --- Queues --------------------------------------------------------------------------------------------------------

TEST(HostQueue, AFullOneMakesWhoPushesWait) {
  HostQueue queue(1);
  ASSERT_TRUE(queue.push({floats({1})}));
  EXPECT_EQ(queue.push({floats({2})}, {.timeout = 5ms}).error().code(), Code::DeadlineExceeded);
  std::thread pushes([&] { EXPECT_TRUE(queue.push({floats({3})})); });
  EXPECT_EQ(floats_of(queue.pop()->at(0)), (std::vector<float>{1}));
  EXPECT_EQ(floats_of(queue.pop()->at(0)), (std::vector<float>{3}));
  pushes.join();
}

TEST(HostQueue, AClosedOneGivesWhatItHas) {
  HostQueue queue;
  ASSERT_TRUE(queue.push({floats({1})}));
  queue.close();
  EXPECT_EQ(queue.push({floats({2})}).error().code(), Code::FailedPrecondition);
  EXPECT_TRUE(queue.pop());
  EXPECT_EQ(queue.pop().error().code(), Code::FailedPrecondition);
}

}  // namespace
}  // namespace hloom

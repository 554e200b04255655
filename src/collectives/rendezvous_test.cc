#include "collectives/rendezvous.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <random>

#include "base/try.h"
#include "collectives/test_operation.h"

namespace hloom::collectives {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

// One device's life: what it brings is its number, what it takes home the sum of the group's.
Expected<std::int64_t> meet(Rendezvous& meeting, std::int64_t device, const Operation& o, std::int64_t mine) {
  void* const buffers[] = {&mine};
  TRY(meeting.arrive(device, o, buffers));
  const auto members = TRY(meeting.wait(device, o));
  std::int64_t sum = 0;
  for (const Rendezvous::Buffers other : members) sum = sum * 10 + *static_cast<const std::int64_t*>(other[0]);
  TRY(meeting.leave(device, o));
  return sum;
}

TEST(Rendezvous, GivesEverybodysBuffersInTheOrderOfRanks) {
  const Operation o = operation("g", Kind::AllGather, {{2, 0}, {1, 3}}, 4);
  Rendezvous meeting(4, 1);
  meeting.begin();
  std::int64_t got[4] = {};
  on_threads(everyone(4), [&](std::int64_t device) {
    const auto sum = meet(meeting, device, o, device + 1);
    got[device] = sum ? *sum : -1;
    meeting.end(device);
  });
  EXPECT_THAT(got, testing::ElementsAre(31, 24, 31, 24));
}

// Between meetings each device writes what the others have read: a meeting that let one go early would show.
TEST(Rendezvous, LetsNobodyGoWhileOthersRead) {
  for (const bool spin : {false, true}) {
    constexpr std::int64_t kDevices = 4, kRounds = 600;
    const Operation all = operation("all", Kind::AllGather, {everyone(kDevices)}, kDevices, 0);
    const Operation pairs = operation("pairs", Kind::AllGather, {{0, 3}, {1, 2}}, kDevices, 1);
    Rendezvous meeting(kDevices, 2);
    meeting.begin(kDefaultTimeout, spin);
    std::atomic<int> wrong = 0;
    on_threads(everyone(kDevices), [&](std::int64_t device) {
      std::mt19937 random(static_cast<unsigned>(device));
      std::int64_t value = 0;
      for (std::int64_t round = 0; round < kRounds; ++round) {
        const Operation& o = round % 3 == 0 ? pairs : all;
        value = round;
        void* const buffers[] = {&value};
        if (!meeting.arrive(device, o, buffers)) ++wrong;
        const auto members = meeting.wait(device, o);
        if (!members) ++wrong;
        for (const Rendezvous::Buffers other : *members)
          wrong += *static_cast<const std::int64_t*>(other[0]) != round ? 1 : 0;
        if (random() % 8 == 0) std::this_thread::yield();
        if (!meeting.leave(device, o)) ++wrong;
        value = -1;
      }
      meeting.end(device);
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Rendezvous, ADeviceMayArriveAtSeveralBeforeItWaits) {
  const Operation a = operation("a", Kind::AllGather, {{0, 1}}, 2, 0),
                  b = operation("b", Kind::AllGather, {{0, 1}}, 2, 1);
  Rendezvous meeting(2, 2);
  meeting.begin();
  std::atomic<int> good = 0;
  on_threads(everyone(2), [&](std::int64_t device) {
    void* const buffers[] = {&good};
    for (const Operation* o : {&a, &b}) good += meeting.arrive(device, *o, buffers) ? 1 : 0;
    for (const Operation* o : {&b, &a}) {
      good += meeting.wait(device, *o) ? 1 : 0;
      good += meeting.leave(device, *o) ? 1 : 0;
    }
    meeting.end(device);
  });
  EXPECT_EQ(good, 12);
}

TEST(Rendezvous, NamesWhoDoesNotComeInTime) {
  const Operation o = operation("all-reduce.7", Kind::AllReduce, {{0, 1, 2}}, 3);
  Rendezvous meeting(3, 1);
  for (int run = 0; run < 2; ++run) {
    meeting.begin(milliseconds(30));
    on_threads({0, 1}, [&](std::int64_t device) {
      const auto sum = meet(meeting, device, o, 1);
      ASSERT_FALSE(sum);
      EXPECT_EQ(sum.error().code(), Code::DeadlineExceeded);
      EXPECT_THAT(sum.error().message(), HasSubstr("all-reduce.7"));
      EXPECT_THAT(sum.error().message(), HasSubstr("missing: device 2 has met nobody yet"));
      meeting.end(device);
    });
    // Too late, it gets the same error.
    const auto late = meet(meeting, 2, o, 1);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code(), Code::DeadlineExceeded);
    meeting.end(2);
  }
  // And the next run is as any.
  meeting.begin();
  on_threads(everyone(3), [&](std::int64_t device) {
    const auto sum = meet(meeting, device, o, 1);
    EXPECT_TRUE(sum);
    meeting.end(device);
  });
  EXPECT_FALSE(meeting.failed());
}

TEST(Rendezvous, TellsAtOnceThatAllWaitInVain) {
  const Operation a = operation("a", Kind::AllGather, {{0, 1}}, 2, 0),
                  b = operation("b", Kind::AllGather, {{0, 1}}, 2, 1);
  Rendezvous meeting(2, 2);
  meeting.begin(milliseconds(0));  // for ever
  on_threads(everyone(2), [&](std::int64_t device) {
    const auto sum = meet(meeting, device, device == 0 ? a : b, 1);
    ASSERT_FALSE(sum);
    EXPECT_EQ(sum.error().code(), Code::InvalidArgument);
    EXPECT_THAT(sum.error().message(), HasSubstr("device 0 waits at a, device 1 waits at b"));
    meeting.end(device);
  });
}

TEST(Rendezvous, TellsAtOnceThatOneHasEnded) {
  const Operation o = operation("a", Kind::AllGather, {{0, 1}}, 2);
  Rendezvous meeting(2, 1);
  meeting.begin(milliseconds(0));
  on_threads(everyone(2), [&](std::int64_t device) {
    if (device == 0) {
      const auto sum = meet(meeting, device, o, 1);
      ASSERT_FALSE(sum);
      EXPECT_THAT(sum.error().message(), HasSubstr("device 0 waits at a, device 1 has ended"));
    }
    meeting.end(device);
  });
}

TEST(Rendezvous, ParticipantsMustMeanTheSame) {
  const Operation good = operation("a", Kind::AllGather, {{0, 1}}, 2);
  Operation other_groups = operation("a", Kind::AllGather, {{1, 0}}, 2), other_bytes = good;
  other_bytes.arrays.push_back({1, 8, {}});
  Operation four = good;
  four.arrays.push_back({1, 4, {}});
  const std::tuple<const Operation*, const Operation*, const char*> cases[] = {
      {&good, &other_groups, "groups {{"}, {&four, &other_bytes, "bytes "}, {&good, &four, "number of arrays"}};
  for (const auto& [zero, one, what] : cases) {
    Rendezvous meeting(2, 1);
    meeting.begin();
    on_threads(everyone(2), [&, zero = zero, one = one, what = what](std::int64_t device) {
      const auto sum = meet(meeting, device, device == 0 ? *zero : *one, 1);
      ASSERT_FALSE(sum);
      EXPECT_EQ(sum.error().code(), Code::InvalidArgument);
      EXPECT_THAT(sum.error().message(), HasSubstr("devices"));
      EXPECT_THAT(sum.error().message(), HasSubstr(what));
      meeting.end(device);
    });
  }
}

TEST(Rendezvous, AFailureIsEverybodys) {
  constexpr std::int64_t kDevices = 5;
  const Operation o = operation("a", Kind::AllGather, {everyone(kDevices)}, kDevices);
  Rendezvous meeting(kDevices, 1);
  for (int run = 0; run < 50; ++run) {
    meeting.begin();
    on_threads(everyone(kDevices), [&](std::int64_t device) {
      for (int round = 0; round < 3; ++round) {
        if (device == 3 && round == run % 3) meeting.fail(Error(Code::DataLoss, "device 3 has lost it"));
        const auto sum = meet(meeting, device, o, 1);
        if (sum) continue;
        EXPECT_EQ(sum.error().code(), Code::DataLoss);
        break;
      }
      meeting.end(device);
    });
    EXPECT_TRUE(meeting.failed());
  }
}

// One fails while another is at work: when it has ended, nobody reads any more what it brought.
TEST(Rendezvous, NobodyReadsTheMemoryOfOneThatHasEnded) {
  const Operation o = operation("a", Kind::AllGather, {{0, 1}}, 2);
  Rendezvous meeting(2, 1);
  meeting.begin();
  std::atomic<bool> is_at_work = false, has_failed = false;
  std::atomic<int> seen = 0;
  on_threads(everyone(2), [&](std::int64_t device) {
    std::atomic<int> mine = 7;
    void* const buffers[] = {&mine};
    ASSERT_TRUE(meeting.arrive(device, o, buffers));
    if (device == 0) {
      const auto members = meeting.wait(device, o);
      ASSERT_TRUE(members);
      is_at_work = true;
      while (!has_failed) std::this_thread::yield();
      for (int k = 0; k < 200; ++k) std::this_thread::yield();
      seen = static_cast<const std::atomic<int>*>((*members)[1][0])->load();
      EXPECT_FALSE(meeting.leave(device, o));
    } else {
      while (!is_at_work) std::this_thread::yield();
      meeting.fail(Error(Code::Aborted, "stop"));
      has_failed = true;
      EXPECT_FALSE(meeting.wait(device, o));
    }
    meeting.end(device);
    mine = -1;
  });
  EXPECT_EQ(seen, 7);
}

Operation transfer(std::string name, Kind kind, std::int64_t number, std::int64_t bytes = 8) {
  Operation o;
  o.name = std::move(name);
  o.number = number;
  o.kind = kind;
  o.mailbox = 1;
  set_transfer(o, {{0, 1}, {1, 0}}, 3);
  o.arrays.push_back({1, bytes, {}});
  return o;
}

Expected<> send(Rendezvous& meeting, std::int64_t device, const Operation& o, std::int64_t value) {
  void* const buffers[] = {&value};
  return meeting.send(device, o, buffers);
}

Expected<std::int64_t> take(Rendezvous& meeting, std::int64_t device, const Operation& o) {
  std::int64_t value = -1;
  void* const buffers[] = {&value};
  TRY(meeting.take(device, o, buffers));
  return value;
}

// One that sends does not wait, and what it sent is a copy. A device without a source gets zeros.
TEST(Rendezvous, TakesWhatWasSentInItsOrder) {
  const Operation out = transfer("out", Kind::Send, 0), in = transfer("in", Kind::Take, 1);
  Rendezvous meeting(3, 2);
  for (int run = 0; run < 2; ++run) {
    meeting.begin();
    std::atomic<int> wrong = 0;
    on_threads(everyone(3), [&](std::int64_t device) {
      for (std::int64_t round = 0; round < 50; ++round) {
        for (std::int64_t k = 0; k < 3; ++k)
          if (!send(meeting, device, out, 100 * round + 10 * k + device)) ++wrong;
        for (std::int64_t k = 0; k < 3; ++k) {
          const auto got = take(meeting, device, in);
          if (!got || *got != (device == 2 ? 0 : 100 * round + 10 * k + 1 - device)) ++wrong;
        }
      }
      if (!send(meeting, device, out, 7)) ++wrong;  // nobody takes it: the next run does not find it
      meeting.end(device);
    });
    EXPECT_EQ(wrong, 0);
  }
}

TEST(Rendezvous, NamesWhoDoesNotSendInTime) {
  const Operation in = transfer("in", Kind::Take, 0), all = operation("all", Kind::AllGather, {{0, 2}, {1}}, 3, 1);
  Rendezvous meeting(3, 2);
  meeting.begin(milliseconds(20));
  const auto late = take(meeting, 1, in);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code(), Code::DeadlineExceeded);
  EXPECT_THAT(late.error().message(), HasSubstr("in: device 1 has waited 20 ms"));
  EXPECT_THAT(late.error().message(), HasSubstr("missing: device 0 has met nobody yet"));
  for (const std::int64_t device : everyone(3)) meeting.end(device);
}

TEST(Rendezvous, TellsAtOnceThatNobodySends) {
  const Operation in = transfer("in", Kind::Take, 0);
  Rendezvous meeting(3, 1);
  meeting.begin(milliseconds(0));
  std::atomic<int> named = 0;
  on_threads(everyone(3), [&](std::int64_t device) {
    const auto got = take(meeting, device, in);
    if (!got && got.error().message().find("device 0 waits at in, device 1 waits at in, device 2 has ended") != std::string::npos)
      ++named;
    meeting.end(device);
  });
  EXPECT_EQ(named, 2);
}

TEST(Rendezvous, WhatIsSentAndTakenHasOneSize) {
  const Operation out = transfer("out", Kind::Send, 0), in = transfer("in", Kind::Take, 1, 4);
  Rendezvous meeting(3, 2);
  meeting.begin();
  ASSERT_TRUE(send(meeting, 0, out, 1));
  const auto got = take(meeting, 1, in);
  ASSERT_FALSE(got);
  EXPECT_THAT(got.error().message(), HasSubstr("in: device 1 takes 4 bytes, device 0 sent 8"));
  for (const std::int64_t device : everyone(3)) meeting.end(device);
}

TEST(Operation, PairsJoinDevices) {
  Operation o;
  set_pairs(o, {{0, 2}, {5, 2}, {3, 4}, {1, 1}}, 7);
  EXPECT_EQ(o.groups, (Groups{{0, 2, 5}, {1}, {3, 4}, {6}}));
  EXPECT_EQ(o.member(5).rank, 2);
  EXPECT_THAT(o.sources, testing::ElementsAre(-1, 1, 5, -1, 3, -1, -1));
}

TEST(Operation, MessagesSayWhatDiffers) {
  const Operation a = operation("a", Kind::AllGather, {{0, 1}}, 2);
  EXPECT_EQ(difference(a, operation("a", Kind::AllGather, {{0, 1}}, 2)), std::nullopt);
  EXPECT_THAT(*difference(a, operation("b", Kind::AllGather, {{0, 1}}, 2)), HasSubstr("instruction a against b"));
  EXPECT_THAT(*difference(a, operation("a", Kind::AllGather, {{0}, {1}}, 2)), HasSubstr("{{0,1}} against {{0},{1}}"));
  EXPECT_THAT(*difference(a, operation("a", Kind::Broadcast, {{0, 1}}, 2)), HasSubstr("kind"));
}

}  // namespace
}  // namespace hloom::collectives

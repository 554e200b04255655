// What all participants' shares make together, against the definitions written out. Each share is done in random
// pieces, in a random order, by one device after the other: any order is as good.

#include "collectives/share.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>

#include "collectives/test_operation.h"

namespace hloom::collectives {
namespace {

using Bytes = std::vector<std::byte>;
using testing::HasSubstr;

// What one device has: operands, then results.
struct Memory {
  std::vector<Bytes> buffers;
  std::vector<void*> pointers;
};

class Trial {
 public:
  explicit Trial(unsigned seed) : random_(seed) {}

  int number(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  Bytes bytes(std::int64_t count) {
    Bytes result(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < result.size(); i += 4) {
      const auto word = static_cast<std::uint32_t>(random_());
      std::memcpy(result.data() + i, &word, std::min<std::size_t>(4, result.size() - i));
    }
    return result;
  }
  std::vector<std::int64_t> shuffled(std::int64_t n) {
    std::vector<std::int64_t> all = everyone(n);
    std::shuffle(all.begin(), all.end(), random_);
    return all;
  }

  // Each device's share, in pieces. The first error.
  Expected<> run(const Operation& o, std::vector<Memory>& memory) {
    for (Memory& m : memory)
      for (Bytes& b : m.buffers) m.pointers.push_back(b.data());
    for (const std::int64_t device : shuffled(static_cast<std::int64_t>(memory.size()))) {
      std::vector<Share::Buffers> members;
      for (const std::int64_t member : o.group_of(device))
        members.push_back(memory[static_cast<std::size_t>(member)].pointers.data());
      if (members.empty()) members.push_back(memory[static_cast<std::size_t>(device)].pointers.data());
      std::vector<void*> room;
      const auto share = Share::create(o, device, members, room);
      if (!share) return share.error();
      std::vector<std::int64_t> cuts{0, share->num_units()};
      for (int k = 0; k < 3; ++k) cuts.push_back(number(0, static_cast<int>(share->num_units())));
      std::sort(cuts.begin(), cuts.end());
      for (const std::int64_t part : shuffled(static_cast<std::int64_t>(cuts.size()) - 1))
        share->run(cuts[static_cast<std::size_t>(part)], cuts[static_cast<std::size_t>(part) + 1]);
    }
    return {};
  }

 private:
  std::mt19937 random_;
};

std::vector<Memory> memory_for(Trial& test, std::int64_t devices, const std::vector<std::int64_t>& operands,
                               const std::vector<std::int64_t>& results) {
  std::vector<Memory> all(static_cast<std::size_t>(devices));
  for (Memory& m : all) {
    for (const std::int64_t bytes : operands) m.buffers.push_back(test.bytes(bytes));
    for (const std::int64_t bytes : results) m.buffers.push_back(test.bytes(bytes));
  }
  return all;
}

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

// The pieces that joining or cutting kinds make, byte by byte.
void expect_pieces(const Operation& o, const std::vector<Memory>& memory, std::int64_t device) {
  const std::vector<std::int64_t>& group = o.group_of(device);
  const std::int64_t g = static_cast<std::int64_t>(group.size()), rank = o.member(device).rank;
  const std::int64_t rows = o.arrays[0].rows, piece = o.arrays[0].piece_bytes;
  Bytes want;
  for (std::int64_t row = 0; row < rows; ++row)
    for (std::int64_t m = 0; m < g; ++m) {
      const Bytes& from = memory[at(group[at(m)])].buffers[0];
      const std::int64_t place = o.kind == Kind::AllGather ? row * piece : (row * g + rank) * piece;
      want.insert(want.end(), from.begin() + place, from.begin() + place + piece);
    }
  EXPECT_EQ(memory[at(device)].buffers.back(), want) << device;
}

TEST(Share, JoinsAndCutsRows) {
  for (unsigned seed = 0; seed < 60; ++seed) {
    Trial test(seed);
    const std::int64_t n = test.number(2, 8), rows = test.number(1, 5), g = n % 2 == 0 ? n / 2 : n;
    const std::int64_t piece = seed % 10 == 0 ? 100'000 : test.number(0, 40);
    const std::vector<std::int64_t> order = test.shuffled(n);
    Groups groups;
    for (std::int64_t k = 0; k < n; k += g) groups.push_back({order.begin() + k, order.begin() + k + g});
    Operation o = operation("x", seed % 2 == 0 ? Kind::AllGather : Kind::AllToAll, groups, n);
    o.arrays.push_back({rows, piece, {}});
    const std::int64_t operand = rows * piece * (o.kind == Kind::AllGather ? 1 : g);
    std::vector<Memory> memory = memory_for(test, n, {operand}, {rows * piece * g});
    ASSERT_TRUE(test.run(o, memory));
    for (std::int64_t device = 0; device < n; ++device) expect_pieces(o, memory, device);
  }
}

TEST(Share, ExchangesWholeArrays) {
  Trial test(1);
  Operation o = operation("x", Kind::Exchange, {{1, 0, 2}}, 3);
  for (int k = 0; k < 3; ++k) o.arrays.push_back({1, 70'000, {}});
  std::vector<Memory> memory = memory_for(test, 3, {70'000, 70'000, 70'000}, {70'000, 70'000, 70'000});
  ASSERT_TRUE(test.run(o, memory));
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t m = 0; m < 3; ++m)
      EXPECT_EQ(memory[at(o.groups[0][at(r)])].buffers[at(3 + m)], memory[at(o.groups[0][at(m)])].buffers[at(r)]);
}

TEST(Share, PermutesAndFillsWithZeros) {
  Trial test(2);
  Operation o;
  o.kind = Kind::Permute;
  set_pairs(o, {{0, 2}, {2, 0}, {3, 3}, {0, 4}}, 6);
  o.arrays.push_back({1, 90'000, {}});
  o.arrays.push_back({1, 3, {}});
  std::vector<Memory> memory = memory_for(test, 6, {90'000, 3}, {90'000, 3});
  ASSERT_TRUE(test.run(o, memory));
  const std::int64_t sources[] = {2, -1, 0, 3, 0, -1};
  for (std::int64_t device = 0; device < 6; ++device)
    for (std::size_t a = 0; a < 2; ++a) {
      const Bytes& got = memory[at(device)].buffers[2 + a];
      EXPECT_EQ(got, sources[device] < 0 ? Bytes(got.size()) : memory[at(sources[device])].buffers[a]) << device;
    }
}

TEST(Share, BroadcastsFromTheFirstAndLeavesZerosElsewhere) {
  Trial test(3);
  Operation o = operation("b", Kind::Broadcast, {{2, 0}, {4, 1}}, 5);
  o.arrays.push_back({1, 50, {}});
  std::vector<Memory> memory = memory_for(test, 5, {50}, {50});
  ASSERT_TRUE(test.run(o, memory));
  const std::int64_t roots[] = {2, 4, 2, -1, 4};
  for (std::int64_t device = 0; device < 5; ++device)
    EXPECT_EQ(memory[at(device)].buffers[1], roots[device] < 0 ? Bytes(50) : memory[at(roots[device])].buffers[0])
        << device;
}

template <typename Integer>
void put(Bytes& to, std::int64_t i, Integer value) {
  std::memcpy(to.data() + i * static_cast<std::int64_t>(sizeof(value)), &value, sizeof(value));
}

TEST(Share, TheRootMayBeData) {
  Trial test(4);
  Operation o = operation("b", Kind::Broadcast, {{0, 2, 1}}, 3);
  o.root_is_data = true;
  o.index_bytes = 1;
  o.arrays.push_back({1, 5, {}});
  for (const int root : {0, 1, 2, 3}) {
    std::vector<Memory> memory = memory_for(test, 3, {5, 1}, {5});
    for (Memory& m : memory) put(m.buffers[1], 0, static_cast<std::int8_t>(root));
    const auto done = test.run(o, memory);
    EXPECT_EQ(done.has_value(), root < 3);
    if (!done) {
      EXPECT_THAT(done.error().message(), HasSubstr("b: the root 3 is not in the group"));
    }
    for (std::int64_t device = 0; device < 3 && done; ++device)
      EXPECT_EQ(memory[at(device)].buffers[2], memory[at(root)].buffers[0]);
  }
}

// x0·256 + x1 … on bytes, modulo 2^8: the order matters. Results: as many as Fold has.
template <int kMembers, int kResults, int kColumns, int kPitch>
void fold_bytes(void* const* buffers, std::int64_t begin, std::int64_t end, void*) {
  for (std::int64_t row = begin; row < end; ++row)
    for (std::int64_t c = 0; c < kColumns; ++c) {
      int sum = 0;
      for (int m = 0; m < kMembers; ++m)
        sum = sum * 3 + static_cast<int>(static_cast<const std::byte*>(buffers[m])[row * kPitch + c]);
      for (int k = 0; k < kResults; ++k)
        static_cast<std::byte*>(buffers[kMembers + k])[row * kColumns + c] = static_cast<std::byte>(sum);
    }
}

std::byte folded(const std::vector<Memory>& memory, const std::vector<std::int64_t>& group, std::int64_t i) {
  int sum = 0;
  for (const std::int64_t member : group) sum = sum * 3 + static_cast<int>(memory[at(member)].buffers[0][at(i)]);
  return static_cast<std::byte>(sum);
}

TEST(Share, FoldsInTheOrderOfRanksForEverybody) {
  Trial test(5);
  Operation o = operation("r", Kind::AllReduce, {{2, 0, 1}, {3}, {5, 4}}, 6);
  o.arrays.push_back({1, 40, {{3, fold_bytes<3, 3, 4, 4>, 10}, {2, fold_bytes<2, 2, 8, 8>, 5}}});
  std::vector<Memory> memory = memory_for(test, 6, {40}, {40});
  ASSERT_TRUE(test.run(o, memory));
  for (std::int64_t device = 0; device < 6; ++device)
    for (std::int64_t i = 0; i < 40; ++i)
      ASSERT_EQ(memory[at(device)].buffers[1][at(i)], folded(memory, o.group_of(device), i)) << device << " " << i;
}

TEST(Share, ScattersWhatItFolds) {
  Trial test(6);
  Operation o = operation("r", Kind::ReduceScatter, {{1, 2, 0}}, 3);
  o.arrays.push_back({5, 2, {{3, fold_bytes<3, 1, 2, 6>, 5}}});
  std::vector<Memory> memory = memory_for(test, 3, {30}, {10});
  ASSERT_TRUE(test.run(o, memory));
  for (std::int64_t device = 0; device < 3; ++device)
    for (std::int64_t i = 0; i < 10; ++i)
      ASSERT_EQ(memory[at(device)].buffers[1][at(i)],
                folded(memory, o.groups[0], i / 2 * 6 + o.member(device).rank * 2 + i % 2));
}

TEST(Share, ReducesToTheRoot) {
  Trial test(7);
  Operation o = operation("r", Kind::Reduce, {{1, 2, 0}}, 3);
  o.root_is_data = true;
  o.arrays.push_back({1, 30, {{3, fold_bytes<3, 1, 3, 3>, 10}}});
  std::vector<Memory> memory = memory_for(test, 3, {30, 4}, {30});
  for (Memory& m : memory) put(m.buffers[1], 0, std::int32_t{2});
  ASSERT_TRUE(test.run(o, memory));
  EXPECT_EQ(memory[0].buffers[2], Bytes(30));
  EXPECT_EQ(memory[1].buffers[2], Bytes(30));
  for (std::int64_t i = 0; i < 30; ++i) ASSERT_EQ(memory[2].buffers[2][at(i)], folded(memory, o.groups[0], i));

  std::vector<Memory> torn = memory_for(test, 3, {30, 4}, {30});
  for (std::int64_t device = 0; device < 3; ++device) put(torn[at(device)].buffers[1], 0, device == 0 ? 1 : 2);
  const auto done = test.run(o, torn);
  ASSERT_FALSE(done);
  EXPECT_THAT(done.error().message(), HasSubstr("r: members of a group name the roots"));
}

class Ragged : public testing::Test {
 protected:
  Ragged() : o_(operation("rag", Kind::Ragged, {{1, 0}}, 2)) {
    o_.arrays.push_back({1, 5 * 2, {}});
    o_.ragged_entries = 2;
    o_.index_bytes = 8;
    o_.input_rows = 4;
    o_.output_rows = 5;
    o_.row_bytes = 2;
    memory_ = memory_for(test_, 2, {8, 10, 32, 32, 32, 32}, {10});
    for (Memory& m : memory_)
      for (std::size_t k = 2; k < 6; ++k) std::fill(m.buffers[k].begin(), m.buffers[k].end(), std::byte{0});
  }

  // Rows [from, from + rows) of the device go to `to` of member `rank`, as its entry `k`.
  void send(std::int64_t device, std::int64_t rank, std::int64_t k, std::int64_t from, std::int64_t rows,
            std::int64_t to) {
    std::vector<Bytes>& b = memory_[at(device)].buffers;
    put(b[2], rank * 2 + k, from);
    put(b[3], rank * 2 + k, rows);
    put(b[4], rank * 2 + k, to);
  }

  Trial test_{8};
  Operation o_;
  std::vector<Memory> memory_;
};

TEST_F(Ragged, RowsGoWhereTheySayAndTheRestStays) {
  send(0, 0, 0, 1, 2, 3);  // rank 0 is device 1
  send(0, 1, 1, 0, 1, 4);
  send(1, 1, 0, 3, 1, 0);
  const std::vector<Memory> before = memory_;
  ASSERT_TRUE(test_.run(o_, memory_));
  Bytes one = before[1].buffers[1], zero = before[0].buffers[1];
  std::copy_n(before[0].buffers[0].begin() + 2, 4, one.begin() + 6);
  std::copy_n(before[0].buffers[0].begin(), 2, zero.begin() + 8);
  std::copy_n(before[1].buffers[0].begin() + 6, 2, zero.begin());
  EXPECT_EQ(memory_[1].buffers[6], one);
  EXPECT_EQ(memory_[0].buffers[6], zero);
}

TEST_F(Ragged, WhatDoesNotFitIsRefused) {
  const std::int64_t wrong[][3] = {{0, 5, 0},  {3, 2, 0},         {0, 2, 4},         {-1, 1, 0},       {0, -1, 0},
                                   {0, 1, -1}, {INT64_MAX, 1, 0}, {1, INT64_MAX, 1}, {0, 1, INT64_MAX}};
  for (const auto& [from, rows, to] : wrong) {
    send(0, 0, 1, from, rows, to);
    for (Memory& m : memory_) m.pointers.clear();
    const auto done = test_.run(o_, memory_);
    ASSERT_FALSE(done) << from << " " << rows << " " << to;
    EXPECT_EQ(done.error().code(), Code::InvalidArgument);
    EXPECT_THAT(done.error().message(), HasSubstr("rag: entry 1 of device 0"));
  }
}

}  // namespace
}  // namespace hloom::collectives

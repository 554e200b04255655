#include "jit/contiguous_sections.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "base/fail.h"

namespace hloom::jit {
namespace {

// Fails at the n-th map or protect (from 1), and counts what is mapped.
class FailingMapper final : public Mapper {
 public:
  int fail_map = 0, fail_protect = 0;
  int maps = 0, protects = 0, unmaps = 0;
  std::int64_t mapped_bytes = 0;

  Expected<std::byte*> map(std::int64_t size_bytes) override {
    if (++maps == fail_map) return fail(Code::ResourceExhausted, "no room");
    mapped_bytes += size_bytes;
    return system_mapper().map(size_bytes);
  }
  Expected<> protect(std::byte* from, std::int64_t size_bytes, Access access) override {
    if (++protects == fail_protect) return fail(Code::PermissionDenied, "protect ", protects, " refused");
    return system_mapper().protect(from, size_bytes, access);
  }
  void advise_huge(std::byte* from, std::int64_t size_bytes) override {
    system_mapper().advise_huge(from, size_bytes);
  }
  void unmap(std::byte* from, std::int64_t size_bytes) override {
    ++unmaps;
    mapped_bytes -= size_bytes;
    system_mapper().unmap(from, size_bytes);
  }
};

constexpr ContiguousSections::Sizes kSmall{{100, 16}, {100, 16}, {100, 16}};

std::uintptr_t address(const std::byte* p) { return reinterpret_cast<std::uintptr_t>(p); }

TEST(ContiguousSections, OrderAndAlignmentForRandomSizes) {
  std::mt19937 random(1);
  for (int round = 0; round < 200; ++round) {
    ContiguousSections sections;
    ContiguousSections::Size sizes[kNumSections];
    for (auto& size : sizes) {
      size.bytes = random() % 3 == 0 ? 0 : random() % 20000;
      size.alignment = std::int64_t{1} << random() % 13;
    }
    ASSERT_TRUE(sections.reserve({sizes[0], sizes[1], sizes[2]}));
    std::byte* last_end = nullptr;
    for (std::size_t i = 0; i < kNumSections; ++i) {
      const auto section = static_cast<Section>(i);
      Expected<std::byte*> got = sections.carve(section, sizes[i].bytes, sizes[i].alignment);
      ASSERT_TRUE(got) << got.error().message();
      EXPECT_EQ(address(*got) % static_cast<std::uintptr_t>(sizes[i].alignment), 0u);
      EXPECT_GE(*got, last_end);
      last_end = *got + sizes[i].bytes;
      std::fill_n(*got, sizes[i].bytes, std::byte{1});
    }
    EXPECT_LE(last_end - sections.begin(Section::Code), sections.statistics().reserved_bytes);
    ASSERT_TRUE(sections.finalise());
  }
}

TEST(ContiguousSections, CarvedPiecesAreDisjointAndZeroed) {
  ContiguousSections sections;
  ASSERT_TRUE(sections.reserve({{}, {}, {4096, 64}}));
  std::vector<std::pair<std::byte*, std::int64_t>> pieces;
  for (std::int64_t size : {1, 64, 0, 63, 65, 1000}) {
    std::byte* at = *sections.carve(Section::ReadWrite, size, 64);
    EXPECT_TRUE(std::all_of(at, at + size, [](std::byte b) { return b == std::byte{0}; }));
    std::memset(at, 0xff, static_cast<std::size_t>(size));
    pieces.emplace_back(at, size);
  }
  for (std::size_t i = 1; i < pieces.size(); ++i)
    EXPECT_GE(pieces[i].first, pieces[i - 1].first + pieces[i - 1].second);
}

TEST(ContiguousSections, WrongSizesAndAlignmentsAreRefused) {
  ContiguousSections sections;
  for (const ContiguousSections::Size bad : {ContiguousSections::Size{-1, 1}, {1, 0}, {1, 3}, {1, -8},
                                             {1, 2 * page_size()}, {INT64_MAX, 1}}) {
    Expected<> done = sections.reserve({bad, {}, {}});
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().code(), hloom::Code::InvalidArgument);
    EXPECT_FALSE(sections.reserved());
  }
  EXPECT_TRUE(sections.reserve({{1, page_size()}, {}, {}}));
  EXPECT_FALSE(sections.carve(Section::Code, 1, 2 * page_size()));
  EXPECT_FALSE(sections.carve(Section::Code, -1, 1));
}

TEST(ContiguousSections, SecondReserveIsRefusedUntilRelease) {
  ContiguousSections sections;
  EXPECT_FALSE(sections.carve(Section::Code, 1, 1));
  EXPECT_FALSE(sections.finalise());
  ASSERT_TRUE(sections.reserve(kSmall));
  EXPECT_EQ(sections.reserve(kSmall).error().code(), hloom::Code::FailedPrecondition);
  sections.release();
  sections.release();
  ASSERT_TRUE(sections.reserve(kSmall));
  ASSERT_TRUE(sections.finalise());
  EXPECT_EQ(sections.finalise().error().code(), hloom::Code::FailedPrecondition);
  EXPECT_EQ(sections.carve(Section::ReadWrite, 1, 1).error().code(), hloom::Code::FailedPrecondition);
}

TEST(ContiguousSections, OverflowingCarveIsReported) {
  ContiguousSections sections;
  ASSERT_TRUE(sections.reserve(kSmall));
  ASSERT_TRUE(sections.carve(Section::ReadOnly, page_size() - 1, 1));
  Expected<std::byte*> more = sections.carve(Section::ReadOnly, 2, 1);
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().code(), hloom::Code::ResourceExhausted);
  EXPECT_NE(more.error().message().find("read-only"), std::string::npos);
  EXPECT_TRUE(sections.carve(Section::ReadOnly, 1, 1));
}

TEST(ContiguousSections, FailingMapIsToldAndLeavesNothing) {
  FailingMapper mapper;
  mapper.fail_map = 1;
  ContiguousSections sections(mapper);
  Expected<> done = sections.reserve(kSmall);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message(), "no room");
  EXPECT_FALSE(sections.reserved());
  EXPECT_EQ(mapper.unmaps, 0);
  EXPECT_TRUE(sections.reserve(kSmall));
}

TEST(ContiguousSections, FailingProtectIsToldAndNothingLeaks) {
  for (int call = 1; call <= 3; ++call) {
    FailingMapper mapper;
    mapper.fail_protect = call;
    {
      ContiguousSections sections(mapper);
      Expected<> done = sections.reserve(kSmall);
      if (call > 1) {
        ASSERT_TRUE(done);
        done = sections.finalise();
      }
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().message(), "protect " + std::to_string(call) + " refused");
      EXPECT_FALSE(sections.finalise());
    }
    EXPECT_EQ(mapper.mapped_bytes, 0);
    EXPECT_EQ(mapper.unmaps, 1);
  }
}

TEST(ContiguousSections, MovedFromReleasesNothing) {
  FailingMapper mapper;
  {
    ContiguousSections sections(mapper);
    ASSERT_TRUE(sections.reserve(kSmall));
    ContiguousSections other(std::move(sections));
    EXPECT_TRUE(other.reserved());
    ContiguousSections third(mapper);
    ASSERT_TRUE(third.reserve(kSmall));
    third = std::move(other);
    EXPECT_EQ(mapper.unmaps, 1);
    EXPECT_TRUE(third.finalise());
  }
  EXPECT_EQ(mapper.unmaps, 2);
  EXPECT_EQ(mapper.mapped_bytes, 0);
}

TEST(ContiguousSections, LargeCodeStartsOnAHugePage) {
  ContiguousSections sections;
  ASSERT_TRUE(sections.reserve({{3 << 20, 64}, {64, 64}, {}}));
  EXPECT_EQ(address(sections.begin(Section::Code)) % (2u << 20), 0u);
  ASSERT_TRUE(sections.finalise());
}

TEST(ContiguousSections, OneCommitAndTwoProtectsForAnyNumberOfPieces) {
  ContiguousSections sections;
  ASSERT_TRUE(sections.reserve({{1 << 16, 16}, {1 << 16, 16}, {1 << 16, 16}}));
  for (int i = 0; i < 1000; ++i) ASSERT_TRUE(sections.carve(static_cast<Section>(i % 3), 100, 16));
  ASSERT_TRUE(sections.finalise());
  EXPECT_EQ(sections.statistics().protect_calls, 3);
  EXPECT_EQ(sections.statistics().writable_pages, (1 << 16) / page_size());
}

using ContiguousSectionsDeathTest = testing::Test;

TEST(ContiguousSectionsDeathTest, GuardsCodeAndConstantsFault) {
  ContiguousSections sections;
  ASSERT_TRUE(sections.reserve(kSmall));
  std::byte* begin = sections.begin(Section::Code);
  std::byte* end = sections.begin(Section::ReadWrite) + page_size();
  EXPECT_EXIT(*(volatile std::byte*)(begin - 1) = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(*(volatile std::byte*)end = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
  std::byte* code = *sections.carve(Section::Code, 1, 1);
  std::byte* constant = *sections.carve(Section::ReadOnly, 1, 1);
  std::byte* variable = *sections.carve(Section::ReadWrite, 1, 1);
  for (std::byte* at : {code, constant, variable}) *at = std::byte{0xc3};  // ret
  ASSERT_TRUE(sections.finalise());
  *variable = std::byte{0xc3};
  EXPECT_EXIT(*(volatile std::byte*)code = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(*(volatile std::byte*)constant = std::byte{1}, testing::KilledBySignal(SIGSEGV), "");
  reinterpret_cast<void (*)()>(code)();
  EXPECT_EXIT(reinterpret_cast<void (*)()>(constant)(), testing::KilledBySignal(SIGSEGV), "");
  EXPECT_EXIT(reinterpret_cast<void (*)()>(variable)(), testing::KilledBySignal(SIGSEGV), "");
}

}  // namespace
}  // namespace hloom::jit

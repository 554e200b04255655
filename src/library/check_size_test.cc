#include "library/check_size.h"

#include <gtest/gtest.h>

namespace hloom::library {
namespace {

TEST(CheckSize, GivesSizesWithinTheBoundsAndEndsTheRunOnOthers) {
  const RoutinePlan plan = plan_check_size();
  std::int32_t least = 0, most = 8;
  for (std::int32_t size = -2; size <= 10; ++size) {
    std::int32_t result = -1;
    const auto done = run(plan, {&size, &least, &most}, {&result});
    if (size >= least && size <= most) {
      EXPECT_TRUE(done);
      EXPECT_EQ(result, size);
    } else {
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code(), Code::InvalidArgument);
      EXPECT_EQ(done.error().message(), "size " + std::to_string(size) + " is not in [0, 8]");
      EXPECT_EQ(result, least);
    }
  }
}

}  // namespace
}  // namespace hloom::library

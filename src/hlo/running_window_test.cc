// What runs is told from what does not by brute force over the elements of each window.
#include "hlo/running_window.h"

#include <gtest/gtest.h>

#include <set>

namespace hloom::hlo {
namespace {

std::set<std::int64_t> elements(const WindowDim& w, std::int64_t place, std::int64_t dim) {
  std::set<std::int64_t> found;
  for (std::int64_t k = 0; k < w.size; ++k)
    if (const std::int64_t at = place * w.stride + k * w.rhs_dilate - w.pad_low; at >= 0 && at < dim) found.insert(at);
  return found;
}

TEST(RunningWindow, HoldsTheElementsThatItSays) {
  Module module("m");
  Computation* reducer = module.add_computation("r");
  for (std::int64_t k = 0; k < 2; ++k) reducer->add_parameter(k, Shape::array(DType::F32, {}));
  int running = 0;
  for (std::int64_t dim = 2; dim <= 5; ++dim)
    for (std::int64_t size = 1; size <= 7; ++size)
      for (std::int64_t low = -1; low <= 6; ++low)
        for (std::int64_t high = -1; high <= 6; ++high)
          for (std::int64_t stride = 1; stride <= 2; ++stride)
            for (std::int64_t rhs = 1; rhs <= 2; ++rhs) {
              const WindowDim w{.size = size, .stride = stride, .pad_low = low, .pad_high = high, .rhs_dilate = rhs};
              const std::int64_t room = dim + low + high - ((size - 1) * rhs + 1);
              if (room < 0) continue;
              const std::int64_t places = room / stride + 1;
              const auto found = running_window({w}, {dim}, {places}, *reducer);
              if (!found) continue;
              ++running;
              for (std::int64_t o = 0; o < places; ++o) {
                std::set<std::int64_t> wanted;
                if (found->from_first)
                  for (std::int64_t e = 0; e < std::min(dim, o + found->ahead + 1); ++e) wanted.insert(e);
                else
                  for (std::int64_t e = o; e < dim; ++e) wanted.insert(e);
                EXPECT_EQ(elements(w, o, dim), wanted) << size << " " << low << " " << high;
              }
            }
  EXPECT_GT(running, 20);
}

TEST(RunningWindow, FromTheLastTakesReducersOfOneType) {
  Module module("m");
  Computation* mixed = module.add_computation("r");
  mixed->add_parameter(0, Shape::array(DType::F32, {}));
  mixed->add_parameter(1, Shape::array(DType::S8, {}));
  EXPECT_FALSE(running_window({{.size = 4, .pad_high = 3}}, {4}, {4}, *mixed));
  EXPECT_TRUE(running_window({{.size = 4, .pad_low = 3}}, {4}, {4}, *mixed));
}

}  // namespace
}  // namespace hloom::hlo

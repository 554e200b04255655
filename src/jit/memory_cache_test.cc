#include "jit/memory_cache.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <random>

namespace hloom::jit {
namespace {

ObjectKey key(int number) { return digest(std::to_string(number)); }

std::shared_ptr<const Object> object(int bytes) {
  return std::make_shared<const Object>(Object{"x", std::vector<char>(static_cast<std::size_t>(bytes))});
}

// As a list of the keys in the order in which they were asked for.
TEST(MemoryCache, KeepsWhatWasAskedForLast) {
  MemoryCache cache(1000);
  std::mt19937 random(3);
  std::deque<std::pair<int, int>> model;  // number and bytes, last asked for first
  for (int step = 0; step < 20000; ++step) {
    const int number = static_cast<int>(random() % 40), bytes = static_cast<int>(random() % 300) + (number == 7 ? 900 : 1);
    auto place = std::ranges::find(model, number, &std::pair<int, int>::first);
    const auto found = cache.find(key(number));
    ASSERT_EQ(found != nullptr, place != model.end()) << step;
    if (found != nullptr) {
      ASSERT_EQ(static_cast<int>(found->bytes.size()), place->second);
      const auto entry = *place;
      model.erase(place);
      model.push_front(entry);
      continue;
    }
    cache.insert(key(number), object(bytes));
    model.emplace_front(number, bytes);
    int total = 0;
    for (const auto& entry : model) total += entry.second;
    for (; total > 1000; model.pop_back()) total -= model.back().second;
    ASSERT_EQ(cache.statistics().bytes, total);
    ASSERT_EQ(cache.statistics().objects, static_cast<std::int64_t>(model.size()));
  }
}

TEST(MemoryCache, WhatIsInUseOutlivesIt) {
  MemoryCache cache(10);
  cache.insert(key(1), object(8));
  const auto kept = cache.find(key(1));
  cache.insert(key(2), object(8));
  EXPECT_EQ(cache.find(key(1)), nullptr);
  EXPECT_EQ(kept->bytes.size(), 8u);
  cache.insert(key(3), object(11));
  EXPECT_EQ(cache.find(key(3)), nullptr) << "it is larger than the cache";
}

}  // namespace
}  // namespace hloom::jit

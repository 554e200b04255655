// Random choices that are the same for the same seed, on every machine.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <span>
#include <utility>
#include <vector>

#include "base/check.h"

namespace hloom::generate {

/// A stream of random numbers.
/// Source: Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014: splitmix64.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(seed) {}

  std::uint64_t next() {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  /// From lo to hi, both included. Needs: lo <= hi.
  std::int64_t pick(std::int64_t lo, std::int64_t hi) {
    HLOOM_CHECK(lo <= hi);
    return lo + static_cast<std::int64_t>(next() % (static_cast<std::uint64_t>(hi - lo) + 1));
  }
  bool chance(int percent) { return pick(0, 99) < percent; }

  template <typename T>
  const T& of(const std::vector<T>& choices) {
    HLOOM_CHECK(!choices.empty());
    return choices[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(choices.size()) - 1))];
  }
  template <typename T>
  T of(std::initializer_list<T> choices) {
    return *(choices.begin() + pick(0, static_cast<std::int64_t>(choices.size()) - 1));
  }
  /// The number of a choice, drawn by weight. Needs: a positive sum.
  std::size_t weighted(std::span<const int> weights) {
    std::int64_t sum = 0;
    for (const int w : weights) sum += w;
    std::int64_t at = pick(0, sum - 1);
    std::size_t i = 0;
    while (at >= weights[i]) at -= weights[i++];
    return i;
  }
  template <typename T>
  void shuffle(std::vector<T>& v) {
    for (std::size_t i = v.size(); i > 1; --i)
      std::swap(v[i - 1], v[static_cast<std::size_t>(pick(0, static_cast<std::int64_t>(i) - 1))]);
  }

 private:
  std::uint64_t state_;
};

}  // namespace hloom::generate

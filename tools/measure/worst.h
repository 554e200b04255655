// The inputs on which a function was furthest from the exact value.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hloom::measure {

/// Keeps the kKept worst of any number of inputs, by an error that need not be exact.
template <class Input>
class Worst {
 public:
  static constexpr std::size_t kKept = 1000;
  struct Item {
    double error;
    Input input;
  };

  /// Below this an input is not among the worst.
  double floor() const { return items_.size() < kKept ? -1 : items_.front().error; }
  void see(double error, const Input& input) {
    ++seen_;
    if (!(error > floor())) return;
    if (items_.size() == kKept) {
      std::pop_heap(items_.begin(), items_.end(), kLess);
      items_.pop_back();
    }
    items_.push_back({error, input});
    std::push_heap(items_.begin(), items_.end(), kLess);
  }
  void add(const Worst& other) {
    for (const Item& item : other.items_) see(item.error, item.input);
    seen_ += other.seen_ - static_cast<std::int64_t>(other.items_.size());
  }
  const std::vector<Item>& items() const { return items_; }
  std::int64_t seen() const { return seen_; }

 private:
  static constexpr auto kLess = [](const Item& a, const Item& b) { return a.error > b.error; };
  std::vector<Item> items_;  // a heap, the least error first
  std::int64_t seen_ = 0;
};

}  // namespace hloom::measure

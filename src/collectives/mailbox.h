// Values on their way from one device to another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace hloom::collectives {

/// Messages in the order in which they were put in. Once it has had as many and as large ones at a time, nothing is allocated. The
/// caller guards it; bytes are copied outside of its guard, in what spare() gives.
class Mailbox {
 public:
  using Bytes = std::vector<std::byte>;

  bool empty() const { return count_ == 0; }

  /// Room for a message, of an earlier one if there is one.
  Bytes spare() {
    if (spares_.empty()) return {};
    Bytes bytes = std::move(spares_.back());
    spares_.pop_back();
    return bytes;
  }
  void give_back(Bytes bytes) { spares_.push_back(std::move(bytes)); }

  void push(Bytes bytes) {
    if (count_ == ring_.size()) grow();
    ring_[(first_ + count_++) % ring_.size()] = std::move(bytes);
  }
  /// Needs: !empty().
  Bytes pop() {
    Bytes bytes = std::move(ring_[first_]);
    first_ = (first_ + 1) % ring_.size();
    --count_;
    return bytes;
  }
  void clear() {
    while (!empty()) give_back(pop());
  }

 private:
  void grow() {
    std::vector<Bytes> larger(2 * ring_.size() + 2);
    for (std::size_t k = 0; k < count_; ++k) larger[k] = std::move(ring_[(first_ + k) % ring_.size()]);
    ring_ = std::move(larger);
    first_ = 0;
  }

  std::vector<Bytes> ring_, spares_;
  std::size_t first_ = 0, count_ = 0;
};

}  // namespace hloom::collectives

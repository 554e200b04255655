// Sets of points in time, as half-open intervals.
#pragma once

#include <cstdint>
#include <vector>

namespace hloom::buffers {

/// Points [begin, end).
struct Interval {
  std::int32_t begin = 0, end = 0;
  bool operator==(const Interval&) const = default;
};

/// A set of points: intervals that neither overlap nor touch, in order.
class Intervals {
 public:
  Intervals() = default;
  /// The union of `parts`, in any order; empty ones are left out.
  explicit Intervals(std::vector<Interval> parts);

  const std::vector<Interval>& parts() const { return parts_; }
  bool empty() const { return parts_.empty(); }
  std::int32_t begin() const { return parts_.front().begin; }
  std::int32_t end() const { return parts_.back().end; }
  /// Number of points.
  std::int64_t length() const;
  bool contains(std::int32_t point) const;
  bool operator==(const Intervals&) const = default;

 private:
  std::vector<Interval> parts_;
};

Intervals united(const Intervals&, const Intervals&);
/// The points in both, in order. Cost: linear in the smaller, times the logarithm of the larger.
std::vector<Interval> intersection(const Intervals&, const Intervals&);
bool overlap(const Intervals&, const Intervals&);

}  // namespace hloom::buffers

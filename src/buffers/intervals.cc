#include "buffers/intervals.h"

#include <algorithm>

namespace hloom::buffers {

Intervals::Intervals(std::vector<Interval> parts) {
  std::ranges::sort(parts, {}, &Interval::begin);
  for (const Interval& p : parts) {
    if (p.begin >= p.end) continue;
    if (!parts_.empty() && p.begin <= parts_.back().end)
      parts_.back().end = std::max(parts_.back().end, p.end);
    else
      parts_.push_back(p);
  }
}

std::int64_t Intervals::length() const {
  std::int64_t sum = 0;
  for (const Interval& p : parts_) sum += p.end - p.begin;
  return sum;
}

bool Intervals::contains(std::int32_t point) const {
  const auto after = std::ranges::upper_bound(parts_, point, {}, &Interval::begin);
  return after != parts_.begin() && point < std::prev(after)->end;
}

Intervals united(const Intervals& a, const Intervals& b) {
  std::vector<Interval> all = a.parts();
  all.insert(all.end(), b.parts().begin(), b.parts().end());
  return Intervals(std::move(all));
}

namespace {

// Calls f with each shared interval until it says stop.
template <typename F>
void for_shared(const Intervals& a, const Intervals& b, const F& f) {
  if (a.parts().size() > b.parts().size()) return for_shared(b, a, f);
  const auto& others = b.parts();
  for (const Interval& p : a.parts()) {
    auto q = std::ranges::upper_bound(others, p.begin, {}, &Interval::end);
    for (; q != others.end() && q->begin < p.end; ++q)
      if (!f(Interval{std::max(p.begin, q->begin), std::min(p.end, q->end)})) return;
  }
}

}  // namespace

std::vector<Interval> intersection(const Intervals& a, const Intervals& b) {
  std::vector<Interval> shared;
  for_shared(a, b, [&](Interval i) {
    shared.push_back(i);
    return true;
  });
  return shared;
}

bool overlap(const Intervals& a, const Intervals& b) {
  bool found = false;
  for_shared(a, b, [&](Interval) {
    found = true;
    return false;
  });
  return found;
}

}  // namespace hloom::buffers

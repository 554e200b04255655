// Points in time of a program that runs step by step, and at which of them each value is alive.
//
// An instruction that does something has three points: at the first, copies that prepare its in-place operands read; at
// the second they write, and its in-place results live from there; at the third it reads and writes. Loops run their
// condition and body between their first two points (init is copied in) and their end; a computation ends with two
// points, at which its results are copied to where the caller expects them. Branches have points of their own, so that
// what lives in one never meets what lives in another.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "buffers/intervals.h"
#include "buffers/values.h"
#include "hlo/module.h"

namespace hloom::buffers {

using Point = std::int32_t;

class Timeline {
 public:
  /// Needs: a module that unshare_steps() has seen. Its orders are the orders of execution.
  explicit Timeline(const hlo::Module&);

  struct Place {
    Point begin = 0, end = 0;
    Point read() const { return begin; }
    Point write() const { return begin + 1; }
    Point work() const { return begin + 2; }
  };
  struct Span {
    const hlo::Instruction* caller = nullptr;  ///< null: the entry
    /// The computation that this one is part of by calls: itself, unless a call runs it.
    const hlo::Computation* frame = nullptr;
    Point begin = 0, end = 0;
    int depth = 0;  ///< loops around it
    double runs = 1;  ///< how often it runs in a run of the program; loops whose trips are not known count as 8
    Point read() const { return end - 2; }
    Point write() const { return end - 1; }
  };

  /// Where an instruction of a computation that runs as steps stands; aliases, parameters and constants take no time.
  const Place& of(const hlo::Instruction& i) const { return places_[static_cast<std::size_t>(i.id())]; }
  const Span& of(const hlo::Computation& c) const { return spans_.at(&c); }
  Point end() const { return end_; }
  /// The instruction that does something at a point; null between.
  const hlo::Instruction* at(Point) const;

 private:
  void walk(const hlo::Computation&, const hlo::Instruction* caller, const hlo::Computation* frame, int depth,
            double runs);
  void visit(const hlo::Instruction&, const hlo::Computation* frame, int depth, double runs);

  std::vector<Place> places_;
  std::unordered_map<const hlo::Computation*, Span> spans_;
  std::vector<const hlo::Instruction*> at_;
  Point end_ = 0;
};

/// `value` is needed at `point` in computation `at`.
struct Use {
  ValueId value = 0;
  const hlo::Computation* at = nullptr;
  Point point = 0;
};

/// The points at which `v` must be kept, given its uses: from where it is made to the last use on each way, around
/// loops. `made` is the first point of a value that an instruction makes; values always live for at least one point.
Intervals live_range(const Value& v, Point made, const std::vector<Use>& uses, const Timeline&);

}  // namespace hloom::buffers

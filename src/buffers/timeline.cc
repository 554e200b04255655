#include "buffers/timeline.h"

#include <algorithm>
#include <cstdlib>

#include "base/check.h"
#include "buffers/steps.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

Timeline::Timeline(const hlo::Module& module) : places_(static_cast<std::size_t>(module.num_ids())) {
  walk(*module.entry(), nullptr, module.entry(), 0, 1);
}

namespace {
double trips(const Instruction& loop) {
  constexpr double kUnknown = 8;
  const auto& decisions = loop.annotations().decisions;
  const auto found = decisions.find("trip_count");
  return found == decisions.end() ? kUnknown : std::max(std::atof(found->second.c_str()), 1.0);
}
}  // namespace

void Timeline::walk(const Computation& c, const Instruction* caller, const Computation* frame, int depth, double runs) {
  Span span{caller, frame, end_, 0, depth, runs};
  for (const Instruction& i : c.instructions()) visit(i, frame, depth, runs);
  end_ += 2;
  span.end = end_;
  HLOOM_CHECK(spans_.emplace(&c, span).second);
}

void Timeline::visit(const Instruction& i, const Computation* frame, int depth, double runs) {
  Place& place = places_[static_cast<std::size_t>(i.id())];
  place.begin = end_;
  if (!is_alias(i) && i.opcode() != Opcode::Parameter && i.opcode() != Opcode::Constant) {
    end_ += 2;
    // A conditional of one branch is a call: its result may be a value of the branch.
    const bool calls = i.opcode() == Opcode::Call || i.opcode() == Opcode::AsyncStart ||
                       (i.opcode() == Opcode::Conditional && i.called().size() == 1);
    const bool loops = i.opcode() == Opcode::While;
    for (const Computation* callee : step_computations(i))
      walk(*callee, &i, calls ? frame : callee, depth + (loops ? 1 : 0), loops ? runs * trips(i) : runs);
    ++end_;
    at_.resize(static_cast<std::size_t>(end_));
    for (Point p = place.begin; p < end_; ++p)
      if (at_[static_cast<std::size_t>(p)] == nullptr) at_[static_cast<std::size_t>(p)] = &i;
  }
  places_[static_cast<std::size_t>(i.id())].end = end_;
}

const Instruction* Timeline::at(Point p) const {
  return p >= 0 && p < static_cast<Point>(at_.size()) ? at_[static_cast<std::size_t>(p)] : nullptr;
}

namespace {

// Collects the points on the ways from where a value is made to its uses.
class Ways {
 public:
  Ways(const Value& v, Point made, const Timeline& timeline) : v_(v), made_(made), t_(timeline) {}

  void add(Use use) {
    const Computation* c = t_.of(*use.at).frame;
    Point last = use.point;
    while (!is_home(*c)) {
      const Timeline::Span& span = t_.of(*c);
      const Instruction& caller = *span.caller;
      if (v_.kind == Value::Kind::Loop && &caller == v_.definer) return add_in_loop(*c, last);
      parts_.push_back({span.begin, last + 1});
      last = t_.of(caller).begin;
      if (caller.opcode() == Opcode::While) {  // needed in every iteration
        last = t_.of(caller).end - 1;
        parts_.push_back({t_.of(caller).begin, last + 1});
      }
      c = t_.of(*caller.parent()).frame;
    }
    add_at_home(last);
  }

  Intervals take() { return Intervals(std::move(parts_)); }

  // Where it is written even if nothing reads it.
  void add_definition() {
    const Timeline::Place& place = t_.of(*v_.definer);
    switch (v_.kind) {
      case Value::Kind::Parameter:
      case Value::Kind::Constant: parts_.push_back({made_, made_ + 1}); break;
      // Until the work is done: what is written over an operand, and not read, still lies beside the other results.
      case Value::Kind::Made: parts_.push_back({made_, std::max(made_, place.work()) + 1}); break;
      case Value::Kind::Loop:
        parts_.push_back({place.write(), place.write() + 1});
        parts_.push_back({t_.of(*v_.definer->body()).write(), t_.of(*v_.definer->body()).end});
        break;
      case Value::Kind::Join:
        for (const Computation* branch : v_.definer->called())
          parts_.push_back({t_.of(*branch).write(), t_.of(*branch).end});
        break;
    }
  }

 private:
  // Uses are followed to the frame in which the value is made.
  bool is_home(const Computation& c) const { return &c == t_.of(*v_.definer->parent()).frame; }

  void add_head() { parts_.push_back({t_.of(*v_.definer).write(), t_.of(*v_.definer->condition()).end}); }

  // From the head of its own loop to a use in condition or body.
  void add_in_loop(const Computation& c, Point last) {
    add_head();
    if (&c == v_.definer->body()) parts_.push_back({t_.of(c).begin, last + 1});
  }

  void add_at_home(Point last) {
    const Timeline::Place& place = t_.of(*v_.definer);
    if (v_.kind == Value::Kind::Loop) add_head();
    const bool is_phi = v_.kind == Value::Kind::Loop || v_.kind == Value::Kind::Join;
    parts_.push_back({is_phi ? place.end - 1 : made_, last + 1});
  }

  const Value& v_;
  Point made_;
  const Timeline& t_;
  std::vector<Interval> parts_;
};

}  // namespace

Intervals live_range(const Value& v, Point made, const std::vector<Use>& uses, const Timeline& timeline) {
  Ways ways(v, made, timeline);
  ways.add_definition();
  for (const Use& use : uses) ways.add(use);
  return ways.take();
}

}  // namespace hloom::buffers

// A while loop seen leaf by leaf, and how often it runs.
#pragma once

#include <cstdint>
#include <optional>

#include "hlo/module.h"

namespace hloom::passes {

/// A while whose state is a tuple; views of the instruction.
class Loop {
 public:
  /// Nothing, if the state or a parameter is no tuple.
  static std::optional<Loop> of(hlo::Instruction& instruction);

  hlo::Instruction& instruction() const { return *instruction_; }
  hlo::Computation& condition() const { return *instruction_->condition(); }
  hlo::Computation& body() const { return *instruction_->body(); }
  std::int64_t num_leaves() const { return static_cast<std::int64_t>(instruction_->shape().elements().size()); }

  /// What goes in as leaf k, or null if the operand is not a tuple made here.
  hlo::Instruction* initial(std::int64_t k) const;
  /// What an iteration leaves as leaf k, or null if the body's root is not a tuple made there.
  hlo::Instruction* next(std::int64_t k) const;
  /// Which leaf `i` of the body or condition reads, if it reads one of the parameter.
  static std::optional<std::int64_t> leaf_read(const hlo::Instruction& i);
  /// Each iteration leaves leaf k as it was.
  bool is_invariant(std::int64_t k) const;

 private:
  explicit Loop(hlo::Instruction& instruction) : instruction_(&instruction) {}
  hlo::Instruction* instruction_;
};

/// An integer leaf that goes from a constant by a constant step to a constant limit, without wrapping.
struct Counter {
  std::int64_t leaf = 0;
  std::int64_t initial = 0, step = 0;
  std::int64_t trips = 0;  ///< iterations after which the limit ends the loop
  bool exact = false;      ///< nothing else ends it

  std::int64_t last() const { return initial + (trips - 1) * step; }  ///< in the last iteration; Needs: trips > 0
  std::int64_t final() const { return initial + trips * step; }       ///< after it
};

/// The counter that ends the loop soonest; an exact one if there is one. u64 counters above 2^63 - 1 are not seen.
std::optional<Counter> find_counter(const Loop&);

}  // namespace hloom::passes

// Gives equal instructions equal numbers.
#pragma once

#include <unordered_map>
#include <vector>

#include "hlo/module.h"

namespace hloom::passes {

/// Puts computations that do the same into one class: same parameters, and the same graph behind the root, whatever the
/// names, the order and what is dead. One with side effects is alone in its class. Cost: linear in the module.
class ComputationClasses {
 public:
  explicit ComputationClasses(const hlo::Module&);
  /// The first computation of the class, in the module's order.
  hlo::Computation* first_like(const hlo::Computation* c) const { return first_.at(c); }

 private:
  std::unordered_map<const hlo::Computation*, hlo::Computation*> first_;
};

/// Value numbers: instructions of the same opcode, shape, attributes, called classes and operands' numbers have the
/// same value. Operands of commutative ops count in any order.
class Numbering {
 public:
  explicit Numbering(const ComputationClasses& classes) : classes_(classes) {}

  /// The number of `i`, whose operands have `operands`; and the first instruction that got it.
  struct Numbered {
    int number;
    hlo::Instruction* first;
  };
  Numbered number(hlo::Instruction& i, std::vector<int> operands);
  /// A number that no instruction has or gets.
  int fresh() { return next_++; }

 private:
  struct Entry {
    hlo::Instruction* instruction;
    std::vector<int> operands;
    int number;
  };
  std::size_t hash(const hlo::Instruction&, const std::vector<int>& operands) const;
  bool same(const hlo::Instruction&, const hlo::Instruction&) const;

  const ComputationClasses& classes_;
  std::unordered_multimap<std::size_t, Entry> entries_;
  int next_ = 0;
};

}  // namespace hloom::passes

// Which leaves of the instructions of a fused computation are one buffer.
#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::passes {

/// A leaf of an instruction's result.
struct Position {
  hlo::Instruction* instruction = nullptr;
  std::int64_t leaf = 0;
};

/// The values of a fused computation and of those fused into it. A value goes unchanged through tuples and their
/// elements, add-dependency, domain, optimization barrier, what is nested in a copied tuple, and into and out of
/// fusions. All else makes a new one, a bitcast too: its operand and its result may have to lie in different memory.
class FusedValues {
 public:
  /// Errors: InvalidArgument, naming the instruction and `fused`, if there is a call, a loop, a branch or asynchronous
  /// work in it: then one position may be several values. Cost: linear, but for inverse Ackermann.
  static Expected<FusedValues> of(hlo::Computation& fused);

  using Id = std::int32_t;
  Id value(const hlo::Instruction&, std::int64_t leaf) const;
  Id num_values() const { return static_cast<Id>(positions_.size()); }
  const std::vector<Position>& positions(Id v) const { return positions_[static_cast<std::size_t>(v)]; }

  /// Where it is made: the position that names no other.
  const Position& definition(Id v) const { return definitions_[static_cast<std::size_t>(v)]; }
  /// Whether it goes into or out of a fusion inside.
  bool crosses(Id v) const;

  /// The result and the base of a dynamic-update-slice: two values in one buffer.
  struct Update {
    hlo::Instruction* instruction = nullptr;
    Id result = 0, base = 0;
  };
  const std::vector<Update>& updates() const { return updates_; }

 private:
  Expected<> add(hlo::Computation&, const hlo::Computation& outermost);
  Expected<> visit(hlo::Instruction&, const hlo::Computation& outermost);
  void name(const hlo::Instruction& a, std::int64_t a_leaf, const hlo::Instruction& b, std::int64_t b_leaf);
  void name_all(const hlo::Instruction& a, const hlo::Instruction& b);
  void number();
  std::size_t at(const hlo::Instruction& i, std::int64_t leaf) const;
  std::size_t find(std::size_t n);

  std::unordered_map<const hlo::Instruction*, std::size_t> first_;  ///< number of an instruction's first leaf
  std::vector<Position> all_;
  std::vector<std::size_t> parent_;
  std::vector<bool> names_;  ///< another position's value
  std::vector<Id> ids_;
  std::vector<std::vector<Position>> positions_;
  std::vector<Position> definitions_;
  std::vector<hlo::Instruction*> update_instructions_;
  std::vector<Update> updates_;
};

}  // namespace hloom::passes

// At how many places a kernel computes each of its instructions, for one element of its results: x + roll(x) needs x at two,
// and a tower of such needs it at twice as many with each floor, though a floor has only one instruction more.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <unordered_set>

#include "hlo/instruction.h"

namespace hloom::fusion {

/// Whether it puts elements of padding between those of its operand.
bool spreads(const hlo::Instruction&);

/// The places of one kernel's members. Ways that lead to one place over different instructions count as different places, so that the
/// numbers are at least the true ones.
class Places {
 public:
  struct Count {
    std::size_t places = 0;  ///< each is code
    double elements = 0;     ///< computed for an element of the result: of the pieces of a concatenation, say, it has one
    bool spread = false;     ///< read between elements of padding, by way of some instructions
  };

  /// A member that is computed where its users in the kernel read it.
  /// Needs: these have been added.
  void add(const hlo::Instruction&);
  /// A result: it is computed where the kernel writes, too.
  void add_root(const hlo::Instruction&);
  /// What `add` would give an instruction. Cost: linear in its places.
  Count count(const hlo::Instruction&) const;
  /// The places of all members.
  std::size_t total() const { return total_; }

 private:
  using Weights = std::map<std::uint64_t, double>;  ///< by a hash of the place: the share of the result's elements that need it

  Weights of_users(const hlo::Instruction&) const;
  bool is_read_spread(const hlo::Instruction&) const;
  void set(const hlo::Instruction&, Weights);

  std::unordered_map<const hlo::Instruction*, Weights> places_;
  std::unordered_set<const hlo::Instruction*> spread_;
  std::size_t total_ = 0;
};

}  // namespace hloom::fusion

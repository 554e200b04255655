// At how many places a kernel computes each of its instructions, for one element of its results: x + roll(x) needs x at two,
// and a tower of such needs it at twice as many with each floor, though a floor has only one instruction more.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>

#include "hlo/instruction.h"

namespace hloom::fusion {

/// Whether the elements of an operand lie between others: by interior padding, or in short runs where arrays are interleaved along a
/// dimension that lies dense.
bool spreads(const hlo::Instruction&);

/// The places of one kernel's members. Ways that lead to one place over different instructions count as different places, so that the
/// numbers are at least the true ones.
class Places {
 public:
  struct Count {
    std::size_t places = 0;  ///< each is code
    double elements = 0;     ///< computed for an element of the result: of the pieces of a concatenation, say, it has one
    int spread = 0;          ///< instructions that spread, on the way from it to a result; the most of any way
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
  int spread_by_users(const hlo::Instruction&) const;
  void set(const hlo::Instruction&, Weights);

  struct Member {
    Weights weights;
    int spread = 0;
  };

  std::unordered_map<const hlo::Instruction*, Member> places_;
  std::size_t total_ = 0;
};

}  // namespace hloom::fusion

// Where every value of a program lives.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::buffers {

/// Memory that slices lie in. The numbering and kinds are those of runtime::Allocation.
struct Allocation {
  enum class Kind : std::uint8_t { Arena, Parameter, Result, Constant };
  Kind kind = Kind::Arena;
  /// Leaf of the entry's parameters or result, counted through all of them depth first; for constants a running number.
  std::int64_t number = 0;
  std::int64_t size_bytes = 0;
  const hlo::Instruction* constant = nullptr;  ///< whose literal a constant is
};

/// Bytes [offset, offset + size_bytes) of allocations[allocation].
struct Slice {
  std::int64_t allocation = 0;
  std::int64_t offset = 0;
  std::int64_t size_bytes = 0;
  bool operator==(const Slice&) const = default;
};

/// A result leaf that lives in the memory of a donated parameter leaf: slices of either are in the result's allocation.
struct DonatedPair {
  std::int64_t result = 0;
  std::int64_t parameter = 0;
};

struct Assignment {
  std::vector<Allocation> allocations;  ///< one arena at most
  /// For each instruction of the computations that run (not of fused or applied ones) the slice of each leaf of its
  /// value, depth first. Tokens have empty slices.
  std::unordered_map<const hlo::Instruction*, std::vector<Slice>> slices;
  std::vector<DonatedPair> donated;

  const Slice& slice(const hlo::Instruction& i, std::int64_t leaf = 0) const {
    return slices.at(&i)[static_cast<std::size_t>(leaf)];
  }
  std::int64_t arena_bytes() const {
    for (const Allocation& a : allocations)
      if (a.kind == Allocation::Kind::Arena) return a.size_bytes;
    return 0;
  }
};

/// Schedules, inserts the copies that are needed, and assigns. The module is changed: order, copies, control edges.
/// Needs: a verified module after fusion::fuse().
Expected<Assignment> assign(hlo::Module&);

}  // namespace hloom::buffers

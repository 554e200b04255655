// Where every value of a program lies.
//
//   buffers::Assignment a = TRY(buffers::assign(module));     // orders, adds copies, places
//   const buffers::Slice& s = a.slice(instruction, leaf);
#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "buffers/insert_copies.h"
#include "buffers/intervals.h"
#include "buffers/pack.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::buffers {

struct Allocation {
  enum class Kind : std::uint8_t { Arena, Parameter, Result, Constant };
  Kind kind = Kind::Arena;
  std::int64_t number = 0;                    ///< leaf of the entry's parameters or results, depth first; else 0
  const hlo::Instruction* constant = nullptr; ///< Constant: whose literal
  std::int64_t leaf = 0;                      ///< Constant: leaf of the literal
  std::int64_t bytes = 0;
  bool writable = true;                       ///< false: constants, and parameters that are not donated
  std::int64_t aliased_result = -1;           ///< Parameter: the result leaf whose memory this is as well
  std::int64_t space = 0;                     ///< memory space, that of the layouts of what lies there
  bool operator==(const Allocation&) const = default;
};

/// Bytes [offset, offset + bytes) of an allocation. Tokens and empty arrays: no bytes of the arena.
struct Slice {
  std::int32_t allocation = 0;
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
  bool operator==(const Slice&) const = default;
};

/// A stretch of an arena and the points in time at which it is in use; or of a result's or donated parameter's memory,
/// before the result is written or after the parameter was read.
struct ArenaBlock {
  std::int64_t offset = 0, bytes = 0;
  Intervals live;
  std::vector<std::string> values;                   ///< names of what lies there
  const hlo::Instruction* definer = nullptr;         ///< of the first value
  std::int32_t allocation = 0;                       ///< that it is part of
};

struct FinishOptions;
struct PlaceOptions;

/// The plan of a program's memory. Refers to the module that it was made for, which must outlive it and not change.
class Assignment {
 public:
  /// Allocation 0 is the arena of memory space 0. Each other space that something has to lie in has an arena of its own,
  /// so that nothing of one space ever shares memory with what is of another.
  const std::vector<Allocation>& allocations() const { return allocations_; }
  const Allocation& allocation(const Slice& s) const { return allocations_[static_cast<std::size_t>(s.allocation)]; }

  /// Whether the instruction is in a computation that runs as steps.
  bool has(const hlo::Instruction& i) const;
  /// The slice of a leaf of an instruction's result. Needs: has(i).
  const Slice& slice(const hlo::Instruction& i, std::int64_t leaf = 0) const;
  std::int64_t num_leaves(const hlo::Instruction& i) const;
  /// Arena bytes that the instruction asked for (decisions["workspace_bytes"]); no bytes if it did not.
  Slice workspace(const hlo::Instruction& i) const;
  void set_slice(const hlo::Instruction& i, std::int64_t leaf, Slice);

  /// Of the arenas of all memory spaces.
  std::int64_t arena_bytes() const;
  /// Bytes of parameters, results, constants and arenas; what lies in a donated parameter counts once.
  std::int64_t total_bytes() const;
  bool is_in_arena(const ArenaBlock& b) const {
    return allocations_[static_cast<std::size_t>(b.allocation)].kind == Allocation::Kind::Arena;
  }
  /// The most bytes of each arena that are alive at a point, together, less what other memory could hold of them then:
  /// no packing is smaller.
  std::int64_t lower_bound() const { return lower_bound_; }
  /// Those of arenas first.
  const std::vector<ArenaBlock>& blocks() const { return blocks_; }
  /// What is in place and what is copied, with reasons.
  const std::vector<InPlaceDecision>& decisions() const { return decisions_; }
  const hlo::Module& module() const { return *module_; }

 private:
  friend class Assigner;
  friend Expected<Assignment> finish(hlo::Module&, const FinishOptions&);
  friend Expected<Assignment> place(const hlo::Module&, const PlaceOptions&);
  struct Range {
    std::int32_t begin = 0, count = -1;
  };

  const hlo::Module* module_ = nullptr;
  std::vector<Allocation> allocations_;
  std::vector<Slice> slices_;
  std::vector<Range> ranges_;  ///< by instruction id
  std::unordered_map<const hlo::Instruction*, Slice> workspaces_;
  std::int64_t lower_bound_ = 0;
  std::vector<ArenaBlock> blocks_;
  std::vector<InPlaceDecision> decisions_;
};

struct PlaceOptions {
  PackEffort effort = PackEffort::Full;
  /// Bytes of each arena behind every value that nobody is to touch.
  std::int64_t guard_bytes = 0;
  /// Large steps that need nothing of each other wait all the same where one lies in memory that the other used. This is
  /// how much more than the smallest arena may be spent so that they need not: those that are near in the order first.
  /// What costs nothing is done with 0 as well. Not with PackEffort::Quick.
  std::int64_t concurrency_bytes = 0;
  /// Nothing is spent so that the plan takes more bytes than this in all; 0: no limit. Where the smallest plan takes more,
  /// assign() makes more values again instead of keeping them (recompute.h).
  std::int64_t limit_bytes = 0;
};

struct AssignOptions {
  /// Copies between memory spaces may go on beside other work (start_copies.h).
  bool start_copies = true;
  PlaceOptions place;
};

/// Plans the memory of a module after fusion: gives each caller its own loops and branches, notes the plans of window
/// updates, orders readers before writers, schedules (unless the module is scheduled), adds the copies that cannot be
/// avoided, and places every value. Results lie in their own memory where they can. The module is changed accordingly
/// and scheduled afterwards.
/// Errors: InvalidArgument if layouts of a loop's, branch's or callee's parameters differ from what enters them;
///         ResourceExhausted from unshare_steps().
Expected<Assignment> assign(hlo::Module&, const AssignOptions& = {});

struct FinishOptions {
  PlaceOptions place;
  bool start_copies = true;
  bool free_parts = true;  ///< concatenates and slices may be free (parts.h)
};

/// The second half of assign(), for a module that the first half has seen: orders, copies, places.
Expected<Assignment> finish(hlo::Module&, const FinishOptions&);

/// Places the values of a module that assign() has prepared, without changing it: reading a dumped module again.
/// Errors: FailedPrecondition, naming the place, where a copy is missing.
Expected<Assignment> place(const hlo::Module&, const PlaceOptions& = {});

}  // namespace hloom::buffers

// The memory of a checked run.
//
// Each allocation is there twice, with bytes around it that nobody is to touch. Where a value lies both copies hold the
// same. Where none does they hold two patterns that differ in every byte: what was computed from such memory, or never
// written, comes out different. A step runs in the first copy, and until it has run in the second, that one tells what
// was there before.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/aligned_bytes.h"
#include "hloom/error.h"
#include "runtime/program.h"

namespace hloom::compiler {

class CheckedMemory {
 public:
  /// A number that the caller gives to what lies in memory.
  using Value = std::int32_t;

  /// Memory for all allocations of the program; parameters and results that are aliased are one. Nothing holds
  /// anything, but constants are there. `program` must outlive it.
  /// Errors: ResourceExhausted if this machine has too little memory for twice as much as the program takes.
  static Expected<CheckedMemory> create(const runtime::Program& program);

  /// Byte 0 of the slice in copy 0 or 1.
  std::byte* at(int copy, const runtime::Slice&);
  const std::byte* at(int copy, const runtime::Slice& s) const { return const_cast<CheckedMemory*>(this)->at(copy, s); }

  // --- What lies where.

  /// From now on the slice holds the value, alone. Whatever lay there is gone, and where it stood out, nothing is.
  void hold(Value, const runtime::Slice&);
  bool holds(Value, const runtime::Slice&) const;
  /// What lies around the slice has there a part that is known as `part`, too. Whatever had that name loses it.
  void hold_part(Value part, const runtime::Slice&);
  /// The slice holds nothing any more.
  void clear(const runtime::Slice&);
  /// Nobody needs the value any more: where it had no other name, nothing lies.
  void end(Value);
  /// What is known as `from` at `at` is known as `to` as well; what had that name before loses it.
  struct Rename {
    Value from = 0, to = 0;
    runtime::Slice at;
  };
  /// All at once. Those whose `from` does not lie there do nothing.
  void rename(std::span<const Rename>);
  /// What lies in some part of the slice.
  std::vector<Value> contents(const runtime::Slice&) const;

  // --- What is wrong.

  /// A byte of an allocation, and the values that lie there.
  struct Place {
    std::int32_t allocation = 0;
    std::int64_t offset = 0;
    std::vector<Value> values;
  };
  /// A byte outside of `allowed` that is not what it was, after a step has run in the first copy. With `near`, only the
  /// bytes around these slices are looked at.
  std::optional<Place> changed(std::span<const runtime::Slice> allowed, std::span<const runtime::Slice> near) const;
  std::optional<Place> changed(std::span<const runtime::Slice> allowed) const;
  /// The first byte of the slice in which the copies differ.
  std::optional<std::int64_t> difference(const runtime::Slice&) const;
  /// Whether both name the same bytes.
  bool are_same(const runtime::Slice& a, const runtime::Slice& b) const {
    return memory_of(a) == memory_of(b) && a.offset == b.offset && a.size_bytes == b.size_bytes;
  }
  /// Whether from this byte on a little of the slice is as no value lies there, in both copies.
  bool is_untouched(const runtime::Slice&, std::int64_t byte) const;
  /// The second copy of the slice becomes what the first is.
  void make_same(const runtime::Slice&);

  /// Fills memory that is no allocation's as what holds nothing in this copy.
  static void fill(int copy, std::span<std::byte> bytes);

 private:
  struct Stretch {
    std::int64_t end = 0;
    std::vector<Value> names;
  };
  using Stretches = std::map<std::int64_t, Stretch>;  // by where they begin
  struct Memory {
    std::int64_t size_bytes = 0;
    bool is_watched = true;
    std::array<base::AlignedBytes, 2> copies;  // with the bytes around
    Stretches stretches;
  };
  using Key = std::pair<std::int32_t, std::int64_t>;  // allocation, where a stretch begins

  std::int32_t memory_of(const runtime::Slice& s) const { return same_[static_cast<std::size_t>(s.allocation)]; }
  Memory& memory(const runtime::Slice& s) { return memories_[static_cast<std::size_t>(memory_of(s))]; }
  const Memory& memory(const runtime::Slice& s) const { return memories_[static_cast<std::size_t>(memory_of(s))]; }
  void poison(Memory&, std::int64_t begin, std::int64_t end);
  void carve(const runtime::Slice&);
  void drop_name(Value);
  void clear_if_nameless(Key);
  std::optional<Place> changed_in(std::int32_t allocation, std::int64_t begin, std::int64_t end,
                                  std::span<const runtime::Slice> allowed) const;
  std::optional<std::int64_t> changed_piece(const Memory&, std::int64_t begin, std::int64_t end, bool holds) const;

  std::vector<std::int32_t> same_;  ///< of each allocation, the one whose memory it is
  std::vector<Memory> memories_;
  std::unordered_map<Value, Key> where_;
  std::unordered_map<Value, std::pair<std::int64_t, std::int64_t>> parts_;  ///< bytes of those that are no whole stretch
};

}  // namespace hloom::compiler

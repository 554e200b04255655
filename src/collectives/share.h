// One participant's share of a collective's work, over plain pointers into everybody's memory.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "collectives/operation.h"
#include "hloom/error.h"

namespace hloom::collectives {

/// What a member of a group has to do once all have come. Moving data is pulled: each member fills its own results. Of
/// a fold that all want, each member computes a part and writes it into everybody's result, so that each reads its part
/// of every operand once.
///
/// Its work is units in any order and on any threads, so that what runs kernels runs it too.
class Share {
 public:
  using Buffers = void* const*;

  /// For a device of a group: `members` as they are given by Rendezvous::wait(). For one in no group, and for the only
  /// member of its group, its own buffers alone. `room` is where it keeps pointers: the same vector again allocates
  /// nothing.
  /// Errors: InvalidArgument, naming the operation, if a root is not in the group or members name different ones, or if
  ///         rows of a ragged exchange do not fit. Cost: the arrays times the members; the entries of a ragged
  ///         exchange.
  static Expected<Share> create(const Operation&, std::int64_t device, std::span<const Buffers> members,
                                std::vector<void*>& room);

  std::int64_t num_units() const;
  /// Bytes of the results that the units make, to judge how many threads they are worth.
  std::int64_t work_bytes() const;
  /// Does units [begin, end).
  void run(std::int64_t begin, std::int64_t end) const;

 private:
  Share(const Operation& operation, std::int64_t device, std::span<const Buffers> members);

  /// Its place among the members, also of one in no group, which is the only one.
  std::int64_t own() const { return rank_ < 0 ? 0 : rank_; }
  std::int64_t size() const { return static_cast<std::int64_t>(members_.size()); }
  std::byte* operand(std::int64_t member, std::int64_t i) const;
  std::byte* result(std::int64_t member, std::int64_t i) const;
  std::int64_t index(std::int64_t member, std::int64_t operand, std::int64_t i) const;
  const Array& array(std::int64_t i) const { return operation_->arrays[static_cast<std::size_t>(i)]; }
  const Fold* fold(std::int64_t array) const;
  std::int64_t result_bytes(std::int64_t array) const;

  Expected<> find_root();
  Expected<> check_rows() const;
  void lay_pointers(std::vector<void*>& room);
  std::int64_t moved_units(std::int64_t array) const;
  std::int64_t first_block(const Fold&, std::int64_t rank) const;
  void run_array(std::int64_t array, std::int64_t begin, std::int64_t end) const;
  void move_pieces(std::int64_t array, std::int64_t from, std::int64_t to) const;
  void exchange_rows() const;
  const std::byte* source_of(std::int64_t array) const;

  const Operation* operation_;
  const std::vector<std::int64_t>* group_;
  std::span<const Buffers> members_;
  std::int64_t rank_ = -1;  ///< -1: in no group
  std::int64_t root_ = 0;  ///< Broadcast, Reduce: its rank
  std::int64_t source_ = -1;  ///< Permute: its rank; -1: none
  void* const* pointers_ = nullptr;  ///< what folds are called with: for each array 2 * size()
};

}  // namespace hloom::collectives

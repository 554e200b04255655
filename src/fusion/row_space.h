// The rows that several reduces share, and which values have one element for each row or for each element of the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "hlo/reduce_order.h"
#include "hlo/module.h"

namespace hloom::fusion {

/// What the reduces of a row fusion walk: the dimensions of their operands, those of one element left out. Reduces with
/// equal spaces take their elements in the same order.
struct RowSpace {
  std::vector<std::int64_t> dims;
  std::vector<bool> reduced;    ///< of each: along the row, not over rows
  bool by_lanes = false;        ///< the reduces fold by lanes (ReduceOrder)
  std::size_t first_lane_dim = 0;  ///< dims from here on go by lanes, if so
  bool operator==(const RowSpace&) const = default;

  std::int64_t rows() const;
  std::int64_t columns() const;  ///< elements of a row
};

/// A value has one element for each row, or one for each element of each row.
enum class Extent : std::uint8_t { Row, Full };

/// The space of a reduce; none where it has several arrays, a reducer that is no single operation, or nothing to sum up.
std::optional<RowSpace> row_space(const hlo::Instruction& reduce);

/// For each dimension of a value of this extent, the dimension of the space that it is; -1 for those of one element. None if the
/// shape is not that extent's.
std::optional<std::vector<int>> axes_of(const Shape&, const RowSpace&, Extent);

/// The extent of operand `k` where `user`, which has extent `of_user`, reads it at its own row (and element) alone: elementwise
/// operations, broadcasts along rows, reduces along them, and reshapes that add and drop dimensions of one element. Otherwise
/// none.
std::optional<Extent> operand_extent(const hlo::Instruction& user, Extent of_user, std::int64_t k, const RowSpace&);

using Extents = std::unordered_map<const hlo::Instruction*, Extent>;

/// All that is tied to `reduces`, which have this space, by such reads, among the instructions that `may_join` takes; of
/// reduces only those of this space.
template <typename Predicate>
Extents tied_extents(const std::vector<const hlo::Instruction*>& reduces, const RowSpace&, const Predicate& may_join);

// ---------------------------------------------------------------------------------------------------------------------

/// The extent that `user` has if its operand `k` has extent `of_operand` and is read so.
std::optional<Extent> user_extent(const hlo::Instruction& user, std::int64_t k, Extent of_operand, const RowSpace&);

template <typename Predicate>
Extents tied_extents(const std::vector<const hlo::Instruction*>& reduces, const RowSpace& space, const Predicate& may_join) {
  Extents extents;
  std::vector<const hlo::Instruction*> open;
  const auto reach = [&](const hlo::Instruction* i, Extent extent) {
    if (i->opcode() == hlo::Opcode::Reduce && (extent != Extent::Row || row_space(*i) != space)) return;
    if (may_join(*i) && extents.emplace(i, extent).second) open.push_back(i);
  };
  for (const hlo::Instruction* r : reduces) reach(r, Extent::Row);
  while (!open.empty()) {
    const hlo::Instruction* i = open.back();
    open.pop_back();
    const Extent own = extents.at(i);
    for (std::int64_t k = 0; k < i->num_operands(); ++k)
      if (const auto e = operand_extent(*i, own, k, space)) reach(i->operand(k), *e);
    for (const hlo::Instruction* user : i->users())
      for (std::int64_t k = 0; k < user->num_operands(); ++k)
        if (user->operand(k) == i)
          if (const auto e = user_extent(*user, k, own, space)) reach(user, *e);
  }
  return extents;
}

}  // namespace hloom::fusion

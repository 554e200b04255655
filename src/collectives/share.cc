#include "collectives/share.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::collectives {
namespace {

constexpr std::int64_t kPart = 64 << 10;  // bytes of a result that one unit moves

// Zeros from nowhere.
void copy_bytes(std::byte* to, const std::byte* from, std::int64_t size_bytes) {
  if (size_bytes <= 0 || to == from) return;
  if (from == nullptr)
    std::memset(to, 0, static_cast<std::size_t>(size_bytes));
  else
    std::memcpy(to, from, static_cast<std::size_t>(size_bytes));
}

// An unsigned one beyond the largest signed one is that.
std::int64_t read_integer(const std::byte* from, std::int64_t size_bytes, bool is_signed) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, from, static_cast<std::size_t>(size_bytes));
  const int unused = static_cast<int>(64 - 8 * size_bytes);
  if (is_signed) return static_cast<std::int64_t>(bits << unused) >> unused;
  return static_cast<std::int64_t>(std::min(bits, ~std::uint64_t{0} >> 1));
}

enum RaggedOperand : std::int64_t { kInput, kOutput, kInputOffsets, kSendSizes, kOutputOffsets };

}  // namespace

Share::Share(const Operation& operation, std::int64_t device, std::span<const Buffers> members)
    : operation_(&operation),
      group_(&operation.group_of(device)),
      members_(members),
      rank_(operation.member(device).rank) {
  HLOOM_CHECK(rank_ < size());
  if (operation.kind != Kind::Permute) return;
  const std::int64_t source = operation.sources[static_cast<std::size_t>(device)];
  if (source >= 0) source_ = operation.member(source).rank;
}

Expected<Share> Share::create(const Operation& operation, std::int64_t device, std::span<const Buffers> members,
                              std::vector<void*>& room) {
  Share share(operation, device, members);
  if (share.rank_ >= 0 && operation.root_is_data) TRY(share.find_root());
  if (operation.kind == Kind::Ragged) TRY(share.check_rows());
  share.lay_pointers(room);
  return share;
}

std::byte* Share::operand(std::int64_t member, std::int64_t i) const {
  return static_cast<std::byte*>(members_[static_cast<std::size_t>(member)][i]);
}

std::byte* Share::result(std::int64_t member, std::int64_t i) const {
  return operand(member, operation_->num_operands() + i);
}

std::int64_t Share::index(std::int64_t member, std::int64_t number, std::int64_t i) const {
  const std::int64_t width = operation_->index_bytes;
  return read_integer(operand(member, number) + i * width, width, operation_->index_is_signed);
}

Expected<> Share::find_root() {
  const auto last = static_cast<std::int64_t>(operation_->arrays.size());
  const std::int64_t root = index(rank_, last, 0);
  const auto found = std::ranges::find(*group_, root);
  if (found == group_->end())
    return fail(Code::InvalidArgument, operation_->name, ": the root ", root, " is not in the group");
  root_ = found - group_->begin();
  // Who folds for another root than its own would write where that one does not look.
  for (std::int64_t m = 0; m < size() && operation_->kind == Kind::Reduce; ++m)
    if (const std::int64_t other = index(m, last, 0); other != root)
      return fail(Code::InvalidArgument, operation_->name, ": members of a group name the roots ", root, " and ",
                  other);
  return {};
}

// Offsets and sizes are data of others: none is used before it was looked at here.
Expected<> Share::check_rows() const {
  const std::int64_t entries = operation_->ragged_entries, had = operation_->input_rows, room = operation_->output_rows;
  for (std::int64_t m = 0; m < size(); ++m)
    for (std::int64_t k = 0; k < entries; ++k) {
      const std::int64_t at = rank_ * entries + k, from = index(m, kInputOffsets, at), rows = index(m, kSendSizes, at),
                         to = index(m, kOutputOffsets, at);
      if (rows < 0 || from < 0 || from > had - rows || to < 0 || to > room - rows)
        return fail(Code::InvalidArgument, operation_->name, ": entry ", at, " of device ",
                    (*group_)[static_cast<std::size_t>(m)], ": ", rows, " rows from ", from, " of ", had,
                    " do not fit at ", to, " of ", room);
    }
  return {};
}

// The kernel for groups of this size; null where nothing has to be folded.
const Fold* Share::fold(std::int64_t i) const {
  if (size() < 2) return nullptr;
  for (const Fold& fold : array(i).folds)
    if (fold.members == size()) return &fold;
  return nullptr;
}

void Share::lay_pointers(std::vector<void*>& room) {
  room.clear();
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(operation_->arrays.size()); ++i) {
    if (fold(i) == nullptr) continue;
    const bool scatters = operation_->kind == Kind::ReduceScatter;
    for (std::int64_t m = 0; m < size(); ++m)
      room.push_back(operand(m, i) + (scatters ? rank_ * array(i).piece_bytes : 0));
    for (std::int64_t m = 0; m < size(); ++m) {
      const std::int64_t whose = scatters ? rank_ : operation_->kind == Kind::Reduce ? root_ : m;
      room.push_back(result(whose, i));
    }
  }
  pointers_ = room.data();
}

std::int64_t Share::result_bytes(std::int64_t i) const {
  if (operation_->kind == Kind::Ragged) return operation_->output_rows * operation_->row_bytes;
  const bool joins = operation_->kind == Kind::AllGather || operation_->kind == Kind::AllToAll;
  return array(i).rows * array(i).piece_bytes * (joins ? size() : 1);
}

// Units that fill the own result, apart from a fold.
std::int64_t Share::moved_units(std::int64_t i) const {
  if (operation_->kind == Kind::Ragged) return 1;  // rows come after what they lie on
  if (fold(i) != nullptr && (operation_->kind != Kind::Reduce || rank_ == root_)) return 0;
  return (result_bytes(i) + kPart - 1) / kPart;
}

// Of a shared fold each member does a part of the blocks, of a scattered one all: they are its own.
std::int64_t Share::first_block(const Fold& fold, std::int64_t rank) const {
  if (operation_->kind == Kind::ReduceScatter) return rank > rank_ ? fold.blocks : 0;
  return fold.blocks / size() * rank + fold.blocks % size() * rank / size();
}

std::int64_t Share::num_units() const {
  std::int64_t units = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(operation_->arrays.size()); ++i) {
    units += moved_units(i);
    if (const Fold* f = fold(i)) units += first_block(*f, rank_ + 1) - first_block(*f, rank_);
  }
  return units;
}

std::int64_t Share::work_bytes() const {
  std::int64_t bytes = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(operation_->arrays.size()); ++i) bytes += result_bytes(i);
  return bytes;
}

void Share::run(std::int64_t begin, std::int64_t end) const {
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(operation_->arrays.size()) && end > 0; ++i) {
    const Fold* f = fold(i);
    const std::int64_t moved = moved_units(i);
    const std::int64_t units = moved + (f == nullptr ? 0 : first_block(*f, rank_ + 1) - first_block(*f, rank_));
    if (begin < units) run_array(i, std::max<std::int64_t>(begin, 0), std::min(end, units));
    begin -= units;
    end -= units;
  }
}

void Share::run_array(std::int64_t i, std::int64_t begin, std::int64_t end) const {
  const std::int64_t moved = moved_units(i);
  if (begin < moved && operation_->kind == Kind::Ragged) {
    exchange_rows();
  } else if (begin < moved) {
    const std::int64_t from = begin * kPart, to = std::min(std::min(end, moved) * kPart, result_bytes(i));
    const bool joins = operation_->kind == Kind::AllGather || operation_->kind == Kind::AllToAll;
    if (joins) {
      move_pieces(i, from, to);
    } else {
      const std::byte* source = source_of(i);
      copy_bytes(result(own(), i) + from, source == nullptr ? nullptr : source + from, to - from);
    }
  }
  begin = std::max(begin, moved);
  if (begin >= end) return;
  const Fold& f = *fold(i);
  void* const* pointers = pointers_;
  for (std::int64_t before = 0; before < i; ++before)
    if (fold(before) != nullptr) pointers += 2 * size();
  const std::int64_t first = first_block(f, rank_) - moved;
  f.function(pointers, first + begin, first + end, nullptr);
}

// The array that the own result is a copy of; null for zeros.
const std::byte* Share::source_of(std::int64_t i) const {
  switch (operation_->kind) {
    case Kind::Permute: return source_ < 0 ? nullptr : operand(source_, i);
    case Kind::Broadcast: return rank_ < 0 ? nullptr : operand(root_, i);
    case Kind::Reduce: return rank_ != root_ ? nullptr : operand(rank_, i);
    case Kind::Exchange: return operand(i, rank_);
    case Kind::AllGather:
    case Kind::AllReduce:
    case Kind::ReduceScatter:
    case Kind::AllToAll:
    case Kind::Ragged:
    case Kind::Send:
    case Kind::Take: break;
  }
  return operand(rank_, i);
}

// Bytes [from, to) of a result whose rows are a piece of each member.
void Share::move_pieces(std::int64_t i, std::int64_t from, std::int64_t to) const {
  const std::int64_t piece = array(i).piece_bytes;
  const bool cuts = operation_->kind == Kind::AllToAll;
  for (std::int64_t q = from / piece; from < to; ++q) {
    const std::int64_t row = q / size(), inside = from - q * piece;
    const std::int64_t bytes = std::min(to - from, piece - inside);
    const std::int64_t at = cuts ? row * size() + rank_ : row;
    copy_bytes(result(rank_, i) + from, operand(q % size(), i) + at * piece + inside, bytes);
    from += bytes;
  }
}

void Share::exchange_rows() const {
  const std::int64_t entries = operation_->ragged_entries, row = operation_->row_bytes;
  copy_bytes(result(rank_, 0), operand(rank_, kOutput), result_bytes(0));
  for (std::int64_t m = 0; m < size(); ++m)
    for (std::int64_t k = 0; k < entries; ++k) {
      const std::int64_t at = rank_ * entries + k;
      copy_bytes(result(rank_, 0) + index(m, kOutputOffsets, at) * row,
                 operand(m, kInput) + index(m, kInputOffsets, at) * row, index(m, kSendSizes, at) * row);
    }
}

}  // namespace hloom::collectives

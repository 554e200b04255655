// A square of lanes turned over. Rows are first turned within pieces of 16 bytes by interleaving two registers at a time,
// which every vector unit does in one instruction; then whole pieces change places. n rows take n·log2(n) shuffles.
#include <llvm/IR/Constants.h>

#include <bit>

#include <algorithm>

#include "emit/function.h"

namespace hloom::emit {

using llvm::Value;

namespace {

using Rows = llvm::SmallVector<Value*, 32>;

constexpr std::size_t kPieceBytes = 16;

// Elements of `a` and `b` in turn, of the lower or the upper half of each piece.
Value* interleave(Function& f, Value* a, Value* b, std::size_t piece, bool upper) {
  const auto lanes = static_cast<std::size_t>(f.lanes.count);
  llvm::SmallVector<int, 64> picked;
  for (std::size_t l = 0; l < lanes; ++l) {
    const std::size_t in_piece = l % piece;
    const std::size_t from = l - in_piece + in_piece / 2 + (upper ? piece / 2 : 0);
    picked.push_back(static_cast<int>(from + (in_piece % 2 == 0 ? 0 : lanes)));
  }
  return f.b.CreateShuffleVector(a, b, picked);
}

// Turns the squares that `piece` rows from `first` on hold in each piece: log2(piece) perfect shuffles.
void turn_in_pieces(Function& f, Rows& rows, std::size_t first, std::size_t piece) {
  for (std::size_t step = 1; step < piece; step *= 2) {
    Rows next;
    for (std::size_t r = 0; r < piece / 2; ++r) {
      Value *a = rows[first + r], *b = rows[first + r + piece / 2];
      next.push_back(interleave(f, a, b, piece, false));
      next.push_back(interleave(f, a, b, piece, true));
    }
    std::ranges::copy(next, rows.begin() + static_cast<std::ptrdiff_t>(first));
  }
}

// Of runs of `distance` lanes: those at even places of `a` and of `b`, or those at odd ones.
Value* alternate(Function& f, Value* a, Value* b, std::size_t distance, bool odd) {
  const auto lanes = static_cast<std::size_t>(f.lanes.count);
  llvm::SmallVector<int, 64> picked;
  for (std::size_t l = 0; l < lanes; ++l) {
    const bool second = (l & distance) != 0;
    const std::size_t from = (l & ~distance) + (odd ? distance : 0);
    picked.push_back(static_cast<int>(second ? lanes + from : from));
  }
  return f.b.CreateShuffleVector(a, b, picked);
}

void exchange_pieces(Function& f, Rows& rows, std::size_t piece) {
  for (std::size_t distance = piece; distance < rows.size(); distance *= 2)
    for (std::size_t r = 0; r < rows.size(); ++r) {
      if ((r & distance) != 0) continue;
      Value *a = rows[r], *b = rows[r + distance];
      rows[r] = alternate(f, a, b, distance, false);
      rows[r + distance] = alternate(f, a, b, distance, true);
    }
}

void turn(Function& f, Rows& rows) {
  // Preds are bytes, as they are in memory: bits are slow to move one by one.
  const bool bits = rows[0]->getType()->isIntOrIntVectorTy(1);
  if (bits)
    for (Value*& row : rows) row = f.b.CreateZExt(row, vector_type(f, f.b.getInt8Ty()));
  const std::size_t element = rows[0]->getType()->getScalarSizeInBits() / 8;
  const std::size_t piece = std::min(rows.size(), std::max<std::size_t>(1, kPieceBytes / element));
  for (std::size_t first = 0; first < rows.size(); first += piece) turn_in_pieces(f, rows, first, piece);
  exchange_pieces(f, rows, piece);
  if (bits)
    for (Value*& row : rows) row = f.b.CreateTrunc(row, vector_type(f, f.b.getInt1Ty()));
}

}  // namespace

void emit_transpose(Function& f, const kernels::Transpose& t) {
  Rows real, imag;
  for (const kernels::Value v : t.operands) {
    const Lanes parts = varying(f, v);
    real.push_back(parts.real);
    if (parts.imag) imag.push_back(parts.imag);
  }
  turn(f, real);
  if (!imag.empty()) turn(f, imag);
  for (std::size_t k = 0; k < t.results.size(); ++k)
    set(f, t.results[k], {real[k], imag.empty() ? nullptr : imag[k]}, true);
}

}  // namespace hloom::emit

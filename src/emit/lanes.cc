// Loops by lanes. What is left when the vectors do not fit the iterations takes one of four forms:
//
//   overlapped  the last vector begins earlier, so that it ends with the loop, and does some iterations again
//   narrow      the last vector has as many lanes as are left: half of them, or a quarter
//   masked      every vector is under a mask, which all but the last fill
//   apart       the body stands twice, without a mask in the loop and with one behind it
//
// The first is the fastest, but wants iterations that may be done again. The second is for what is written in place: a
// load of what lies behind a masked store, in lanes that the mask left out, waits until that store is in the cache. The
// third costs a few instructions for each vector, the fourth twice the code, and the time to compile it: small bodies
// stand twice, large ones are masked. Loops that fill lines past the caches stand apart, and once more for what comes
// before the first line.
#include <llvm/IR/Constants.h>

#include <algorithm>
#include <bit>
#include <set>

#include "base/check.h"
#include "base/try.h"
#include "emit/function.h"
#include "kernels/varying.h"

namespace hloom::emit {

using hlo::Opcode;
using kernels::Block;
using kernels::Loop;
using llvm::Value;

namespace {

enum class Rest : std::uint8_t { None, Overlapped, Narrow, Masked, Apart };

// Weight of a body beyond which masks cost less than a second copy, in elementary instructions of one vector.
constexpr int kLargeBody = 24;

// About how many instructions a line becomes.
int weight(const kernels::Kernel& kernel, const kernels::Line& line) {
  const DType type = line.operands.empty() ? DType::F32 : real_type(kernel.type(line.operands[0]));
  // Floats of fewer bits go to f32 and back.
  const int scale = is_floating(type) && bit_width(type) < 32 ? 8 : 1;
  switch (line.opcode) {
    case Opcode::Constant: case Opcode::Copy: return 0;
    case Opcode::Add: case Opcode::Subtract: case Opcode::Multiply: case Opcode::Negate: case Opcode::Abs:
    case Opcode::And: case Opcode::Or: case Opcode::Xor: case Opcode::Not: case Opcode::Select: case Opcode::Compare:
    case Opcode::BitcastConvert: case Opcode::Sqrt: case Opcode::Real: case Opcode::Imag: case Opcode::Complex:
      return scale;
    case Opcode::Convert: case Opcode::Maximum: case Opcode::Minimum: case Opcode::Divide: return 4 * scale;
    default: return 20 + scale;
  }
}

struct BodyFacts {
  int weight = 0;
  bool loops = false;          // holds loops
  bool turns = false;          // turns squares over
  bool stores_twice = false;   // two stores to one memory
  std::set<int> loaded, stored;
  const kernels::Store* streamed = nullptr;  // the first store past the caches
};

void look(const kernels::Kernel& kernel, const Block& block, BodyFacts& facts) {
  for (const kernels::Statement& s : block) {
    if (const auto* line = std::get_if<kernels::Line>(&s.of)) {
      facts.weight += weight(kernel, *line);
    } else if (const auto* load = std::get_if<kernels::Load>(&s.of)) {
      facts.weight += 1;
      facts.loaded.insert(load->argument);
    } else if (const auto* store = std::get_if<kernels::Store>(&s.of)) {
      facts.weight += 1;
      facts.stores_twice |= !facts.stored.insert(store->argument).second;
      if (store->streamed && facts.streamed == nullptr) facts.streamed = store;
    } else if (const auto* loop = std::get_if<Loop>(&s.of)) {
      facts.weight += 3;
      facts.loops = true;
      look(kernel, loop->body, facts);
    } else {
      facts.weight += 1;
      facts.turns |= std::holds_alternative<kernels::Transpose>(s.of);
    }
  }
}

bool keeps_values(const Loop& loop) { return !loop.folds.empty() || !loop.bests.empty(); }

// Whether an iteration done again gives the same: it reads nothing that the loop writes, and keeps no value. Of
// stores that meet, the later iteration's still comes last, if one statement does them.
bool may_repeat(const Function& f, const Loop& loop, const BodyFacts& facts) {
  if (keeps_values(loop) || facts.stores_twice || facts.loops) return false;
  for (const int argument : facts.stored)
    if (facts.loaded.contains(argument) || f.memories[static_cast<std::size_t>(argument)].scope == nullptr)
      return false;
  return true;
}

// Whether what is left is worth a body of its own: it may write what it reads.
bool may_narrow(const Function& f, const Loop& loop, const BodyFacts& facts, std::int64_t left) {
  constexpr std::int64_t kFewest = 4;
  if (keeps_values(loop) || facts.loops || left < kFewest || !std::has_single_bit(static_cast<std::uint64_t>(left))) return false;
  return std::ranges::any_of(facts.stored, [&](int argument) {
    return facts.loaded.contains(argument) || f.memories[static_cast<std::size_t>(argument)].scope == nullptr;
  });
}

Rest rest_of(Function& f, const Loop& loop, const Bounds& bounds, const BodyFacts& facts) {
  const auto* constant = llvm::dyn_cast<llvm::ConstantInt>(f.b.CreateSub(bounds.to, bounds.from));
  if (bounds.whole || (constant && constant->getSExtValue() % loop.lanes == 0)) return Rest::None;
  if (constant && constant->getSExtValue() < loop.lanes) return Rest::Apart;  // one vector, under a mask
  if (bounds.least >= loop.lanes && may_repeat(f, loop, facts)) return Rest::Overlapped;
  if (constant && may_narrow(f, loop, facts, constant->getSExtValue() % loop.lanes)) return Rest::Narrow;
  return facts.weight >= kLargeBody && f.target.has_masks ? Rest::Masked : Rest::Apart;
}

// One vector of iterations, from `i` on. Takes and gives the folds' partial values, then what bests keep.
Expected<Carried> emit_vector(Function& f, const Loop& loop, Value* i, Value* mask, const Carried& partial) {
  f.lanes.mask = mask;
  f.held(loop.variable) = {Held::Form::Strided, {i, nullptr}, 1};
  std::size_t k = 0;
  for (const kernels::Fold& fold : loop.folds)
    set(f, fold.carry.inside, take(partial, k, f.kernel.type(fold.carry.inside)), true);
  TRY(emit_block(f, loop.body));
  Carried next;
  for (const kernels::Fold& fold : loop.folds) append(next, varying(f, fold.carry.next));
  k = next.size();
  for (const kernels::Best& best : loop.bests) {
    const BestLanes kept = take_better(f, best, {partial[k], partial[k + 1]}, i);
    next.push_back(kept.value), next.push_back(kept.first);
    k += 2;
  }
  if (mask)
    for (k = 0; k < next.size(); ++k) next[k] = f.b.CreateSelect(mask, next[k], partial[k]);
  return next;
}

Value* constant(Function& f, std::int64_t x) { return f.b.getInt64(static_cast<std::uint64_t>(x)); }

// The first `count` lanes, at most all.
Value* first_lanes(Function& f, Value* count) {
  // i8 counts fit, and compare in the fewest registers.
  Value* narrow = f.b.CreateTrunc(count, f.b.getInt8Ty());
  llvm::SmallVector<std::uint8_t, 64> lanes;
  for (int l = 0; l < f.lanes.count; ++l) lanes.push_back(static_cast<std::uint8_t>(l));
  return f.b.CreateICmpULT(llvm::ConstantDataVector::get(f.b.getContext(), lanes), splat(f, narrow));
}

// Whole vectors in the loop, and the rest behind it.
Expected<Carried> emit_apart(Function& f, const Loop& loop, const Bounds& bounds, Carried partial) {
  llvm::IRBuilder<>& b = f.b;
  Value* length = b.CreateSub(bounds.to, bounds.from);
  if (bounds.least == 0) length = b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, length, constant(f, 0));
  Value* rest = b.CreateAnd(length, constant(f, loop.lanes - 1));
  Value* middle = b.CreateAdd(bounds.from, b.CreateSub(length, rest));
  partial = TRY(emit_for(f, {bounds.from, middle, loop.lanes, bounds.least >= loop.lanes, nullptr}, partial,
                         [&](Value* i, const Carried& p) { return emit_vector(f, loop, i, nullptr, p); }));
  return emit_when(f, b.CreateIsNotNull(rest), partial,
                   [&] { return emit_vector(f, loop, middle, first_lanes(f, rest), partial); });
}

// Whole vectors in the loop, and one of fewer lanes behind it. Needs: constant bounds, nothing that it keeps.
Expected<Carried> emit_narrow(Function& f, const Loop& loop, const Bounds& bounds) {
  const std::int64_t length = llvm::cast<llvm::ConstantInt>(f.b.CreateSub(bounds.to, bounds.from))->getSExtValue();
  const std::int64_t left = length % loop.lanes;
  Value* middle = f.b.CreateAdd(bounds.from, constant(f, length - left));
  TRY(emit_for(f, {bounds.from, middle, loop.lanes, true, nullptr}, {},
               [&](Value* i, const Carried& p) { return emit_vector(f, loop, i, nullptr, p); }));
  f.lanes.count = static_cast<int>(left);
  return emit_vector(f, loop, middle, nullptr, {});
}

// How many iterations come before the first line of cache that the loop fills; null if it is no matter or not known here.
// Which iterations are one vector may differ only where none would be seen to be done before another.
Value* before_line(Function& f, const Loop& loop, const Bounds& bounds, const BodyFacts& facts) {
  if (facts.streamed == nullptr || facts.turns || !f.target.has_masks || !may_repeat(f, loop, facts)) return nullptr;
  const auto* length = llvm::dyn_cast<llvm::ConstantInt>(f.b.CreateSub(bounds.to, bounds.from));
  if (length != nullptr && length->getSExtValue() < 2 * loop.lanes) return nullptr;
  f.held(loop.variable) = {Held::Form::Strided, {bounds.from, nullptr}, 1};
  Value* bytes = bytes_to_line(f, *facts.streamed);
  return bytes == nullptr ? nullptr : f.b.CreateUDiv(bytes, constant(f, byte_width(f.kernel.type(facts.streamed->value))));
}

// What comes before the first line under a mask, then whole vectors, which fill lines, then the rest: each line that
// goes past the caches is touched once.
Expected<Carried> emit_lines(Function& f, const Loop& loop, const Bounds& bounds, Value* before, Carried partial) {
  Value* length = f.b.CreateBinaryIntrinsic(llvm::Intrinsic::smax, f.b.CreateSub(bounds.to, bounds.from), constant(f, 0));
  before = f.b.CreateBinaryIntrinsic(llvm::Intrinsic::umin, before, length);
  partial = TRY(emit_when(f, f.b.CreateIsNotNull(before), partial,
                          [&] { return emit_vector(f, loop, bounds.from, first_lanes(f, before), partial); }));
  return emit_apart(f, loop, {f.b.CreateAdd(bounds.from, before), bounds.to}, std::move(partial));
}

Expected<Carried> emit_vectors(Function& f, const Loop& loop, const Bounds& bounds, const Carried& partial) {
  Range range{bounds.from, bounds.to, loop.lanes, bounds.least > 0, nullptr};
  const auto plain = [&](Value* i, const Carried& p) { return emit_vector(f, loop, i, nullptr, p); };
  BodyFacts facts;
  look(f.kernel, loop.body, facts);
  if (Value* before = before_line(f, loop, bounds, facts)) return emit_lines(f, loop, bounds, before, partial);
  switch (rest_of(f, loop, bounds, facts)) {
    case Rest::None: return emit_for(f, range, partial, plain);
    case Rest::Overlapped:
      range.last = f.b.CreateSub(bounds.to, constant(f, loop.lanes));
      return emit_for(f, range, partial, plain);
    case Rest::Narrow: return emit_narrow(f, loop, bounds);
    case Rest::Masked:
      return emit_for(f, range, partial, [&](Value* i, const Carried& p) {
        Value* left = f.b.CreateSub(bounds.to, i);
        left = f.b.CreateBinaryIntrinsic(llvm::Intrinsic::smin, left, constant(f, loop.lanes));
        return emit_vector(f, loop, i, first_lanes(f, left), p);
      });
    case Rest::Apart: break;
  }
  return emit_apart(f, loop, bounds, partial);
}

Value* part_of(Function& f, Value* lanes, int from, int count) {
  llvm::SmallVector<int, 64> picked;
  for (int l = 0; l < count; ++l) picked.push_back(from + l);
  return count == 1 ? f.b.CreateExtractElement(lanes, static_cast<std::uint64_t>(from))
                    : f.b.CreateShuffleVector(lanes, picked);
}

// Lane l with lane l + L/2, until one is left.
Lanes fold_lanes(Function& f, const kernels::Fold& fold, Lanes lanes) {
  const DType type = f.kernel.type(fold.carry.result);
  const auto part = [&](int from, int count) {
    return Lanes{part_of(f, lanes.real, from, count), lanes.imag ? part_of(f, lanes.imag, from, count) : nullptr};
  };
  for (int half = f.lanes.count / 2; half > 0; half /= 2)
    lanes = emit_binary(f.b, fold.combine, type, part(0, half), part(half, half));
  return lanes;
}

}  // namespace

Expected<> emit_lanes(Function& f, const Loop& loop, const Bounds& bounds) {
  HLOOM_CHECK(f.lanes.count == 0 && std::has_single_bit(static_cast<unsigned>(loop.lanes)) && loop.lanes <= 128);
  f.lanes = {loop.lanes, nullptr, kernels::varying_values(f.kernel, loop)};
  Carried partial;
  for (const kernels::Fold& fold : loop.folds) append(partial, varying(f, fold.carry.initial));
  for (const kernels::Best& best : loop.bests) {
    const BestLanes kept = begin_best(f, loop, best);
    partial.push_back(kept.value), partial.push_back(kept.first);
  }
  partial = TRY(emit_vectors(f, loop, bounds, partial));
  std::size_t k = 0;
  for (const kernels::Fold& fold : loop.folds) {
    const Lanes folded = fold_lanes(f, fold, take(partial, k, f.kernel.type(fold.carry.result)));
    set(f, fold.carry.result, folded, false);
  }
  for (const kernels::Best& best : loop.bests) {
    set(f, best.result, {best_iteration(f, best, {partial[k], partial[k + 1]}), nullptr}, false);
    k += 2;
  }
  f.lanes = {};
  return {};
}

}  // namespace hloom::emit

#include "fusion/cost.h"

#include <algorithm>

#include "hlo/module.h"
#include "hlo/rare.h"
#include "hlo/reduce_order.h"
#include "hlo/staged.h"

namespace hloom::fusion {

using hlo::Instruction;
using hlo::Opcode;

std::string name(Hero hero) {
  switch (hero) {
    case Hero::Loop: return "loop";
    case Hero::Reduce: return "reduce";
    case Hero::Rows: return "rows";
    case Hero::Levels: return "levels";
    case Hero::Dot: return "dot";
    case Hero::Convolution: return "convolution";
    case Hero::WindowUpdate: return "window-update";
    case Hero::Scatter: return "scatter";
    case Hero::Window: return "window";
    case Hero::Routine: return "routine";
  }
  return "loop";
}

Hero hero_of(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Reduce: return is_unrolled(i) ? Hero::Loop : Hero::Reduce;
    case Opcode::Dot: return Hero::Dot;
    case Opcode::Convolution:
      return hlo::is_rare(i) ? Hero::Routine : Hero::Convolution;
    case Opcode::DynamicUpdateSlice: return Hero::WindowUpdate;
    case Opcode::Scatter: return Hero::Scatter;
    case Opcode::ReduceWindow: return Hero::Window;
    case Opcode::Sort:
    case Opcode::Topk:
    case Opcode::Fft:
    case Opcode::Cholesky:
    case Opcode::TriangularSolve:
    case Opcode::SelectAndScatter: return Hero::Routine;
    default: return Hero::Loop;
  }
}

bool is_tiny(const Instruction& i) { return i.shape().is_array() && i.shape().num_elements() <= 1; }

bool is_free(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Constant:
      return i.shape().is_array() && i.shape().num_elements() > 0 && hlo::is_splat(i.literal());
    case Opcode::Iota: return true;
    case Opcode::Broadcast:
    case Opcode::Reshape: return is_free(*i.operand(0));
    default: return false;
  }
}

bool is_cheap(const Instruction& i) {
  const DType type = i.shape().dtype();
  switch (i.opcode()) {
    case Opcode::Divide:
    case Opcode::Remainder: return false;
    case Opcode::Abs:
    case Opcode::Add:
    case Opcode::And:
    case Opcode::BitcastConvert:
    case Opcode::Broadcast:
    case Opcode::Ceil:
    case Opcode::Clamp:
    case Opcode::Compare:
    case Opcode::Complex:
    case Opcode::Convert:
    case Opcode::Copy:
    case Opcode::DynamicSlice:
    case Opcode::Floor:
    case Opcode::Imag:
    case Opcode::Iota:
    case Opcode::IsFinite:
    case Opcode::Maximum:
    case Opcode::Minimum:
    case Opcode::Multiply:
    case Opcode::Negate:
    case Opcode::Not:
    case Opcode::Or:
    case Opcode::Real:
    case Opcode::Reshape:
    case Opcode::Bitcast:
    case Opcode::Reverse:
    case Opcode::Select:
    case Opcode::ShiftLeft:
    case Opcode::ShiftRightArithmetic:
    case Opcode::ShiftRightLogical:
    case Opcode::Slice:
    case Opcode::Subtract:
    case Opcode::Transpose:
    case Opcode::Xor: return !is_complex(type);
    default: return false;
  }
}

bool is_unrolled(const Instruction& i) {
  if (i.opcode() != Opcode::Reduce || i.num_operands() != 2 || order_of(i).by_lanes) return false;
  std::int64_t elements = 1;
  for (const std::int64_t d : i.dimensions()) elements *= i.operand(0)->shape().dim(d);
  return elements >= 1 && elements <= kUnrolled;
}

bool is_of_pieces(const Instruction& i) { return i.opcode() == Opcode::Concatenate || i.opcode() == Opcode::Pad; }

std::int64_t large_operands(const Instruction& i) {
  return std::ranges::count_if(i.operands(), [&](const Instruction* o) {
    return o->shape().is_array() && o->shape().num_elements() == i.shape().num_elements();
  });
}

namespace {

bool refuse(std::string& reason, const char* text) {
  reason = text;
  return false;
}

// Large operands that each element of the producer reads.
std::int64_t streams(const Instruction& i) {
  return std::ranges::count_if(i.operands(), [&](const Instruction* o) {
    return o->shape().is_array() && o->shape().num_elements() > 1;
  });
}

// What only says where an element lies: a kernel reads through it at no cost.
bool is_view(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Bitcast:
    case Opcode::DynamicSlice:
    case Opcode::Reshape:
    case Opcode::Slice:
    case Opcode::Transpose: return true;
    default: return false;
  }
}

}  // namespace

bool may_fuse(const Instruction& p, const Instruction& user, Hero hero, bool aligned, std::string& reason) {
  const Hero own = hero_of(p);
  if (p.shape().is_tuple()) return refuse(reason, "it has several results");
  if (own == Hero::Reduce) {
    if (hero == Hero::Loop && aligned && user.opcode() != Opcode::Reduce) return true;
    return refuse(reason, "a reduce is read by more than its own element");
  }
  if (own != Hero::Loop) return refuse(reason, "it is a kernel of its own kind");
  if (hero == Hero::Levels) return refuse(reason, "a kernel by levels reads an element at several of them");
  if (hero == Hero::Rows && is_of_pieces(p))
    return refuse(reason, "a kernel over rows does not ask each element for the piece that it comes from");
  if (hero == Hero::Dot && is_view(p)) return true;
  if (hero == Hero::Convolution && hlo::is_staged(p) && user.operand(0) == &p) return true;
  if (hero == Hero::Dot || hero == Hero::Convolution)
    return refuse(reason, "a dot or convolution reads an element often");
  switch (user.opcode()) {
    case Opcode::Sort:
    case Opcode::Topk: return refuse(reason, "a routine reads whole arrays");
    case Opcode::DynamicUpdateSlice:
      if (user.operand(0) == &p) return refuse(reason, "the base of a window update is a buffer");
      return true;
    case Opcode::Scatter: {
      const std::int64_t n = user.num_operands() / 2;
      for (std::int64_t k = 0; k < n; ++k)
        if (user.operand(k) == &p) return refuse(reason, "the base of a scatter is a buffer");
      if (!is_cheap(p)) return refuse(reason, "updates of a scatter go one by one");
      return true;
    }
    case Opcode::ReduceWindow:
      if (!is_cheap(p) && !is_tiny(p)) return refuse(reason, "windows overlap");
      return true;
    case Opcode::Gather:
      if (user.operand(0) == &p && (streams(p) > 1 || !is_cheap(p)) &&
          user.shape().num_elements() > p.shape().num_elements())
        return refuse(reason, "a gather may read an element often");
      return true;
    default: break;
  }
  // The routine reads a slice where it lies.
  if (user.opcode() == Opcode::Convolution && p.opcode() == Opcode::Slice && hlo::is_rare(user)) return true;
  if (hero_of(user) == Hero::Routine) return refuse(reason, "a routine reads whole arrays");
  return true;
}

}  // namespace hloom::fusion

// A kernel: loops over boxes, affine accesses, and lines with HLO's opcodes. The one IR below HLO.
//
//   kernel add(a: f32[1000], b: f32[1000]) -> (y: f32[1000]) blocks 2 {
//     for i in 0..1000 block 512 by 16 {
//       x = load f32 a[i]
//       z = load f32 b[i]
//       s = add f32 x, z
//       store y[i], s
//     }
//   }
//
// What memory is touched, by whom, in which order is settled here; emit/ only picks instructions. A kernel prints,
// parses, and runs in plain C++ (evaluate.h), and all three say the same.
#pragma once

#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include "hlo/attributes.h"
#include "hlo/opcode.h"
#include "hloom/shape.h"

namespace hloom::kernels {

/// A value: assigned once, by a statement or as a loop's variable or carry; an index into Kernel::values.
using Value = std::int32_t;
inline constexpr Value kNoValue = -1;

/// A buffer that the kernel is given: a pointer to its first byte. Accesses count in elements of the loaded or stored
/// value's own type (sub-byte types and pred: a byte each), so that one argument may hold arrays of several types, as
/// the arena of a region does.
struct Argument {
  std::string name;
  DType type = DType::Invalid;    ///< of all its elements; Invalid: bytes that hold several types
  std::int64_t num_elements = 0;  ///< of `type`; bytes if that is Invalid
  bool written = false;
  /// Bytes that the address is a multiple of; at least the element's.
  std::int64_t alignment = 1;
  /// May overlap with other arguments (by exactly equal addresses or in parts); otherwise no written argument
  /// overlaps another argument.
  bool may_overlap = false;
  std::int64_t memory_space = 0;            ///< that the array's layout says
  std::vector<Layout::Split> splits = {};   ///< likewise: where its dimensions are cut
};

/// The argument that an array is, with its memory space and splits. Needs: an array with a layout.
Argument argument_of(const Shape& array, std::string name, bool written);

/// Bytes of the buffer.
std::int64_t argument_bytes(const Argument&);

/// offset + Σ coefficient·value. Values are of type S64.
struct Index {
  struct Term {
    Value value;
    std::int64_t coefficient;
    bool operator==(const Term&) const = default;
  };
  std::int64_t offset = 0;
  std::vector<Term> terms;  ///< sorted by value, no zero coefficients
  bool operator==(const Index&) const = default;
};

struct Statement;
using Block = std::vector<Statement>;

/// result = opcode(operands): an elementwise op of HLO. All values of one line inside a loop by lanes are lanes of that
/// loop's iterations. `type` of the result is Kernel::values[result].type; operands are in their own types.
/// Opcodes: those of kind Elementwise (convert, compare, select, clamp and real/imag/complex included), BitcastConvert
/// between types of one width, Constant.
struct Line {
  Value result = kNoValue;
  hlo::Opcode opcode{};
  std::vector<Value> operands;
  hlo::CompareAttr compare;                    ///< Compare
  hlo::ReducePrecisionAttr reduce_precision;   ///< ReducePrecision
  std::uint64_t constant[2] = {0, 0};          ///< Constant: the element's bytes, little endian, zero padded
};

/// result = a·b + c, rounded once. Only inside one HLO op that the numeric contract allows it in (dot, convolution). Of s32, the
/// values are four bytes each: result = c + Σ of the four products of a's bytes, without sign, and b's, with sign, modulo 2^32.
struct MultiplyAdd {
  Value result = kNoValue;
  Value a = kNoValue, b = kNoValue, c = kNoValue;
};

/// Lane l of results[k] is lane k of operands[l]: a square turned over in registers. Only in a loop by as many lanes as
/// there are results and operands, whose lanes all run: its bounds are constants, a multiple of the lanes apart, and
/// its block, if any, is such a multiple too.
struct Transpose {
  std::vector<Value> results, operands;  ///< all of one type
};

/// result (S64) = index.
struct Affine {
  Value result = kNoValue;
  Index index;
};

/// result = argument[index]. Where `mask` (pred) is given and false nothing is read and the result is zero. Of a byte that
/// holds a sub-byte element the low bits count alone.
struct Load {
  Value result = kNoValue;
  int argument = 0;
  Index index;
  Value mask = kNoValue;
};

/// argument[index] = value, where `mask`, if given, is true.
struct Store {
  int argument = 0;
  Index index;
  Value value = kNoValue;
  Value mask = kNoValue;
  /// A hint: what is stored is not soon read, and fills lines one after the other, so whole lines of cache that the lanes
  /// fill may go to memory past the caches (stream_stores.h).
  bool streamed = false;
};

/// A hint: the cache line that holds argument[index], an element of `type`, is read soon. Not in a loop by lanes.
struct Prefetch {
  int argument = 0;
  Index index;
  DType type = DType::Invalid;
};

/// A value that goes round a loop: `inside` is `initial` in the first iteration, then `next` of the one before;
/// `result` is the last `next`, or `initial` if there was no iteration.
struct Carry {
  Value inside = kNoValue, initial = kNoValue, next = kNoValue, result = kNoValue;
};

/// How partial values of a loop by lanes become one: lane l of L folds iterations l, l+L, l+2L … ; then halves are
/// combined, lane l with lane l + L/2, until one is left. L is a power of two. The order of a sum is this; it does
/// not depend on the machine's vectors.
struct Fold {
  hlo::Opcode combine = hlo::Opcode::Add;  ///< Add, Multiply, Maximum, Minimum, And, Or, Xor
  Carry carry;  ///< `initial` is combine's identity; `inside`, `next` are lanes; `result` is uniform
};

/// Which iteration of a loop by lanes has the greatest value, or the least: the first of them, or the last. A NaN is better
/// than any number, -0 equals 0. What it is does not depend on the lanes.
struct Best {
  bool least = false;
  bool last = false;
  Value value = kNoValue;   ///< of an iteration, made by the body: f32, f64 or integers of a byte and more
  Value result = kNoValue;  ///< S64, uniform: the iteration
};

/// for variable in [from, to), step 1.
struct Loop {
  Value variable = kNoValue;  ///< S64
  std::int64_t from = 0;
  std::int64_t to = 0;
  /// Bounds known at run time only (uniform S64 values) replace the constants.
  Value from_value = kNoValue, to_value = kNoValue;
  /// 0: iterations one after the other. Else this many iterations at once, in lanes; the last ones under a mask.
  /// A power of two from 2 to 128. A loop by lanes holds no other loop by lanes, no While, no If and no Call, and its
  /// bounds are uniform; loops in it, one iteration after the other, have bounds that are the same in all lanes.
  int lanes = 0;
  /// 0: runs wholly in each call. Else only iterations [begin·block, end·block) of [from, to) run in a call for
  /// blocks [begin, end), counted from `first_block`. Only at the top level of a kernel's body.
  std::int64_t block = 0;
  /// With a block: the grid's block that begins at `from`; blocks before it leave this loop out. A grid may so have a
  /// part for each of several loops.
  std::int64_t first_block = 0;
  /// With a block and no lanes: the body runs once in a call, `variable` being the first of its iterations and this (S64)
  /// what comes behind the last; not at all if there are none.
  Value end = kNoValue;
  std::vector<Carry> carries;  ///< loops without lanes: any; with lanes: none
  std::vector<Fold> folds;     ///< loops with lanes only
  std::vector<Best> bests;     ///< likewise, of constant bounds, without a block, that have an iteration
  Block body;
};

/// while (predicate) body. The carries' `inside` are seen by both blocks; `result` is their value at the end.
struct While {
  Block condition;
  Value predicate = kNoValue;  ///< pred, made by `condition`
  std::vector<Carry> carries;
  Block body;
};

/// Runs branches[selector], the last one if selector (S64, or pred: true is branch 0) is out of range.
struct If {
  Value selector = kNoValue;
  std::vector<Block> branches;
  struct Result {
    Value result = kNoValue;
    std::vector<Value> from;  ///< one value for each branch
  };
  std::vector<Result> results;
};

/// Calls another kernel for all of its blocks through the fork-join entry: for large work inside a region.
struct Call {
  int callee = 0;                    ///< index into Kernel::callees
  struct Pointer {
    int argument = 0;
    std::int64_t byte_offset = 0;
  };
  std::vector<Pointer> arguments;
  std::int64_t blocks = 1;         ///< of the callee's grid
  std::int64_t scratch_bytes = 0;  ///< that the callee needs for each worker
};

struct Statement {
  std::variant<Line, MultiplyAdd, Transpose, Affine, Load, Store, Prefetch, Loop, While, If, Call> of;
};

struct ValueInfo {
  DType type = DType::Invalid;
  std::string name;
};

/// A function of the kernel ABI (base/kernel_abi.h).
struct Kernel {
  std::string name;
  std::vector<Argument> arguments;
  /// Elements of scratch: argument number arguments.size() in accesses, of bytes 64-aligned; type scratch_type.
  std::int64_t scratch_bytes = 0;
  DType scratch_type = DType::Invalid;
  /// Size of the grid: calls take ranges of [0, blocks). Statements outside loops with a block run in the call that
  /// holds block 0 only; a kernel with blocks > 1 has nothing but loops with a block, lines, affines, constants and loads of
  /// what it does not write at its top level.
  std::int64_t blocks = 1;
  /// Work of one block, in bytes moved or flops, whichever is more: what the partition over threads weighs.
  std::int64_t block_cost = 0;
  /// Each access is looked at before it is made: one outside of its argument is reported in the run's base::RunStatus,
  /// whose address comes behind those of the arguments, and the call ends there.
  bool checks_bounds = false;
  /// Blocks at which parts begin, ascending, none of them the first or behind the last: where the layout of what is
  /// written is split, each part of the array is a part of the grid, for a worker of its own.
  std::vector<std::int64_t> cuts;
  std::vector<ValueInfo> values;
  Block body;
  std::vector<std::string> callees;  ///< names of kernels that Call statements call

  Value add_value(DType type, std::string value_name = {}) {
    values.push_back({type, std::move(value_name)});
    return static_cast<Value>(values.size() - 1);
  }
  DType type(Value v) const { return values[static_cast<std::size_t>(v)].type; }
};

/// The index that is one value, a sum, a multiple. Kept canonical.
Index index_of(Value value, std::int64_t coefficient = 1);
Index operator+(const Index& a, const Index& b);
Index operator+(const Index& a, std::int64_t offset);
Index operator*(const Index& a, std::int64_t factor);

}  // namespace hloom::kernels

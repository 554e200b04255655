// What emit/'s files share while one kernel becomes one LLVM function.
#pragma once

#include <llvm/ADT/STLFunctionalExtras.h>
#include <llvm/ADT/SmallVector.h>
#include <llvm/IR/IRBuilder.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/target.h"
#include "emit/apply.h"
#include "hloom/error.h"
#include "kernels/kernel.h"

namespace hloom::emit {

/// A kernel's value in registers.
struct Held {
  enum class Form : std::uint8_t {
    Uniform,  ///< `parts` are scalars, the same in every lane
    Varying,  ///< `parts` are vectors
    Strided,  ///< S64: lane l holds the scalar parts.real + stride·l
  };
  Form form = Form::Uniform;
  Lanes parts;
  std::int64_t stride = 0;
};

/// An argument's memory, or the scratch's.
struct Memory {
  llvm::Value* pointer = nullptr;
  std::int64_t size_bytes = 0;
  bool constant = false;               ///< nobody writes it while the kernel runs
  llvm::MDNode* scope = nullptr;       ///< what accesses to it touch, or null
  llvm::MDNode* not_scopes = nullptr;  ///< and what they certainly do not
};

/// The loop by lanes that is being emitted.
struct LaneLoop {
  int count = 0;                ///< 0 outside of one
  llvm::Value* mask = nullptr;  ///< null: all lanes run
  std::vector<bool> varying;    ///< by kernel value: differs from lane to lane
};

/// The kernel, its function, and where we are in it.
struct Function {
  Function(const kernels::Kernel& k, const base::Target& t, llvm::LLVMContext& context)
      : kernel(k), target(t), b(context), values(k.values.size()) {}

  const kernels::Kernel& kernel;
  const base::Target& target;
  llvm::IRBuilder<> b;
  llvm::Function* function = nullptr;
  llvm::Value* begin = nullptr;  ///< this call's blocks
  llvm::Value* end = nullptr;
  llvm::BasicBlock* done = nullptr;  ///< where the call ends
  llvm::Value* status = nullptr;     ///< of a kernel that checks its accesses: where it reports
  llvm::Value* call_arguments = nullptr;  ///< room for the pointers of the largest Call
  bool streams = false;                   ///< some store goes past the caches
  bool shares_functions = false;          ///< their bodies are called: the kernel has many
  std::vector<Memory> memories;           ///< one for each argument, then the scratch
  std::vector<Held> values;
  LaneLoop lanes;

  Held& held(kernels::Value v) { return values[static_cast<std::size_t>(v)]; }
  bool is_varying(kernels::Value v) const { return lanes.count > 0 && lanes.varying[static_cast<std::size_t>(v)]; }
};

// held.cc: values in registers.

/// The type of an element in memory: as element_ir_type(), but pred is i8.
llvm::Type* memory_type(Function&, DType);
/// <lanes x element> inside a loop by lanes.
llvm::Type* vector_type(Function&, llvm::Type* element);
/// A scalar in all lanes.
llvm::Value* splat(Function&, llvm::Value* scalar);
/// <start, start + step, …> of i64.
llvm::Value* counting(Function&, std::int64_t start, std::int64_t step);
/// Needs: a uniform value.
Lanes uniform(Function&, kernels::Value);
/// The value as vectors, made if it is uniform or strided. Needs: inside a loop by lanes.
Lanes varying(Function&, kernels::Value);
/// The form that results of statements have here: varying where `v` is.
Lanes operand(Function&, kernels::Value v, bool vector);
void set(Function&, kernels::Value, Lanes, bool vector);
/// A mask value and the loop's mask together; null if all lanes run. Inside loops by lanes a vector, else scalar.
llvm::Value* combined_mask(Function&, kernels::Value mask);

// access.cc: memory.

/// Where an access lies, in elements: lane l at first + stride·l + offsets[l].
struct Address {
  llvm::Value* first = nullptr;
  std::int64_t stride = 0;
  llvm::Value* offsets = nullptr;  ///< vector, or null
};

Expected<> emit_load(Function&, const kernels::Load&);
Expected<> emit_store(Function&, const kernels::Store&);
void emit_prefetch(Function&, const kernels::Prefetch&);
/// Bytes from the address that the store would have here to the next multiple of 64, or of what its lanes fill if that is less; null
/// if the address is not known outside of the loop by lanes. Needs: the loop's variable is held.
llvm::Value* bytes_to_line(Function&, const kernels::Store&);
void emit_affine(Function&, const kernels::Affine&);

// bounds.cc: kernels that check their accesses.

/// An access that is about to be made; its address is in 64 bits.
struct CheckedAccess {
  std::string_view what;        ///< "loads" or "stores"
  std::size_t argument = 0;
  DType type = DType::Invalid;  ///< of an element
  const Address& address;
  llvm::Value* mask = nullptr;  ///< null: all lanes
  bool vector = false;          ///< lanes, else one element
};
/// Reports what lies outside of its argument and ends the call there. Needs: a kernel that checks its accesses.
void emit_bounds_check(Function&, const CheckedAccess&);

// line.cc: elementwise ops.

Expected<> emit_line(Function&, const kernels::Line&);
Expected<> emit_multiply_add(Function&, const kernels::MultiplyAdd&);

// shared.cc: bodies of functions that are called.

/// Lines of the block, and of those in it, that are functions of tens of instructions each.
int count_functions(const kernels::Block&);
using SharedBody = llvm::function_ref<Lanes(std::span<const Lanes> operands)>;
/// What `body` gives for the operands, by a call of the module's function of that name; the first call makes it. The name says all that
/// `body` depends on, and the operands' types.
Lanes call_shared(Function&, llvm::StringRef name, std::span<const Lanes> operands, SharedBody body);

// byte_products.cc

/// c + Σ of the four products of a's bytes, without sign, and b's, with sign; values or vectors of i32.
llvm::Value* emit_byte_products(Function&, llvm::Value* a, llvm::Value* b, llvm::Value* c);

// transpose.cc: squares turned over in registers.

void emit_transpose(Function&, const kernels::Transpose&);

// best.cc: the place of the best value in a loop by lanes.

/// What lanes keep: their best value so far, and the first iteration of the vector that it came with.
struct BestLanes {
  llvm::Value* value = nullptr;
  llvm::Value* first = nullptr;  ///< i32, or i64 in long loops
};
/// Before any iteration.
BestLanes begin_best(Function&, const kernels::Loop&, const kernels::Best&);
/// After those of the vector from iteration `i` on, whose value is held.
BestLanes take_better(Function&, const kernels::Best&, const BestLanes&, llvm::Value* i);
/// The iteration (i64). Needs: one was done.
llvm::Value* best_iteration(Function&, const kernels::Best&, const BestLanes&);

// loop.cc, control.cc: statements that hold statements.

Expected<> emit_block(Function&, const kernels::Block&);
Expected<> emit_loop(Function&, const kernels::Loop&);
Expected<> emit_while(Function&, const kernels::While&);
Expected<> emit_if(Function&, const kernels::If&);
Expected<> emit_call(Function&, const kernels::Call&);

// lanes.cc: loops by lanes.

/// What a call does of a loop's iterations.
struct Bounds {
  llvm::Value* from = nullptr;
  llvm::Value* to = nullptr;
  std::int64_t least = 0;  ///< no call has fewer iterations
  bool whole = false;      ///< all calls have whole vectors only
};
Expected<> emit_lanes(Function&, const kernels::Loop&, const Bounds&);

/// Values that go round a loop or out of a branch.
using Carried = llvm::SmallVector<llvm::Value*, 4>;
/// Values' parts one after the other, and back.
void append(Carried&, Lanes);
Lanes take(const Carried&, std::size_t& next, DType);

/// The iterations of a loop.
struct Range {
  llvm::Value* from = nullptr;
  llvm::Value* to = nullptr;
  std::int64_t step = 1;
  bool nonempty = false;        ///< known to hold one iteration at least
  llvm::Value* last = nullptr;  ///< if given, i goes no higher, and the loop ends after that one
};
/// for (i = from; i < to; i += step): `body` takes i and what is carried and gives what is carried on. One iteration
/// becomes straight code, none nothing; else a test, if `nonempty` does not spare it, and a loop that tests at its end.
Expected<Carried> emit_for(Function&, const Range&, const Carried& initial,
                           llvm::function_ref<Expected<Carried>(llvm::Value* i, const Carried&)> body);
/// What `body` gives where the condition holds, else `otherwise`. A constant condition leaves straight code.
Expected<Carried> emit_when(Function&, llvm::Value* condition, const Carried& otherwise,
                            llvm::function_ref<Expected<Carried>()> body);

// entry.cc

/// Makes the function in the module: entry, pointers, body, return.
Expected<> emit_function(Function&, llvm::Module&);

}  // namespace hloom::emit

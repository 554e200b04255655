// Builds what rules put in an instruction's place: next to it, with its metadata, in the row-major layout.
#pragma once

#include "passes/match.h"

#include "hlo/module.h"

namespace hloom::passes {

/// Makes instructions that stand for `like`: in its computation, with its name as the base and its metadata.
class Make {
 public:
  explicit Make(const Instruction& like) : Make(like, *like.parent()) {}
  /// In another computation, as the body of a loop that does the work of `like`.
  Make(const Instruction& like, hlo::Computation& computation) : like_(like), computation_(computation) {}

  Instruction* op(Opcode, Shape, std::vector<Instruction*> operands);
  /// Elementwise, in the shape of `a`.
  Instruction* unary(Opcode opcode, Instruction* a) { return op(opcode, a->shape(), {a}); }
  Instruction* binary(Opcode opcode, Instruction* a, Instruction* b) { return op(opcode, a->shape(), {a, b}); }
  Instruction* compare(hlo::Direction, Instruction* a, Instruction* b);
  Instruction* select(Instruction* p, Instruction* a, Instruction* b) {
    return op(Opcode::Select, a->shape(), {p, a, b});
  }
  Instruction* convert(Instruction* a, DType);

  Instruction* constant(hlo::Literal);
  /// An integer or pred of this value (its low bits), in these dims: a broadcast scalar where there are any.
  Instruction* integer(DType, std::int64_t value, const Dims& dims = {});
  /// The scalar that leaves others as they are under a combining opcode; null if the type has none.
  Instruction* identity(Opcode combine, DType);
  /// The number all elements of an array of this shape are: a broadcast of the scalar.
  Instruction* splat(hlo::Literal scalar, const Dims& dims);

  /// Give `a` itself where nothing would change.
  Instruction* reshape(Instruction* a, const Dims& dims);
  Instruction* broadcast(Instruction* a, const Dims& result_dims, const Dims& dimensions);
  Instruction* broadcast_scalar(Instruction* a, const Dims& result_dims) { return broadcast(a, result_dims, {}); }
  Instruction* transpose(Instruction* a, const Dims& permutation);
  Instruction* slice(Instruction* a, hlo::SliceAttr);
  Instruction* pad(Instruction* a, Instruction* value, std::vector<hlo::PadDim> dims);
  Instruction* dynamic_slice(Instruction* a, const std::vector<Instruction*>& starts, const Dims& sizes);
  Instruction* dynamic_update_slice(Instruction* base, Instruction* update, const std::vector<Instruction*>& starts);
  Instruction* iota(DType, const Dims& dims, std::int64_t dimension);
  /// By a new computation of that opcode, from `initial`.
  Instruction* reduce(Opcode, Instruction* a, Instruction* initial, const Dims& dimensions);
  Instruction* element(Instruction* tuple, std::int64_t index);
  Instruction* tuple(const std::vector<Instruction*>& elements);
  /// Zeros, of any shape: of tuples and tokens too.
  Instruction* zeros(const Shape&);
  hlo::Computation& computation() const { return computation_; }

 private:
  Instruction* finish(Instruction* i);

  const Instruction& like_;
  hlo::Computation& computation_;
};

/// A new computation of two scalars of that type.
hlo::Computation* add_combiner(hlo::Module&, Opcode, DType);

/// The start operands of a dynamic-slice or dynamic-update-slice as scalars: those it has, or elements of its one
/// index vector, which are made.
std::vector<Instruction*> start_scalars(Instruction& i);
/// Whether they are there without making any.
bool has_scalar_starts(const Instruction& i);
/// Operand number of the first start: 1 or 2.
std::int64_t first_start(const Instruction& i);

}  // namespace hloom::passes

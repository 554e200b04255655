// A dot as loops: which axes there are, and how operands and results lie along them.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/elements.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// A loop of a dot: one dimension, part of one, or several that all memory lets run as one.
struct DotAxis {
  enum class Of : std::uint8_t { Batch, Lhs, Rhs, Sum };
  /// Adds factor·v to a dimension of the result (Of::Sum: to a contracted one, by its place in the list).
  struct Part {
    std::size_t dim = 0;
    std::int64_t factor = 1;
    std::int64_t extent = 1;
  };
  Of of = Of::Batch;
  std::vector<Part> parts;  ///< outermost first; none: an axis of one iteration
  std::int64_t extent = 1;
  std::int64_t lhs = 0, rhs = 0, out = 0;  ///< strides in elements; of computed operands 0
};

/// How an operand of the dot is read.
struct DotOperand {
  bool plain = false;   ///< one load, perhaps converted, at an address linear in the axes
  bool narrow = false;  ///< another type than the sum's
  bool words = false;   ///< of bytes: four steps are a word in memory
  bool ready = false;   ///< a constant that lies in panels (dot_panels.h); the rest says how it was before
};

/// A fusion around one dot.
struct DotFusion {
  const hlo::Instruction* fusion = nullptr;
  const hlo::Instruction* dot = nullptr;
  /// A result: the value stored at the dot's own points, and what then moves it, innermost first.
  struct Root {
    const hlo::Instruction* value = nullptr;
    ShapeIndex leaf;
    std::vector<const hlo::Instruction*> moves;
  };
  std::vector<Root> roots;
  /// In which products are summed: the result's type, f32 for narrower floats, and for short integers, whose sums f32
  /// holds exactly.
  DType sum_type = DType::Invalid;
  /// Not 0: only so many products may be summed in sum_type; then such sums, as s32.
  std::int64_t exact_steps = 0;
  /// Not 0: four products of bytes at a time, as MultiplyAdd of s32 has them, of so many steps of the innermost summed axis.
  /// Rows are the bytes without sign, of which signed ones are 128 more than they are; if both sides are without sign, lanes
  /// are as they are, and rows 128 less.
  std::int64_t byte_steps = 0;
  bool lhs_unsigned = false, rhs_unsigned = false;  ///< then: 8 bits without sign
  /// Not null: a pad that is the first operand; what a cell reads of it lies in scratch, in sum_type (DotStage).
  const hlo::Instruction* staged = nullptr;
  /// The array that an operand is, but for what moves and converts its elements: a parameter, or what is made of one that is
  /// panels. Null: none.
  std::array<const hlo::Instruction*, 2> sources = {};
  bool lies_in_panels(std::int64_t operand) const;
};

/// The dot of a fusion that plan_dot() can plan; `dot` is null otherwise.
DotFusion find_dot(const hlo::Instruction& fusion);

/// Lets integers be summed as such, where the loops do not allow blocks of exact_steps.
void sum_as_integers(DotFusion&);

/// Whether operands are bytes, so that a processor's products of bytes may do.
bool may_sum_bytes(const DotFusion&);

/// A value for each axis.
using AxisIndices = std::vector<Index>;

/// Elements of the operands and of the results, for statements of one builder.
class DotElements {
 public:
  DotElements(Builder&, const DotFusion&, const Places&);

  /// Elements of the dot's operands in the type of the sum; `mask` as in Load.
  Expected<Value> lhs(const std::vector<DotAxis>&, const AxisIndices&, Value mask = kNoValue);
  Expected<Value> rhs(const std::vector<DotAxis>&, const AxisIndices&, Value mask = kNoValue);
  /// The bytes of four steps of operand 0 or 1 from such a point on. Needs: DotOperand::words.
  Expected<Value> word(std::int64_t number, const std::vector<DotAxis>&, const AxisIndices&);
  /// Of a staged operand: element 0 of it would be at this element of scratch.
  void stage_at(const Index& begin) { stage_ = begin; }
  /// Element `index` of an operand's panels, in the type of the sum: of bytes, four of them.
  Value of_panels(std::int64_t number, const Index& index);
  /// An element of the staged operand itself, in the type of the sum. Needs: one.
  Expected<Value> staged(const Point&);
  /// Given the sum of a point, computes the results there and stores them: all values first, for an operand may be a
  /// result's memory.
  Expected<> store(const std::vector<DotAxis>&, const AxisIndices&, Value sum, Value mask = kNoValue);

 private:
  Value as_result(Value sum);
  Expected<Value> operand(std::int64_t number, const std::vector<DotAxis>&, const AxisIndices&, Value mask);
  Point operand_point(std::int64_t number, const std::vector<DotAxis>&, const AxisIndices&);

  Builder& b_;
  const DotFusion& fusion_;
  const Places& places_;
  Elements elements_;
  Index stage_;
};

/// What a cell of the grid has of a padded operand: whole lines, of so many elements that the outer axes move by lines.
struct DotStage {
  std::int64_t line = 0;       ///< elements; 0: nothing is staged
  std::size_t first_dim = 0;   ///< the dimensions of the operand that a line is made of, from here on
  std::size_t axis = 0;        ///< the outer axis of which a cell has several indices; none if that is the row axis' place
  std::int64_t lines = 0;      ///< that one index of it reads
  std::int64_t step = 0;       ///< lines from one index to the next

  std::int64_t lines_of(std::int64_t indices) const { return lines + step * (indices - 1); }
};

/// The loops of a dot.
struct DotProblem {
  /// All axes: batches and whatever did not merge, then one of lhs, one of rhs, then those summed, innermost last.
  std::vector<DotAxis> axes;
  std::size_t lhs_axis = 0, rhs_axis = 0;  ///< positions; sums follow rhs_axis
  DotOperand lhs, rhs;
  std::int64_t epilogue_lines = 0;  ///< for each element of the result
  DotStage stage;

  std::int64_t num_outer() const { return static_cast<std::int64_t>(lhs_axis); }
  std::int64_t extent(std::size_t axis) const { return axes[axis].extent; }
  std::int64_t sum_extent() const;
};

/// The problem with its sum in steps of four products, if that is worth packing for and 32 bits hold or wrap the sum as the
/// result does; `fusion` is told. A sum over several axes is one of words in memory. Needs: may_sum_bytes(), sums as integers.
std::optional<DotProblem> sum_as_bytes(DotFusion& fusion, const DotProblem&, const Places&);

/// Where the array lies that an operand of the dot is, perhaps widened; none if it is none that the fusion is given. Of one
/// that lies in panels, where those are, as if the array were there.
std::optional<Place> place_of_operand(const DotFusion&, const Places&, std::int64_t number);

/// Finds the loops by building single elements and looking at what they access.
/// Errors: Unimplemented, naming the instruction that has no elementwise form.
Expected<DotProblem> analyse_dot(const DotFusion&, const Places&);

}  // namespace hloom::kernels

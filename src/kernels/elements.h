// The elements of HLO values as statements of a kernel: what an element of a result is, said in terms of elements of
// the operands, down to loads.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "hlo/best_element.h"
#include "hlo/reduce_order.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/builder.h"

namespace hloom::kernels {

/// One index for each logical dimension.
using Point = std::vector<Index>;

/// Numbers of an rng-bit-generator's bits that come from one block of its algorithm: neighbours along one dimension, or in
/// row-major order.
std::int64_t rng_block_words(const hlo::Instruction&);

/// The operand's element at `window` of the reduced dimensions, the first of them if `window` has fewer, and `kept` of the others.
Point reduced_point(const hlo::Instruction& reduce, const Point& kept, const Point& window);

/// Extents of the reduced dimensions before dimension `end`.
std::vector<std::int64_t> reduced_box(const hlo::Instruction& reduce, std::int64_t end);

/// Builds elements of the instructions of one computation (a fused one, or one applied to scalars). The dimensions of
/// a value are walked by index arithmetic alone: nothing is materialised. Data-dependent indices become values.
class Elements {
 public:
  /// `parameter`: element of parameter n's leaf at a point; `mask` as in Load.
  using Parameter = std::function<Expected<Value>(std::int64_t number, const ShapeIndex& leaf, const Point&, Value mask)>;

  Elements(Builder& builder, Parameter parameter)
      : b_(builder), parameter_(std::move(parameter)), context_(builder.new_context()) {}

  /// Elements of what is marked as made of panels (hlo/panels.h), where they are not to be taken from those.
  std::function<Expected<Value>(const hlo::Instruction&, const Point&, Value mask)> stand_in;

  /// Elements of values that are made already, if it gives one.
  std::function<std::optional<Value>(const hlo::Instruction&, const Point&, Value mask)> at_hand;

  /// Reduces that go by lanes do so; set where no lanes are open.
  bool fold_reduces = false;

  /// Element of an array instruction, or of leaf `leaf` of a tuple-shaped one.
  /// Errors: Unimplemented, naming the instruction, if it has no elementwise form.
  Expected<Value> at(const hlo::Instruction&, const Point&, const ShapeIndex& leaf = {});

  /// Start indices of a dynamic slice or update: clamped to [0, dim - window], as S64.
  Expected<Point> starts(const hlo::Instruction&, std::int64_t first_operand, const Shape& whole,
                         const std::vector<std::int64_t>& window);

  /// An index operand's element as S64; unsigned ones beyond S64 are its largest.
  Expected<Value> index_value(const hlo::Instruction&, const Point&);
  Value compare(hlo::Direction, Value a, Value b, hlo::Comparison type = hlo::Comparison::Signed);

  /// Applies a computation of scalars.
  Expected<std::vector<Value>> apply(const hlo::Computation&, const std::vector<Value>& arguments);

  /// Runs `body` with loads masked by `mask` besides the present mask.
  template <typename F>
  auto masked(Value mask, const F& body) {
    const Value before = mask_;
    mask_ = before == kNoValue ? mask : b_.line(hlo::Opcode::And, DType::Pred, {before, mask});
    auto result = body();
    mask_ = before;
    return result;
  }

  /// Says what an element is: at() gives it from here on, under the present mask.
  void remember(const hlo::Instruction&, const Point&, const ShapeIndex& leaf, Value);

  using Walk = std::function<Expected<std::vector<Value>>(const Point& window, const std::vector<Value>& sofar)>;
  /// Loops over a box one by one, carrying values: the result of `step` goes into the next.
  Expected<std::vector<Value>> walk(const std::vector<std::int64_t>& box, std::vector<Value> initial, const Walk& step);

  Value convert(Value, DType);

  /// What a reduce gives, if it goes by lanes in search of one element where nothing else of its kernel is by lanes; nothing
  /// for any other instruction.
  static std::optional<hlo::BestElement> best_by_lanes(const hlo::Instruction&);

  /// Makes several reduces over equal dimensions at their points in one loop, element by element; at() knows them from here on.
  /// Needs: none of them goes by lanes here.
  Expected<> reduce_together(const std::vector<std::pair<const hlo::Instruction*, Point>>&);

  Builder& builder() { return b_; }

 private:
  using One = Expected<Value>;
  One make(const hlo::Instruction&, const Point&, const ShapeIndex& leaf);
  One scalar(const hlo::Instruction&, const std::vector<Value>& operands);
  One elementwise(const hlo::Instruction&, const Point&);
  One constant(const hlo::Instruction&, const Point&);
  One broadcast(const hlo::Instruction&, const Point&);
  One reshape(const hlo::Instruction&, const Point&);
  One bitcast(const hlo::Instruction&, const Point&);
  One bitcast_convert(const hlo::Instruction&, const Point&);
  One concatenate(const hlo::Instruction&, const Point&);
  One pad(const hlo::Instruction&, const Point&);
  One dynamic_slice(const hlo::Instruction&, const Point&);
  One dynamic_update_slice(const hlo::Instruction&, const Point&);
  One gather(const hlo::Instruction&, const Point&);
  One reduce(const hlo::Instruction&, const Point&, std::int64_t result);
  One reduce_window(const hlo::Instruction&, const Point&, std::int64_t result);
  One dot(const hlo::Instruction&, const Point&);
  One convolution(const hlo::Instruction&, const Point&);
  One rng_bits(const hlo::Instruction&, const Point&, std::int64_t result);

  /// The values so far with the element at `from`.
  Expected<std::vector<Value>> reduce_step(const hlo::Instruction&, const Point& from, std::vector<Value> sofar);
  /// walk() without loops, for a few elements.
  Expected<std::vector<Value>> walk_unrolled(const std::vector<std::int64_t>& box, std::vector<Value> initial, const Walk& step);
  One fold(const hlo::Instruction&, const Point& kept, const hlo::ReduceOrder&);

  /// The results of a reduce of one row by lanes, in search of its best element.
  struct Search {
    const hlo::Instruction& reduce;
    hlo::BestElement best;
    hlo::ReduceOrder order;
    Point row;  ///< of the operands, without what lanes go over
  };
  Expected<> reduce_to_best(const hlo::Instruction&, const Point& kept, const hlo::BestElement&);
  Expected<std::vector<Value>> best_of_row(const Search&, const std::vector<Value>& sofar);
  Expected<std::vector<Value>> in_order(const Search&, const std::vector<Value>& sofar);
  /// The key as lanes compare it, at an element of the row.
  One search_key(const Search&, const Index& element);
  One best_place(const Search&, bool last, Value* has_nan);
  One key_at(const Search&, Value place);
  /// Runs one of two blocks and gives what it gives.
  Expected<std::vector<Value>> either(Value condition, const std::function<Expected<std::vector<Value>>()>& yes,
                                      const std::function<Expected<std::vector<Value>>()>& no);
  std::optional<Point> window_point(const hlo::Window& window, const std::vector<std::int64_t>& dims, const Point& output,
                                    const Point& offset, Value& mask);
  using Pair = std::optional<std::pair<Value, Value>>;  ///< none: nothing to add
  using Factors = std::function<Expected<Pair>(const Point&, Value& mask)>;
  /// Σ over a box of products, fused and in f32 at least.
  One multiply_sum(const std::vector<std::int64_t>& box, DType type, bool by_taps, const Factors& factors);

  Value in_range(const Index&, std::int64_t lo, std::int64_t hi);  ///< lo ≤ index < hi; kNoValue if always
  Value select(Value p, Value t, Value f);
  void want_cut(const Index&, std::int64_t boundary);
  void want_phases(const Index&, std::int64_t period);

  Builder& b_;
  Parameter parameter_;
  int context_;  ///< tells its memo's keys from those of another computation's elements
  Value mask_ = kNoValue;
};

}  // namespace hloom::kernels

// Boxes of values that the interpreter computes from what is known: by need, backwards through a fusion.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "compiler/smaller.h"

namespace hloom::compiler {

class BoxValues {
 public:
  /// A value that needs no computing: the box of it (of each of its arrays), or all of it if `box` is null. Nothing: it does.
  using Known = std::function<std::optional<hlo::Literal>(const hlo::Instruction&, const Box* box)>;
  /// Whether it would give something.
  using IsKnown = std::function<bool(const hlo::Instruction&)>;

  /// `most`: steps for the whole of something that has no boxes.
  BoxValues(Known known, IsKnown is_known, double most)
      : known_(std::move(known)), is_known_(std::move(is_known)), most_(most) {}

  /// A box of one instruction's result as the interpreter has it, and what it was computed from.
  struct Computed {
    const hlo::Instruction* instruction = nullptr;  ///< that computed it: the one asked for, or a smaller one
    std::vector<hlo::Literal> operands;             ///< of that
    hlo::Literal value;
    std::optional<Box> box;  ///< of the result, the one asked for or one around it; nothing: all of it
    std::shared_ptr<hlo::Module> owner;
  };
  /// Interprets the instruction, whether or not its own value is known. `box` null: whole.
  /// Errors: the interpreter's; ResourceExhausted if something takes more than `most` steps and has no boxes.
  Expected<Computed> compute(const hlo::Instruction&, const Box* box);

  /// The value's box, known or computed. Values are kept until the object ends.
  Expected<hlo::Literal> of(const hlo::Instruction&, const Box* box);

  /// Steps that computing all of it takes, together with what it needs that is not known.
  double work(const hlo::Instruction&);

 private:
  Expected<hlo::Literal> find(const hlo::Instruction&, const Box* box);

  Known known_;
  IsKnown is_known_;
  double most_;
  std::map<std::pair<const hlo::Instruction*, std::optional<Box>>, hlo::Literal> values_;
  std::map<const hlo::Instruction*, double> work_;
};

/// Boxes of an array of about so many elements each, at most `count`: at both ends, then wherever `seed` says, in shapes
/// from rows to columns. Needs: an array with elements.
std::vector<Box> sample_boxes(const Shape& array, std::int64_t elements, std::int64_t count, std::uint64_t seed);

/// Whether all arrays of the value have the same dimensions, so that a box of one is a box of all.
bool has_boxes(const Shape&);

}  // namespace hloom::compiler

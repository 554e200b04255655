// Which bytes of an array an update in place may write.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::compiler {

/// The window of a dynamic-update-slice, or the windows of a scatter, as this run's operands place them.
class UpdateWindow {
 public:
  /// Gives the value of an operand of the step, as it was before the step ran.
  using OperandValue = std::function<hlo::Literal(std::int64_t operand)>;

  /// Of leaf `leaf` of the result of `step`, a fusion or the update itself: the interpreter computes where the window
  /// lies. Nothing if that would take it long, or the array has tiles.
  /// Needs: indexing::is_window_update(step, leaf). Errors: those of the interpreter.
  static Expected<std::optional<UpdateWindow>> create(const hlo::Instruction& step, std::int64_t leaf,
                                                      const OperandValue& value);

  /// Whether any element in this byte of the array may be written.
  bool contains_byte(std::int64_t byte) const;
  /// Where the element that the byte belongs to, or the last of several, ends.
  std::int64_t end_of_element(std::int64_t byte) const;

 private:
  explicit UpdateWindow(const Shape& array);
  bool contains(std::int64_t element) const;
  void place_slice(const hlo::Instruction& update, const std::vector<hlo::Literal>& starts);
  void place_scatter(const hlo::Instruction& scatter, const hlo::Literal& indices);

  Shape array_;
  std::vector<std::int64_t> minor_to_major_, strides_;
  std::vector<std::int64_t> starts_, sizes_;  ///< of the window of a dynamic-update-slice
  std::vector<bool> written_;                 ///< by a scatter: elements in row-major order
  bool is_scatter_ = false;
};

}  // namespace hloom::compiler

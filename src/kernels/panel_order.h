// Constant operands of dots in the order in which their kernels read them: packed once, when a program is compiled.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hlo/attributes.h"

namespace hloom::kernels {

/// How an operand lies: a panel for each index of the outer axes and each `lanes` indices of the free one; in a panel step after
/// step of the sum, each with its lanes beside each other, and perhaps `together` steps a lane. What fills up is zero.
struct PanelOrder {
  /// A loop of the dot and where it goes in the array as it was: elements from one index to the next.
  struct Axis {
    std::int64_t extent = 1, stride = 1;
  };
  std::vector<Axis> outer, sums;  ///< outermost first
  Axis free;
  std::int64_t lanes = 1;
  std::int64_t together = 1;
  std::int64_t pitch = 1;  ///< steps, or groups of them, from a panel to the next

  std::int64_t num_outer() const;
  std::int64_t num_steps() const;
  std::int64_t num_panels() const { return (free.extent + lanes - 1) / lanes; }  ///< of one outer index
  /// Of the array of panels: outer indices, panels, pitch, lanes, together.
  hlo::Dims dims() const;
};

std::string to_string(const PanelOrder&);

/// PanelOrder::pitch of so many steps, or groups of them.
std::int64_t panel_pitch(std::int64_t steps, bool by_lanes);

/// The panels of an array whose elements lie in memory like this, of so many bytes each. Cost: linear in the panels' bytes.
std::vector<std::byte> packed(const PanelOrder&, std::span<const std::byte> array, std::int64_t element_bytes);

}  // namespace hloom::kernels

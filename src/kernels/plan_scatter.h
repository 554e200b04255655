// The loops of a scatter.
#pragma once

#include <cstdint>
#include <span>

#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/builder.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// How the work of a scatter is shared out. Each element sees its updates in row-major order whatever the grid is.
struct ScatterGrid {
  enum class Share : std::uint8_t {
    None,     ///< one call does all
    Updates,  ///< a call does a range of the updates: no two of them meet
    Ranges,   ///< a call owns a range of dimension `dim` of the destination, and does what falls there
  };
  Share share = Share::None;
  std::int64_t dim = -1;
  std::int64_t blocks = 1;
  std::int64_t block = 0;   ///< updates, or indices of `dim`, in a block
  std::int64_t cost = 0;    ///< of all blocks, as bytes moved
  std::int64_t scratch_bytes = 0;
};

/// The grid by shapes and hints. `in_place` says whether all results lie in the memory of their bases.
ScatterGrid scatter_grid(const hlo::Instruction& scatter, bool in_place);

/// Builds the loops of the fusion's root, the scatter. `copied` lists the results that do not hold their base yet, of a grid by
/// Ranges alone.
Expected<> plan_scatter_into(Builder&, const hlo::Instruction& scatter, const Places&, const ScatterGrid&,
                             std::span<const std::int64_t> copied);

}  // namespace hloom::kernels

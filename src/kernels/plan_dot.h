// Dots in kernels of our own: tiles of the result held in registers, panels packed where memory does not lie well.
//
//   if (kernels::is_dot_fusion(fusion)) kernel = TRY(kernels::plan_dot(fusion));
//
// One dot, what moves or converts its operands before, and elementwise work on its result after.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "base/target.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "kernels/builder.h"
#include "kernels/kernel.h"
#include "kernels/panel_order.h"
#include "kernels/plan_fusion.h"

namespace hloom::kernels {

/// The registers that tiles are cut for. They change how much is computed at a time, never the order of a sum.
struct VectorUnit {
  std::int64_t vector_bytes = 64;
  std::int64_t num_registers = 32;
  bool has_masks = true;  ///< in registers of their own; else a mask takes one of a vector
  bool has_byte_products = false;  ///< as base::Target has them
};

VectorUnit vector_unit(const base::Target&);

/// Whether plan_dot() has a plan: the fused computation holds one dot, or one convolution without thin groups, padding and
/// base dilation, and each result is the dot's value or made of it by elementwise ops, then perhaps transposed or reshaped;
/// operands may be anything that has an elementwise form.
bool is_dot_fusion(const hlo::Instruction& fusion);

/// Plans the kernel of such a fusion; arguments as plan_fusion() has them. A sum runs over the contracted dimensions in
/// order (f32 and f64 with fused multiply-adds, narrower floats in f32), or in partial sums by lanes, as shapes
/// and layouts say; neither the grid nor `unit` changes it.
/// Needs: is_dot_fusion(). Errors: Unimplemented, naming the instruction that has no kernel.
Expected<Kernel> plan_dot(const hlo::Instruction& fusion, const VectorUnit& unit = {});

/// An operand of such a fusion that should lie in panels.
struct WantedPanels {
  std::int64_t operand = 0;
  PanelOrder order;
};

/// The one of a fusion's operands, given which of them are constants, that its kernel would pack for each run, or read sooner if
/// they were packed, and that it reads for nothing else. What is then marked with mark_panels() (hlo/panels.h) is read from the panels.
/// Needs: is_dot_fusion(). Errors: as plan_dot().
Expected<std::optional<WantedPanels>> wanted_panels(const hlo::Instruction& fusion, const std::vector<bool>& is_constant, const VectorUnit&);

/// Adds the statements of such a fusion to a kernel that is being built, for a region: no grid. May raise the kernel's
/// scratch_bytes, whose argument number is the count of arguments: all must be there. Needs: is_dot_fusion().
Expected<> plan_dot_into(Builder&, const hlo::Instruction& fusion, const Places&, const VectorUnit& unit = {});

}  // namespace hloom::kernels

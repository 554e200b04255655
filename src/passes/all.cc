#include "passes/all.h"

#include <algorithm>

#include "passes/assign_layouts.h"
#include "passes/bitcast_reshapes.h"
#include "passes/clear_layouts.h"
#include "passes/cse.h"
#include "passes/expand_async.h"
#include "passes/expand_batch_norm.h"
#include "passes/expand_buffers.h"
#include "passes/expand_collectives.h"
#include "passes/expand_dots.h"
#include "passes/expand_dynamic_sizes.h"
#include "passes/expand_narrow_matrices.h"
#include "passes/expand_rng.h"
#include "passes/expand_scan.h"
#include "passes/expand_structure.h"
#include "passes/expand_tiles.h"
#include "passes/expand_transfers.h"
#include "passes/fetch_ahead.h"
#include "passes/fold_constants.h"
#include "passes/inline_calls.h"
#include "passes/lift_constants.h"
#include "passes/open_fusions.h"
#include "passes/pad_convolutions.h"
#include "passes/propagate_memory_space.h"
#include "passes/recognize_custom_calls.h"
#include "passes/remove_dead.h"
#include "passes/remove_markers.h"
#include "passes/separate_memory_spaces.h"
#include "passes/shorten_sorts.h"
#include "passes/shrink_loops.h"
#include "passes/simplify_algebra.h"
#include "passes/simplify_conditionals.h"
#include "passes/simplify_convolutions.h"
#include "passes/simplify_indices.h"
#include "passes/simplify_loops.h"
#include "passes/simplify_movement.h"
#include "passes/simplify_tuples.h"
#include "passes/split_reduces.h"
#include "passes/split_windows.h"

namespace hloom::passes {
namespace {

constexpr Pass kAll[] = {
    {"assign-layouts", assign_layouts, "choose layouts so that the fewest bytes are moved to change them"},
    {"bitcast-reshapes", bitcast_reshapes, "make reshapes of row-major arrays bitcasts"},
    {"clear-layouts", clear_layouts, "make all layouts row-major but those that bind"},
    {"cse", cse, "merge equal instructions, and equal computations that are applied"},
    {"expand-async", expand_async, "do asynchronous work at its start"},
    {"expand-batch-norm", expand_batch_norm, "make batch norms elementwise ops and sums"},
    {"expand-buffers", expand_buffers, "make buffers the arrays that they hold"},
    {"expand-collectives", expand_collectives, "make permutes of slices permutes and updates; even offsets of ragged exchanges"},
    {"expand-dynamic-sizes", expand_dynamic_sizes, "make run-time sizes scalars beside arrays of the bounds"},
    {"expand-narrow-matrices", expand_narrow_matrices, "factor and solve matrices of narrow floats in f32"},
    {"expand-ragged-dot", expand_ragged_dot, "make ragged dots loops of dots"},
    {"expand-rng", expand_rng, "make random numbers of the module's state"},
    {"expand-scaled-dot", expand_scaled_dot, "make scaled dots dots of products"},
    {"expand-scan", expand_scan, "make scans loops"},
    {"expand-structure", expand_structure, "forward domains; number the one device 0"},
    {"expand-tiles", expand_tiles, "drop tiles of layouts; make bitcasts of them what they mean"},
    {"expand-transfers", expand_transfers, "make transfers between program and host custom calls"},
    {"fetch-ahead", fetch_ahead, "fetch windows from other memory spaces in one step, in loops an iteration ahead"},
    {"fold-constants", fold_constants, "compute what depends on constants alone"},
    {"inline-calls", inline_calls, "put called computations in the place of their calls"},
    {"lift-constants", lift_constants, "give fusions their constant arrays from outside"},
    {"open-fusions", open_fusions, "inline fusions that are not one kernel"},
    {"pad-convolutions", pad_convolutions, "put the padding of large convolutions into their input"},
    {"propagate-memory-space", propagate_memory_space, "write memory spaces and splits into fused computations"},
    {"recognize-custom-calls", recognize_custom_calls, "make custom calls that are opcodes those opcodes"},
    {"remove-barriers", remove_barriers, "drop optimization barriers, at the end"},
    {"remove-dead", remove_dead, "remove instructions and computations that nothing needs"},
    {"remove-markers", remove_markers, "drop custom calls that only mark a value"},
    {"separate-memory-spaces", separate_memory_spaces, "copy values that would lie in two memory spaces at once"},
    {"shorten-sorts", shorten_sorts, "put sorts of which a few elements are used into fusions with what takes those"},
    {"shrink-loops", shrink_loops, "take invariant, equal and unneeded leaves out of loops"},
    {"simplify-algebra", simplify_algebra, "simplify elementwise ops where every bit stays"},
    {"simplify-conditionals", simplify_conditionals, "inline known, equal and small branches; drop unused results"},
    {"simplify-convolutions", simplify_convolutions, "fold reversed kernels; make one with base dilation several without"},
    {"simplify-indices", simplify_indices, "decide comparisons and clamps of integers by their ranges"},
    {"simplify-loops", simplify_loops, "find trip counts; inline loops that run once or never"},
    {"simplify-movement", simplify_movement, "simplify what only moves elements, and updates"},
    {"simplify-tuples", simplify_tuples, "read elements where they were put in"},
    {"split-reduces", split_reduces, "make reduces of very many elements reduces of blocks, then of what those give"},
    {"split-windows", split_windows, "make reduce-windows of many elements windows of windows"},
};

}  // namespace

std::span<const Pass> all() { return kAll; }

const Pass* pass_named(std::string_view name) {
  const auto found = std::ranges::find(kAll, name, &Pass::name);
  return found == std::end(kAll) ? nullptr : found;
}

}  // namespace hloom::passes

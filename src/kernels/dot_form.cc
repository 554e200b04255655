// The choices are made by a small model of a core: two fused multiply-adds and two loads a cycle, results after four, six
// instructions issued. A tile of r rows and v vectors takes r·v multiply-adds, v loads and r broadcasts for each k; too
// few accumulators wait for the last step's, too many spill. All sizes are cut into tiles that differ by one row or
// vector at most, for a narrow last tile is nearly as slow as a full one.
#include "kernels/dot_form.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <sstream>

namespace hloom::kernels {
namespace {

// Cycles, for f32 on a core with 64-byte vectors.
constexpr double kGatherLane = 0.8;     // to fetch a lane that is not beside the last
constexpr double kCopyLane = 0.12;      // to copy an element, vectors at a time
constexpr double kScatterLane = 1.5;
constexpr double kFoldLanes = 8;        // to fold the partial sums of one element
constexpr double kTileStart = 25;
constexpr double kBytesPerCycle = 5;    // from memory
constexpr double kAlone = 60e3;         // what one call does
constexpr double kBlock = 250e3;        // the aim for one block

/// The problem with its operands in their roles.
struct View {
  std::int64_t outer = 1, rows = 1, lanes = 1, sum = 1;
  DotOperand row, lane;
  std::int64_t row_sum = 0, lane_sum = 0, lane_lane = 0, out_lane = 0;  // strides
  bool one_sum = true;
};

View view_of(const DotProblem& p, bool swapped) {
  View v;
  for (std::size_t a = 0; a < p.lhs_axis; ++a) v.outer *= p.extent(a);
  const DotAxis& rows = p.axes[swapped ? p.rhs_axis : p.lhs_axis];
  const DotAxis& lanes = p.axes[swapped ? p.lhs_axis : p.rhs_axis];
  const DotAxis& sum = p.axes.back();
  v.rows = rows.extent;
  v.lanes = lanes.extent;
  v.sum = p.sum_extent();
  v.row = swapped ? p.rhs : p.lhs;
  v.lane = swapped ? p.lhs : p.rhs;
  v.row_sum = swapped ? sum.rhs : sum.lhs;
  v.lane_sum = swapped ? sum.lhs : sum.rhs;
  v.lane_lane = swapped ? lanes.lhs : lanes.rhs;
  v.out_lane = lanes.out;
  v.one_sum = p.axes.size() == p.rhs_axis + 2;
  return v;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t power_of_two_at_least(std::int64_t x) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(x, 1))));
}

// Cycles of one k of a tile.
double step_cycles(std::int64_t rows, std::int64_t vectors, std::int64_t chains, double lane_load) {
  const auto r = static_cast<double>(rows), v = static_cast<double>(vectors);
  // The broadcast of a row's element used once, or a vector used once, is part of the multiply-add.
  const double instructions = r * v + (vectors > 1 && rows > 1 ? r + v : rows > 1 ? 1 : 1) + 2;
  const double loads = r * 0.5 + v * lane_load;
  return std::max({r * v * 0.5, loads, instructions / 6, 4.0 / static_cast<double>(chains)});
}

double tiles_cycles(const View& view, const DotForm& form) {
  const std::int64_t vectors = ceil_div(view.lanes, form.lanes);
  const bool beside = form.pack_lanes || view.lane_lane == 1 || view.lane_lane == 0;
  const double lane_load = beside ? 0.5 : kGatherLane * static_cast<double>(form.lanes);
  double cycles = 0;
  for (const DotRun& v : balanced_runs(vectors, form.vectors))
    for (const DotRun& r : balanced_runs(view.rows, form.rows)) {
      const auto count = static_cast<double>(v.count * r.count), size = static_cast<double>(v.size * r.size);
      const double step = step_cycles(r.size, v.size, form.chains, lane_load);
      cycles += count * (static_cast<double>(view.sum) * step + kTileStart + size * 1.5);
    }
  return cycles;
}

bool fits(std::int64_t rows, std::int64_t vectors, std::int64_t chains, std::int64_t registers) {
  const std::int64_t operands = rows == 1 || vectors == 1 ? 2 : vectors + 1;
  return rows * vectors * chains + operands <= registers;
}

// The least cycles over all sizes of tiles.
double choose_tile(const View& view, DotForm& form, std::int64_t registers) {
  DotForm best = form;
  double least = INFINITY;
  const std::int64_t vectors = std::min<std::int64_t>(ceil_div(view.lanes, form.lanes), registers / 2);
  for (form.vectors = vectors; form.vectors >= 1; --form.vectors)
    for (form.rows = std::min(view.rows, registers); form.rows >= 1; --form.rows) {
      if (!fits(form.rows, form.vectors, form.chains, registers) && form.rows * form.vectors > 1) continue;
      const double cycles = tiles_cycles(view, form);
      if (cycles >= least * 0.999) continue;
      least = cycles;
      best = form;
    }
  form = best;
  return least;
}

// Sums that run side by side, so that eight multiply-adds are under way; a matter of shape and type alone.
std::int64_t chains_for(const View& view, std::int64_t lanes_of_type) {
  const std::int64_t side_by_side = view.rows * ceil_div(view.lanes, lanes_of_type);
  std::int64_t chains = 1;
  while (side_by_side * chains * 2 <= 8 && view.sum >= chains * 8) chains *= 2;
  return chains;
}

double store_cycles(const View& v) {
  const auto elements = static_cast<double>(v.rows * v.lanes);
  return v.out_lane == 1 || v.lanes == 1 ? elements / 16 : elements * kScatterLane;
}

struct Chosen {
  DotForm form;
  double cycles = 0;  // of one outer iteration, packing included
};

Chosen choose_tiles(const DotProblem& problem, bool swapped, std::int64_t width, const VectorUnit& unit) {
  const View v = view_of(problem, swapped);
  Chosen c;
  c.form.swapped = swapped;
  c.form.lanes = std::min(unit.vector_bytes / width, power_of_two_at_least(v.lanes));
  c.form.chains = chains_for(v, 64 / width);
  const bool scattered = !v.lane.plain || (v.lane_lane != 1 && v.lane_lane != 0);
  c.form.pack_lanes = scattered && v.rows > 8 && v.lanes > 1;
  c.form.pack_rows = (v.row.narrow || !v.row.plain) && v.rows * v.sum >= 64;
  c.cycles = choose_tile(v, c.form, unit.num_registers) + store_cycles(v);
  if (c.form.pack_lanes)
    c.cycles += static_cast<double>(v.lanes * v.sum) * (v.lane.plain ? kGatherLane : 2 * kGatherLane);
  if (c.form.pack_rows) c.cycles += static_cast<double>(v.rows * v.sum) * kCopyLane;
  return c;
}

bool may_fold(const DotProblem& problem, DType type) {
  const View v = view_of(problem, false);
  return v.one_sum && v.row.plain && v.lane.plain && v.row_sum == 1 && v.lane_sum == 1 && v.sum >= 16 &&
         type != DType::Pred && !is_complex(type);
}

Chosen choose_fold(const DotProblem& problem, std::int64_t width, const VectorUnit& unit) {
  const View v = view_of(problem, false);
  Chosen c;
  c.form.kind = DotForm::Kind::Fold;
  const bool vector = v.rows == 1 || v.lanes == 1;
  const std::int64_t most = (vector ? 256 : 64) / width;
  c.form.lanes = std::min(most, power_of_two_at_least(v.sum));
  // Registers of one partial sum, and how many sums may be held with the operands.
  const std::int64_t each = std::max<std::int64_t>(1, c.form.lanes * width / unit.vector_bytes);
  const std::int64_t sums = std::max<std::int64_t>(1, unit.num_registers * 3 / 5 / each);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(sums)));
  c.form.rows = std::min(v.rows, std::max(side, sums / std::max<std::int64_t>(v.lanes, 1)));
  c.form.vectors = std::max<std::int64_t>(1, std::min(v.lanes, sums / c.form.rows));
  const double step = (vector ? 0.625 : 0.6) * (v.row.narrow || v.lane.narrow ? 3 : 1);
  const double elements = static_cast<double>(v.rows * v.lanes);
  c.cycles = elements * (static_cast<double>(v.sum * width) / 64 * step + kFoldLanes);
  return c;
}

double bytes_of(const View& v, std::int64_t width) {
  return static_cast<double>((v.rows * v.sum + v.lanes * v.sum + v.rows * v.lanes) * width);
}

// Cells of the grid: as many as the work is worth, cut where least is read or packed twice.
void choose_cells(const DotProblem& problem, Chosen& c, std::int64_t width) {
  DotForm& form = c.form;
  const View v = view_of(problem, form.swapped);
  const double cycles = std::max(c.cycles, bytes_of(v, width) / kBytesPerCycle);
  const double total = cycles * static_cast<double>(v.outer);
  if (total < kAlone) return;
  form.blocks = std::max<std::int64_t>(2, static_cast<std::int64_t>(total / kBlock));
  if (v.outer >= form.blocks) return;
  const std::int64_t wanted = ceil_div(form.blocks, v.outer);
  const bool fold = form.kind == DotForm::Kind::Fold;
  const std::int64_t row_tiles = ceil_div(v.rows, form.rows);
  const std::int64_t lane_tiles = ceil_div(fold ? v.lanes : ceil_div(v.lanes, form.lanes), form.vectors);
  double least = INFINITY;
  for (std::int64_t rows = 1; rows <= std::min(row_tiles, wanted); ++rows) {
    const std::int64_t lanes = std::min(lane_tiles, ceil_div(wanted, rows));
    const std::int64_t per_row = ceil_div(row_tiles, rows), per_lane = ceil_div(lane_tiles, lanes);
    const std::int64_t used_rows = ceil_div(row_tiles, per_row), used_lanes = ceil_div(lane_tiles, per_lane);
    const double idle = static_cast<double>(per_row * used_rows * per_lane * used_lanes) /
                        static_cast<double>(row_tiles * lane_tiles);
    const double pack_lanes = static_cast<double>(used_rows * v.lanes * v.sum) * (form.pack_lanes ? kGatherLane : 0.05);
    const double pack_rows = static_cast<double>(used_lanes * v.rows * v.sum) * (form.pack_rows ? kCopyLane : 0.05);
    const double missing = static_cast<double>(wanted) / static_cast<double>(used_rows * used_lanes);
    const double cost = cycles * (0.9 + 0.1 * idle) * std::max(1.0, 0.5 + 0.5 * missing) + pack_lanes + pack_rows;
    if (cost >= least) continue;
    least = cost;
    form.row_cells = used_rows;
    form.lane_cells = used_lanes;
  }
}

}  // namespace

std::vector<DotRun> balanced_runs(std::int64_t total, std::int64_t largest) {
  if (total <= 0) return {};
  const std::int64_t tiles = ceil_div(total, largest), size = total / tiles, longer = total % tiles;
  std::vector<DotRun> runs;
  if (longer > 0) runs.push_back({size + 1, longer, 0, 0});
  runs.push_back({size, tiles - longer, longer * (size + 1), longer});
  return runs;
}

DotForm choose_form(const DotProblem& problem, DType sum_type, const VectorUnit& unit, bool shared) {
  const std::int64_t width = byte_width(sum_type);
  const View view = view_of(problem, false);
  if (view.outer * view.rows * view.lanes == 0) return {};
  // What decides about the order of sums knows one machine only.
  const VectorUnit reference;
  const bool swap = choose_tiles(problem, true, width, reference).cycles <
                    choose_tiles(problem, false, width, reference).cycles * 0.98;
  Chosen best = choose_tiles(problem, swap, width, reference);
  const bool fold = may_fold(problem, sum_type) && choose_fold(problem, width, reference).cycles < best.cycles;
  best = fold ? choose_fold(problem, width, unit) : choose_tiles(problem, swap, width, unit);
  constexpr std::int64_t kLongEpilogue = 8;
  best.form.store_through = !fold && problem.epilogue_lines > kLongEpilogue;
  if (shared) choose_cells(problem, best, width);
  return best.form;
}

std::string to_string(const DotForm& f) {
  std::ostringstream s;
  s << (f.kind == DotForm::Kind::Tile ? "tile " : "fold ") << f.rows << "x" << f.vectors << " lanes " << f.lanes
    << " chains " << f.chains << (f.swapped ? " swapped" : "") << (f.pack_rows ? " pack-rows" : "")
    << (f.pack_lanes ? f.pack_at_once ? " pack-lanes-at-once" : " pack-lanes" : "") << " sum-block " << f.sum_block << " cells " << f.row_cells << "x" << f.lane_cells << " blocks " << f.blocks;
  return s.str();
}

}  // namespace hloom::kernels

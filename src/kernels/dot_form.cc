// The choices are made by a small model of a core: two fused multiply-adds and two loads a cycle, results after four, six
// instructions issued. A tile of r rows and v vectors takes r·v multiply-adds, v loads and r broadcasts for each k; too
// few accumulators wait for the last step's, too many spill. All sizes are cut into tiles that differ by one row or
// vector at most, for a narrow last tile is nearly as slow as a full one.
//
// Where the lanes' operand does not fit the near cache, what counts is how it is read. Its rows are long and far apart,
// a tile wants a few vectors of each: read like that, each piece waits for memory and, a page each, for its address.
// So it is either gone through some steps at a time along whole rows, while sums wait in scratch, or copied into panels,
// which many rows can then share. Measured at 16x4096x4096, in ms: 30 as it lies, 12 by panels, 8.5 by panels of
// 128 steps, 6.5 as it lies by 16 steps; at 128x4096x4096 39 by panels, 36 by 32 steps, 33 by panels of 256 steps.
#include "kernels/dot_form.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <sstream>

#include "hlo/convolutions.h"

namespace hloom::kernels {
namespace {

// Cycles, for f32 on a core with 64-byte vectors.
constexpr double kGatherLane = 0.6;   // to copy a lane that is not beside the last
constexpr double kApartLane = 2.5;    // to fetch it for one use, or where all lanes fall into few cache sets
constexpr double kCopyLane = 0.12;    // to copy an element, vectors at a time
constexpr double kCopyStep = 12;      // for each step of a panel, where panels are copied together
constexpr double kScatterLane = 1.5, kScatterApart = 5;  // and where all lanes fall into few cache sets
constexpr double kConvert = 1;        // a vector of narrow elements, each time it is loaded
constexpr double kFoldLanes = 8;      // to fold the partial sums of one element
constexpr double kTileStart = 25;
constexpr double kSumNear = 1.5, kSumFar = 4;  // to store a vector of sums, or take it from scratch and back
constexpr double kNear[] = {0.5, 2.2, 6, 9};  // to load a vector from the first, second, third cache, memory
constexpr double kPiece[] = {0, 15, 55};  // and what a piece of a row costs more where rows are a page apart
constexpr double kBytesPerCycle = 5;  // from memory
constexpr double kAlone = 60e3;       // what one call does
constexpr double kBlock = 250e3;      // the aim for one block
constexpr double kMostBlocks = 256;

constexpr std::int64_t kFirstCache = 32 << 10, kSecondCache = 1 << 20, kThirdCache = 16 << 20;
constexpr std::int64_t kPage = 4096;
constexpr std::int64_t kMostStaged = 96 << 10;  // bytes of an operand's lines: they stay in the second cache beside a panel
constexpr std::int64_t kSecondCachePeriod = 128 << 10;  // addresses that far apart share a set

/// The problem with its operands in their roles.
struct View {
  std::int64_t outer = 1, rows = 1, lanes = 1, sum = 1, width = 4;
  std::int64_t shared = 1, first_shared = 1;  // of the outer axes, which the lanes' operand does not depend on
  DotOperand row, lane;
  std::int64_t row_row = 0, row_sum = 0, lane_sum = 0, lane_lane = 0, out_lane = 0;  // strides
  std::vector<std::int64_t> sums;  // extents of the summed axes, innermost last
  bool staged = false;  // the rows' operand
  bool beside() const { return lane.ready || (lane.plain && (lane_lane == 1 || lane_lane == 0)); }
};

View view_of(const DotProblem& p, bool swapped, std::int64_t width) {
  View v;
  v.width = width;
  for (std::size_t a = 0; a < p.lhs_axis; ++a) {
    v.outer *= p.extent(a);
    if (p.axes[a].of != (swapped ? DotAxis::Of::Rhs : DotAxis::Of::Lhs)) continue;
    if (p.stage.line > 0 && a != p.stage.axis) continue;
    if (v.shared == 1) v.first_shared = p.extent(a);
    v.shared *= p.extent(a);
  }
  const DotAxis& rows = p.axes[swapped ? p.rhs_axis : p.lhs_axis];
  const DotAxis& lanes = p.axes[swapped ? p.lhs_axis : p.rhs_axis];
  const DotAxis& sum = p.axes.back();
  v.staged = p.stage.line > 0 && !swapped;
  v.rows = rows.extent;
  v.lanes = lanes.extent;
  v.sum = p.sum_extent();
  v.row = swapped ? p.rhs : p.lhs;
  v.lane = swapped ? p.lhs : p.rhs;
  v.row_row = swapped ? rows.rhs : rows.lhs;
  v.row_sum = swapped ? sum.rhs : sum.lhs;
  v.lane_sum = swapped ? sum.lhs : sum.rhs;
  v.lane_lane = swapped ? lanes.lhs : lanes.rhs;
  v.out_lane = lanes.out;
  for (std::size_t a = p.rhs_axis + 1; a < p.axes.size(); ++a) v.sums.push_back(p.extent(a));
  return v;
}

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

std::int64_t power_of_two_at_least(std::int64_t x) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(x, 1))));
}

// Whether rows at this distance, so many, stay in a cache of so many ways whose sets repeat after `period` bytes.
bool rows_fit(std::int64_t rows, std::int64_t distance, std::int64_t period, std::int64_t ways) {
  const std::int64_t places = period / std::gcd(std::max<std::int64_t>(distance, 64), period);
  return rows <= places * ways;
}

// Steps of the sum that are done at a time.
std::int64_t steps_at_once(const View& v, const DotForm& form) {
  std::int64_t steps = form.sum_block > 0 ? form.sum_block : v.sums.back();
  for (auto a = static_cast<std::size_t>(form.sum_outer); a + 1 < v.sums.size(); ++a) steps *= v.sums[a];
  return std::max<std::int64_t>(steps, 1);
}

// Cycles to load a vector of a panel again, for the next tile of rows.
double load_again(const View& v, const DotForm& form) {
  const std::int64_t steps = steps_at_once(v, form);
  const std::int64_t bytes = steps * form.vectors * form.lanes * v.width, distance = std::abs(v.lane_sum) * v.width;
  const bool first = form.pack_lanes || rows_fit(steps, distance, kPage, 10);
  const bool second = form.pack_lanes || rows_fit(steps, distance, kSecondCachePeriod, 14);
  const double convert = v.lane.ready && v.lane.narrow ? kConvert : 0;
  if (bytes <= kFirstCache && first) return kNear[0] + convert;
  return (bytes <= kSecondCache && second ? kNear[1] : kNear[2]) + convert;
}

// Cycles to get a vector to the core for the first time, of an operand of so many bytes, read in pieces, so far apart.
double load_pieces(std::int64_t bytes, std::int64_t piece_bytes, std::int64_t distance) {
  const std::size_t level = bytes <= kSecondCache ? 0 : bytes <= kThirdCache ? 1 : 2;
  const double pieces = 64.0 / static_cast<double>(piece_bytes), load = kNear[level + 1];
  return level > 0 && distance >= kPage ? load + kPiece[level] * pieces : load * std::max(1.0, pieces);
}

// Of the lanes' operand, in cells of so many lanes.
double load_lanes(const View& v, const DotForm& form, std::int64_t cell_lanes) {
  if (!v.beside()) return 0;
  if (v.lane.ready) return load_pieces(v.lanes * v.sum * v.width, 64, 0);
  // Read in place for some steps at a time, a few pieces ahead are under way.
  const std::int64_t piece = form.pack_at_once    ? cell_lanes * v.width
                             : form.sums_wait() ? std::min(cell_lanes * v.width, form.vectors * 512)
                                                  : form.vectors * 64;
  const double copy = form.pack_at_once ? 16 * kCopyLane + kCopyStep / static_cast<double>(form.vectors)
                      : form.pack_lanes ? 16 * kCopyLane : 0;
  return copy + load_pieces(v.lanes * v.sum * v.width, std::max<std::int64_t>(piece, 64), std::abs(v.lane_sum) * v.width);
}

// Of the rows' operand: a row's steps lie together, or the rows of a step, or nothing does.
double load_rows(const View& v, const DotForm& form) {
  if (!v.row.plain) return 0;
  const std::int64_t bytes = v.rows * v.sum * v.width;
  if (v.row.ready || v.row_sum == 1 || v.sum == 1) return load_pieces(bytes, 64, 0);
  const std::int64_t together = v.row_row != 1 ? 1 : form.pack_rows ? v.rows : form.rows;
  return load_pieces(bytes, std::min<std::int64_t>(together * v.width, 1024), std::abs(v.row_sum) * v.width);
}

// Of the rows' operand again, for the next group of vectors.
double rows_again(const View& v, const DotForm& form) {
  const std::int64_t steps = steps_at_once(v, form);
  const bool second = form.pack_rows || v.row_sum == 1 ||
                      (v.rows * steps * v.width <= kSecondCache && rows_fit(steps, std::abs(v.row_sum) * v.width, kSecondCachePeriod, 14));
  return second ? 0 : load_rows(v, form);
}

// Cycles to load the rows' elements of a step.
double row_loads(const View& v, const DotForm& form, std::int64_t rows) {
  // Steps that lie apart push each other out before the next tile has what lies beside.
  const bool apart = !form.pack_rows && v.row.plain && v.row_row == 1 && v.row_sum != 1 &&
                     !rows_fit(steps_at_once(v, form), std::abs(v.row_sum) * v.width, kPage, 10);
  return static_cast<double>(rows) * (v.row.words && !form.pack_rows ? 1 : 0.5) + (apart ? kNear[1] : 0);
}

// Cycles of one k of a tile.
double step_cycles(std::int64_t rows, std::int64_t vectors, std::int64_t chains, double row_loads, double lane_load) {
  const auto r = static_cast<double>(rows), v = static_cast<double>(vectors);
  // The broadcast of a row's element used once, or a vector used once, is part of the multiply-add.
  const double instructions = r * v + (vectors > 1 && rows > 1 ? r + v : 1) + 2;
  const double loads = row_loads + v * lane_load;
  return std::max({r * v * 0.5, loads, instructions / 6, 4.0 / static_cast<double>(chains)}) + 0.1 * loads;
}

double tiles_cycles(const View& view, const DotForm& form) {
  const std::int64_t vectors = ceil_div(view.lanes, form.lanes);
  const bool beside = form.pack_lanes || view.beside();
  const double gather = kApartLane * static_cast<double>(form.lanes);
  const double again = beside ? load_again(view, form) : gather;
  const auto steps = static_cast<double>(view.sum);
  // Each block of steps starts its tiles anew and takes the sums from scratch and back.
  const double starts = static_cast<double>(ceil_div(view.sum, steps_at_once(view, form)));
  const auto groups = static_cast<double>(ceil_div(vectors, form.vectors));
  const std::int64_t held_rows = view.rows * (form.share_panels ? view.shared : 1);
  const bool sums_near = !form.sums_wait() || held_rows * std::min<std::int64_t>(view.lanes, 256) * view.width <= kFirstCache;
  const double start = sums_near ? kSumNear : kSumFar;
  const double uses = form.share_panels ? static_cast<double>(view.shared) : 1;
  double cycles = steps * static_cast<double>(vectors) * load_lanes(view, form, view.lanes) / uses +
                  steps * static_cast<double>(view.rows) / 16 *
                      (load_rows(view, form) + (groups - 1) * rows_again(view, form));
  for (const DotRun& v : balanced_runs(vectors, form.vectors))
    for (const DotRun& r : balanced_runs(view.rows, form.rows)) {
      const auto count = static_cast<double>(v.count * r.count), size = static_cast<double>(v.size * r.size);
      const double step = step_cycles(r.size, v.size, form.chains, row_loads(view, form, r.size), view.rows > r.size || form.share_panels || !beside ? again : kNear[0]);
      cycles += count * (steps * step + starts * (kTileStart + size * start));
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
std::int64_t choose_chains(const View& view, std::int64_t exact_steps) {
  if (exact_steps > 0) return 1;
  const std::int64_t side_by_side = view.rows * ceil_div(view.lanes, 64 / view.width);
  std::int64_t chains = 1;
  while (side_by_side * chains * 2 <= 8 && view.sum >= chains * 8) chains *= 2;
  return chains;
}

// Whether the lanes of a gather, each a row apart, fall into so few sets that they push each other out.
bool lanes_collide(const View& v) {
  return v.lane.plain && !rows_fit(32, std::abs(v.lane_lane) * v.width, kPage, 10);
}

double gather_cycles(const View& v) {
  return static_cast<double>(v.lanes * v.sum) * (lanes_collide(v) ? kApartLane : v.lane.plain ? kGatherLane : 2 * kGatherLane);
}

double store_cycles(const View& v) {
  const auto elements = static_cast<double>(v.rows * v.lanes);
  if (v.out_lane == 1 || v.lanes == 1) return elements / 16;
  return elements * (rows_fit(32, std::abs(v.out_lane) * v.width, kPage, 10) ? kScatterLane : kScatterApart);
}

struct Chosen {
  DotForm form;
  double cycles = 0;  // of one outer iteration, packing included
};

// Sums in blocks of about so many steps: of a single summed axis, else one index of the outer ones at a time.
void block_sums(const View& v, DotForm& form, std::int64_t steps) {
  std::int64_t inside = v.sum;
  while (form.sum_outer + 1 < std::ssize(v.sums) && inside > 4 * steps) inside /= v.sums[static_cast<std::size_t>(form.sum_outer++)];
  if (form.sum_outer + 1 == std::ssize(v.sums) && inside > 2 * steps) form.sum_block = steps;
}

// How the lanes' operand may be gone through.
// `few`: rows for which a panel that lies across is not packed.
std::vector<DotForm> ways_of(const View& v, const DotForm& form, std::int64_t few) {
  constexpr std::int64_t kSteps = 256;
  const bool may_block = form.chains == 1 && v.sum > 2 * kSteps, large = v.lanes * v.sum * v.width > kSecondCache / 4;
  // Packed rows have to stay near too.
  const bool block_rows = form.pack_rows && !form.rows_ready && may_block && v.rows * v.sum * v.width > kSecondCache / 4;
  std::vector<DotForm> ways;
  const auto add = [&](bool pack, bool at_once, bool block) {
    DotForm& way = ways.emplace_back(form);
    way.pack_lanes = pack;
    way.pack_at_once = at_once;
    if (form.sum_block == 0 && (block || block_rows)) block_sums(v, way, kSteps);
  };
  const auto add_shared = [&](bool at_once, bool block) {
    add(true, at_once, block);
    ways.back().share_panels = true;
  };
  const bool may_share = v.shared > 1 && (!form.pack_rows || form.rows_ready) && form.sum_block == 0 && v.lanes > 1 && v.lane_lane != 0;
  if (v.lane.ready) {
    const bool may_block_here = may_block && large;
    for (const bool block : {false, true}) {
      if (block && !may_block_here) continue;
      add(true, false, block);
      if (may_share) add_shared(false, block);
    }
    return ways;
  }
  if (may_share && (large || form.pack_all || !v.beside())) {
    add_shared(false, false);
    if (may_block) add_shared(true, true);
  }
  if (form.pack_all) {
    add(true, false, false);
    if (may_block && large) add(true, true, true);
    return ways;
  }
  if (!v.beside()) {
    add(v.rows > few && v.lanes > 1, false, false);
    return ways;
  }
  add(false, false, false);
  if (!large || v.lane_lane == 0) return ways;
  if (v.rows > 8) add(true, false, false);
  if (v.rows > 8 && may_block) add(true, true, true);
  if (form.chains > 1 || v.sums.size() > 1 || v.rows == 1 || v.sum <= 64) return ways;
  add(false, false, false);
  ways.back().sum_block = v.rows <= 24 ? 16 : 32;
  return ways;
}

void consider_ways(const View& v, const DotForm& form, const VectorUnit& unit, std::int64_t few, Chosen& best) {
  const std::int64_t registers = unit.num_registers - (v.lanes % form.lanes != 0 && !unit.has_masks ? 1 : 0);
  for (DotForm way : ways_of(v, form, few)) {
    way.share_panels |= v.staged && v.shared > 1 && !way.pack_rows;  // lines are staged for several indices at once
    double cycles = choose_tile(v, way, registers) + store_cycles(v);
    if (way.pack_lanes && !v.beside()) cycles += gather_cycles(v) / static_cast<double>(way.share_panels ? v.shared : 1);
    if (way.pack_rows && !way.rows_ready) cycles += static_cast<double>(v.rows * v.sum) * kCopyLane;
    if (cycles < best.cycles) best = {way, cycles};
  }
}

constexpr std::int64_t kFewRows = 8;

Chosen choose_tiles(const DotProblem& problem, bool swapped, const DotFusion& fusion, const VectorUnit& unit,
                    std::int64_t few = kFewRows) {
  const std::int64_t width = byte_width(fusion.sum_type), exact = fusion.exact_steps;
  const View v = view_of(problem, swapped, width);
  Chosen best;
  best.cycles = INFINITY;
  DotForm form;
  form.swapped = swapped;
  form.lanes = std::min(unit.vector_bytes / width, power_of_two_at_least(v.lanes));
  form.chains = choose_chains(v, exact);
  form.sum_block = exact;
  form.pack_all = fusion.byte_steps > 0;
  form.lanes_ready = v.lane.ready;
  form.rows_ready = v.row.ready;
  const bool convert_rows = (v.row.narrow || !v.row.plain) && (form.pack_all || v.rows * v.sum >= 64);
  const bool gather_rows = v.row.plain && v.row_row == 1 && v.row_sum != 1 && v.rows * v.sum * width > kSecondCache / 4;
  const bool turn_rows = form.pack_all && v.sums.size() == 1;  // once, not for each group of vectors
  for (const bool pack_rows : {convert_rows, convert_rows || gather_rows || turn_rows}) {
    form.pack_rows = pack_rows || v.row.ready;
    consider_ways(v, form, unit, few, best);
  }
  return best;
}

bool may_fold(const DotProblem& problem, DType type) {
  const View v = view_of(problem, false, byte_width(type));
  return v.sums.size() == 1 && v.row.plain && v.lane.plain && v.row_sum == 1 && v.lane_sum == 1 && v.sum >= 16 &&
         type != DType::Pred && !is_complex(type);
}

double fold_cycles(const View& v, const DotForm& form) {
  const auto r = static_cast<double>(form.rows), c = static_cast<double>(form.vectors);
  const auto again = [&](std::int64_t rows) { return kNear[rows * v.sum * v.width <= kFirstCache ? 0 : 1]; };
  // Rows come again for all columns, columns for all rows.
  const double loads = r * again(form.rows) + c * (v.rows <= form.rows ? kNear[0] : again(form.vectors));
  const double convert = v.row.narrow || v.lane.narrow ? 0.5 * (r + c) : 0;
  const double step = std::max(r * c * 0.5, loads) + 0.1 * loads + convert;
  const double elements = static_cast<double>(v.rows * v.lanes), vectors = static_cast<double>(v.sum * v.width) / 64;
  return elements * (vectors * step / (r * c) + kFoldLanes) +
         static_cast<double>(v.lanes) * vectors * load_pieces(v.lanes * v.sum * v.width, 64, 0);
}

Chosen choose_fold(const DotProblem& problem, std::int64_t width, const VectorUnit& unit) {
  const View v = view_of(problem, false, width);
  Chosen c;
  c.form.kind = DotForm::Kind::Fold;
  const bool vector = v.rows == 1 || v.lanes == 1;
  const std::int64_t most = std::min<std::int64_t>((vector ? 256 : 64) / width, 128);
  c.form.lanes = std::min(most, power_of_two_at_least(v.sum));
  // Registers of one partial sum, and how many sums may be held with the operands.
  const std::int64_t each = std::max<std::int64_t>(1, c.form.lanes * width / unit.vector_bytes);
  const std::int64_t sums = std::max<std::int64_t>(1, unit.num_registers * 3 / 5 / each);
  const auto side = static_cast<std::int64_t>(std::sqrt(static_cast<double>(sums)));
  c.form.rows = std::min(v.rows, std::max(side, sums / std::max<std::int64_t>(v.lanes, 1)));
  c.form.vectors = std::max<std::int64_t>(1, std::min(v.lanes, sums / c.form.rows));
  c.cycles = fold_cycles(v, c.form);
  return c;
}

double bytes_of(const View& v) {
  return static_cast<double>((v.rows * v.sum + v.lanes * v.sum + v.rows * v.lanes) * v.width);
}

// Of a grid whose cells share panels: each group of vectors by itself, for that packs nothing twice, and more cells only as
// far as packing is little of the work.
void choose_shared_cells(const View& v, const Chosen& c, DotForm& form) {
  constexpr double kLittle = 0.1;
  const auto cells_of = [](std::int64_t tiles, std::int64_t cells) { return ceil_div(tiles, ceil_div(tiles, std::min(tiles, cells))); };
  const std::int64_t wanted = ceil_div(form.blocks, v.outer / v.shared);
  form.lane_cells = cells_of(ceil_div(ceil_div(v.lanes, form.lanes), form.vectors), wanted);
  const double pack = form.lanes_ready ? 1 : v.beside() ? static_cast<double>(v.sum * v.lanes) / 16 * load_lanes(v, form, v.lanes) : gather_cycles(v);
  const double affordable = 1 + kLittle * c.cycles * static_cast<double>(v.shared) / pack;
  const std::int64_t shared = std::min(ceil_div(wanted, form.lane_cells), static_cast<std::int64_t>(affordable));
  form.shared_cells = cells_of(v.first_shared, shared);
}

// Of a staged operand: as many of its axis' indices as have room, in as many cells as the grid wants while few lines are
// staged twice; the rest of what it wants by groups of vectors.
void choose_staged_cells(const DotProblem& p, const View& v, std::int64_t width, DotForm& form) {
  const auto cells_of = [](std::int64_t tiles, std::int64_t cells) { return ceil_div(tiles, ceil_div(tiles, std::max<std::int64_t>(1, std::min(tiles, cells)))); };
  const DotStage& s = p.stage;
  const std::int64_t room = kMostStaged / (s.line * width), twice = std::max<std::int64_t>(s.lines - s.step, 0);
  const std::int64_t held = s.step > 0 ? std::max<std::int64_t>(1, (room - s.lines) / s.step + 1) : v.shared;
  const std::int64_t wanted = ceil_div(form.blocks, v.outer / v.shared);
  const std::int64_t affordable = std::max<std::int64_t>(1, v.shared * s.step / std::max<std::int64_t>(1, twice));
  form.shared_cells = cells_of(v.shared, std::max(ceil_div(v.shared, held), std::min(wanted, affordable)));
  form.lane_cells = cells_of(ceil_div(ceil_div(v.lanes, form.lanes), form.vectors), ceil_div(wanted, form.shared_cells));
}

// Cells of the grid: as many as the work is worth, cut where least is read or packed twice; rows in `parts` at least.
void choose_cells(const DotProblem& problem, Chosen& c, std::int64_t width, std::int64_t parts) {
  DotForm& form = c.form;
  const View v = view_of(problem, form.swapped, width);
  const double cycles = std::max(c.cycles, bytes_of(v) / kBytesPerCycle);
  const double total = cycles * static_cast<double>(v.outer);
  if (total < kAlone) return;
  form.blocks = std::max(static_cast<std::int64_t>(std::clamp(total / kBlock, 2.0, kMostBlocks)), parts);
  if (form.share_panels) {
    if (!v.staged) choose_shared_cells(v, c, form);
    return;
  }
  if (v.outer >= form.blocks) return;
  const std::int64_t wanted = ceil_div(form.blocks, v.outer);
  const bool fold = form.kind == DotForm::Kind::Fold;
  const std::int64_t row_tiles = ceil_div(v.rows, form.rows);
  const std::int64_t lane_tiles = ceil_div(fold ? v.lanes : ceil_div(v.lanes, form.lanes), form.vectors);
  const double elements = static_cast<double>(v.lanes * v.sum);
  const auto load = [&](std::int64_t cells) {
    return fold ? 0.1 * elements
                : !v.beside() ? gather_cycles(v) : load_lanes(v, form, ceil_div(v.lanes, cells)) / 16 * elements;
  };
  double least = INFINITY;
  const std::int64_t most_rows = std::min(row_tiles, wanted);
  for (std::int64_t n = 0; n < most_rows * 4; ++n) {
    // As many cells as wanted, or a half or a quarter of that.
    const std::int64_t rows = n / 4 + 1, lanes = std::min(lane_tiles, ceil_div(wanted, rows << n % 4));
    const std::int64_t per_row = ceil_div(row_tiles, rows), per_lane = ceil_div(lane_tiles, lanes);
    const std::int64_t used_rows = ceil_div(row_tiles, per_row), used_lanes = ceil_div(lane_tiles, per_lane);
    const double idle = static_cast<double>(per_row * used_rows * per_lane * used_lanes) /
                        static_cast<double>(row_tiles * lane_tiles);
    const double rows_again = static_cast<double>(v.rows * v.sum) * (form.pack_rows ? kCopyLane + load_rows(v, form) / 16 : 0.1);
    const double missing = static_cast<double>(wanted) / static_cast<double>(used_rows * used_lanes);
    const double cost = cycles * (0.9 + 0.1 * idle) * std::max(1.0, 0.97 + 0.03 * missing) +
                        static_cast<double>(used_rows) * load(used_lanes) - load(1) +
                        static_cast<double>(used_lanes - 1) * rows_again;
    if (cost >= least) continue;
    least = cost;
    form.row_cells = used_rows;
    form.lane_cells = used_lanes;
  }
  const std::int64_t least_rows = std::min(row_tiles, ceil_div(parts, v.outer));
  if (form.row_cells < least_rows) form.row_cells = ceil_div(row_tiles, row_tiles / least_rows);
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

namespace {

// The axis of channels that go side by side, of a convolution that sums each by itself; -1: none.
std::int64_t channel_axis(const DotProblem& p, const DotFusion& fusion) {
  if (fusion.dot->opcode() != hlo::Opcode::Convolution || !hlo::sums_by_channel(*fusion.dot)) return -1;
  const auto is_dense = [](const DotOperand& o, std::int64_t stride) { return !o.plain || stride == 1; };
  for (std::size_t a = 0; a < p.lhs_axis; ++a)
    if (p.axes[a].of == DotAxis::Of::Batch && is_dense(p.lhs, p.axes[a].lhs) && is_dense(p.rhs, p.axes[a].rhs)) return static_cast<std::int64_t>(a);
  return -1;
}

// Cells of channels, of two vectors at least; more of them, by places of the window, only where that is far too few.
void choose_channel_cells(const DotProblem& p, std::int64_t width, DotForm& form) {
  const View v = view_of(p, false, width);
  const std::int64_t channels = p.extent(static_cast<std::size_t>(form.channel_axis)), vectors = ceil_div(channels, form.lanes);
  const double cycles = static_cast<double>(v.outer / channels * v.rows * v.sum * vectors);
  if (cycles < kAlone) return;
  form.blocks = static_cast<std::int64_t>(std::clamp(cycles / kBlock, 2.0, kMostBlocks));
  const std::int64_t cells = std::clamp<std::int64_t>(vectors / 2, 1, form.blocks);
  form.vectors = std::min(form.vectors, ceil_div(vectors, cells));
  form.lane_cells = std::min(cells, ceil_div(vectors, form.vectors));
  form.shared_cells = std::clamp<std::int64_t>(form.blocks / (2 * form.lane_cells), 1, v.first_shared);
}

// As many places of the window and vectors of channels as registers hold, for each place is read once for all of those; and all
// places of a window for one line after the other, so that memory is gone through once.
DotForm channel_form(const DotProblem& p, std::int64_t axis, std::int64_t width, const VectorUnit& unit, bool grid) {
  const std::int64_t channels = p.extent(static_cast<std::size_t>(axis)), rows = p.extent(p.lhs_axis), steps = p.sum_extent();
  DotForm form;
  form.channel_axis = axis;
  form.lanes = std::min(unit.vector_bytes / width, power_of_two_at_least(channels));
  while (rows * ceil_div(channels * width, 64) * form.chains * 2 <= 8 && steps >= form.chains * 8) form.chains *= 2;
  const std::int64_t sums = std::max<std::int64_t>(1, unit.num_registers * 3 / 4 / form.chains);
  form.rows = std::min(rows, sums);
  form.vectors = std::min(ceil_div(channels, form.lanes), std::max<std::int64_t>(1, sums / form.rows));
  if (form.chains == 1 && p.axes.back().extent >= 8) {
    form.share_panels = true;
    form.sum_outer = std::ssize(p.axes) - static_cast<std::int64_t>(p.rhs_axis) - 2;
  }
  if (grid) choose_channel_cells(p, width, form);
  return form;
}

}  // namespace

DotForm choose_form(const DotProblem& problem, const DotFusion& fusion, const VectorUnit& unit, std::int64_t parts) {
  const std::int64_t width = byte_width(fusion.sum_type), exact = fusion.exact_steps;
  const View view = view_of(problem, false, width);
  if (view.outer * view.rows * view.lanes == 0) return {};
  if (const std::int64_t channels = channel_axis(problem, fusion); channels >= 0) return channel_form(problem, channels, width, unit, parts > 0);
  // What decides about the order of sums knows one machine only.
  const VectorUnit reference;
  DotProblem as_it_was = problem;  // before anything lay in panels
  as_it_was.lhs.ready = as_it_was.rhs.ready = false;
  const bool cheaper = choose_tiles(as_it_was, true, fusion, reference).cycles <
                       choose_tiles(as_it_was, false, fusion, reference).cycles * 0.98;
  // Rows are what is without sign, or, of sums over several axes, what lies in words.
  const bool both = fusion.lhs_unsigned == fusion.rhs_unsigned, words = fusion.byte_steps > 0 && view.sums.size() > 1;
  bool swap = !words && (both ? cheaper : fusion.rhs_unsigned);
  Chosen best = choose_tiles(as_it_was, swap, fusion, reference);
  const bool fold = exact == 0 && fusion.byte_steps == 0 && may_fold(problem, fusion.sum_type) &&
                    choose_fold(problem, width, reference).cycles < best.cycles;
  const bool is_free = !words && both && choose_chains(view, exact) == choose_chains(view_of(problem, true, width), exact);
  if ((problem.lhs.ready || problem.rhs.ready) && is_free)
    swap = choose_tiles(problem, true, fusion, reference).cycles < choose_tiles(problem, false, fusion, reference).cycles;
  // Rows of a tile or two read a panel once or twice: scratch for it would be all that a region of small dots needs.
  const std::int64_t few = parts == 0 ? unit.num_registers : kFewRows;
  best = fold ? choose_fold(problem, width, unit) : choose_tiles(problem, swap, fusion, unit, few);
  constexpr std::int64_t kLongEpilogue = 8;
  best.form.store_through = !fold && problem.epilogue_lines > kLongEpilogue;
  if (parts > 0) choose_cells(problem, best, width, parts);
  if (best.form.share_panels && problem.stage.line > 0)
    choose_staged_cells(problem, view_of(problem, best.form.swapped, width), width, best.form);
  return best.form;
}

bool may_stage(const DotProblem& p, std::int64_t element_bytes) {
  return p.stage.line > 0 && p.stage.lines * p.stage.line * element_bytes <= kMostStaged;
}

std::string to_string(const DotForm& f) {
  std::ostringstream s;
  s << (f.kind == DotForm::Kind::Tile ? "tile " : "fold ") << f.rows << "x" << f.vectors << " lanes " << f.lanes
    << " chains " << f.chains << (f.swapped ? " swapped" : "") << (f.rows_ready ? " rows-ready" : f.pack_rows ? " pack-rows" : "")
    << (f.lanes_ready ? " lanes-ready" : f.pack_lanes ? f.pack_at_once ? " pack-lanes-at-once" : " pack-lanes" : "")
    << (f.share_panels ? " shared" : "") << " sum-block " << f.sum_outer << ":" << f.sum_block << " cells " << f.row_cells << "x" << f.lane_cells
    << "x" << f.shared_cells << " blocks " << f.blocks;
  return s.str();
}

}  // namespace hloom::kernels

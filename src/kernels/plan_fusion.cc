// The loops of a fusion. Each root is computed element by element over its own dimensions (a window update over its
// update's). A dry run tells which elements are read where; from that the box of iterations is cut so that
// every part lies in one piece of each concatenate and pad, dimensions are split where a reshape would else divide, put
// together where all accesses allow, and one is chosen to go by lanes. Then the loops are built for each box.
#include "kernels/plan_fusion.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "fusion/column_sums.h"
#include "fusion/cost.h"
#include "buffers/in_place.h"
#include "kernels/elements.h"
#include "kernels/follow_split.h"
#include "kernels/plan_levels.h"
#include "kernels/plan_rows.h"
#include "kernels/plan_scan.h"
#include "kernels/plan_scatter.h"
#include "kernels/plan_select_and_scatter.h"
#include "kernels/prefetch_rows.h"
#include "kernels/squares.h"
#include "kernels/taps.h"

namespace hloom::kernels {
namespace {

using hlo::Instruction;
using hlo::Opcode;

constexpr std::size_t kMaxBoxes = 48;
constexpr std::size_t kMaxSmallBoxes = 192;  // that move elements, or little more
constexpr std::int64_t kFewLines = 3;
constexpr std::size_t kMaxPieces = 1024;  // of one axis, each of which is a loop of its own and has nothing of the others
constexpr int kMaxRounds = 6;
constexpr std::int64_t kBlockBytes = 32 * 1024;
constexpr std::int64_t kSerialBytes = 128 * 1024;
constexpr std::int64_t kEnoughBlocks = 64;
constexpr std::int64_t kLeastShared = 8;  // iterations of a shared loop, where it could have more

/// A loop before merging: adds offset + stride·v to dimension `dim` of the domain, v in [from, to).
struct Axis {
  std::size_t dim = 0;
  std::int64_t stride = 1;
  std::int64_t from = 0, to = 0;
  std::int64_t offset = 0;
  bool is_border = false;  ///< of windows: no more cut
  bool side_by_side = false;  ///< no loop: all its elements are made together
  std::int64_t extent() const { return to - from; }
};
using Box = std::vector<Axis>;  // outermost first

/// Axes that become one loop, outermost first.
using Group = std::vector<std::size_t>;

/// The dimensions that a root's loops walk.
Shape domain_of(const Root& root) {
  if (root.in_place) {
    Shape update = root.instruction->operand(1)->shape();
    if (root.place.shape.rank() == update.rank()) update.set_layout(root.place.shape.layout());
    return update;
  }
  return root.place.shape;
}

/// The blocks that a kernel's work is shared out in.
struct Grid {
  std::int64_t blocks = 1;
  std::vector<std::int64_t> cuts = {};  ///< as Kernel::cuts
  ScatterGrid scatter = {};             ///< of a scatter, how
};

/// Where the layout cuts what a root writes, or null.
const Layout::Split* split_of(const Root& root) {
  const auto& splits = root.place.shape.layout().parts().splits;
  return root.in_place || splits.empty() ? nullptr : &splits[0];
}

/// Plans the nests of roots that share a domain.
class NestPlanner {
 public:
  NestPlanner(Builder& builder, const Instruction& fusion, const Places& places, std::vector<Root> roots,
              const Grid& grid)
      : b_(builder), fusion_(fusion), places_(places), roots_(std::move(roots)), grid_(grid), blocks_(grid.blocks) {
    domain_ = domain_of(roots_[0]);
  }

  Expected<> plan() {
    Box whole;
    const auto& order = domain_.layout().minor_to_major;
    unroll();
    for (auto d = order.rbegin(); d != order.rend(); ++d)
      if (domain_.dim(*d) != 1 && std::ranges::find(unrolled_, *d) == unrolled_.end())
        whole.push_back({static_cast<std::size_t>(*d), 1, 0, domain_.dim(*d)});
    fold_ = folds();
    taps_ = find_taps(*fusion_.called(0), domain_.dims());
    return plan_parts(whole);
  }

 private:
  // Where the layout cuts the domain as it does the grid, each part is a nest with blocks of its own.
  Expected<> plan_parts(const Box& whole) {
    const auto root = std::ranges::find_if(roots_, [](const Root& r) { return split_of(r) != nullptr; });
    const Layout::Split* split = root == roots_.end() ? nullptr : split_of(*root);
    const auto axis = std::ranges::find_if(whole, [&](const Axis& a) {
      return split != nullptr && static_cast<std::int64_t>(a.dim) == split->dimension;
    });
    if (axis == whole.end() || grid_.cuts.empty() || split->indices.size() != grid_.cuts.size())
      return plan_box(whole, 0);
    Box part = whole;
    Axis& own = part[static_cast<std::size_t>(axis - whole.begin())];
    num_boxes_ = grid_.cuts.size() + 1;
    for (std::size_t p = 0; p <= grid_.cuts.size(); ++p) {
      own.from = p == 0 ? 0 : own.to;
      own.to = p == grid_.cuts.size() ? axis->to : split->indices[p];
      first_block_ = p == 0 ? 0 : grid_.cuts[p - 1];
      blocks_ = (p == grid_.cuts.size() ? grid_.blocks : grid_.cuts[p]) - first_block_;
      TRY(plan_box(part, 0));
    }
    return {};
  }

  bool is_shared() const { return grid_.blocks > 1; }

  // A loop whose iterations are shared out.
  Value begin_shared_loop(std::int64_t from, std::int64_t to, int lanes, std::int64_t block) {
    const Value variable = b_.begin_loop(from, to, lanes, block);
    if (block > 0) b_.loop().first_block = first_block_;
    return variable;
  }

  // Reduces over their operand's minor dimension go by lanes there; then no loop of the results does.
  bool folds() const {
    const auto by_lanes = [](const Instruction& i) {
      return i.opcode() == Opcode::Reduce && (hlo::order_of(i).by_lanes || Elements::best_by_lanes(i));
    };
    return std::ranges::any_of(fusion_.called(0)->instructions(), by_lanes);
  }

  Elements elements() {
    Elements e(b_, [this](std::int64_t n, const ShapeIndex& leaf, const Point& point, Value mask) -> Expected<Value> {
      return b_.load(operand_place(fusion_, places_, n, leaf), point, mask);
    });
    e.fold_reduces = fold_;
    return e;
  }

  /// Elements that are made together: a loop's iteration is this many of them along a dimension.
  struct Tile {
    std::size_t dim = 0;
    std::int64_t stride = 1, size = 1;
  };

  /// Values of roots, and where they go.
  using Stores = std::vector<std::pair<const Root*, std::pair<Value, Point>>>;

  // Next to a reduce of a few elements, dimensions of a few elements are made side by side: they share most of their work.
  void unroll() {
    const auto instructions = fusion_.called(0)->instructions();
    if (std::ranges::none_of(instructions, [](const Instruction& i) { return fusion::is_unrolled(i); })) return;
    std::int64_t elements = 1;
    for (const std::int64_t d : domain_.layout().minor_to_major) {
      const std::int64_t n = domain_.dim(d);
      if (n == 1 || n == domain_.num_elements() || elements * n > fusion::kUnrolled) continue;
      unrolled_.push_back(d);
      elements *= n;
    }
  }

  // The points that are made together with a point of the loops.
  std::vector<Point> side_by_side(const Box& box, const Point& point) const {
    std::vector<Point> points = {point};
    const auto multiply = [&](std::size_t d, std::int64_t count, std::int64_t stride) {
      const std::vector<Point> before = std::exchange(points, {});
      for (std::int64_t n = 0; n < count; ++n)
        for (Point p : before) {
          p[d].offset += n * stride;
          points.push_back(std::move(p));
        }
    };
    for (const std::int64_t d : unrolled_) multiply(static_cast<std::size_t>(d), domain_.dim(d), 1);
    for (const Axis& axis : box)
      if (axis.side_by_side) multiply(axis.dim, axis.extent(), axis.stride);
    if (tile_.size > 1) multiply(tile_.dim, tile_.size, tile_.stride);
    return points;
  }

  // Words that a block of the fusion's random bits has, at most; 1 without such.
  std::int64_t words_of_block() const {
    std::int64_t words = 1;
    for (const Instruction& i : fusion_.called(0)->instructions())
      if (i.opcode() == Opcode::RngBitGenerator) words = std::max(words, rng_block_words(i));
    return words;
  }

  // Reduces over equal dimensions share their loop, those of points side by side too.
  Expected<> reduces(Elements& e, const std::vector<Point>& points) {
    std::vector<std::vector<std::pair<const Instruction*, Point>>> loops;
    for (const Instruction& i : fusion_.called(0)->instructions()) {
      if (i.opcode() != Opcode::Reduce || i.num_operands() != 2 || i.shape().dims() != domain_.dims() || fusion::is_unrolled(i)) continue;
      if (fold_ && (hlo::order_of(i).by_lanes || Elements::best_by_lanes(i))) continue;
      const auto same = [&](const auto& loop) {
        return loop[0].first->operand(0)->shape().dims() == i.operand(0)->shape().dims() && loop[0].first->dimensions() == i.dimensions();
      };
      auto loop = std::ranges::find_if(loops, same);
      if (loop == loops.end()) loop = loops.emplace(loops.end());
      for (const Point& p : points) loop->emplace_back(&i, p);
    }
    for (const auto& loop : loops)
      if (loop.size() > 1) TRY(e.reduce_together(loop));
    return {};
  }

  // Values of all roots first, then the stores: an operand may be a result's own memory.
  Expected<> element(const Box& box, const Point& at) {
    Elements e = elements();
    Stores stores;
    const std::vector<Point> points = side_by_side(box, at);
    TRY(reduces(e, points));
    for (const Point& point : points) TRY(roots_at(e, point, stores));
    for (const auto& [root, what] : stores) b_.store(root->place, what.second, what.first);
    return {};
  }

  // A square of elements: all values of all rows, then the stores.
  Expected<> square_of(const std::vector<Point>& rows) {
    std::vector<Stores> stores(rows.size());
    for (std::size_t r = 0; r < rows.size(); ++r) {
      b_.set_row(static_cast<std::int64_t>(r));
      Elements e = elements();
      TRY(roots_at(e, rows[r], stores[r]));
    }
    for (std::size_t k = 0; k < roots_.size(); ++k) {
      std::vector<Point> points;
      std::vector<Value> values;
      for (const Stores& row : stores) {
        values.push_back(row[k].second.first);
        points.push_back(row[k].second.second);
      }
      b_.store_rows(roots_[k].place, points, values);
    }
    return {};
  }

  Expected<> roots_at(Elements& e, const Point& point, Stores& stores) {
    for (const Root& root : roots_) {
      const Instruction& i = *root.instruction;
      if (root.in_place) {
        Point to = TRY(e.starts(i, 2, i.shape(), i.operand(1)->shape().dims()));
        for (std::size_t d = 0; d < point.size(); ++d) to[d] = to[d] + point[d];
        const Value v = TRY(e.at(*i.operand(1), point));
        stores.push_back({&root, {v, std::move(to)}});
      } else {
        const Value v = TRY(e.at(i, point, root.leaf));
        stores.push_back({&root, {v, point}});
      }
    }
    return {};
  }

  struct Shaped {
    Box box;
    std::vector<Group> groups;  // outermost first
    std::vector<int> lanes;     // of each group, 0 = none
    SquareChoice square;        // groups whose iterations go in squares, if its size is not 0
  };

  Point point_of(const Box& box, const std::vector<Index>& axes) const {
    Point point(static_cast<std::size_t>(domain_.rank()));
    for (std::size_t a = 0; a < box.size(); ++a)
      point[box[a].dim] = point[box[a].dim] + axes[a] * box[a].stride + box[a].offset;
    return point;
  }

  // Runs the body once with plain loops in a builder of its own, and says what it found.
  Expected<Findings> dry_run(const Box& box, std::vector<Value>& variables, bool may_cut = true) {
    Builder scratch("dry");
    Findings findings;
    findings.may_cut = may_cut;
    variables.clear();
    scratch.findings = &findings;
    NestPlanner twin(scratch, fusion_, places_, roots_, {});
    twin.fold_ = fold_;
    twin.unrolled_ = unrolled_;
    twin.tile_ = tile_;
    std::vector<Index> axes;
    std::int64_t loops = 0;
    for (const Axis& axis : box) {
      variables.push_back(axis.side_by_side ? kNoValue : scratch.begin_loop(axis.from, axis.to));
      axes.push_back(axis.side_by_side ? Index{} : index_of(variables.back()));
      if (axis.side_by_side) continue;
      scratch.set_shapeable(variables.back());
      ++loops;
    }
    TRY(twin.element(box, twin.point_of(box, axes)));
    findings.num_loops -= loops;
    while (loops-- > 0) scratch.end_loop();
    widest_ = 4;
    for (const ValueInfo& info : scratch.kernel().values)
      if (info.type != DType::Invalid) widest_ = std::max(widest_, info.type == DType::S64 ? 4 : byte_width(info.type));
    return findings;
  }

  Expected<> plan_box(const Box& box, int round) {
    if (std::ranges::any_of(box, [](const Axis& a) { return a.extent() <= 0; })) return {};
    std::vector<Value> variables;
    Findings findings = TRY(dry_run(box, variables));
    if (round < kMaxRounds) {
      const std::size_t most = findings.num_lines <= kFewLines ? kMaxSmallBoxes : kMaxBoxes;
      for (std::size_t a = 0; a < box.size(); ++a) {
        if (box[a].side_by_side) continue;
        auto parts = cut(box[a], findings, variables[a]);
        if (taps_ != nullptr) parts = with_borders(box[a], std::move(parts));
        if (parts.size() < 2) parts = cut_last_block(box[a], findings, variables[a]);
        const bool are_pieces = num_boxes_ == 1 && parts.size() <= kMaxPieces;
        if (parts.size() < 2 || (num_boxes_ + parts.size() > most && !are_pieces)) continue;
        num_boxes_ += parts.size() - 1;
        for (const Axis& part : parts) {
          Box sub = box;
          sub[a] = part;
          TRY(plan_box(sub, round));
        }
        return {};
      }
    }
    if (!findings.cuts.empty()) findings = TRY(dry_run(box, variables, false));  // what is not cut after all reads more
    if (round < kMaxRounds) {
      for (std::size_t a = 0; a < box.size(); ++a) {
        if (box[a].side_by_side) continue;
        const std::int64_t divisor = split(box[a], findings, variables[a]);
        if (divisor == 0) continue;
        Box sub = box;
        sub[a] = {box[a].dim, box[a].stride * divisor, box[a].from / divisor, box[a].to / divisor, box[a].offset};
        Axis inner{box[a].dim, box[a].stride, 0, divisor};
        inner.side_by_side = divisor <= words_of_block();  // the words of a block of random bits are made at once
        sub.insert(sub.begin() + static_cast<std::ptrdiff_t>(a) + 1, inner);
        return plan_box(sub, round + 1);
      }
    }
    Shaped shaped = shape(box, findings, variables);
    const auto tiled = tiled_axis(shaped);
    return tiled ? plan_tiles(box, *tiled) : build(std::move(shaped));
  }

  // Windows leave an array at many places, where each box would be code of its own: of more than a few parts the largest stays,
  // and what is before and behind it are borders, which look at each tap.
  static std::vector<Axis> with_borders(const Axis& axis, std::vector<Axis> parts) {
    constexpr std::size_t kFew = 5;
    if (axis.is_border) return {axis};
    if (parts.size() <= kFew) return parts;
    const Axis inner = *std::ranges::max_element(parts, {}, &Axis::extent);
    Axis before = axis, behind = axis;
    before.to = inner.from;
    behind.from = inner.to;
    before.is_border = behind.is_border = true;
    std::vector<Axis> three;
    for (const Axis& part : {before, inner, behind})
      if (part.extent() > 0) three.push_back(part);
    return three;
  }

  // The axis along which a few elements are made together, for they share taps: the innermost of those without lanes.
  std::optional<std::size_t> tiled_axis(const Shaped& s) const {
    if (taps_ == nullptr || fold_ || !unrolled_.empty() || s.square.size != 0) return std::nullopt;
    std::int64_t elements = 1;
    for (const Axis& axis : s.box) elements *= axis.extent();
    if (elements < domain_.num_elements() / 8) return std::nullopt;
    for (std::size_t g = s.groups.size(); g-- > 0;) {
      const std::size_t a = s.groups[g][0];
      if (s.lanes[g] == 0 && s.groups[g].size() == 1 && s.box[a].extent() > 1 &&
          shares_taps(*taps_, static_cast<std::int64_t>(s.box[a].dim)))
        return a;
    }
    return std::nullopt;
  }

  // The box in tiles along an axis, then what is left.
  Expected<> plan_tiles(const Box& box, std::size_t a) {
    constexpr std::int64_t kTile = 4;
    const Axis whole = box[a];
    const std::int64_t tiles = whole.extent() / kTile, rest = whole.extent() % kTile;
    TRY(plan_tiles(box, a, {whole.from, tiles, kTile}));
    return plan_tiles(box, a, {whole.from + tiles * kTile, rest > 0 ? 1 : 0, rest});
  }

  struct TileRun {
    std::int64_t from, count, size;
  };
  Expected<> plan_tiles(const Box& box, std::size_t a, const TileRun& run) {
    if (run.count == 0) return {};
    Box tiles = box;
    tiles[a] = {box[a].dim, box[a].stride * run.size, 0, run.count, box[a].offset + run.from * box[a].stride};
    tile_ = {box[a].dim, box[a].stride, run.size};
    std::vector<Value> variables;
    const Findings findings = TRY(dry_run(tiles, variables));
    const auto done = build(shape(tiles, findings, variables));
    tile_ = {};
    return done;
  }

  static std::vector<Axis> cut(const Axis& axis, const Findings& findings, Value v) {
    std::set<std::int64_t> at;
    if (const auto found = findings.cuts.find(v); found != findings.cuts.end())
      for (const std::int64_t c : found->second)
        if (c > axis.from && c < axis.to) at.insert(c);
    std::vector<Axis> parts;
    std::int64_t from = axis.from;
    at.insert(axis.to);
    for (const std::int64_t c : at) {
      parts.push_back(axis);
      parts.back().from = from;
      parts.back().to = c;
      from = c;
    }
    return parts;
  }

  // Apart from the rest, the numbers of a block of random bits that is not used up.
  std::vector<Axis> cut_last_block(const Axis& axis, const Findings& findings, Value v) const {
    const std::int64_t words = words_of_block();
    const auto asked = findings.splits.find(v);
    if (words == 1 || asked == findings.splits.end()) return {};
    const auto d = std::ranges::find_if(asked->second, [&](std::int64_t n) { return n > 1 && n <= words; });
    if (d == asked->second.end() || axis.from % *d != 0 || axis.to % *d == 0 || axis.extent() <= 2 * *d) return {};
    std::vector<Axis> parts(2, axis);
    parts[0].to = parts[1].from = axis.to / *d * *d;
    return parts;
  }

  // The largest asked divisor that divides the axis evenly, or 0.
  static std::int64_t split(const Axis& axis, const Findings& findings, Value v) {
    const auto found = findings.splits.find(v);
    if (found == findings.splits.end()) return 0;
    std::int64_t best = 0;
    for (const std::int64_t d : found->second)
      if (d > 1 && d < axis.extent() && axis.from % d == 0 && axis.to % d == 0) best = std::max(best, d);
    return best;
  }

  Shaped shape(const Box& given, const Findings& findings, const std::vector<Value>& given_variables) const {
    // Axes of one iteration need no loop but keep their place.
    Shaped s;
    s.box = given;
    const auto coefficient = [&](const Findings::Access& access, std::size_t a) {
      for (const Index::Term& t : access.terms)
        if (t.value == given_variables[a]) return t.coefficient;
      return std::int64_t{0};
    };
    const auto mergeable = [&](std::size_t outer, std::size_t inner) {
      if (findings.opaque.contains(given_variables[outer]) || findings.opaque.contains(given_variables[inner])) return false;
      if (given[inner].from != 0) return false;
      return std::ranges::all_of(findings.accesses, [&](const Findings::Access& x) {
        return coefficient(x, outer) == coefficient(x, inner) * given[inner].extent();
      });
    };
    for (std::size_t a = 0; a < given.size(); ++a) {
      if (given[a].side_by_side) continue;
      if (!s.groups.empty() && mergeable(s.groups.back().back(), a))
        s.groups.back().push_back(a);
      else
        s.groups.push_back({a});
    }
    s.lanes.assign(s.groups.size(), 0);
    if (fold_ || s.groups.empty()) return s;
    // The loop by lanes: fewest memory operations for each element.
    // Random bits are made of words of four bytes, but for the counters.
    const bool of_words = std::ranges::any_of(given, &Axis::side_by_side);
    const std::int64_t width = 64 / (of_words ? 4 : widest_);
    double best_cost = 0;
    std::size_t best = 0;
    for (std::size_t g = s.groups.size(); g-- > 0;) {
      const std::int64_t lanes = std::min(width, extent(s, g));
      double cost = 0.25;
      for (const Findings::Access& x : findings.accesses) {
        const std::size_t along = s.groups[g].back();
        const std::int64_t c = std::ranges::binary_search(x.indirect, given_variables[along]) ? kAnywhere : coefficient(x, along);
        cost += c == 0 ? 0.5 : c == 1 ? 1.0 : c == -1 ? 1.5 : static_cast<double>(lanes) * (x.is_store ? 2 : 1);
      }
      cost = (cost + static_cast<double>(findings.num_lines)) / static_cast<double>(lanes);
      if (g + 1 == s.groups.size() || cost < best_cost * 0.99) {
        best_cost = cost;
        best = g;
      }
    }
    if (unrolled_.empty() && tile_.size <= 1 && !of_words) s.square = choose_square(strides_along(s, findings, given_variables), findings, best_cost);
    if (s.square.size != 0) return s;
    std::int64_t lanes = width;
    // Several vectors at once hide what an instruction waits for. Elements far apart go one by one, each an instruction, anyway.
    constexpr std::int64_t kFar = 8;
    const bool is_far = std::ranges::any_of(
        findings.accesses, [&](const Findings::Access& x) { return std::abs(coefficient(x, s.groups[best].back())) > kFar; });
    if (findings.num_lines <= 12 && !is_far) lanes *= 2;
    if (findings.num_lines <= 6 && !is_far) lanes *= 2;
    lanes = std::min(lanes, static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(extent(s, best)))));
    s.lanes[best] = static_cast<int>(std::max<std::int64_t>(lanes, 2));
    if (extent(s, best) < 2) s.lanes[best] = 0;
    tile_lanes(s, best, findings, given_variables);
    // It goes innermost; the others keep their order.
    std::rotate(s.groups.begin() + static_cast<std::ptrdiff_t>(best), s.groups.begin() + static_cast<std::ptrdiff_t>(best) + 1,
                s.groups.end());
    std::rotate(s.lanes.begin() + static_cast<std::ptrdiff_t>(best), s.lanes.begin() + static_cast<std::ptrdiff_t>(best) + 1,
                s.lanes.end());
    return s;
  }

  // Where lanes lie far apart in some array, as under a transpose, the loop by lanes is cut in two and its outer part goes
  // outermost: then the loop between walks along the cache lines that the lanes are in.
  static void tile_lanes(Shaped& s, std::size_t& group, const Findings& findings, const std::vector<Value>& variables) {
    std::int64_t lanes = s.lanes[group];
    if (lanes == 0 || s.groups[group].size() != 1 || s.groups.size() < 2) return;
    const std::size_t a = s.groups[group][0];
    const Axis axis = s.box[a];
    bool far = false;
    for (const Findings::Access& x : findings.accesses)
      for (const Index::Term& t : x.terms) {
        if (t.value != variables[a] || (t.coefficient <= 8 && t.coefficient >= -8)) continue;
        far = true;
        // Lines a multiple of a page apart share the few places of one set of the cache.
        if (t.coefficient * x.element_bytes % 1024 == 0) lanes = std::min<std::int64_t>(lanes, 8);
      }
    if (!far || axis.from % lanes != 0 || axis.to % lanes != 0 || axis.extent() <= lanes) return;
    s.box.push_back({axis.dim, axis.stride, 0, lanes});
    s.box[a] = {axis.dim, axis.stride * lanes, axis.from / lanes, axis.to / lanes};
    s.groups.push_back({s.box.size() - 1});
    s.lanes.push_back(static_cast<int>(lanes));
    s.lanes[group] = 0;
    std::rotate(s.groups.begin(), s.groups.begin() + static_cast<std::ptrdiff_t>(group),
                s.groups.begin() + static_cast<std::ptrdiff_t>(group) + 1);
    std::rotate(s.lanes.begin(), s.lanes.begin() + static_cast<std::ptrdiff_t>(group),
                s.lanes.begin() + static_cast<std::ptrdiff_t>(group) + 1);
    group = s.groups.size() - 1;
  }

  // How each access moves along each group.
  static std::vector<LoopStrides> strides_along(const Shaped& s, const Findings& findings,
                                                const std::vector<Value>& variables) {
    std::vector<LoopStrides> loops;
    for (std::size_t g = 0; g < s.groups.size(); ++g) {
      LoopStrides loop{extent(s, g), {}};
      for (const Findings::Access& x : findings.accesses) {
        const Value variable = variables[s.groups[g].back()];
        const auto found = std::ranges::find(x.terms, variable, &Index::Term::value);
        if (std::ranges::binary_search(x.indirect, variable))
          loop.strides.push_back(kAnywhere);
        else
          loop.strides.push_back(found == x.terms.end() ? 0 : found->coefficient);
      }
      loops.push_back(std::move(loop));
    }
    return loops;
  }

  static std::int64_t extent(const Shaped& s, std::size_t group) {
    std::int64_t n = 1;
    for (const std::size_t a : s.groups[group]) n *= s.box[a].extent();
    return n;
  }

  Expected<> build(Shaped s) {
    if (s.square.size != 0) return build_squares(s);
    if (is_shared() && !s.groups.empty()) {
      // The longest of the outer loops is shared out; the loop by lanes only where there is no other of use.
      std::size_t grid = 0;
      for (std::size_t g = 1; g < s.groups.size(); ++g)
        if (s.lanes[g] == 0 && extent(s, grid) < blocks_ && extent(s, g) > extent(s, grid)) grid = g;
      if (s.lanes.back() != 0 && grid + 1 != s.groups.size() && extent(s, grid) < 4 &&
          extent(s, s.groups.size() - 1) > 64 * extent(s, grid))
        grid = s.groups.size() - 1;
      std::rotate(s.groups.begin(), s.groups.begin() + static_cast<std::ptrdiff_t>(grid),
                  s.groups.begin() + static_cast<std::ptrdiff_t>(grid) + 1);
      std::rotate(s.lanes.begin(), s.lanes.begin() + static_cast<std::ptrdiff_t>(grid),
                  s.lanes.begin() + static_cast<std::ptrdiff_t>(grid) + 1);
    }
    std::vector<Index> axes(s.box.size());
    // One element is one block's work: what stands outside of loops would be every call's.
    const bool alone = is_shared() && s.groups.empty();
    if (alone) begin_shared_loop(0, 1, 0, 1);
    for (std::size_t g = 0; g < s.groups.size(); ++g) open_loop(s, g, axes);
    const auto done = element(s.box, point_of(s.box, axes));
    for (std::size_t g = 0; g < s.groups.size(); ++g) b_.end_loop();
    if (alone) b_.end_loop();
    return done;
  }

  // The iterations in whole squares, then what is left beside and below them in smaller ones.
  Expected<> build_squares(const Shaped& s) {
    for (const SquarePart& part : square_parts(s.square, extent(s, s.square.rows), extent(s, s.square.lanes)))
      TRY(build_part(s, part));
    return {};
  }

  Expected<> build_part(const Shaped& s, const SquarePart& part) {
    std::vector<Walk> walks;
    for (std::size_t g = 0; g < s.groups.size(); ++g)
      if (g != s.square.rows && g != s.square.lanes) walks.push_back({g, 0, extent(s, g), 1, 0});
    for (Walk walk : part.walks) {
      walk.loop = walk.loop == 0 ? s.square.rows : s.square.lanes;
      walks.push_back(walk);
    }
    if (is_shared()) share_out(walks);
    std::vector<Index> linear(s.groups.size());
    Value lane = kNoValue;
    for (std::size_t w = 0; w < walks.size(); ++w) {
      const Walk& walk = walks[w];
      std::int64_t block = w == 0 && is_shared() ? (walk.count + blocks_ - 1) / blocks_ : 0;
      if (block != 0 && walk.lanes != 0) block = (block + walk.lanes - 1) / walk.lanes * walk.lanes;
      lane = begin_shared_loop(0, walk.count, walk.lanes, block);
      linear[walk.loop] = linear[walk.loop] + walk.from + index_of(lane, walk.step);
    }
    if (part.size != 0) b_.begin_square(lane, part.size);
    std::vector<Point> rows;
    for (std::int64_t r = 0; r < std::max<std::int64_t>(part.size, 1); ++r) {
      std::vector<Index> axes(s.box.size());
      for (std::size_t g = 0; g < s.groups.size(); ++g)
        set_axes(s, g, linear[g] + (g == s.square.rows ? r : 0) + first_of(s, g), axes);
      rows.push_back(point_of(s.box, axes));
    }
    const auto done = part.size != 0 ? square_of(rows) : element(s.box, rows[0]);
    b_.end_square();
    for (std::size_t w = 0; w < walks.size(); ++w) b_.end_loop();
    return done;
  }

  // The first loop that is long enough goes outermost, else the longest; the one by lanes stays. Squares go best along what
  // they read, so the first one has it with fewer blocks already. Of one that goes out past
  // another some iterations stay inside, so that what is turned over is written some cache lines at a time.
  void share_out(std::vector<Walk>& walks) const {
    std::size_t grid = 0;
    for (std::size_t w = 1; w + 1 < walks.size(); ++w)
      if (walks[grid].count < std::min(blocks_, kEnoughBlocks) && walks[w].count > walks[grid].count) grid = w;
    Walk out = walks[grid];
    std::int64_t inside = grid > 0 && out.step > 1 ? 4 : 1;
    while (inside > 1 && (out.count % inside != 0 || out.count / inside < kLeastShared)) inside /= 2;
    out.count /= inside;
    out.step *= inside;
    walks[grid].count = inside;
    walks[grid].from = 0;
    if (inside == 1) walks.erase(walks.begin() + static_cast<std::ptrdiff_t>(grid));
    walks.insert(walks.begin(), out);
  }

  static std::int64_t first_of(const Shaped& s, std::size_t g) {
    std::int64_t inner = 1;
    for (std::size_t n = 1; n < s.groups[g].size(); ++n) inner *= s.box[s.groups[g][n]].extent();
    return s.box[s.groups[g][0]].from * inner;
  }

  // The axes of a group from their common number.
  void set_axes(const Shaped& s, std::size_t g, Index rest, std::vector<Index>& axes) {
    const Group& group = s.groups[g];
    for (std::size_t n = group.size(); n-- > 1;) {
      auto [quotient, remainder] = b_.divmod(rest, s.box[group[n]].extent());
      axes[group[n]] = std::move(remainder);
      rest = std::move(quotient);
    }
    axes[group[0]] = std::move(rest);
  }

  void open_loop(const Shaped& s, std::size_t g, std::vector<Index>& axes) {
    const Group& group = s.groups[g];
    std::int64_t inner = 1;
    for (std::size_t n = 1; n < group.size(); ++n) inner *= s.box[group[n]].extent();
    const Axis& first = s.box[group[0]];
    std::int64_t block = 0;
    if (g == 0 && is_shared()) {
      block = (first.extent() * inner + blocks_ - 1) / blocks_;
      if (s.lanes[g] != 0) block = (block + s.lanes[g] - 1) / s.lanes[g] * s.lanes[g];
    }
    set_axes(s, g, index_of(begin_shared_loop(first.from * inner, first.to * inner, s.lanes[g], block)), axes);
  }

  Builder& b_;
  const Instruction& fusion_;
  const Places& places_;
  std::vector<Root> roots_;
  const Grid grid_;
  std::int64_t first_block_ = 0, blocks_;  ///< of the grid, for the part that is planned
  Shape domain_;
  bool fold_ = false;
  std::vector<std::int64_t> unrolled_;  ///< dimensions of the domain without a loop
  const Instruction* taps_ = nullptr;   ///< what goes by taps over the domain
  Tile tile_;
  std::int64_t widest_ = 4;
  std::size_t num_boxes_ = 1;
};

// Through what only names a value.
const Instruction* resolve(const Instruction* i, ShapeIndex& leaf) {
  for (;;) {
    if (i->opcode() == Opcode::Tuple && !leaf.empty()) {
      const std::int64_t n = leaf.front();
      leaf.erase(leaf.begin());
      i = i->operand(n);
    } else if (i->opcode() == Opcode::GetTupleElement && i->operand(0)->opcode() == Opcode::Tuple) {
      i = i->operand(0)->operand(i->tuple_index());
    } else {
      return i;
    }
  }
}

// --- Scatter -------------------------------------------------------------------------------------------------------

// The results that are not in the memory of their base.
std::vector<std::int64_t> copied_results(const Instruction& fusion) {
  const auto pairs = buffers::in_place_pairs(fusion);
  std::vector<std::int64_t> copied;
  for (std::int64_t k = 0; k < num_leaves(fusion.shape()); ++k)
    if (std::ranges::find(pairs, k, &buffers::InPlacePair::result) == pairs.end()) copied.push_back(k);
  return copied;
}

const Instruction& scatter_of(const Instruction& fusion) {
  const Instruction* root = fusion.called(0)->root();
  ShapeIndex leaf = leaf_indices(root->shape())[0];
  return *resolve(root, leaf);
}

Expected<> plan_scatter(Builder& b, const Instruction& fusion, const Places& places, const Grid& grid) {
  std::vector<std::int64_t> copied = copied_results(fusion);
  if (grid.scatter.share == ScatterGrid::Share::None) {
    for (const std::int64_t k : copied) {
      const Root base{scatter_of(fusion).operand(k), {}, places.results[static_cast<std::size_t>(k)]};
      TRY(NestPlanner(b, fusion, places, {base}, {}).plan());
    }
    copied.clear();
  }
  return plan_scatter_into(b, scatter_of(fusion), places, grid.scatter, copied);
}

// --- Whole fusions -------------------------------------------------------------------------------------------------

std::vector<Root> roots_of(const Instruction& fusion, const Places& places) {
  const Instruction* root = fusion.called(0)->root();
  std::vector<Root> roots;
  const auto indices = leaf_indices(root->shape());
  const auto pairs = buffers::in_place_pairs(fusion);
  for (std::size_t n = 0; n < indices.size(); ++n) {
    Root r;
    r.leaf = indices[n];
    r.instruction = resolve(root, r.leaf);
    r.place = places.results[n];
    r.in_place = r.instruction->opcode() == Opcode::DynamicUpdateSlice &&
                 std::ranges::find(pairs, static_cast<std::int64_t>(n), &buffers::InPlacePair::result) != pairs.end();
    roots.push_back(std::move(r));
  }
  return roots;
}

std::int64_t bytes_touched(const Instruction& fusion, const std::vector<Root>& roots) {
  std::int64_t bytes = 0;
  for (const Root& root : roots) bytes += domain_of(root).size_bytes();
  for (const Instruction& i : fusion.called(0)->instructions()) {
    // What is read again for each element counts by its work.
    if (i.opcode() == Opcode::Reduce || i.opcode() == Opcode::ReduceWindow) bytes += i.operand(0)->shape().size_bytes();
    if (i.opcode() == Opcode::Exponential || i.opcode() == Opcode::Log || i.opcode() == Opcode::Tanh ||
        i.opcode() == Opcode::Logistic || i.opcode() == Opcode::Power || i.opcode() == Opcode::Divide)
      bytes += i.shape().size_bytes();
    if (i.opcode() == Opcode::Dot || i.opcode() == Opcode::Convolution)
      bytes += i.operand(0)->shape().size_bytes() + i.operand(1)->shape().size_bytes() +
               i.shape().size_bytes() * 8;
  }
  return bytes;
}

Expected<> plan_roots(Builder& b, const Instruction& fusion, const Places& places, const Grid& grid) {
  std::vector<Root> roots = roots_of(fusion, places);
  if (roots[0].instruction->opcode() == Opcode::Scatter) return plan_scatter(b, fusion, places, grid);
  if (roots[0].instruction->opcode() == Opcode::SelectAndScatter) return plan_select_and_scatter_into(b, fusion, places);
  if (scan_dimension(*fusion.called(0)->root()) >= 0) return plan_scan_into(b, fusion, places, grid.blocks);
  if (is_levels_fusion(fusion)) return plan_levels_into(b, fusion, places, roots, grid.blocks);
  if (is_rows_fusion(fusion)) roots = TRY(plan_rows_into(b, fusion, places, std::move(roots), grid.blocks));
  // Roots over the same domain share loops; others follow in order.
  while (!roots.empty()) {
    std::vector<Root> together, later;
    const Shape domain = domain_of(roots[0]);
    for (Root& root : roots) {
      const Shape own = domain_of(root);
      (own.dims() == domain.dims() ? together : later).push_back(std::move(root));
    }
    TRY(NestPlanner(b, fusion, places, std::move(together), grid).plan());
    roots = std::move(later);
  }
  return {};
}

// Whether each element wants what was done before: there are no lines side by side.
bool goes_in_order(const std::vector<Root>& roots) {
  return std::ranges::any_of(roots, [](const Root& r) {
    const Instruction& i = *r.instruction;
    if (i.opcode() == Opcode::SelectAndScatter) return true;
    const std::int64_t along = scan_dimension(i);
    if (along < 0) return false;
    const Shape& walked = i.operand(0)->shape();
    return walked.num_elements() == walked.dim(along) || split_of(r) != nullptr;
  });
}

// Cuts the grid as the layout cuts the first root that it cuts: blocks to each part as it has of the dimension, one at least.
void cut(Grid& grid, const std::vector<Root>& roots) {
  const auto root = std::ranges::find_if(roots, [](const Root& r) { return split_of(r) != nullptr; });
  if (root == roots.end()) return;
  const Layout::Split& split = *split_of(*root);
  const auto parts = static_cast<std::int64_t>(split.indices.size()) + 1;
  if (parts > kMaxParts) return;
  grid.blocks = std::max(grid.blocks, parts);
  const std::int64_t extent = root->place.shape.dim(split.dimension);
  for (std::int64_t p = 1; p < parts; ++p) {
    const std::int64_t before = grid.cuts.empty() ? 0 : grid.cuts.back();
    const std::int64_t wanted = split.indices[static_cast<std::size_t>(p - 1)] * grid.blocks / extent;
    grid.cuts.push_back(std::clamp(wanted, before + 1, grid.blocks - parts + p));
  }
}

// Where blocks are not made for the parts, they are shared out by them.
void follow_first_split(Kernel& kernel, const std::vector<Root>& roots) {
  const auto root = std::ranges::find_if(roots, [](const Root& r) { return split_of(r) != nullptr; });
  if (root != roots.end()) follow_split(kernel, root->place.shape);
}

}  // namespace

const Place& operand_place(const Instruction& fusion, const Places& places, std::int64_t n, const ShapeIndex& leaf) {
  std::size_t at = 0;
  for (std::int64_t o = 0; o < n; ++o) at += static_cast<std::size_t>(num_leaves(fusion.operand(o)->shape()));
  const auto indices = leaf_indices(fusion.operand(n)->shape());
  return places.operands[at + static_cast<std::size_t>(std::ranges::find(indices, leaf) - indices.begin())];
}

Expected<> plan_fusion_into(Builder& b, const Instruction& fusion, const Places& places) {
  b.forget_loads();
  return plan_roots(b, fusion, places, {});
}

Expected<Kernel> plan_fusion(const Instruction& fusion) {
  Builder b(fusion.name());
  Places places;
  const auto add = [&](const Shape& shape, const std::string& name, bool written, std::vector<Place>& to) {
    const int number = static_cast<int>(b.kernel().arguments.size());
    b.kernel().arguments.push_back(argument_of(shape, name, written));
    to.push_back({number, 0, shape});
  };
  for (std::int64_t o = 0; o < fusion.num_operands(); ++o)
    for (const Shape* leaf : leaves(fusion.operand(o)->shape()))
      add(*leaf, "a" + std::to_string(b.kernel().arguments.size()), false, places.operands);
  std::size_t result = 0;
  for (const Shape* leaf : leaves(fusion.shape())) add(*leaf, "y" + std::to_string(result++), true, places.results);
  const std::vector<Root> roots = roots_of(fusion, places);
  std::int64_t bytes = bytes_touched(fusion, roots);
  Grid grid;
  if (roots[0].instruction->opcode() == Opcode::Scatter) {
    grid.scatter = scatter_grid(*roots[0].instruction, copied_results(fusion).empty());
    grid.blocks = grid.scatter.blocks;
    bytes = grid.scatter.cost;
  } else if (is_rows_fusion(fusion) && fusion::column_blocks(fusion) > 0) {
    grid.blocks = fusion::column_blocks(fusion);
  } else if (bytes > kSerialBytes && !goes_in_order(roots)) {
    grid.blocks = std::min<std::int64_t>((bytes + kBlockBytes - 1) / kBlockBytes, 256);
  }
  if (grid.blocks > 1 && grid.scatter.blocks == 1 && !is_rows_fusion(fusion) && !is_levels_fusion(fusion)) cut(grid, roots);
  TRY(plan_roots(b, fusion, places, grid));
  Kernel kernel = std::move(b).finish();
  kernel.blocks = grid.blocks;
  kernel.cuts = std::move(grid.cuts);
  if (kernel.cuts.empty()) even_blocks(kernel);
  kernel.block_cost = bytes / kernel.blocks;
  if (kernel.cuts.empty()) follow_first_split(kernel, roots);
  prefetch_rows(kernel);
  if (grid.scatter.scratch_bytes > 0) {
    kernel.scratch_bytes = grid.scatter.scratch_bytes;
    kernel.scratch_type = DType::S32;
  }
  return kernel;
}

}  // namespace hloom::kernels

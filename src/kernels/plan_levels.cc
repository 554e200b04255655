// One loop over groups of lines; inside it a nest for each kept value, along the lines, and innermost the lanes. Where elements
// come from one piece or another of a concatenate or pad the way along is cut, and where interior padding asks for a division
// each remainder gets a loop of its own, as a dry run finds out. No place in scratch is used twice, so that what is loaded may be
// remembered.
#include "kernels/plan_levels.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/try.h"
#include "fusion/cost.h"
#include "fusion/level_space.h"
#include "kernels/elements.h"

namespace hloom::kernels {

using fusion::LevelSpace;
using hlo::Instruction;
using hlo::Opcode;

namespace {

constexpr int kMaxRounds = 6;
constexpr std::int64_t kMaxPhases = 8;   // loops for the remainders of one division
constexpr std::size_t kMaxPieces = 64;   // of one value, each of which is a loop

/// Indices offset + stride·v along the lines, v in [from, to).
struct Part {
  std::int64_t from = 0, to = 0, stride = 1, offset = 0;
};

LevelSpace space_of(const Instruction& fusion) {
  for (const Instruction* i : fusion.called(0)->post_order())
    if (const auto space = fusion::level_space(*i)) return *space;
  HLOOM_CHECK(false);
  return {};
}

class LevelPlanner {
 public:
  LevelPlanner(Builder& b, const Instruction& fusion, const Places& places, const std::vector<Root>& roots, std::int64_t blocks, int scratch)
      : b_(b), fusion_(fusion), places_(places), roots_(roots), blocks_(blocks), scratch_(scratch), space_(space_of(fusion)), elements_(make_elements()) {
    std::vector<const Instruction*> operands;
    for (const Instruction* i : fusion.called(0)->post_order()) {
      if (i->opcode() == Opcode::Parameter) operands.push_back(i);
      if (i->opcode() != Opcode::Parameter && i->opcode() != Opcode::Tuple && !fusion::is_free(*i)) members_.push_back(i);
    }
    domain_ = roots[0].place.shape;
    lanes_ = fusion::level_lanes(space_, members_, operands, domain_);
    if (lanes_.turned)
      for (const Instruction* o : operands)
        if (fusion::lies_in(o->shape(), space_)) give_slot(*o);
    for (const Instruction* i : members_)
      if (fusion::is_kept_level(*i) || (lanes_.turned && root_of(*i) != nullptr)) give_slot(*i);
  }

  Expected<> plan() {
    b_.kernel().scratch_bytes = std::max(b_.kernel().scratch_bytes, scratch_bytes_);
    const std::int64_t lines = lanes_.dim == space_.along ? 1 : domain_.dim(static_cast<std::int64_t>(lanes_.dim));
    const std::int64_t whole = lines / lanes_.lanes, rest = lines % lanes_.lanes;
    TRY(plan_lines({0, whole, lanes_.lanes}));
    return plan_lines({whole * lanes_.lanes, rest > 0 ? 1 : 0, rest});
  }

 private:
  /// Groups of `lanes` lines whose innermost index is first + n·lanes + l.
  struct Lines {
    std::int64_t first = 0, groups = 0, lanes = 0;
  };

  Elements make_elements() {
    Elements e(b_, [this](std::int64_t n, const ShapeIndex& leaf, const Point& point, Value mask) -> Expected<Value> {
      return b_.load(operand_place(fusion_, places_, n, leaf), point, mask);
    });
    e.at_hand = [this](const Instruction& i, const Point& point, Value mask) -> std::optional<Value> {
      if (!made_.contains(&i)) return {};
      return b_.load_linear(scratch_, scratch_index(i, point[space_.along]), i.shape().dtype(), mask);
    };
    return e;
  }

  const Root* root_of(const Instruction& i) const {
    const auto found = std::ranges::find(roots_, &i, &Root::instruction);
    return found == roots_.end() ? nullptr : &*found;
  }

  std::int64_t extent(const Instruction& i) const { return i.shape().dim(static_cast<std::int64_t>(space_.along)); }

  void give_slot(const Instruction& i) {
    slots_[&i] = scratch_bytes_;
    scratch_bytes_ += (extent(i) * lanes_.lanes * byte_width(i.shape().dtype()) + 63) / 64 * 64;
  }

  Index scratch_index(const Instruction& i, const Index& along) const {
    return along * lanes_.lanes + lane_ + slots_.at(&i) / byte_width(i.shape().dtype());
  }

  Expected<> plan_lines(const Lines& lines) {
    if (lines.groups == 0) return {};
    lines_ = lines;
    begin_lines();
    made_.clear();
    for (const Instruction* i : fusion_.called(0)->post_order())
      if (i->opcode() == Opcode::Parameter && slots_.contains(i)) {
        TRY(turn_in(*i));
        made_.insert(i);
      }
    for (const Instruction* i : members_) {
      if (!slots_.contains(i) && root_of(*i) == nullptr) continue;
      std::size_t pieces = 1;
      TRY(make(*i, {0, extent(*i)}, 0, pieces));
      if (!slots_.contains(i)) continue;
      made_.insert(i);
      if (lanes_.turned)
        for (const Root& root : roots_)
          if (root.instruction == i) turn_out(root);
    }
    b_.end_loop();
    return {};
  }

  // Opens the loop over groups of lines.
  void begin_lines() {
    std::vector<std::int64_t> box;
    std::vector<std::size_t> outer;
    for (std::size_t d = 0; d < space_.dims.size(); ++d)
      if (d != space_.along && d != lanes_.dim) {
        outer.push_back(d);
        box.push_back(space_.dims[d]);
      }
    box.push_back(lines_.groups);
    std::int64_t steps = 1;
    for (const std::int64_t n : box) steps *= n;
    const Index step = index_of(b_.begin_loop(0, steps, 0, blocks_ > 1 ? (steps + blocks_ - 1) / blocks_ : 0));
    const Point walked = b_.delinearise(step, box);
    line_.assign(space_.dims.size(), {});
    for (std::size_t n = 0; n < outer.size(); ++n) line_[outer[n]] = walked[n];
    first_lane_ = walked.back() * lines_.lanes + lines_.first;
  }

  Value begin_lanes() {
    const auto lanes = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(lines_.lanes)));
    const Value lane = b_.begin_loop(0, lines_.lanes, lanes > 1 ? lanes : 0);
    lane_ = index_of(lane);
    return lane;
  }

  Point point_at(const Index& along) const {
    Point point = line_;
    if (lanes_.dim != space_.along) point[lanes_.dim] = first_lane_ + lane_;
    point[space_.along] = along;
    return point;
  }

  // --- A value from what is made already.

  Expected<> make(const Instruction& i, const Part& part, int round, std::size_t& pieces) {
    if (part.from >= part.to) return {};
    if (round < kMaxRounds && pieces < kMaxPieces) {
      const std::vector<Part> parts = TRY(parts_of(i, part));
      if (parts.size() > 1) {
        pieces += parts.size() - 1;
        for (const Part& p : parts) TRY(make(i, p, round + 1, pieces));
        return {};
      }
    }
    const Index along = index_of(b_.begin_loop(part.from, part.to)) * part.stride + part.offset;
    begin_lanes();
    const Value v = TRY(elements_.at(i, point_at(along)));
    if (slots_.contains(&i)) b_.store_linear(scratch_, scratch_index(i, along), v);
    if (!lanes_.turned || !slots_.contains(&i))
      for (const Root& root : roots_)
        if (root.instruction == &i) b_.store(root.place, point_at(along), v);
    b_.end_loop();
    b_.end_loop();
    return {};
  }

  // Runs the body once in a builder of its own, and cuts the way along where it asks for it.
  Expected<std::vector<Part>> parts_of(const Instruction& i, const Part& part) const {
    Builder dry("dry");
    Findings findings;
    dry.findings = &findings;
    LevelPlanner twin(dry, fusion_, places_, roots_, 1, scratch_);
    twin.lines_ = lines_;
    twin.made_ = made_;
    twin.begin_lines();
    const Value variable = dry.begin_loop(part.from, part.to);
    dry.set_shapeable(variable);
    twin.begin_lanes();
    TRY(twin.elements_.at(i, twin.point_at(index_of(variable) * part.stride + part.offset)));
    for (int n = 0; n < 3; ++n) dry.end_loop();
    std::set<std::int64_t> cuts;
    for (const std::int64_t c : findings.cuts[variable])
      if (c > part.from && c < part.to) cuts.insert(c);
    if (!cuts.empty()) return cut(part, cuts);
    std::int64_t divisor = 0;
    for (const std::int64_t d : findings.splits[variable])
      if (d > 1 && d <= kMaxPhases) divisor = std::max(divisor, d);
    return divisor == 0 || part.to - part.from == 1 ? std::vector{part} : phases(part, divisor);
  }

  static std::vector<Part> cut(const Part& part, const std::set<std::int64_t>& cuts) {
    std::vector<Part> parts = {part};
    for (const std::int64_t c : cuts) {
      parts.push_back(part);
      parts.back().from = parts[parts.size() - 2].to = c;
    }
    return parts;
  }

  // A part for each remainder; before and behind those, what is less than a period.
  static std::vector<Part> phases(const Part& part, std::int64_t divisor) {
    const std::int64_t first = (part.from + divisor - 1) / divisor, last = part.to / divisor;
    std::vector<Part> parts;
    const auto one_by_one = [&](std::int64_t from, std::int64_t to) {
      for (std::int64_t n = from; n < to; ++n) parts.push_back({n, n + 1, part.stride, part.offset});
    };
    if (first >= last) {
      one_by_one(part.from, part.to);
      return parts;
    }
    one_by_one(part.from, first * divisor);
    for (std::int64_t r = 0; r < divisor; ++r) parts.push_back({first, last, part.stride * divisor, part.offset + r * part.stride});
    one_by_one(last * divisor, part.to);
    return parts;
  }

  // --- Lines that lie dense, into scratch and out of it: by squares where all lanes are there.

  Expected<> turn_in(const Instruction& parameter) {
    const Place& place = operand_place(fusion_, places_, parameter.parameter_number(), {});
    turn(extent(parameter), [&](const std::vector<Index>& rows) {
      for (std::size_t r = 0; r < rows.size(); ++r) {
        if (rows.size() > 1) b_.set_row(static_cast<std::int64_t>(r));
        b_.store_linear(scratch_, scratch_index(parameter, rows[r]), b_.load(place, point_at(rows[r])));
      }
    });
    return {};
  }

  void turn_out(const Root& root) {
    const Instruction& i = *root.instruction;
    turn(extent(i), [&](const std::vector<Index>& rows) {
      std::vector<Value> values;
      std::vector<Point> points;
      for (const Index& along : rows) {
        values.push_back(b_.load_linear(scratch_, scratch_index(i, along), i.shape().dtype()));
        points.push_back(point_at(along));
      }
      if (rows.size() > 1)
        b_.store_rows(root.place, points, values);
      else
        b_.store(root.place, points[0], values[0]);
    });
  }

  template <typename Body>
  void turn(std::int64_t extent, const Body& body) {
    const bool squares = lines_.lanes == lanes_.lanes && lines_.lanes > 1;
    const std::int64_t size = squares ? lines_.lanes : 1, whole = extent / size;
    turn_part(0, whole, size, body);
    turn_part(whole * size, extent - whole * size, 1, body);
  }

  template <typename Body>
  void turn_part(std::int64_t first, std::int64_t count, std::int64_t size, const Body& body) {
    if (count == 0) return;
    const Index step = index_of(b_.begin_loop(0, count)) * size + first;
    const Value lane = begin_lanes();
    if (size > 1) b_.begin_square(lane, size);
    std::vector<Index> rows;
    for (std::int64_t r = 0; r < size; ++r) rows.push_back(step + r);
    body(rows);
    b_.end_square();
    b_.end_loop();
    b_.end_loop();
  }

  Builder& b_;
  const Instruction& fusion_;
  const Places& places_;
  const std::vector<Root>& roots_;
  std::int64_t blocks_;
  int scratch_;
  LevelSpace space_;
  Elements elements_;
  Shape domain_;
  fusion::LevelLanes lanes_;
  std::vector<const Instruction*> members_;                       ///< operands before users
  std::unordered_map<const Instruction*, std::int64_t> slots_;    ///< bytes into scratch
  std::int64_t scratch_bytes_ = 0;
  std::set<const Instruction*> made_;                             ///< what lies in its slot by now
  Lines lines_;
  Point line_;         ///< indices of the lines, less those along and of the lane
  Index first_lane_, lane_;
};

}  // namespace

bool is_levels_fusion(const Instruction& fusion) {
  const auto& decisions = fusion.annotations().decisions;
  const auto found = decisions.find("kernel");
  return found != decisions.end() && found->second == "levels";
}

Expected<> plan_levels_into(Builder& b, const Instruction& fusion, const Places& places, const std::vector<Root>& roots, std::int64_t blocks) {
  return LevelPlanner(b, fusion, places, roots, blocks, static_cast<int>(b.kernel().arguments.size())).plan();
}

}  // namespace hloom::kernels

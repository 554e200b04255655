#include "fusion/regions.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "fusion/cost.h"
#include "fusion/fuse.h"

namespace hloom::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

constexpr std::int64_t kManyInstructions = 16;  // for a large kernel
constexpr std::int64_t kLongDot = 32 << 10;      // products: about a microsecond
constexpr std::int64_t kFewDots = 4;              // equal ones, of a computation that runs once
constexpr std::int64_t kMostCalledBytes = std::int64_t{1} << 30;  // by the large kernels of a loop; a tenth of a second

/// What it would mean to have an instruction or computation in a region.
struct Weight {
  bool fits = true;                 ///< it can be there at all
  std::int64_t instructions = 0;
  std::int64_t large = 0;           ///< kernels that would be called, outside of rare branches
  std::int64_t large_bytes = 0;     ///< that those touch, in all iterations of loops
  std::int64_t rare_large = 0;      ///< in branches that are taken once a loop at most

  bool is_small() const { return fits && large == 0 && rare_large == 0; }
  Weight& operator+=(const Weight& w) {
    fits = fits && w.fits;
    instructions += w.instructions;
    large += w.large;
    large_bytes += w.large_bytes;
    rare_large += w.rare_large;
    return *this;
  }
};

/// Of a kernel that is a call in a region.
Weight large(std::int64_t instructions, std::int64_t bytes) { return {true, instructions, 1, bytes, 0}; }

bool is_plain_copy(const Instruction& copy) {
  const Shape &from = copy.operand(0)->shape(), &to = copy.shape();
  return to.is_array() && from.layout().unplaced() == to.layout().unplaced();
}

std::int64_t array_bytes(const Shape& shape) {
  std::int64_t bytes = 0;
  for (const Shape* leaf : leaves(shape))
    if (leaf->is_array()) bytes += leaf->size_bytes();
  return bytes;
}

class Weigher {
 public:
  Weight of(const Computation& c) {
    if (const auto found = known_.find(&c); found != known_.end()) return found->second;
    Weight total;
    for (const Instruction& i : c.instructions()) total += of(i);
    return known_[&c] = checked(total);
  }

  Weight of(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::Fusion: return of_fusion(i);
      case Opcode::Copy: return of_copy(i);
      case Opcode::While: return of_loop(i);
      case Opcode::Conditional: return of_conditional(i);
      case Opcode::Call: return of(*i.to_apply());
      case Opcode::Parameter:
      case Opcode::Constant:
      case Opcode::Tuple:
      case Opcode::GetTupleElement:
      case Opcode::Bitcast:
      case Opcode::AfterAll:
      case Opcode::AddDependency:
      case Opcode::OptBarrier: return {true, 0};
      default: return {false, 1};
    }
  }

 private:
  static Weight checked(Weight w) {
    w.fits = w.fits && w.instructions <= kRegionInstructions;
    return w;
  }

  // What packs or changes the layout is no plain range of bytes.
  static Weight of_copy(const Instruction& copy) {
    const std::int64_t bytes = 2 * array_bytes(copy.shape());
    if (bytes <= kRegionBytes) return {true, 1};
    return is_plain_copy(copy) ? large(1, bytes) : Weight{false, 1};
  }

  Weight of_loop(const Instruction& loop) {
    Weight total{true, 2};
    total += of(*loop.condition());
    total += of(*loop.body());
    if (total.large == 0) return checked(total);
    const auto& decisions = loop.annotations().decisions;
    const auto trips = decisions.find("trip_count");
    if (trips == decisions.end() || !may_call(total, std::stoll(trips->second))) return {false, total.instructions};
    total.large_bytes *= std::max<std::int64_t>(1, std::stoll(trips->second));  // for loops around this one
    return checked(total);
  }

  // A large kernel among many small instructions, in a loop that is soon over: what runs in a region is one step for those who
  // watch a run or end it.
  static bool may_call(const Weight& w, std::int64_t trips) {
    return w.instructions >= kManyInstructions * w.large && trips <= kMostCalledBytes / w.large_bytes;
  }

  Weight of_conditional(const Instruction& conditional) {
    const auto& decisions = conditional.annotations().decisions;
    const auto rare = decisions.find("rare_branch");
    Weight total{true, 2};
    for (std::size_t b = 0; b < conditional.called().size(); ++b) {
      Weight branch = of(*conditional.called()[b]);
      if (rare != decisions.end() && rare->second == std::to_string(b)) {
        branch.rare_large += branch.large;
        branch.large = branch.large_bytes = 0;
      }
      total += branch;
    }
    return checked(total);
  }

  static Weight of_fusion(const Instruction& fusion) {
    const Computation& body = *fusion.called(0);
    const Instruction& root = *body.root();
    Weight w{true, body.num_instructions()};
    if (fusion.attr<hlo::FusionAttr>().kind == hlo::FusionKind::Custom) return {false, w.instructions};
    std::int64_t bytes = 0, work = 0;
    const Hero hero = hero_of(root);
    // The base of an update in place is not touched but for the window.
    const std::int64_t bases = hero == Hero::WindowUpdate ? 1 : hero == Hero::Scatter ? root.num_operands() / 2 : 0;
    for (const Instruction* operand : fusion.operands()) bytes += array_bytes(operand->shape());
    bytes += array_bytes(fusion.shape());
    for (std::int64_t b = 0; b < bases; ++b) bytes -= 2 * array_bytes(root.operand(b)->shape());
    if (hero == Hero::WindowUpdate) bytes += 2 * array_bytes(root.operand(1)->shape());
    for (const Instruction& i : body.instructions()) {
      // Slices of large operands touch what they take.
      if ((i.opcode() == Opcode::DynamicSlice || i.opcode() == Opcode::Slice || i.opcode() == Opcode::Gather) &&
          i.operand(0)->opcode() == Opcode::Parameter && i.operand(0)->users().size() == 1)
        bytes -= array_bytes(i.operand(0)->shape()) - array_bytes(i.shape());
      if (i.opcode() == Opcode::Dot) {
        std::int64_t depth = 1;
        for (const std::int64_t d : i.attr<hlo::DotAttr>().lhs_contracting) depth *= i.operand(0)->shape().dim(d);
        work += i.shape().num_elements() * depth;
      }
      if (i.opcode() == Opcode::Convolution) work += array_bytes(i.shape()) * i.operand(1)->shape().num_elements();
      if (i.opcode() == Opcode::ReduceWindow) {
        std::int64_t window = 1;
        for (const hlo::WindowDim& d : i.attr<hlo::WindowAttr>().window) window *= std::min<std::int64_t>(d.size, 64);
        work += array_bytes(i.operand(0)->shape()) * window;
      }
    }
    return bytes <= kRegionBytes && work <= 4 * kRegionBytes ? w : large(w.instructions, std::max(bytes, work));
  }

  std::unordered_map<const Computation*, Weight> known_;
};

// Notes which of what a region holds is called.
void mark_calls(const Instruction& loop, Weigher& weigher) {
  for (Computation* callee : loop.called())
    for (Instruction& i : callee->instructions()) {
      if (i.opcode() == Opcode::Fusion || i.opcode() == Opcode::Copy) {
        if (!weigher.of(i).is_small()) i.mutable_annotations().decisions["forks"] = "true";
      } else {
        mark_calls(i, weigher);
      }
    }
}

bool runs_nothing(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement:
    case Opcode::Bitcast:
    case Opcode::AfterAll:
    case Opcode::AddDependency:
    case Opcode::OptBarrier: return true;
    default: return false;
  }
}

// The dot of a kernel that takes longer than a step costs, or null.
const Instruction* long_dot(const Instruction& i) {
  if (i.opcode() != Opcode::Fusion) return nullptr;
  for (const Instruction& d : i.called(0)->instructions()) {
    if (d.opcode() != Opcode::Dot) continue;
    std::int64_t work = d.shape().num_elements();
    for (const std::int64_t k : d.attr<hlo::DotAttr>().lhs_contracting) work *= d.operand(0)->shape().dim(k);
    if (work >= kLongDot) return &d;
  }
  return nullptr;
}

bool is_same_dot(const Instruction& a, const Instruction& b) {
  return a.shape() == b.shape() && a.operand(0)->shape() == b.operand(0)->shape() && a.operand(1)->shape() == b.operand(1)->shape() &&
         a.attr<hlo::DotAttr>() == b.attr<hlo::DotAttr>();
}

// The kernels of long dots that a computation has many of, as where a loop was unrolled.
std::unordered_set<const Instruction*> repeated_dots(const Computation& c) {
  std::vector<std::vector<const Instruction*>> alike;
  for (const Instruction& i : c.instructions()) {
    const Instruction* dot = long_dot(i);
    if (dot == nullptr) continue;
    const auto found = std::ranges::find_if(alike, [&](const auto& kernels) { return is_same_dot(*long_dot(*kernels[0]), *dot); });
    (found != alike.end() ? *found : alike.emplace_back()).push_back(&i);
  }
  std::unordered_set<const Instruction*> repeated;
  for (const auto& kernels : alike)
    if (std::ssize(kernels) > kFewDots) repeated.insert(kernels.begin(), kernels.end());
  return repeated;
}

}  // namespace

void mark_regions(hlo::Module& module) {
  Weigher weigher;
  std::int64_t region = 0;
  for (Computation& c : module.computations()) {
    std::int64_t held = 0;
    bool open = false;
    // As kernels of their own they are equal, and compiled once.
    std::unordered_set<const Instruction*> alone;
    if (&c == module.entry()) alone = repeated_dots(c);
    for (Instruction& i : c.instructions()) {
      if (runs_nothing(i)) continue;
      if (alone.contains(&i)) {
        open = false;
        continue;
      }
      const Weight w = weigher.of(i);
      const bool is_loop = i.opcode() == Opcode::While;
      if (!w.fits || (!w.is_small() && !is_loop)) {
        open = false;
        continue;
      }
      if (!w.is_small()) mark_calls(i, weigher);
      if (!open || held + w.instructions > kRegionInstructions) {
        ++region;
        held = 0;
        open = true;
      }
      held += w.instructions;
      i.mutable_annotations().decisions["region"] = std::to_string(region);
    }
  }
}

}  // namespace hloom::fusion

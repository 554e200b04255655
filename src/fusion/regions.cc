#include "fusion/regions.h"

#include <algorithm>
#include <string>
#include <unordered_map>

#include "fusion/cost.h"
#include "fusion/fuse.h"

namespace hloom::fusion {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

/// What it would mean to have an instruction or computation in a region.
struct Weight {
  bool small = true;
  std::int64_t instructions = 0;
};

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
    for (const Instruction& i : c.instructions()) {
      const Weight w = of(i);
      total.small = total.small && w.small;
      total.instructions += w.instructions;
    }
    total.small = total.small && total.instructions <= kRegionInstructions;
    return known_[&c] = total;
  }

  Weight of(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::Fusion: return of_fusion(i);
      case Opcode::Copy: return {2 * array_bytes(i.shape()) <= kRegionBytes, 1};
      case Opcode::While:
      case Opcode::Conditional:
      case Opcode::Call: {
        Weight total{true, 2};
        for (const Computation* callee : i.called()) {
          const Weight w = of(*callee);
          total.small = total.small && w.small;
          total.instructions += w.instructions;
        }
        total.small = total.small && total.instructions <= kRegionInstructions;
        return total;
      }
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
    w.small = bytes <= kRegionBytes && work <= 4 * kRegionBytes;
    return w;
  }

  std::unordered_map<const Computation*, Weight> known_;
};

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

}  // namespace

void mark_regions(hlo::Module& module) {
  Weigher weigher;
  std::int64_t region = 0;
  for (Computation& c : module.computations()) {
    std::int64_t held = 0;
    bool open = false;
    for (Instruction& i : c.instructions()) {
      if (runs_nothing(i)) continue;
      const Weight w = weigher.of(i);
      if (!w.small) {
        open = false;
        continue;
      }
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

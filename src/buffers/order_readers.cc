#include "buffers/order_readers.h"

#include <algorithm>
#include <unordered_map>

#include "buffers/in_place.h"
#include "buffers/start_copies.h"
#include "buffers/steps.h"
#include "buffers/values.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

/// The readers of values in one computation. An instruction that runs computations reads its operands' leaves.
class Orderer {
 public:
  Orderer(Computation& c, const Values& values) : values_(values) {
    for (Instruction& i : c.instructions()) {
      if (is_alias(i) || i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant) continue;
      for (const Instruction* operand : i.operands())
        for (const ValueId v : values_.of(*operand)) {
          auto& readers = readers_[v];
          if (readers.empty() || readers.back() != &i) readers.push_back(&i);
        }
    }
  }

  void order_before(Instruction& writer, ValueId base) {
    const auto found = readers_.find(base);
    if (found == readers_.end() || (found->second.size() == 1 && found->second.front() == &writer)) return;
    const Reached behind = reachable_from(writer);
    for (Instruction* reader : found->second) {
      if (reader == &writer || overwrites(*reader, base)) continue;
      if (behind.contains(reader))
        writer.mutable_annotations().decisions["read_after"] = cycle(writer, *reader, behind);
      else
        writer.add_control_predecessor(reader);
    }
  }

  // The next value of a carried leaf, if an instruction of this computation makes it anew. What is fetched beside the
  // readers of the present one has memory of its own.
  void order_next(Instruction& root, std::size_t leaf, ValueId carried) {
    const ValueId next = values_.of(root)[leaf];
    const Value& value = values_[next];
    if (value.kind != Value::Kind::Made || value.definer->parent() != root.parent() || can_be_started(*value.definer)) return;
    order_before(*const_cast<Instruction*>(value.definer), carried);
  }

 private:
  bool overwrites(const Instruction& i, ValueId base) const {
    return std::ranges::any_of(in_place_pairs(i), [&](const InPlacePair& p) {
      return values_.of(*i.operand(p.operand), p.operand_leaf) == base;
    });
  }

  using Reached = std::unordered_map<const Instruction*, const Instruction*>;  // and from where first

  static Reached reachable_from(const Instruction& start) {
    Reached seen{{&start, nullptr}};
    std::vector<const Instruction*> stack{&start};
    while (!stack.empty()) {
      const Instruction* i = stack.back();
      stack.pop_back();
      for (const auto* after : {&i->users(), &i->control_successors()})
        for (const Instruction* next : *after)
          if (seen.emplace(next, i).second) stack.push_back(next);
    }
    return seen;
  }

  static std::string cycle(const Instruction& writer, const Instruction& reader, const Reached& behind) {
    constexpr std::size_t kMostNamed = 6;
    std::vector<const Instruction*> path{&reader};
    while (path.back() != &writer) path.push_back(behind.at(path.back()));
    std::string text = reader.name() + " comes after " + writer.name() + ": ";
    for (std::size_t k = path.size(); k > 0; --k) {
      const bool is_named = k > path.size() - kMostNamed || k == 1 || path.size() <= kMostNamed;
      if (is_named) text += path[k - 1]->name() + (k == 1 ? "" : ", ");
      if (!is_named && k == 2) text += "…, ";
    }
    return text;
  }

  const Values& values_;
  std::unordered_map<ValueId, std::vector<Instruction*>> readers_;
};

}  // namespace

void order_readers(hlo::Module& module) {
  const Values values(module);
  std::vector<std::pair<Instruction*, Computation*>> loops;
  for (Computation* c : step_computations(module)) {
    Orderer orderer(*c, values);
    for (Instruction& i : c->instructions()) {
      for (const InPlacePair& p : in_place_pairs(i))
        orderer.order_before(i, values.of(*i.operand(p.operand), p.operand_leaf));
      if (i.opcode() == Opcode::While) loops.emplace_back(&i, i.body());
    }
  }
  for (const auto& [loop, body] : loops) {
    Orderer orderer(*body, values);
    const auto head = values.of(*loop);
    for (std::size_t leaf = 0; leaf < head.size(); ++leaf) {
      const Value& carried = values[head[leaf]];
      if (carried.kind == Value::Kind::Loop && carried.definer == loop)
        orderer.order_next(*body->root(), leaf, head[leaf]);
    }
  }
}

}  // namespace hloom::buffers

#include "buffers/insert_copies.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <unordered_set>

#include "base/check.h"
#include "buffers/decisions.h"
#include "buffers/leaf.h"
#include "buffers/order_edits.h"
#include "buffers/parts.h"
#include "buffers/save_readers.h"
#include "buffers/steps.h"
#include "buffers/webs.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

void remove_plain_copies(hlo::Module& module) {
  for (Computation* c : step_computations(module)) {
    std::unordered_set<const Instruction*> dead;
    for (Instruction& i : c->instructions()) {
      if (!is_plain_copy(i) || !i.control_predecessors().empty() || !i.control_successors().empty()) continue;
      c->replace_uses(&i, i.operand(0));
      dead.insert(&i);
    }
    c->remove_all([&](const Instruction& i) { return dead.contains(&i); });
  }
}

InPlaceDecision::Kind kind_of(const Edge& edge, const Flow& flow) {
  using Kind = InPlaceDecision::Kind;
  switch (edge.kind) {
    case Edge::Kind::Init: return Kind::LoopEntry;
    case Edge::Kind::Back: return Kind::LoopCarry;
    case Edge::Kind::Branch: return Kind::Branch;
    case Edge::Kind::InPlace: return update_kind(*edge.at, edge.leaf);
    case Edge::Kind::Result: return flow.pin(edge.to).kind == Pin::Kind::Parameter ? Kind::Donation : Kind::Result;
    case Edge::Kind::Part: return Kind::Concatenate;
  }
  return Kind::Update;
}

// One parallel copy: edges whose copies stand at one place.
struct Place {
  Computation* computation = nullptr;
  Instruction* before = nullptr;    // null: at the end
  Instruction* consumer = nullptr;  // whose operand `operand` takes the copies; null: the computation's root
  std::int64_t operand = 0;
  bool operator<(const Place& other) const { return key() < other.key(); }

 private:
  std::tuple<int, int, std::int64_t> key() const {
    return {computation->root()->id(), consumer != nullptr ? consumer->id() : -1, operand};
  }
};

class Inserter {
 public:
  Inserter(hlo::Module& module, bool free_parts) : flow_(module), webs_(flow_), free_parts_(free_parts) {}

  std::vector<InPlaceDecision> run() {
    const std::vector<std::size_t> order = by_weight();
    for (const std::size_t e : order)
      if (flow_.edges()[e].kind != Edge::Kind::Part) decide(flow_.edges()[e]);
    std::unordered_set<const Instruction*> seen;
    for (const std::size_t e : order)
      if (flow_.edges()[e].kind == Edge::Kind::Part && seen.insert(flow_.edges()[e].at).second) decide_parts(e);
    for (auto& [place, copies] : places_) emit_at(place, copies);
    edits_.apply();
    return std::move(decisions_);
  }

 private:
  struct Copy {
    const Edge* edge = nullptr;
    std::size_t decision = 0;
    Instruction* source = nullptr;
    NodeId from = -1;  // web that the source lies in; -1: a temporary
    NodeId to = -1;    // web
  };

  std::vector<std::size_t> by_weight() const {
    const auto weight = [&](std::size_t e) {
      const Edge& edge = flow_.edges()[e];
      return static_cast<double>(edge.bytes) * edge.runs;
    };
    std::vector<std::size_t> order(flow_.edges().size());
    for (std::size_t e = 0; e < order.size(); ++e) order[e] = e;
    std::ranges::stable_sort(order, std::greater(), weight);
    return order;
  }

  void decide(const Edge& edge) {
    InPlaceDecision d{kind_of(edge, flow_), edge.at->name(), edge.leaf, edge.bytes, edge.depth, true, {}, {}};
    const Webs::Conflict conflict = edge.same_storage ? webs_.conflict(edge.from, edge.to) : Webs::Conflict::None;
    if (edge.same_storage && conflict == Webs::Conflict::None) {
      webs_.join(edge.from, edge.to);
    } else {
      d.in_place = false;
      d.reason = reason(edge, conflict);
      places_[place_of(edge)].push_back({&edge, decisions_.size(), nullptr, edge.from, edge.to});
    }
    decisions_.push_back(std::move(d));
  }

  // All edges of one instruction stand together.
  std::span<const Edge> parts_at(std::size_t e) const {
    const std::vector<Edge>& edges = flow_.edges();
    e -= static_cast<std::size_t>(edges[e].input);
    std::size_t end = e;
    while (end < edges.size() && edges[end].at == edges[e].at && edges[end].kind == Edge::Kind::Part) ++end;
    return std::span(edges).subspan(e, end - e);
  }

  void decide_parts(std::size_t e) {
    const std::span<const Edge> edges = parts_at(e);
    const Edge& first = edges.front();
    const bool is_slice = parts_of(*first.at)->kind == Parts::Kind::Slice;
    InPlaceDecision d{is_slice ? InPlaceDecision::Kind::Slice : InPlaceDecision::Kind::Concatenate,
                      first.at->name(), 0, 0, first.depth, true, {}, {}};
    for (const Edge& edge : edges) d.bytes += edge.bytes;
    std::string why = free_parts_ ? read_elsewhere(edges) : "the plan takes fewer bytes with a copy";
    if (why.empty())
      if (const Webs::Conflict conflict = webs_.join_parts(edges); conflict != Webs::Conflict::None)
        why = part_reason(edges, conflict);
    d.in_place = why.empty();
    d.reason = d.in_place ? "" : why;
    set_free(*const_cast<Instruction*>(first.at), d.in_place);
    decisions_.push_back(std::move(d));
  }

  // Parts of a concatenate that somebody else reads later.
  std::string read_elsewhere(std::span<const Edge> edges) const {
    const Instruction& at = *edges.front().at;
    if (parts_of(at)->kind == Parts::Kind::Slice) return {};
    for (const Edge& edge : edges)
      for (const Use& use : flow_.uses(edge.from))
        if (use.point > flow_.timeline().of(at).work()) return flow_.name(edge.from) + " is read again after it";
    return {};
  }

  std::string part_reason(std::span<const Edge> edges, Webs::Conflict conflict) const {
    const std::string parts = flow_.name(edges.front().from) + (edges.size() > 1 ? " or another part" : "");
    switch (conflict) {
      case Webs::Conflict::ReadOnly: return parts + " lies in memory that may not be written";
      case Webs::Conflict::Pin: return parts + " or " + flow_.name(edges.front().to) + " has to lie elsewhere";
      case Webs::Conflict::Size: return "one value is several of its parts";
      default: return parts + " shares memory with what is needed at the same time";
    }
  }

  std::string reason(const Edge& edge, Webs::Conflict conflict) const {
    switch (conflict) {
      case Webs::Conflict::None: return "the layout changes";
      case Webs::Conflict::Size: return "the sizes differ";
      case Webs::Conflict::Pin: return pin_reason(edge);
      case Webs::Conflict::ReadOnly: return read_only_reason(edge);
      case Webs::Conflict::Life: break;
    }
    const auto [a, b] = webs_.clash(edge.from, edge.to);
    return flow_.name(a) + " is still needed where " + flow_.name(b) + " is written" + reader_behind(a, b) +
           in_a_cycle(edge);
  }

  std::string read_only_reason(const Edge& edge) const {
    for (const NodeId n : {edge.from, edge.to})
      for (const NodeId member : webs_.members(n)) {
        const Pin pin = flow_.pin(member);
        if (pin.kind == Pin::Kind::Constant) return flow_.name(member) + " is a constant, which is never written over";
        if (pin.kind == Pin::Kind::Parameter && !flow_.is_result(member) && !flow_.is_donated(pin.number))
          return "parameter " + flow_.name(member) + " is not donated: input_output_alias or buffer_donor would do so";
      }
    return "the memory may not be written";
  }

  std::string pin_words(NodeId n) const {
    const Pin p = webs_.pin(n);
    if (p.kind == Pin::Kind::Constant) return "constant " + flow_.name(static_cast<NodeId>(p.number));
    return (p.kind == Pin::Kind::Parameter ? "parameter " : "result ") + std::to_string(p.number);
  }

  std::string pin_reason(const Edge& edge) const {
    std::string text = "it lies in " + pin_words(edge.from) + " and has to be in " + pin_words(edge.to);
    const Pin p = webs_.pin(edge.from);
    if (edge.kind == Edge::Kind::Result && p.kind == Pin::Kind::Parameter && flow_.aliased_result(p.number) < 0)
      text += ": donated to it (input_output_alias) it would stay";
    return text;
  }

  // What order_readers() found: a reader of the base that cannot come before its writer.
  static std::string in_a_cycle(const Edge& edge) {
    const auto& decisions = edge.at->annotations().decisions;
    const auto found = decisions.find("read_after");
    return edge.kind != Edge::Kind::InPlace || found == decisions.end() ? "" : " (" + found->second + ")";
  }

  // Names a reader of one that comes at or after the other is made.
  std::string reader_behind(NodeId a, NodeId b) const {
    for (const auto& [x, y] : {std::pair(a, b), std::pair(b, a)}) {
      if (flow_.is_result(x) || flow_.live(y).empty()) continue;
      for (const Use& use : flow_.uses(x))
        if (flow_.live(y).contains(use.point))
          if (const Instruction* reader = flow_.timeline().at(use.point))
            return ": " + reader->name() + " reads " + flow_.name(x);
    }
    return {};
  }

  Place place_of(const Edge& edge) const {
    auto* at = const_cast<Instruction*>(edge.at);
    switch (edge.kind) {
      case Edge::Kind::Init: return {at->parent(), at, at, 0};
      case Edge::Kind::InPlace: return {at->parent(), at, at, edge.input};
      case Edge::Kind::Back: return {at->body(), nullptr, nullptr, 0};
      case Edge::Kind::Branch: return {at->called(edge.input), nullptr, nullptr, 0};
      case Edge::Kind::Result: return {at->parent(), nullptr, nullptr, 0};
      case Edge::Kind::Part: break;
    }
    return {};
  }

  static std::int64_t leaf_in_operand(const Edge& edge) {
    return edge.kind == Edge::Kind::InPlace ? edge.input_leaf : edge.leaf;
  }

  void emit_at(const Place& place, std::vector<Copy>& copies) {
    Instruction* whole = place.consumer != nullptr ? place.consumer->operand(place.operand) : place.computation->root();
    Added added;
    for (Copy& c : copies) {
      c.source = leaf_of(whole, leaf_in_operand(*c.edge), added);
      c.from = webs_.find(c.from);
      c.to = webs_.find(c.to);
    }
    // What was made last goes first: where a loop takes turns between two sets of arrays, each next one of a set may then
    // lie where one of the other has just been read, on the way out as on the way in.
    std::ranges::stable_sort(copies, std::greater(), [&](const Copy& c) { return made_at(*c.edge); });
    std::map<std::int64_t, Instruction*> replacements;
    emit_in_order(copies, replacements, added);
    Instruction* replaced = with_leaves(whole, replacements, added);
    if (place.consumer != nullptr)
      place.consumer->replace_operand(place.operand, replaced);
    else
      place.computation->set_root(replaced);
    if (place.before != nullptr)
      edits_.insert_before(*place.before, added);
    else
      edits_.append(*place.computation, added);
  }

  Point made_at(const Edge& edge) const { return flow_.timeline().of(*flow_.values()[edge.from].definer).begin; }

  // A copy may be made once no other one still reads what it writes over. If all wait for each other, the first one's
  // source goes to a temporary.
  void emit_in_order(std::vector<Copy>& copies, std::map<std::int64_t, Instruction*>& replacements, Added& added) {
    std::vector<Copy*> pending;
    for (Copy& c : copies) pending.push_back(&c);
    while (!pending.empty()) {
      const auto free = std::ranges::find_if(pending, [&](const Copy* c) {
        return std::ranges::none_of(pending, [&](const Copy* other) { return other->from == c->to; });
      });
      if (free == pending.end()) {
        Copy& first = *pending.front();
        first.source = emit(first);
        first.from = -1;
        continue;
      }
      Copy& c = **free;
      Instruction* copy = emit(c);
      replacements[leaf_in_operand(*c.edge)] = copy;
      decisions_[c.decision].copy = copy->name();
      pending.erase(free);
      emitted(added);
    }
    emitted(added);
  }

  Instruction* emit(const Copy& c) {
    Shape shape = c.source->shape();
    if (!flow_.is_result(c.edge->to) && c.edge->kind != Edge::Kind::InPlace) {
      const Shape& wanted = flow_.values()[c.edge->to].shape;
      if (wanted.has_layout()) shape.set_layout(wanted.layout());
    }
    new_copies_.push_back(
        c.source->parent()->add(Opcode::Copy, std::move(shape), {c.source}, "copy." + c.source->name()));
    return new_copies_.back();
  }

  void emitted(Added& added) {
    added.insert(added.end(), new_copies_.begin(), new_copies_.end());
    new_copies_.clear();
  }

  Flow flow_;
  Webs webs_;
  bool free_parts_;
  OrderEdits edits_;
  std::map<Place, std::vector<Copy>> places_;
  std::vector<InPlaceDecision> decisions_;
  std::vector<Instruction*> new_copies_;
};

}  // namespace

std::string_view name(InPlaceDecision::Kind kind) {
  switch (kind) {
    case InPlaceDecision::Kind::LoopEntry: return "loop entry";
    case InPlaceDecision::Kind::LoopCarry: return "loop carry";
    case InPlaceDecision::Kind::Branch: return "conditional result";
    case InPlaceDecision::Kind::Update: return "window update";
    case InPlaceDecision::Kind::Scatter: return "scatter";
    case InPlaceDecision::Kind::Alias: return "declared alias";
    case InPlaceDecision::Kind::Concatenate: return "concatenate";
    case InPlaceDecision::Kind::Slice: return "slice";
    case InPlaceDecision::Kind::Result: return "result";
    case InPlaceDecision::Kind::Donation: return "donated parameter";
    case InPlaceDecision::Kind::LateReader: return "late reader";
  }
  return "";
}

std::vector<InPlaceDecision> insert_copies(hlo::Module& module, bool free_parts) {
  remove_plain_copies(module);
  std::vector<InPlaceDecision> decisions = save_late_readers(module);
  std::vector<InPlaceDecision> edges = Inserter(module, free_parts).run();
  decisions.insert(decisions.end(), edges.begin(), edges.end());
  return decisions;
}

}  // namespace hloom::buffers

#include <algorithm>

#include "base/check.h"
#include "buffers/parts.h"
#include "buffers/steps.h"
#include "buffers/webs.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

Flow::Flow(const hlo::Module& module)
    : module_(module), values_(module), timeline_(module), donations_(donations(module)) {
  uses_.resize(static_cast<std::size_t>(values_.size()));
  in_place_.resize(static_cast<std::size_t>(values_.size()));
  for (const Computation* c : step_computations(module)) collect(*c);
  collect_predicates();
  collect_results();
  collect_phi_edges();
  compute_live();
}

std::string Flow::name(NodeId n) const {
  if (!is_result(n)) return to_string(values_[n]);
  return "result " + std::to_string(n - values_.size());
}

void Flow::use(ValueId v, const Computation& c, Point point) {
  if (values_[v].bytes > 0) uses_[static_cast<std::size_t>(v)].push_back({v, &c, point});
}

void Flow::collect(const Computation& c) {
  for (const Instruction& i : c.instructions()) {
    if (const Instruction* start = start_of(i)) use_until_done(*start, c, timeline_.of(i).begin);
    if (is_alias(i) || i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant) continue;
    collect_in_place(i);
    collect_uses(i);
    if (step_computations(i).empty()) collect_meetings(i);
    collect_parts(i);
  }
}

namespace {
std::uint64_t pair_key(NodeId operand, NodeId result) {
  return (static_cast<std::uint64_t>(static_cast<std::uint32_t>(operand)) << 32) | static_cast<std::uint32_t>(result);
}
}  // namespace

// All operands that are the value must be read element by element.
void Flow::collect_meetings(const Instruction& i) {
  const auto results = values_.of(i);
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    if (!i.operand(k)->shape().is_array()) continue;
    const ValueId from = values_.of(*i.operand(k), 0);
    for (std::size_t r = 0; r < results.size(); ++r) {
      if (values_[from].bytes != values_[results[r]].bytes || values_[from].bytes == 0) continue;
      bool good = true;
      for (std::int64_t other = 0; other < i.num_operands() && good; ++other) {
        const auto read = values_.of(*i.operand(other));
        if (std::ranges::find(read, from) != read.end())
          good = i.operand(other)->shape().is_array() && may_overwrite(i, other, static_cast<std::int64_t>(r));
      }
      if (good) meetings_.insert(pair_key(from, results[r]));
    }
  }
}

bool Flow::may_meet(NodeId a, NodeId b, Point at) const {
  for (const auto& [operand, result] : {std::pair(a, b), std::pair(b, a)}) {
    if (!meetings_.contains(pair_key(operand, result))) continue;
    // The operand must end there; a result that nothing reads lives no longer either.
    if (timeline_.of(*values_[result].definer).work() == at && !live(operand).contains(at + 1)) return true;
  }
  return false;
}

// In-place operands are read by the copy that may stand before the instruction, all others by the instruction.
void Flow::collect_uses(const Instruction& i) {
  const Computation& c = *i.parent();
  const Timeline::Place& place = timeline_.of(i);
  if (i.opcode() == Opcode::Conditional) return use(values_.of(*i.operand(0), 0), c, place.read());
  if (!step_computations(i).empty()) return;  // what callees read, they say
  const std::vector<InPlacePair> pairs = in_place_pairs(i);
  for (std::int64_t k = 0; k < i.num_operands(); ++k) {
    const auto operand = values_.of(*i.operand(k));
    for (std::size_t leaf = 0; leaf < operand.size(); ++leaf) {
      const bool in_place = std::ranges::any_of(pairs, [&](const InPlacePair& p) {
        return p.operand == k && p.operand_leaf == static_cast<std::int64_t>(leaf);
      });
      use(operand[leaf], c, in_place ? place.read() : place.work());
    }
  }
}

// Others read the operands of a collective or a copy, and write its results, until it is done.
void Flow::use_until_done(const Instruction& start, const Computation& c, Point done) {
  for (const Instruction* operand : start.operands())
    for (const ValueId v : values_.of(*operand)) use(v, c, done);
  for (const ValueId v : values_.of(start)) use(v, c, done);
}

void Flow::collect_in_place(const Instruction& i) {
  for (const InPlacePair& p : in_place_pairs(i)) {
    const ValueId from = values_.of(*i.operand(p.operand), p.operand_leaf), to = values_.of(i, p.result);
    in_place_[static_cast<std::size_t>(to)] = true;
    const Shape& shape = *leaves(i.operand(p.operand)->shape())[static_cast<std::size_t>(p.operand_leaf)];
    edges_.push_back({Edge::Kind::InPlace, &i, p.result, p.operand, p.operand_leaf, from, to, leaf_bytes(shape),
                      timeline_.of(*i.parent()).depth, true, timeline_.of(*i.parent()).runs});
  }
}

void Flow::collect_parts(const Instruction& i) {
  const std::optional<Parts> parts = parts_of(i);
  if (!parts) return;
  const Timeline::Span& span = timeline_.of(*i.parent());
  const bool is_slice = parts->kind == Parts::Kind::Slice;
  for (std::size_t k = 0; k < parts->offsets.size(); ++k) {
    const ValueId from = values_.of(*i.operand(static_cast<std::int64_t>(k)), 0);
    Edge edge{Edge::Kind::Part, &i, 0, static_cast<std::int64_t>(k), 0, from, values_.of(i, 0), 0, span.depth};
    edge.bytes = values_[is_slice ? edge.to : from].bytes;
    edge.runs = span.runs;
    edge.offset = is_slice ? -parts->offsets[k] : parts->offsets[k];
    edges_.push_back(edge);
  }
}

void Flow::collect_predicates() {
  for (const Computation* c : step_computations(module_)) {
    const Instruction* caller = timeline_.of(*c).caller;
    if (caller != nullptr && caller->opcode() == Opcode::While && caller->condition() == c)
      use(values_.of(*c->root(), 0), *c, timeline_.of(*c).read());
  }
}

// Phis that something reads, itself or by way of other phis.
std::vector<bool> Flow::needed_phis() const {
  std::vector<bool> needed(static_cast<std::size_t>(values_.size()));
  std::vector<ValueId> list;
  const auto need = [&](ValueId v) {
    if (needed[static_cast<std::size_t>(v)]) return;
    needed[static_cast<std::size_t>(v)] = true;
    list.push_back(v);
  };
  for (ValueId v = 0; v < static_cast<ValueId>(values_.size()); ++v)
    if (!uses_[static_cast<std::size_t>(v)].empty()) need(v);
  while (!list.empty()) {
    const ValueId v = list.back();
    list.pop_back();
    for (const ValueId input : values_[v].inputs) need(input);
  }
  return needed;
}

namespace {
// Taken at most once in all runs of the loop's body that it stands in.
bool is_rare_branch(const Instruction& conditional, std::size_t branch) {
  const auto& decisions = conditional.annotations().decisions;
  const auto found = decisions.find("rare_branch");
  return found != decisions.end() && found->second == std::to_string(branch);
}
}  // namespace

// A rare branch runs as often as what stands around the loop.
const Timeline::Span& Flow::often_run_like(const Computation& c, bool is_rare_branch) const {
  const Timeline::Span* span = &timeline_.of(c);
  if (!is_rare_branch) return *span;
  while (span->caller->opcode() != Opcode::While) span = &timeline_.of(*span->caller->parent());
  return timeline_.of(*span->caller->parent());
}

void Flow::collect_phi_edges() {
  const std::vector<bool> needed = needed_phis();
  for (ValueId v = 0; v < static_cast<ValueId>(values_.size()); ++v) {
    const Value& value = values_[v];
    if (value.inputs.empty() || !values_.is_real(v) || value.bytes == 0) continue;
    if (!needed[static_cast<std::size_t>(v)]) continue;
    const Instruction& i = *value.definer;
    for (std::size_t k = 0; k < value.inputs.size(); ++k) {
      const bool is_loop = value.kind == Value::Kind::Loop;
      const bool is_init = is_loop && k == 0;
      const Computation& c = is_init ? *i.parent() : *i.called()[k];  // a while's called(1) is its body
      const Edge::Kind kind = is_init ? Edge::Kind::Init : is_loop ? Edge::Kind::Back : Edge::Kind::Branch;
      use(value.inputs[k], c, is_init ? timeline_.of(i).read() : timeline_.of(c).read());
      const Timeline::Span& often = often_run_like(c, kind == Edge::Kind::Branch && is_rare_branch(i, k));
      edges_.push_back({kind, &i, value.leaf, static_cast<std::int64_t>(k), 0, value.inputs[k], v, value.bytes,
                        often.depth, same_storage(*value.input_shapes[k], value.shape), often.runs});
    }
  }
}

void Flow::collect_results() {
  const Instruction& root = *module_.entry()->root();
  const Shape& shape = root.shape();
  const auto shapes = leaves(shape);
  for (std::size_t k = 0; k < shapes.size(); ++k) {
    const std::int64_t bytes = leaf_bytes(*shapes[k]);
    if (bytes == 0) continue;
    const ValueId v = values_.of(root, static_cast<std::int64_t>(k));
    use(v, *module_.entry(), timeline_.of(*module_.entry()).read());
    edges_.push_back({Edge::Kind::Result, &root, static_cast<std::int64_t>(k), 0, 0, v,
                      result_node(static_cast<std::int64_t>(k)), bytes, 0, true});
  }
}

Intervals Flow::live_of(ValueId v) {
  const Value& value = values_[v];
  if (value.kind == Value::Kind::Constant) return Intervals({{0, timeline_.end()}});
  const Timeline::Place& place = timeline_.of(*value.definer);
  Point made = in_place_[static_cast<std::size_t>(v)] ? place.write() : place.work();
  if (value.definer->opcode() == Opcode::AsyncStart) made = place.begin;
  if (value.kind == Value::Kind::Parameter) {
    made = 0;
    if (!is_donated(pins_[static_cast<std::size_t>(v)].number)) return Intervals({{0, timeline_.end()}});
  }
  return live_range(value, made, uses(v), timeline_);
}

void Flow::compute_live() {
  const auto result_leaves = leaves(module_.entry()->root()->shape());
  const auto num_values = static_cast<std::size_t>(values_.size());
  live_.resize(num_values + result_leaves.size());
  pins_.resize(live_.size());
  bytes_.resize(live_.size());
  for (ValueId v = 0; v < static_cast<ValueId>(num_values); ++v) {
    const Value& value = values_[v];
    if (!values_.is_real(v) || value.bytes == 0) continue;
    Pin& pin = pins_[static_cast<std::size_t>(v)];
    if (value.kind == Value::Kind::Constant) pin = {Pin::Kind::Constant, v};
    if (value.kind == Value::Kind::Parameter)
      pin = {Pin::Kind::Parameter,
             donations_.first_leaf[static_cast<std::size_t>(value.definer->parameter_number())] + value.leaf};
    bytes_[static_cast<std::size_t>(v)] = value.bytes;
    live_[static_cast<std::size_t>(v)] = live_of(v);
  }
  const Timeline::Span& entry = timeline_.of(*module_.entry());
  for (std::size_t k = 0; k < result_leaves.size(); ++k) {
    const std::size_t n = num_values + k;
    bytes_[n] = leaf_bytes(*result_leaves[k]);
    if (bytes_[n] == 0) continue;
    live_[n] = Intervals({{entry.write(), entry.end}});
    pins_[n] = {Pin::Kind::Result, static_cast<std::int64_t>(k)};
  }
  for (std::size_t p = 0; p < donations_.aliased_result.size(); ++p)
    if (donations_.aliased_result[p] >= 0)
      pins_[static_cast<std::size_t>(result_node(donations_.aliased_result[p]))] = {Pin::Kind::Parameter,
                                                                                    static_cast<std::int64_t>(p)};
}

}  // namespace hloom::buffers

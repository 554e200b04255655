// First everything that is asked of each value is collected, then it is compared, and only then written: so the result
// does not depend on who comes first, and a module with a conflict is left alone.
#include "passes/propagate_memory_space.h"

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/fail.h"
#include "base/try.h"
#include "passes/match.h"

namespace hloom::passes {
namespace {

using hlo::Computation;

// Asked of each value; where two ask, the first.
using Asked = std::vector<const PlacementRequest*>;

// From the results of updates to their bases, through chains of them.
void follow_updates(const FusedValues& values, std::vector<PlacementRequest>& requests) {
  std::vector<std::optional<Placement>> known(static_cast<std::size_t>(values.num_values()));
  for (const PlacementRequest& r : requests)
    if (auto& k = known[static_cast<std::size_t>(r.value)]; !k) k = r.placement;
  std::unordered_multimap<FusedValues::Id, FusedValues::Update> updates;
  for (const FusedValues::Update& update : values.updates()) updates.emplace(update.result, update);
  for (std::size_t n = 0; n < requests.size(); ++n) {
    const auto [begin, end] = updates.equal_range(requests[n].value);
    for (auto at = begin; at != end; ++at) {
      const FusedValues::Update& update = at->second;
      auto& base = known[static_cast<std::size_t>(update.base)];
      if (base && base->space == requests[n].placement.space) continue;
      const bool first = !base.has_value();
      if (first) base = requests[n].placement;
      PlacementRequest more = requests[n];
      more.value = update.base;
      more.through = update.instruction;
      // What is in conflict goes no further.
      if (first || std::ranges::none_of(requests, [&](const PlacementRequest& r) {
            return r.value == more.value && r.placement == more.placement;
          }))
        requests.push_back(std::move(more));
    }
  }
}

// What goes into or out of a fusion inside, and nobody outside asks for, lies where it is made.
void add_inner_sides(const FusedValues& values, std::vector<PlacementRequest>& requests) {
  std::vector<bool> asked(static_cast<std::size_t>(values.num_values()));
  for (const PlacementRequest& r : requests) asked[static_cast<std::size_t>(r.value)] = true;
  for (FusedValues::Id v = 0; v < values.num_values(); ++v) {
    if (asked[static_cast<std::size_t>(v)] || !values.crosses(v)) continue;
    const auto& [instruction, leaf] = values.definition(v);
    const Placement there = placement_of(*leaves(instruction->shape())[static_cast<std::size_t>(leaf)]);
    requests.push_back({v, there, {instruction, -1, leaf}, nullptr});
  }
}

Expected<Asked> compare(const FusedValues& values, const std::vector<PlacementRequest>& requests) {
  Asked asked(static_cast<std::size_t>(values.num_values()), nullptr);
  for (const PlacementRequest& r : requests) {
    const PlacementRequest*& first = asked[static_cast<std::size_t>(r.value)];
    if (first == nullptr) first = &r;
    if (first->placement == r.placement) continue;
    const Instruction* at = values.positions(r.value).front().instruction;
    return fail(Code::InvalidArgument, at->name(), ": ", to_string(first->from), " is in ",
                to_string(first->placement), ", ", to_string(r.from), " in ", to_string(r.placement),
                r.through == nullptr ? "" : ", and the update " + r.through->name() + " is written over its base",
                ": one value cannot lie in both; separate-memory-spaces puts a copy between them");
  }
  return asked;
}

// What a pass over a module is going to write.
struct Edit {
  Position at;
  Placement placement;
};

Expected<> collect(const FusedValues& values, const std::vector<PlacementRequest>& requests, std::vector<Edit>& edits) {
  const Asked asked = TRY(compare(values, requests));
  for (FusedValues::Id v = 0; v < values.num_values(); ++v) {
    const PlacementRequest* wanted = asked[static_cast<std::size_t>(v)];
    if (wanted == nullptr) continue;
    for (const Position& p : values.positions(v)) {
      const Shape& leaf = *leaves(p.instruction->shape())[static_cast<std::size_t>(p.leaf)];
      if (leaf.is_array() && !(placement_of(leaf) == wanted->placement)) edits.push_back({p, wanted->placement});
    }
  }
  return {};
}

Changed write(const std::vector<Edit>& edits) {
  for (const Edit& e : edits) {
    Instruction& i = *e.at.instruction;
    i.set_shape(placed(i.shape(), e.at.leaf, e.placement));
    if (is(&i, Opcode::Constant) && i.shape().is_array())
      i.mutable_attr<hlo::ConstantAttr>().literal.set_shape_layout(i.shape().layout());
  }
  return edits.empty() ? Changed::No : Changed::Yes;
}

std::vector<PlacementRequest> requests_inside(const Computation& fused, const FusedValues& values) {
  std::vector<PlacementRequest> requests;
  std::unordered_set<FusedValues::Id> parameters;
  const auto ask = [&](const Instruction& i, bool is_parameter) {
    const auto all = leaves(i.shape());
    for (std::int64_t leaf = 0; leaf < static_cast<std::int64_t>(all.size()); ++leaf) {
      const FusedValues::Id v = values.value(i, leaf);
      if (is_parameter)
        parameters.insert(v);
      else if (parameters.contains(v))
        continue;
      requests.push_back({v, placement_of(*all[static_cast<std::size_t>(leaf)]), {&i, -1, leaf}, nullptr});
    }
  };
  for (const Instruction* p : fused.parameters()) ask(*p, true);
  ask(*fused.root(), false);
  follow_updates(values, requests);
  add_inner_sides(values, requests);
  return requests;
}

}  // namespace

std::string to_string(const Boundary& b) {
  const Shape& shape = b.operand < 0 ? b.at->shape() : b.at->operand(b.operand)->shape();
  std::string text;
  if (!is(b.at, Opcode::Fusion))
    text = b.at->name();
  else if (b.operand < 0)
    text = "the result of " + b.at->name();
  else
    text = "operand " + std::to_string(b.operand) + " (" + b.at->operand(b.operand)->name() + ") of " + b.at->name();
  if (!shape.is_tuple()) return text;
  text += " {";
  const char* comma = "";
  const ShapeIndex index = leaf_indices(shape)[static_cast<std::size_t>(b.leaf)];
  for (const std::int64_t k : index) {
    text += comma + std::to_string(k);
    comma = ",";
  }
  return text + "}";
}

std::vector<PlacementRequest> placement_requests(const Instruction& fusion, const FusedValues& values) {
  std::vector<PlacementRequest> requests;
  const auto ask = [&](const Shape& outside, const Instruction& inside, std::int64_t operand) {
    const auto all = leaves(outside);
    for (std::int64_t leaf = 0; leaf < static_cast<std::int64_t>(all.size()); ++leaf)
      requests.push_back({values.value(inside, leaf), placement_of(*all[static_cast<std::size_t>(leaf)]),
                          {&fusion, operand, leaf}, nullptr});
  };
  for (std::int64_t k = 0; k < fusion.num_operands(); ++k)
    ask(fusion.operand(k)->shape(), *fusion.called(0)->parameter(k), k);
  ask(fusion.shape(), *fusion.called(0)->root(), -1);
  follow_updates(values, requests);
  add_inner_sides(values, requests);
  return requests;
}

Expected<Changed> propagate_memory_space(hlo::Module& module, const std::set<std::string>& execution_threads) {
  if (!has_placements(module)) return Changed::No;
  std::unordered_set<const Computation*> fused;
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (is(&i, Opcode::Fusion)) fused.insert(i.called(0));
  std::vector<Edit> edits;
  for (const Computation& c : module.computations()) {
    if (fused.contains(&c) || (!execution_threads.empty() && !execution_threads.contains(c.execution_thread())))
      continue;
    for (const Instruction& i : c.instructions()) {
      if (!is(&i, Opcode::Fusion)) continue;
      const FusedValues values = TRY(FusedValues::of(*i.called(0)));
      TRY(collect(values, placement_requests(i, values), edits));
    }
  }
  return write(edits);
}

Expected<Changed> propagate_memory_space(hlo::Module& module) { return propagate_memory_space(module, {}); }

Expected<Changed> propagate_memory_space(Computation& fused) {
  const FusedValues values = TRY(FusedValues::of(fused));
  std::vector<Edit> edits;
  TRY(collect(values, requests_inside(fused, values), edits));
  return write(edits);
}

}  // namespace hloom::passes

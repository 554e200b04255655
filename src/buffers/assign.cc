#include <algorithm>
#include <map>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"
#include "buffers/assignment.h"
#include "buffers/concurrency.h"
#include "buffers/decisions.h"
#include "buffers/match_layouts.h"
#include "buffers/order_readers.h"
#include "buffers/parts.h"
#include "buffers/recompute.h"
#include "buffers/schedule.h"
#include "buffers/split_fills.h"
#include "buffers/start_copies.h"
#include "buffers/steps.h"
#include "buffers/unroll_loops.h"
#include "buffers/webs.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

bool Assignment::has(const Instruction& i) const {
  return static_cast<std::size_t>(i.id()) < ranges_.size() && ranges_[static_cast<std::size_t>(i.id())].count >= 0;
}

std::int64_t Assignment::num_leaves(const Instruction& i) const {
  HLOOM_CHECK(has(i));
  return ranges_[static_cast<std::size_t>(i.id())].count;
}

const Slice& Assignment::slice(const Instruction& i, std::int64_t leaf) const {
  HLOOM_CHECK(leaf >= 0 && leaf < num_leaves(i));
  return slices_[static_cast<std::size_t>(ranges_[static_cast<std::size_t>(i.id())].begin + leaf)];
}

void Assignment::set_slice(const Instruction& i, std::int64_t leaf, Slice s) {
  HLOOM_CHECK(leaf >= 0 && leaf < num_leaves(i));
  slices_[static_cast<std::size_t>(ranges_[static_cast<std::size_t>(i.id())].begin + leaf)] = s;
}

std::int64_t Assignment::arena_bytes() const {
  std::int64_t bytes = 0;
  for (const Allocation& a : allocations_)
    if (a.kind == Allocation::Kind::Arena) bytes += a.bytes;
  return bytes;
}

std::int64_t Assignment::total_bytes() const {
  std::int64_t bytes = 0;
  for (const Allocation& a : allocations_) {
    const bool is_donated = a.kind == Allocation::Kind::Result &&
                            std::ranges::find(allocations_, a.number, &Allocation::aliased_result) != allocations_.end();
    if (!is_donated) bytes += a.bytes;
  }
  return bytes;
}

Slice Assignment::workspace(const Instruction& i) const {
  const auto found = workspaces_.find(&i);
  return found == workspaces_.end() ? Slice() : found->second;
}

namespace {

// Where blocks of a memory space may begin, besides what their sizes ask for. Devices of a collective write beside each
// other; mapped memory is handed on in pages.
std::int64_t alignment_in(std::int64_t space) {
  switch (space) {
    case 1: return 128;
    case 2: return 4096;
    case 5: return kArenaAlignment;
    default: return 1;
  }
}

}  // namespace

/// Joins what must share memory and what may, and places the webs.
class Assigner {
 public:
  /// `reach`: how far apart steps may be that are kept free to go on at once (concurrency.h).
  Assigner(const hlo::Module& module, const PlaceOptions& options, int reach)
      : module_(module), options_(options), flow_(module), webs_(flow_), concurrency_(flow_, reach) {}

  std::size_t num_pairs() const { return concurrency_.pairs().size(); }

  Expected<Assignment> run() {
    for (const Edge& edge : flow_.edges())
      if (edge.kind != Edge::Kind::Part) TRY(join_edge(edge));
    TRY(join_parts());
    reuse_operands();
    result_.module_ = &module_;
    add_allocations();
    place_webs();
    name_slices();
    return std::move(result_);
  }

 private:
  Expected<> join_edge(const Edge& edge) {
    if (!edge.same_storage || webs_.conflict(edge.from, edge.to) != Webs::Conflict::None)
      return fail(Code::FailedPrecondition, edge.at->name(), ": ", flow_.name(edge.from), " and ", flow_.name(edge.to),
                  " must share memory, and cannot without a copy");
    webs_.join(edge.from, edge.to);
    return {};
  }

  Expected<> join_parts() {
    const std::span<const Edge> edges = flow_.edges();
    for (std::size_t begin = 0, end = 0; begin < edges.size(); begin = end) {
      const Edge& first = edges[begin];
      end = begin + 1;
      if (first.kind != Edge::Kind::Part) continue;
      while (end < edges.size() && edges[end].kind == Edge::Kind::Part && edges[end].at == first.at) ++end;
      if (!is_free(*first.at)) continue;
      if (webs_.join_parts(edges.subspan(begin, end - begin)) != Webs::Conflict::None)
        return fail(Code::FailedPrecondition, first.at->name(), ": its parts cannot lie where they belong");
    }
    return {};
  }

  // An elementwise result over an operand that ends there; the largest first.
  void reuse_operands() {
    struct Chance {
      const Instruction* i;
      std::int64_t operand, result, bytes;
    };
    std::vector<Chance> chances;
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions()) {
        const auto results = flow_.values().of(i);
        if (is_alias(i) || is_free(i) || !step_computations(i).empty() || results.empty()) continue;
        for (std::int64_t k = 0; k < i.num_operands(); ++k) {
          if (!i.operand(k)->shape().is_array()) continue;
          for (std::size_t r = 0; r < results.size(); ++r)
            if (flow_.bytes(results[r]) > 0 && flow_.bytes(results[r]) == leaf_bytes(i.operand(k)->shape()))
              chances.push_back({&i, k, static_cast<std::int64_t>(r), flow_.bytes(results[r])});
        }
      }
    std::ranges::stable_sort(chances, std::greater(), &Chance::bytes);
    for (const Chance& chance : chances) reuse(*chance.i, chance.operand, chance.result);
  }

  void reuse(const Instruction& i, std::int64_t operand, std::int64_t result) {
    const ValueId from = flow_.values().of(*i.operand(operand), 0), to = flow_.values().of(i, result);
    if (webs_.find(from) == webs_.find(to)) return;
    if (!flow_.may_meet(from, to, flow_.timeline().of(i).work())) return;
    if (concurrency_.is_beside(i, webs_.members(from))) return;
    if (webs_.conflict(from, to) == Webs::Conflict::None) webs_.join(from, to);
  }

  void add_allocations() {
    auto& allocations = result_.allocations_;
    allocations.push_back({});
    allocations.front().kind = Allocation::Kind::Arena;
    std::int64_t leaf = 0;
    for (const Instruction* p : module_.entry()->parameters())
      for (const Shape* s : leaves(p->shape())) {
        allocations.push_back({Allocation::Kind::Parameter, leaf, nullptr, 0, leaf_bytes(*s), flow_.is_donated(leaf),
                               flow_.aliased_result(leaf), space_of(*s)});
        ++leaf;
      }
    first_result_ = static_cast<std::int32_t>(allocations.size());
    const auto results = leaves(module_.entry()->root()->shape());
    for (std::size_t r = 0; r < results.size(); ++r)
      allocations.push_back(
          {Allocation::Kind::Result, static_cast<std::int64_t>(r), nullptr, 0, leaf_bytes(*results[r]), true, -1,
                             space_of(*results[r])});
    for (ValueId v = 0; v < static_cast<ValueId>(flow_.values().size()); ++v) {
      const Value& value = flow_.values()[v];
      if (value.kind != Value::Kind::Constant || value.bytes == 0) continue;
      constant_allocation_[v] = static_cast<std::int32_t>(allocations.size());
      allocations.push_back({Allocation::Kind::Constant, 0, value.definer, value.leaf, value.bytes, false, -1,
                             space_of(value.shape)});
    }
  }

  std::int32_t allocation_of(const Pin& pin) const {
    switch (pin.kind) {
      case Pin::Kind::None: return 0;
      case Pin::Kind::Parameter: return static_cast<std::int32_t>(1 + pin.number);
      case Pin::Kind::Result: return static_cast<std::int32_t>(first_result_ + pin.number);
      case Pin::Kind::Constant: return constant_allocation_.at(static_cast<ValueId>(pin.number));
    }
    return 0;
  }

  // Memory of results and donated parameters, which serves other values while it is free.
  void find_shelves() {
    const auto& allocations = result_.allocations_;
    for (NodeId n = 0; n < flow_.num_nodes(); ++n) {
      const Pin pin = webs_.pin(n);
      if (webs_.find(n) != n || webs_.bytes(n) < kArenaAlignment || pin.kind == Pin::Kind::None) continue;
      const auto allocation = static_cast<std::size_t>(allocation_of(pin));
      if (!allocations[allocation].writable) continue;
      const Shape& shape = shape_of(pin);
      lent_[arena_space(shape)].push_back({static_cast<std::int32_t>(allocation),
                                           {allocations[allocation].bytes, webs_.live(n), element_bytes(shape),
                                            concurrency_.neighbours(webs_.members(n))}});
    }
  }

  // Of a parameter or result.
  const Shape& shape_of(const Pin& pin) const {
    if (pin.kind == Pin::Kind::Result)
      return *leaves(module_.entry()->root()->shape())[static_cast<std::size_t>(pin.number)];
    std::int64_t leaf = pin.number;
    for (const Instruction* p : module_.entry()->parameters()) {
      if (leaf < num_leaves(p->shape())) return *leaves(p->shape())[static_cast<std::size_t>(leaf)];
      leaf -= num_leaves(p->shape());
    }
    HLOOM_CHECK(false);
    return module_.entry()->root()->shape();
  }

  static std::int64_t element_bytes(const Shape& shape) {
    return std::max<std::int64_t>(1, byte_width(real_type(shape.dtype())));
  }

  // Of all values of the web.
  std::int64_t address_alignment(NodeId web) const {
    std::int64_t alignment = 1;
    for (const NodeId m : webs_.members(web))
      if (!flow_.is_result(m)) alignment = std::max(alignment, element_bytes(flow_.values()[m].shape));
    return alignment;
  }

  // What has to lie in the arena of one memory space.
  struct Tenants {
    std::vector<Block> blocks;
    std::vector<NodeId> webs;                 // of the first blocks
    std::vector<const Instruction*> workers;  // whose workspaces the others are
  };

  void place_webs() {
    find_shelves();
    std::map<std::int64_t, Tenants> spaces;
    spaces[0];
    for (NodeId n = 0; n < flow_.num_nodes(); ++n) {
      if (webs_.find(n) != n || webs_.bytes(n) == 0 || webs_.pin(n).kind != Pin::Kind::None) continue;
      if (webs_.live(n).empty()) continue;
      const std::int64_t space = arena_space(flow_.values()[n].shape);
      spaces[space].webs.push_back(n);
      spaces[space].blocks.push_back(
          {webs_.bytes(n) + options_.guard_bytes, webs_.live(n), alignment_in(space), address_alignment(n),
           concurrency_.neighbours(webs_.members(n))});
    }
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions())
        if (const std::int64_t bytes = workspace_bytes(i); bytes > 0) {
          const Point work = flow_.timeline().of(i).work();
          spaces[0].workers.push_back(&i);
          spaces[0].blocks.push_back(
              {bytes + options_.guard_bytes, Intervals({{work, work + 1}}), 1, kArenaAlignment, concurrency_.neighbours(i)});
        }
    for (const auto& [space, tenants] : spaces) place_in(space, tenants);
    std::ranges::stable_partition(result_.blocks_, [&](const ArenaBlock& b) { return result_.is_in_arena(b); });
  }

  void place_in(std::int64_t space, const Tenants& tenants) {
    auto& allocations = result_.allocations_;
    const auto arena = static_cast<std::int32_t>(space == 0 ? 0 : allocations.size());
    if (space != 0) allocations.emplace_back();
    allocations[static_cast<std::size_t>(arena)].space = space;
    std::vector<Shelf> shelves;
    for (const Lent& lent : lent_[space]) shelves.push_back(lent.shelf);
    const Packing packing = pack(tenants.blocks, options_.effort, shelves);
    allocations[static_cast<std::size_t>(arena)].bytes = packing.bytes;
    result_.lower_bound_ += packing.lower_bound;
    for (std::size_t k = 0; k < tenants.blocks.size(); ++k) {
      const std::int32_t shelf = packing.shelves[k];
      const std::int32_t allocation = shelf < 0 ? arena : lent_[space][static_cast<std::size_t>(shelf)].allocation;
      ArenaBlock block{packing.offsets[k], tenants.blocks[k].bytes - options_.guard_bytes, tenants.blocks[k].live, {}, nullptr, allocation};
      const Slice slice{allocation, block.offset, block.bytes};
      if (k < tenants.webs.size()) {
        places_[tenants.webs[k]] = slice;
        describe(tenants.webs[k], block);
      } else {
        const Instruction* worker = tenants.workers[k - tenants.webs.size()];
        result_.workspaces_.emplace(worker, slice);
        block.values.push_back("workspace of " + worker->name());
        block.definer = worker;
      }
      result_.blocks_.push_back(std::move(block));
    }
  }

  void describe(NodeId web, ArenaBlock& block) const {
    std::vector<NodeId> members = webs_.members(web);
    std::ranges::sort(members);
    for (const NodeId m : members) block.values.push_back(flow_.name(m));
    if (!flow_.is_result(members.front())) block.definer = flow_.values()[members.front()].definer;
  }

  Slice slice_of(ValueId v) const {
    if (flow_.values()[v].bytes == 0) return {};
    const NodeId web = webs_.find(v);
    const auto place = places_.find(web);
    if (place == places_.end()) return {allocation_of(webs_.pin(web)), webs_.offset(v), flow_.values()[v].bytes};
    return {place->second.allocation, place->second.offset + webs_.offset(v), flow_.values()[v].bytes};
  }

  void name_slices() {
    result_.ranges_.resize(static_cast<std::size_t>(module_.num_ids()));
    for (const Computation* c : step_computations(module_))
      for (const Instruction& i : c->instructions()) {
        const auto values = flow_.values().of(i);
        result_.ranges_[static_cast<std::size_t>(i.id())] = {static_cast<std::int32_t>(result_.slices_.size()),
                                                             static_cast<std::int32_t>(values.size())};
        for (const ValueId v : values) result_.slices_.push_back(slice_of(v));
      }
  }

  const hlo::Module& module_;
  PlaceOptions options_;
  Flow flow_;
  Webs webs_;
  Concurrency concurrency_;
  Assignment result_;
  std::int32_t first_result_ = 0;
  std::unordered_map<ValueId, std::int32_t> constant_allocation_;
  std::unordered_map<NodeId, Slice> places_;
  struct Lent {
    std::int32_t allocation = 0;
    Shelf shelf;
  };
  std::map<std::int64_t, std::vector<Lent>> lent_;  // by memory space
};

Expected<Assignment> place(const hlo::Module& module, const PlaceOptions& options) {
  Assignment tight = TRY(Assigner(module, options, 0).run());
  if (options.effort == PackEffort::Quick) return tight;
  const std::int64_t most = tight.arena_bytes() + options.concurrency_bytes;
  std::size_t tried = 0;
  for (const int reach : {Concurrency::kMostReach, 16, 4, 1}) {
    Assigner assigner(module, options, reach);
    if (assigner.num_pairs() == std::exchange(tried, assigner.num_pairs())) continue;
    Assignment loose = TRY(assigner.run());
    if (loose.arena_bytes() > most || (options.limit_bytes > 0 && loose.total_bytes() > options.limit_bytes)) continue;
    return loose;
  }
  return tight;
}

Expected<Assignment> finish(hlo::Module& module, const FinishOptions& options) {
  order_readers(module);
  schedule(module);
  if (options.start_copies) start_copies(module);
  std::vector<InPlaceDecision> decisions = insert_copies(module, options.free_parts);
  auto placed = place(module, options.place);
  if (!placed && options.free_parts) {  // copies that came in between part what was to lie together
    decisions = insert_copies(module, false);
    placed = place(module, options.place);
  }
  Assignment assignment = TRY(std::move(placed));
  append_undone(module, decisions);
  assignment.decisions_ = std::move(decisions);
  return assignment;
}

namespace {

// What lies in one array from the first part on, and is kept until the last has been read, may take more than copies.
bool are_parts_small(const hlo::Module& module) {
  std::int64_t bytes[2];
  for (const bool free_parts : {false, true}) {
    const auto trial = module.clone();
    const auto assignment = finish(*trial, {{.effort = PackEffort::Quick}, true, free_parts});
    if (!assignment) return !free_parts;
    bytes[free_parts ? 1 : 0] = assignment->arena_bytes();
  }
  return bytes[1] <= bytes[0];
}

}  // namespace

Expected<Assignment> assign(hlo::Module& module, const AssignOptions& options) {
  TRY(unshare_steps(module));
  if (!module.config().is_scheduled)
    for (Computation* c : step_computations(module)) c->sort();
  split_fills(module);
  match_layouts(module);
  note_in_place(module);
  unroll_loops(module, options.start_copies);
  TRY(unshare_steps(module));
  recompute_cheap_values(module, options.place.limit_bytes);
  const bool free_parts = have_parts(module) && are_parts_small(module);
  return finish(module, {options.place, options.start_copies, free_parts});
}

}  // namespace hloom::buffers

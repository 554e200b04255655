#include "buffers/schedule_model.h"

#include <algorithm>
#include <array>

#include "buffers/donations.h"
#include "buffers/in_place.h"
#include "buffers/steps.h"
#include "buffers/values.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

ScheduleModel::ScheduleModel(const Computation& c, Role role, const Peaks& peaks) : role_(role) {
  if (role == Role::Entry) donated_ = donations(c.module()).donated;
  for (const Instruction& i : c.instructions()) add(i, peaks);
  root_ = numbers_.at(c.root());
  take_results(c);
}

// What the caller reads stays. Its memory is there: that of results, of a loop's state, of donated parameters; a result
// that lies in a donated parameter's memory has no other.
void ScheduleModel::take_results(const Computation& c) {
  std::vector<std::int64_t> aliased;
  if (role_ == Role::Entry) aliased = donations(c.module()).aliased_result;
  for (const LocalValue& v : values_)
    if (v.maker < 0) lent_bytes_ += v.bytes;
  std::vector<bool> seen(values_.size());
  const std::vector<Local>& results = locals_.at(c.root());
  for (std::size_t k = 0; k < results.size(); ++k) {
    LocalValue& value = values_[results[k]];
    if (!seen[results[k]]) ++value.uses;
    if (role_ != Role::Body && !seen[results[k]] && value.maker >= 0 &&
        std::ranges::find(aliased, static_cast<std::int64_t>(k)) == aliased.end())
      lent_bytes_ += value.bytes;
    seen[results[k]] = true;
  }
}

ScheduleModel::Order ScheduleModel::present_order() const {
  Order order(nodes_.size());
  for (std::size_t n = 0; n < order.size(); ++n) order[n] = static_cast<int>(n);
  return order;
}

std::vector<Instruction*> ScheduleModel::instructions(const Order& order) const {
  std::vector<Instruction*> result;
  for (const int n : order) result.push_back(const_cast<Instruction*>(node(n).i));
  return result;
}

// --- Building ------------------------------------------------------------------------------------------------------

ScheduleModel::Local ScheduleModel::make(std::int64_t bytes, Node* maker) {
  values_.push_back({bytes, maker != nullptr ? static_cast<int>(nodes_.size()) : -1, 0, {}});
  if (maker != nullptr) {
    maker->makes.push_back(values_.size() - 1);
    maker->made_bytes += bytes;
  }
  return values_.size() - 1;
}

void ScheduleModel::add(const Instruction& i, const Peaks& peaks) {
  const int number = size();
  Node node;
  node.i = &i;
  add_edges(i, node, number);
  if (!is_alias(i))
    for (const Instruction* operand : i.operands()) add_reads(locals_.at(operand), node, number);
  if (const Instruction* start = start_of(i)) {
    add_reads(locals_.at(start), node, number);
    for (const Instruction* operand : start->operands()) add_reads(locals_.at(operand), node, number);
  }
  node.inner_bytes = workspace_bytes(i);
  for (const Computation* callee : step_computations(i))
    node.inner_bytes = std::max(node.inner_bytes, peaks.at(callee));
  std::vector<Local> made = leaves_of(i, node);
  locals_.emplace(&i, std::move(made));
  numbers_.emplace(&i, number);
  add_overwrites(i, node);
  nodes_.push_back(std::move(node));
}

void ScheduleModel::add_edges(const Instruction& i, Node& node, int number) {
  for (const auto* list : {&i.operands(), &i.control_predecessors()})
    for (const Instruction* b : *list) {
      const int needed = numbers_.at(b);
      if (std::ranges::find(node.before, needed) != node.before.end()) continue;
      node.before.push_back(needed);
      nodes_[static_cast<std::size_t>(needed)].after.push_back(number);
    }
}

void ScheduleModel::add_reads(const std::vector<Local>& read, Node& node, int number) {
  for (const Local v : read) {
    LocalValue& value = values_[v];
    if (!value.readers.empty() && value.readers.back() == number) continue;
    node.reads.push_back(v);
    value.readers.push_back(number);
    ++value.uses;
  }
}

// Results that may be written over an operand read element by element.
void ScheduleModel::add_overwrites(const Instruction& i, Node& node) const {
  if (is_alias(i) || !step_computations(i).empty()) return;
  const std::vector<Local>& results = locals_.at(&i);
  const auto reads = [&](std::int64_t k, Local v) {
    const auto& read = locals_.at(i.operand(k));
    return std::ranges::find(read, v) != read.end();
  };
  for (std::size_t r = 0; r < results.size(); ++r)
    for (std::int64_t k = 0; k < i.num_operands(); ++k) {
      if (!i.operand(k)->shape().is_array()) continue;
      const Local v = locals_.at(i.operand(k))[0];
      if (values_[v].bytes == 0 || values_[v].bytes != values_[results[r]].bytes || v == results[r]) continue;
      bool good = true;
      for (std::int64_t other = 0; other < i.num_operands() && good; ++other)
        if (reads(other, v))
          good = i.operand(other)->shape().is_array() && may_overwrite(i, other, static_cast<std::int64_t>(r));
      if (good) node.overwrites.push_back({v, results[r]});
    }
}

std::vector<ScheduleModel::Local> ScheduleModel::leaves_of(const Instruction& i, Node& node) {
  if (i.opcode() == Opcode::Parameter || i.opcode() == Opcode::Constant) return given_leaves(i);
  if (i.opcode() == Opcode::While) return loop_leaves(i, node);
  if (is_alias(i)) return alias_leaves(i);
  return made_leaves(i, node);
}

// Constants and what may not be written over are no concern of an order.
std::vector<ScheduleModel::Local> ScheduleModel::given_leaves(const Instruction& i) {
  std::vector<Local> result;
  std::int64_t first = 0;
  const bool is_entry = role_ == Role::Entry && i.opcode() == Opcode::Parameter;
  if (is_entry)
    for (std::int64_t p = 0; p < i.parameter_number(); ++p) first += num_leaves(i.parent()->parameter(p)->shape());
  for (const Shape* leaf : leaves(i.shape())) {
    const bool counts = i.opcode() == Opcode::Parameter &&
                        (role_ == Role::Body || (is_entry && donated_[static_cast<std::size_t>(first)]));
    result.push_back(make(counts ? leaf_bytes(*leaf) : 0, nullptr));
    ++first;
  }
  return result;
}

namespace {

// Of a tuple, which an alias names; -1: all operands, one behind the other.
std::int64_t named_element(const Instruction& i) {
  switch (i.opcode()) {
    case Opcode::GetTupleElement: return i.tuple_index();
    case Opcode::CopyDone: return 0;
    case Opcode::AllGatherDone:
    case Opcode::AsyncDone:
    case Opcode::CollectivePermuteDone: return 1;
    default: return -1;
  }
}

}  // namespace

std::vector<ScheduleModel::Local> ScheduleModel::alias_leaves(const Instruction& i) const {
  std::vector<Local> all;
  for (const Instruction* operand : i.operands()) {
    const auto& part = locals_.at(operand);
    all.insert(all.end(), part.begin(), part.end());
  }
  const std::int64_t element = named_element(i);
  if (element >= 0) all.erase(all.begin(), all.begin() + first_leaf(i.operand(0)->shape(), element));
  all.resize(static_cast<std::size_t>(num_leaves(i.shape())), 0);
  return all;
}

// A carried leaf is what enters living on, where that may be written over and no other leaf is it.
std::vector<ScheduleModel::Local> ScheduleModel::loop_leaves(const Instruction& loop, Node& node) {
  std::vector<Local> result = locals_.at(loop.operand(0));
  const auto shapes = leaves(loop.shape());
  const Instruction& next = *loop.body()->root();
  for (std::size_t k = 0; k < result.size(); ++k) {
    const bool is_kept = next.opcode() == Opcode::Tuple && next.num_operands() == static_cast<std::int64_t>(result.size()) &&
                         next.operand(static_cast<std::int64_t>(k))->opcode() == Opcode::GetTupleElement &&
                         next.operand(static_cast<std::int64_t>(k))->operand(0)->opcode() == Opcode::Parameter &&
                         next.operand(static_cast<std::int64_t>(k))->tuple_index() == static_cast<std::int64_t>(k);
    const LocalValue& value = values_[result[k]];
    const bool is_read_only = value.maker < 0 && value.bytes == 0;
    const bool is_taken = std::find(result.begin(), result.begin() + static_cast<std::ptrdiff_t>(k), result[k]) !=
                          result.begin() + static_cast<std::ptrdiff_t>(k);
    if (!is_kept && (is_read_only || is_taken)) result[k] = make(leaf_bytes(*shapes[k]), &node);
  }
  return result;
}

std::vector<ScheduleModel::Local> ScheduleModel::made_leaves(const Instruction& i, Node& node) {
  std::vector<Local> result, operands;
  for (const Instruction* operand : i.operands()) {
    const auto& part = locals_.at(operand);
    operands.insert(operands.end(), part.begin(), part.end());
  }
  OperandLeaves named = operand_leaves(i);
  if (i.opcode() == Opcode::AsyncStart) named = {0, static_cast<std::int64_t>(operands.size())};
  const auto pairs = in_place_pairs(i);
  std::int64_t leaf = 0;
  for (const Shape* shape : leaves(i.shape())) {
    const auto pair = std::ranges::find(pairs, leaf, &InPlacePair::result);
    Local v = 0;
    if (named.contain(leaf)) {
      v = operands[static_cast<std::size_t>(leaf - named.first)];
    } else if (pair != pairs.end()) {
      v = locals_.at(i.operand(pair->operand))[static_cast<std::size_t>(pair->operand_leaf)];
      if (values_[v].maker < 0 && values_[v].bytes == 0) v = make(leaf_bytes(*shape), &node);  // a copy
    } else {
      v = make(leaf_bytes(*shape), &node);
    }
    result.push_back(v);
    ++leaf;
  }
  return result;
}

// --- Counting ------------------------------------------------------------------------------------------------------

ScheduleModel::Run::Run(const ScheduleModel& model) : model_(model) {
  for (const LocalValue& v : model.values_) {
    left_.push_back(v.uses);
    if (v.maker < 0 && v.uses > 0) now_ += v.bytes;
  }
}

std::int64_t ScheduleModel::Run::gain(int n) const {
  std::int64_t bytes = -model_.node(n).made_bytes;
  for (const Local v : model_.node(n).reads)
    if (left_[v] == 1) bytes += model_.values_[v].bytes;
  return bytes;
}

// Of the results, those that are written over an operand which ends here.
std::int64_t ScheduleModel::Run::overwritten(int n) const {
  constexpr std::size_t kMost = 8;
  std::array<Overwrite, kMost> done;
  std::size_t count = 0;
  std::int64_t bytes = 0;
  for (const Overwrite& o : model_.node(n).overwrites) {
    if (left_[o.operand] != 1 || count == kMost) continue;
    const bool taken = std::any_of(done.begin(), done.begin() + count, [&](const Overwrite& d) {
      return d.operand == o.operand || d.result == o.result;
    });
    if (taken) continue;
    done[count++] = o;
    bytes += model_.values_[o.operand].bytes;
  }
  return bytes;
}

void ScheduleModel::Run::step(int n) {
  const Node& node = model_.node(n);
  now_ += node.made_bytes;
  during_ = now_ + node.inner_bytes - overwritten(n);
  for (const Local v : node.reads)
    if (--left_[v] == 0) now_ -= model_.values_[v].bytes;
  for (const Local v : node.makes)
    if (left_[v] == 0) now_ -= model_.values_[v].bytes;
}

ScheduleModel::Cost ScheduleModel::cost(const Order& order) const {
  Cost cost;
  Run run(*this);
  for (std::size_t k = 0; k < order.size(); ++k) {
    run.step(order[k]);
    if (run.during() > cost.peak_bytes) cost = {run.during(), 0, static_cast<int>(k)};
    if (run.during() == cost.peak_bytes) ++cost.steps_at_peak;
  }
  return cost;
}

}  // namespace hloom::buffers

#include "compiler/exact_results.h"

#include <cmath>
#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "base/try.h"
#include "compiler/check_tolerance.h"
#include "compiler/leaves.h"
#include "hlo/device_transfers.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Computation;
using hlo::Instruction;
using hlo::Literal;
using hlo::Opcode;

bool has_nan(const Literal& literal) {
  if (!literal.shape().is_array() || !is_floating(real_type(literal.dtype()))) return false;
  for (std::int64_t e = 0; e < literal.num_elements(); ++e)
    if (is_complex(literal.dtype()) || std::isnan(element_as_double(literal, e))) return true;
  return false;
}

// A NaN's sign and payload are open: these see them.
bool sees_bits(const Instruction& i) {
  const auto total_order = [](const Instruction& c) {
    return c.opcode() == Opcode::Compare && c.attr<hlo::CompareAttr>().type == hlo::Comparison::TotalOrder;
  };
  if (i.opcode() == Opcode::BitcastConvert || i.opcode() == Opcode::Topk || total_order(i)) return true;
  if (i.opcode() != Opcode::Sort) return false;
  for (const Instruction& c : i.to_apply()->instructions())
    if (c.opcode() == Opcode::Compare) return true;
  return false;
}

/// Marks the leaves of values that depend on what is open.
class Taint {
 public:
  Taint(const hlo::Module& module, const std::unordered_set<const Instruction*>& sources)
      : sources_(sources), transfers_(module) {
    for (bool changed = true; changed;) {
      changed = false;
      for (const Computation& c : module.computations())
        for (const Instruction& i : c.instructions()) changed = visit(i) || changed;
    }
  }
  const std::vector<bool>& of(const Instruction& i) { return leaves(i); }

 private:
  std::vector<bool>& leaves(const Instruction& i) {
    auto& marks = marks_[&i];
    if (marks.empty()) marks.resize(static_cast<std::size_t>(num_leaves(i.shape())));
    return marks;
  }

  // Adds marks; true if one is new.
  bool join(const Instruction& to, const std::vector<bool>& from) {
    std::vector<bool>& marks = leaves(to);
    bool changed = false;
    for (std::size_t n = 0; n < marks.size() && n < from.size(); ++n)
      if (from[n] && !marks[n]) marks[n] = changed = true;
    return changed;
  }
  bool mark_all(const Instruction& i) { return join(i, std::vector<bool>(leaves(i).size(), true)); }
  bool any(const Instruction& i) {
    for (const bool m : leaves(i))
      if (m) return true;
    return false;
  }

  bool visit(const Instruction& i) {
    switch (i.opcode()) {
      case Opcode::Parameter: return false;
      case Opcode::Tuple: return visit_tuple(i);
      case Opcode::GetTupleElement: return visit_element(i);
      case Opcode::Copy:
      case Opcode::OptBarrier: return join(i, leaves(*i.operand(0)));
      case Opcode::While: return visit_while(i);
      case Opcode::Conditional: return visit_conditional(i);
      case Opcode::Call:
      case Opcode::Fusion: return visit_call(i);
      default: break;
    }
    bool marked = sources_.contains(&i) || receives_marked(i);
    for (const Instruction* operand : i.operands()) marked = marked || any(*operand);
    const bool changed = marked && mark_all(i);
    if (const auto mailbox = mailbox_of(i); changed && i.opcode() == Opcode::Send && mailbox) sent_.insert(*mailbox);
    return changed;
  }

  // No dataflow leads from a send to what another device receives. Nothing for other instructions, or for a transfer that
  // never ran: the interpreter refuses what has no mailbox.
  std::optional<std::int64_t> mailbox_of(const Instruction& i) const {
    if (i.opcode() != Opcode::Send && i.opcode() != Opcode::RecvDone) return std::nullopt;
    if (i.attr<hlo::TransferAttr>().is_host_transfer) return std::nullopt;
    const auto transfer = transfers_.of(i);
    return transfer ? std::optional(transfer->mailbox) : std::nullopt;
  }
  bool receives_marked(const Instruction& i) const {
    const auto mailbox = mailbox_of(i);
    return i.opcode() == Opcode::RecvDone && mailbox && sent_.contains(*mailbox);
  }

  bool visit_tuple(const Instruction& i) {
    std::vector<bool> all;
    for (const Instruction* operand : i.operands()) {
      const std::vector<bool>& part = leaves(*operand);
      all.insert(all.end(), part.begin(), part.end());
    }
    return join(i, all);
  }

  bool visit_element(const Instruction& i) {
    const Shape& tuple = i.operand(0)->shape();
    std::int64_t first = 0;
    for (std::int64_t e = 0; e < i.tuple_index(); ++e) first += num_leaves(tuple.element(e));
    const std::vector<bool>& all = leaves(*i.operand(0));
    const auto begin = all.begin() + first;
    return join(i, std::vector<bool>(begin, begin + num_leaves(i.shape())));
  }

  bool visit_while(const Instruction& i) {
    bool changed = join(i, leaves(*i.operand(0)));
    changed = join(i, leaves(*i.body()->root())) || changed;
    if (any(*i.condition()->root())) changed = mark_all(i) || changed;
    changed = join(*i.body()->parameter(0), leaves(i)) || changed;
    return join(*i.condition()->parameter(0), leaves(i)) || changed;
  }

  bool visit_conditional(const Instruction& i) {
    bool changed = any(*i.operand(0)) && mark_all(i);
    for (std::size_t b = 0; b < i.called().size(); ++b) {
      changed = join(*i.called()[b]->parameter(0), leaves(*i.operands()[b + 1])) || changed;
      changed = join(i, leaves(*i.called()[b]->root())) || changed;
    }
    return changed;
  }

  bool visit_call(const Instruction& i) {
    bool changed = false;
    for (std::int64_t p = 0; p < i.num_operands(); ++p)
      changed = join(*i.to_apply()->parameter(p), leaves(*i.operand(p))) || changed;
    return join(i, leaves(*i.to_apply()->root())) || changed;
  }

  const std::unordered_set<const Instruction*>& sources_;
  const hlo::DeviceTransfers transfers_;
  std::unordered_set<std::int64_t> sent_;  // mailboxes that get what is open
  std::unordered_map<const Instruction*, std::vector<bool>> marks_;
};

}  // namespace

Expected<ExactResults> exact_results(const hlo::Module& module, std::span<const std::vector<Literal>> arguments,
                                     std::int64_t max_steps) {
  std::unordered_set<const Instruction*> sources;
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (is_bounded(i)) sources.insert(&i);
  Expected<> problem;
  const interp::BeforeObserver before = [&](const Instruction& i,
                                            const std::function<std::vector<Literal>()>& operands) {
    if (sources.contains(&i)) return;
    if (sees_bits(i)) {
      for (const Literal& operand : operands())
        if (has_nan(operand)) sources.insert(&i);
    } else if (is_sum(i)) {
      const Expected<bool> exact = sums_exactly(i, operands());
      if (!exact) problem = exact.error();
      if (!exact || !*exact) sources.insert(&i);
    }
  };
  interp::Options options;
  options.max_steps = max_steps;
  options.before = &before;
  options.replicas = module.config().replica_count;
  options.partitions = module.config().num_partitions;
  options.sums_in_f64 = arguments.size() == 1;  // sums over devices are in the order of ranks
  std::vector<std::vector<Literal>> of_device;
  for (const auto& leaves : arguments) of_device.push_back(arguments_of(module, leaves));
  const std::vector<Literal> literals = TRY(interp::interpret_devices(module, of_device, options));
  if (!problem) return problem.error();
  ExactResults results;
  for (const Literal& literal : literals)
    for (auto& own = results.values.emplace_back(); const Literal* leaf : hlo::leaves(literal)) own.push_back(*leaf);
  Taint taint(module, sources);
  for (const bool marked : taint.of(*module.entry()->root())) results.exact.push_back(!marked);
  return results;
}

}  // namespace hloom::compiler

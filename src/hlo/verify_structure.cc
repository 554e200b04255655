// Names, references, cycles, parameters, roots, orders: H702, H703, H705, H719, H731.
#include <algorithm>
#include <unordered_map>

#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

bool is_legal_name(std::string_view name) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  if (name.empty() || !is_letter(name.front())) return false;
  return std::ranges::all_of(name,
                             [&](char c) { return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-'; });
}

void check_names(const Module& module, Report& report) {
  NameSet computations, instructions;
  for (const Computation& c : module.computations()) {
    if (!is_legal_name(c.name())) report.add("H702", c, "the name is not legal");
    if (!computations.insert(c.name())) report.add("H702", c, "the name is not unique");
    for (const Instruction& i : c.instructions()) {
      if (!is_legal_name(i.name())) report.add("H702", i, "the name is not legal");
      if (!instructions.insert(i.name())) report.add("H702", i, "the name is not unique in the module");
    }
  }
}

void check_parameters(const Computation& c, Report& report) {
  std::vector<int> seen(c.parameters().size());
  for (const Instruction& i : c.instructions()) {
    if (i.opcode() != Opcode::Parameter) continue;
    const auto* attr = i.attributes().get_if<ParameterAttr>();
    if (attr == nullptr || attr->number < 0 || attr->number >= static_cast<std::int64_t>(seen.size()) ||
        c.parameter(attr->number) != &i) {
      report.add("H705", i, "its number does not match the computation's list of parameters");
      continue;
    }
    ++seen[static_cast<std::size_t>(attr->number)];
  }
  for (std::size_t n = 0; n < seen.size(); ++n)
    if (seen[n] != 1) report.add("H705", c, "parameter ", n, " of ", seen.size(), " is missing");
}

void check_references(const Module& module, const Computation& c,
                      const std::unordered_set<const Computation*>& computations, Report& report) {
  if (c.root() == nullptr || c.root()->parent() != &c) report.add("H705", c, "has no root of its own");
  for (const Instruction& i : c.instructions()) {
    for (const Instruction* operand : i.operands())
      if (operand->parent() != &c) report.add("H703", i, "operand ", operand->name(), " is of another computation");
    for (const Instruction* before : i.control_predecessors())
      if (before->parent() != &c)
        report.add("H703", i, "control predecessor ", before->name(), " is of another computation");
    for (const Computation* callee : i.called())
      if (!computations.contains(callee)) report.add("H703", i, "calls a computation outside module ", module.name());
  }
}

// In order: operands before users. Scheduled: control predecessors as well.
// `done` has a bit for each id in the module.
void check_order(const Computation& c, bool is_scheduled, std::vector<bool>& done, Report& report) {
  const auto is_done = [&](const Instruction* i) { return done[static_cast<std::size_t>(i->id())]; };
  for (const Instruction& i : c.instructions()) {
    for (const Instruction* operand : i.operands())
      if (!is_done(operand))
        report.add(is_scheduled ? "H731" : "H703", i, "stands before its operand ", operand->name());
    if (is_scheduled)
      for (const Instruction* before : i.control_predecessors())
        if (!is_done(before)) report.add("H731", i, "stands before its control predecessor ", before->name());
    done[static_cast<std::size_t>(i.id())] = true;
  }
}

// Operands stand before users, so only control edges can close a cycle; Kahn's algorithm over both.
void check_control_cycles(const Computation& c, Report& report) {
  if (std::ranges::all_of(c.instructions(), [](const Instruction& i) { return i.control_predecessors().empty(); }))
    return;
  std::unordered_map<const Instruction*, std::int64_t> waiting;
  std::vector<const Instruction*> ready;
  std::int64_t done = 0;
  for (const Instruction& i : c.instructions()) {
    const auto before = static_cast<std::int64_t>(i.operands().size() + i.control_predecessors().size());
    waiting[&i] = before;
    if (before == 0) ready.push_back(&i);
  }
  while (!ready.empty()) {
    const Instruction* i = ready.back();
    ready.pop_back();
    ++done;
    for (const auto* after : {&i->users(), &i->control_successors()})
      for (const Instruction* next : *after)
        if (--waiting[next] == 0) ready.push_back(next);
  }
  if (done == c.num_instructions()) return;
  for (const Instruction& i : c.instructions())
    if (waiting[&i] > 0) return report.add("H703", i, "lies on or behind a cycle of control edges");
}

// Depth first over callees without recursion: call graphs of user programs may be deep.
void check_call_graph(const Module& module, Report& report) {
  enum class State : char { New, Open, Done };
  std::unordered_map<const Computation*, State> state;
  std::vector<const Computation*> stack;
  const auto visit = [&](const Computation* start) {
    stack.push_back(start);
    while (!stack.empty() && !report.full()) {
      const Computation* c = stack.back();
      if (state[c] != State::New) {
        state[c] = State::Done;
        stack.pop_back();
        continue;
      }
      state[c] = State::Open;
      for (const Instruction& i : c->instructions())
        for (const Computation* callee : i.called()) {
          if (state[callee] == State::Open) report.add("H703", i, "calls ", callee->name(), ", which calls it");
          if (state[callee] == State::New) stack.push_back(callee);
        }
    }
    stack.clear();
  };
  visit(module.entry());
  for (const Computation& c : module.computations()) {
    if (state[&c] != State::New) continue;
    if (report.options().all_reached) report.add("H703", c, "is never called");
    visit(&c);
  }
}

bool has_users(const Instruction& i) { return !i.users().empty() || i.is_root(); }

void check_fusion(const Instruction& fusion, Report& report) {
  if (fusion.called().size() != 1) return;  // H701 says so
  for (const Instruction& i : fusion.called(0)->instructions())
    if (!has_users(i) && !has_side_effect(i)) report.add("H719", i, "is not used in the fusion ", fusion.name());
}

}  // namespace

void verify_structure(const Module& module, Report& report) {
  if (module.entry() == nullptr) return report.add("H705", module, "has no entry computation");
  check_names(module, report);
  std::unordered_set<const Computation*> computations;
  for (const Computation& c : module.computations()) computations.insert(&c);
  if (!computations.contains(module.entry())) report.add("H705", module, "its entry is not one of its computations");
  std::vector<bool> done(static_cast<std::size_t>(module.num_ids()));
  for (const Computation& c : module.computations()) {
    check_references(module, c, computations, report);
    check_parameters(c, report);
    check_order(c, module.config().is_scheduled, done, report);
  }
  if (!report.empty()) return;
  for (const Computation& c : module.computations()) check_control_cycles(c, report);
  check_call_graph(module, report);
  if (!report.empty()) return;
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (i.opcode() == Opcode::Fusion) check_fusion(i, report);
}

}  // namespace hloom::hlo

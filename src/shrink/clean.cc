// Removes what nothing needs, and measures what is left.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_set>

#include "shrink/step.h"

namespace hloom::shrink {
namespace {

bool is_dead(const Instruction& i) { return i.opcode() != Opcode::Parameter && i.users().empty() && !i.is_root(); }

void remove_dead(Computation& c, const std::unordered_set<std::string>& kept) {
  c.sort();
  c.remove_all([&](const Instruction& i) { return is_dead(i) && !kept.contains(i.name()); });
}

bool is_unused(const Instruction& p) { return p.users().empty() && !p.is_root(); }

void forget_parameter(hlo::ModuleConfig& config, std::int64_t number) {
  std::erase_if(config.aliases, [&](const auto& a) { return a.parameter == number; });
  std::erase_if(config.donors, [&](const auto& d) { return d.parameter == number; });
  for (auto& a : config.aliases) a.parameter -= a.parameter > number ? 1 : 0;
  for (auto& d : config.donors) d.parameter -= d.parameter > number ? 1 : 0;
  const auto drop = [&](auto& list) {
    if (number < static_cast<std::int64_t>(list.size())) list.erase(list.begin() + number);
  };
  drop(config.entry_parameters);
  drop(config.propagate_sharding_to_parameters);
}

void drop_entry_parameters(Program& program) {
  Computation& entry = *program.module->entry();
  for (std::int64_t n = static_cast<std::int64_t>(entry.parameters().size()) - 1; n >= 0; --n) {
    Instruction* p = entry.parameter(n);
    if (!is_unused(*p)) continue;
    if (program.has_arguments) {
      std::int64_t first = 0;
      for (std::int64_t before = 0; before < n; ++before) first += num_leaves(entry.parameter(before)->shape());
      const auto begin = program.arguments.begin() + first;
      program.arguments.erase(begin, begin + num_leaves(p->shape()));
    }
    forget_parameter(program.module->config(), n);
    entry.remove(p);
  }
}

// Calls and fusions without what their computations do not read.
bool drop_operands(Instruction& caller) {
  Computation& callee = *caller.to_apply();
  std::vector<Instruction*> kept, unused;
  for (Instruction* p : callee.parameters())
    is_unused(*p) ? unused.push_back(p) : kept.push_back(caller.operand(p->parameter_number()));
  if (unused.empty()) return false;
  for (Instruction* p : unused) callee.remove(p);
  Computation& around = *caller.parent();
  Instruction* smaller = around.add_clone(caller, kept);
  around.replace_uses(&caller, smaller);
  caller.drop_control_edges();
  around.remove(&caller);
  return true;
}

bool drop_unread_operands(hlo::Module& module) {
  const auto users = hlo::callers(module);
  for (Computation& c : module.computations())
    for (Instruction& i : c.instructions()) {
      if (i.opcode() != Opcode::Call && i.opcode() != Opcode::Fusion) continue;
      const bool alone = users.at(i.to_apply()).size() == 1;
      if (alone && drop_operands(i)) return true;  // the list of instructions is another one now
    }
  return false;
}

// Aliases of results that are not there any more, or have another shape.
void fit_header(hlo::Module& module) {
  hlo::ModuleConfig& config = module.config();
  const Shape& root = module.entry()->root()->shape();
  if (!compatible(config.entry_result, root)) {
    config.entry_result = root;
    config.propagate_sharding_to_output.clear();
  }
  config.entry_parameters.resize(module.entry()->parameters().size());
  for (std::size_t n = 0; n < config.entry_parameters.size(); ++n) {
    const Shape& p = module.entry()->parameters()[n]->shape();
    if (!compatible(config.entry_parameters[n], p)) config.entry_parameters[n] = p;
  }
  std::erase_if(config.aliases, [&](const hlo::InputOutputAlias& a) {
    const Shape* to = subshape(root, a.output);
    const Shape* from = subshape(module.entry()->parameter(a.parameter)->shape(), a.parameter_index);
    return to == nullptr || from == nullptr || !compatible(*to, *from);
  });
}

double weight(Opcode opcode) {
  switch (opcode) {
    case Opcode::Parameter:
    case Opcode::Constant:
    case Opcode::Tuple:
    case Opcode::GetTupleElement: return 1;
    case Opcode::Broadcast: return 1.1;
    case Opcode::While:
    case Opcode::Conditional:
    case Opcode::Call: return 4;
    default: return 2.5;
  }
}

double size_of(const Shape& shape) {
  double size = 0;
  for (const Shape* leaf : leaves(shape)) {
    if (!leaf->is_array()) continue;
    size += 0.01 * static_cast<double>(leaf->rank());
    for (const std::int64_t n : leaf->dims()) size += 0.02 * std::log2(1 + static_cast<double>(n));
    if (leaf->has_layout() && !leaf->layout().is_descending()) size += 0.05;
  }
  return size;
}

}  // namespace

std::unordered_set<std::string> dead_instructions(const hlo::Module& module) {
  std::unordered_set<std::string> dead;
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions())
      if (is_dead(i)) dead.insert(i.name());
  return dead;
}

void clean(Program& program, const std::unordered_set<std::string>& kept) {
  hlo::Module& module = *program.module;
  do {
    for (Computation& c : module.computations()) remove_dead(c, kept);
    module.remove_unreachable();
  } while (drop_unread_operands(module));
  drop_entry_parameters(program);
  fit_header(module);
  module.sort();
}

double cost(const Program& program) {
  const hlo::ModuleConfig& config = program.module->config();
  double total = static_cast<double>(config.aliases.size() + config.donors.size()) + (config.is_scheduled ? 1 : 0);
  for (const Shape& p : config.entry_parameters) total += size_of(p);
  total += size_of(config.entry_result);
  for (const Computation& c : program.module->computations()) {
    total += 1;
    for (const Instruction& i : c.instructions()) {
      total += weight(i.opcode()) + size_of(i.shape()) + (i.has_annotations() ? 0.01 : 0) +
               0.3 * static_cast<double>(i.control_predecessors().size());
      if (i.opcode() == Opcode::Constant && i.shape().is_scalar() && is_integral(i.shape().dtype()))
        total += 0.01 * std::log2(1 + std::fabs(static_cast<double>(element_as_int64(i.literal(), 0))));
      if (i.opcode() == Opcode::Constant && !is_splat(i.literal())) total += 0.2;
    }
  }
  return total;
}

Instruction* find(hlo::Module& module, const std::string& name) {
  for (Computation& c : module.computations())
    for (Instruction& i : c.instructions())
      if (i.name() == name) return &i;
  return nullptr;
}

Program copy(const Program& program) { return {program.module->clone(), program.arguments, program.has_arguments}; }

Literal cut(const Literal& literal, const Dims& dims) {
  Shape shape = literal.shape();
  for (std::size_t d = 0; d < dims.size(); ++d) shape.set_dim(static_cast<std::int64_t>(d), dims[d]);
  Literal result(shape);
  const auto width = static_cast<std::size_t>(byte_width(shape.dtype()));
  const std::span<std::byte> to = result.mutable_bytes();
  const std::span<const std::byte> from = literal.bytes();
  Dims at(dims.size(), 0);
  for (std::size_t e = 0; e * width < to.size(); ++e) {
    std::int64_t place = 0;
    for (std::size_t d = 0; d < dims.size(); ++d)
      place = place * literal.shape().dim(static_cast<std::int64_t>(d)) + at[d];
    std::memcpy(to.data() + e * width, from.data() + static_cast<std::size_t>(place) * width, width);
    for (std::size_t d = dims.size(); d-- > 0 && ++at[d] == dims[d];) at[d] = 0;
  }
  return result;
}

}  // namespace hloom::shrink

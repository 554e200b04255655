// Fewer results: one of several, or what a result was computed from.
#include "shrink/step.h"

namespace hloom::shrink {
namespace {

bool is_value(const Shape& shape) {
  for (const Shape* leaf : leaves(shape))
    if (!leaf->is_array()) return false;
  return true;
}

Step root_becomes(const std::string& name) {
  return {"the result is " + name, [name](Program& p) {
            Instruction* i = find(*p.module, name);
            p.module->entry()->set_root(i);
            p.module->config().aliases.clear();
            return true;
          }};
}

// All elements but those from `from` to `to`.
Step without_elements(std::size_t from, std::size_t to) {
  return {"fewer results", [from, to](Program& p) {
            Computation& entry = *p.module->entry();
            std::vector<Instruction*> kept = entry.root()->operands();
            kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(from),
                       kept.begin() + static_cast<std::ptrdiff_t>(to));
            entry.set_root(entry.add_tuple(kept));
            p.module->config().aliases.clear();
            return true;
          }};
}

}  // namespace

Steps fewer_dead(const Program& program) {
  Steps steps;
  const auto dead = dead_instructions(*program.module);
  if (dead.empty()) return steps;
  steps.push_back({"nothing is dead", [](Program&) { return true; }, true});
  for (const Computation& c : program.module->computations())
    for (const Instruction& i : c.instructions())
      if (dead.contains(i.name()))
        steps.push_back({i.name() + " goes", [name = i.name()](Program& p) {
                           Instruction* gone = find(*p.module, name);
                           gone->drop_control_edges();
                           gone->parent()->remove(gone);
                           return true;
                         }});
  return steps;
}

Steps fewer_results(const Program& program) {
  Steps steps;
  const Computation& entry = *program.module->entry();
  const Instruction& root = *entry.root();
  if (root.opcode() == Opcode::Tuple) {
    const std::size_t n = root.operands().size();
    for (std::size_t part = n / 2; part > 0; part /= 2)
      for (std::size_t from = 0; from + part <= n && n > 1; from += part)
        steps.push_back(without_elements(from, from + part));
  }
  for (const Instruction* operand : root.operands())
    if (is_value(operand->shape())) steps.push_back(root_becomes(operand->name()));
  // What has no user may matter as well.
  for (const Instruction& i : entry.instructions())
    if (&i != &root && i.users().empty() && is_value(i.shape())) steps.push_back(root_becomes(i.name()));
  return steps;
}

}  // namespace hloom::shrink

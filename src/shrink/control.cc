// Loops that run once, branches taken for good, calls that are inlined, carries that go.
#include <algorithm>
#include <unordered_map>

#include "shrink/step.h"

namespace hloom::shrink {
namespace {

Step body_once(const std::string& name) {
  return {name + " runs once", [name](Program& p) {
            Instruction* loop = find(*p.module, name);
            Instruction* call = loop->parent()->add(Opcode::Call, loop->shape(), {loop->operand(0)});
            call->set_called({loop->body()});
            loop->drop_control_edges();
            loop->parent()->replace_uses(loop, call);
            return true;
          }};
}

Step take_branch(const std::string& name, std::int64_t branch) {
  return {name + " takes one branch", [name, branch](Program& p) {
            Instruction* i = find(*p.module, name);
            Instruction* call = i->parent()->add(Opcode::Call, i->shape(), {i->operand(branch + 1)});
            call->set_called({i->called(branch)});
            i->drop_control_edges();
            i->parent()->replace_uses(i, call);
            return true;
          }};
}

Step inlined(const std::string& name) {
  return {name + " is inlined", [name](Program& p) {
            Instruction* call = find(*p.module, name);
            Computation& around = *call->parent();
            std::unordered_map<const Instruction*, Instruction*> made;
            for (Instruction* i : call->to_apply()->post_order()) {
              if (i->opcode() == Opcode::Parameter) {
                made[i] = call->operand(i->parameter_number());
                continue;
              }
              std::vector<Instruction*> operands;
              for (const Instruction* operand : i->operands()) operands.push_back(made.at(operand));
              made[i] = around.add_clone(*i, operands);
              // Each has computations of its own.
              std::vector<Computation*> called;
              for (Computation* c : i->called()) called.push_back(p.module->clone_computation(*c, c->name()));
              made[i]->set_called(called);
            }
            call->drop_control_edges();
            around.replace_uses(call, made.at(call->to_apply()->root()));
            return true;
          }};
}

// An element of a tuple that was put together just before.
Step seen_through(const std::string& name) {
  return {name + " is seen through", [name](Program& p) {
            Instruction* element = find(*p.module, name);
            Instruction* tuple = element->operand(0);
            element->parent()->replace_uses(element, tuple->operand(element->tuple_index()));
            return true;
          }};
}

bool only_elements(const Instruction& i) {
  return !i.is_root() &&
         std::ranges::all_of(i.users(), [](const Instruction* u) { return u->opcode() == Opcode::GetTupleElement; });
}

bool can_drop_carries(const Instruction& loop) {
  return loop.operand(0)->opcode() == Opcode::Tuple && loop.body()->root()->opcode() == Opcode::Tuple &&
         only_elements(loop) && only_elements(*loop.body()->parameter(0)) &&
         only_elements(*loop.condition()->parameter(0));
}

Instruction* without(Instruction& tuple, std::int64_t k) {
  std::vector<Instruction*> kept = tuple.operands();
  kept.erase(kept.begin() + k);
  return tuple.parent()->add_tuple(kept);
}

// Elements after k move down; element k itself becomes `with`, or numbers.
void renumber(Instruction& state, std::int64_t k, Instruction* with) {
  for (Instruction* element : std::vector<Instruction*>(state.users())) {
    auto& index = element->mutable_attr<hlo::TupleElementAttr>().index;
    if (index > k)
      --index;
    else if (index == k)
      element->parent()->replace_uses(element,
                                      with != nullptr ? with : add_numbers(*element->parent(), element->shape(), 1));
  }
  Computation& c = *state.parent();
  c.sort();
  c.remove_all([&](const Instruction& i) {
    return i.opcode() == Opcode::GetTupleElement && i.operand(0) == &state && i.users().empty() && !i.is_root();
  });
}

Step carry_dropped(const std::string& name, std::int64_t k) {
  return {"a carry of " + name + " goes", [name, k](Program& p) {
            Instruction* loop = find(*p.module, name);
            for (const Shape* leaf : leaves(loop->shape().element(k)))
              if (!leaf->is_array()) return false;
            Computation& around = *loop->parent();
            Instruction* init = without(*loop->operand(0), k);
            for (Computation* c : {loop->condition(), loop->body()}) {
              c->parameter(0)->set_shape(init->shape());
              renumber(*c->parameter(0), k, nullptr);
            }
            loop->body()->set_root(without(*loop->body()->root(), k));
            renumber(*loop, k, loop->operand(0)->operand(k));
            Instruction* smaller = around.add_clone(*loop, {init});
            smaller->set_shape(init->shape());
            around.replace_uses(loop, smaller);
            return true;
          }};
}

}  // namespace

Steps simpler_control(const Program& program) {
  Steps steps;
  const auto users = hlo::callers(*program.module);
  for (const Computation& c : program.module->computations())
    for (const Instruction& i : c.instructions()) {
      const std::string name = i.name();
      if (i.opcode() == Opcode::While) {
        steps.push_back(body_once(name));
        const bool own = users.at(i.body()).size() == 1 && users.at(i.condition()).size() == 1;
        for (std::int64_t k = 0;
             own && can_drop_carries(i) && k < static_cast<std::int64_t>(i.shape().elements().size()); ++k)
          steps.push_back(carry_dropped(name, k));
      } else if (i.opcode() == Opcode::Conditional) {
        for (std::int64_t b = 0; b < static_cast<std::int64_t>(i.called().size()); ++b)
          steps.push_back(take_branch(name, b));
      } else if (i.opcode() == Opcode::Call || i.opcode() == Opcode::Fusion) {
        steps.push_back(inlined(name));
      } else if (i.opcode() == Opcode::GetTupleElement && i.operand(0)->opcode() == Opcode::Tuple) {
        steps.push_back(seen_through(name));
      }
    }
  return steps;
}

}  // namespace hloom::shrink

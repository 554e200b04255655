#include "buffers/order_edits.h"

#include <algorithm>

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

void OrderEdits::insert_before(Instruction& place, const std::vector<Instruction*>& added) {
  auto& list = before_[&place];
  list.insert(list.end(), added.begin(), added.end());
  for (const Instruction* i : added) is_new_[i] = true;
  append(*place.parent(), {});
}

void OrderEdits::insert_after(Instruction& place, const std::vector<Instruction*>& added) {
  auto& list = after_[&place];
  list.insert(list.end(), added.begin(), added.end());
  for (const Instruction* i : added) is_new_[i] = true;
  append(*place.parent(), {});
}

void OrderEdits::append(Computation& c, const std::vector<Instruction*>&) {
  if (std::ranges::find(changed_, &c) == changed_.end()) changed_.push_back(&c);
}

namespace {

void remove_dead_structure(Computation& c) {
  std::vector<Instruction*> order;
  for (Instruction& i : c.instructions()) order.push_back(&i);
  // Users stand behind, so one walk from the end finds chains.
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    Instruction& i = **it;
    const bool is_structure = i.opcode() == Opcode::Tuple || i.opcode() == Opcode::GetTupleElement;
    if (is_structure && i.users().empty() && !i.is_root() && i.control_successors().empty()) c.remove(&i);
  }
}

}  // namespace

void OrderEdits::apply() {
  for (Computation* c : changed_) {
    std::vector<Instruction*> order;
    for (Instruction& i : c->instructions()) {
      if (is_new_[&i]) continue;
      if (const auto found = before_.find(&i); found != before_.end())
        order.insert(order.end(), found->second.begin(), found->second.end());
      order.push_back(&i);
      if (const auto found = after_.find(&i); found != after_.end())
        order.insert(order.end(), found->second.begin(), found->second.end());
    }
    c->set_order(order);
    remove_dead_structure(*c);
  }
}

}  // namespace hloom::buffers

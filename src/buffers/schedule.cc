#include "buffers/schedule.h"

#include <algorithm>

#include "buffers/orders.h"
#include "buffers/schedule_model.h"
#include "buffers/steps.h"

namespace hloom::buffers {

using hlo::Computation;
using hlo::Instruction;
using hlo::Opcode;

namespace {

using Order = ScheduleModel::Order;

Role role_of(const Computation& c, const Instruction& caller) {
  return caller.opcode() == Opcode::While && caller.body() == &c ? Role::Body : Role::Other;
}

// Callees have theirs already.
using Roles = std::unordered_map<const Computation*, Role>;
Roles roles(const std::vector<Computation*>& computations) {
  Roles roles{{computations.front(), Role::Entry}};
  for (const Computation* c : computations)
    for (const Instruction& i : c->instructions())
      for (const Computation* callee : step_computations(i)) roles.emplace(callee, role_of(*callee, i));
  return roles;
}

Order best_order(const ScheduleModel& model) {
  Order best = model.present_order();
  ScheduleModel::Cost least = model.cost(best);
  const auto consider = [&](Order order) {
    if (least.peak_bytes == 0 || static_cast<int>(order.size()) != model.size()) return;
    const ScheduleModel::Cost cost = model.cost(order);
    if (cost.peak_bytes >= least.peak_bytes) return;
    best = std::move(order);
    least = cost;
  };
  for (const Among among : {Among::First, Among::Last}) consider(greedy_order(model, among));
  for (const First first : {First::Large, First::Demanding}) consider(depth_first_order(model, first));
  consider(backward_order(model));
  consider(improve_order(model, best));
  return best;
}

std::int64_t peak_of(const Computation& c, Role role) {
  ScheduleModel::Peaks peaks;
  for (const Instruction& i : c.instructions())
    for (const Computation* callee : step_computations(i)) peaks[callee] = peak_of(*callee, role_of(*callee, i));
  const ScheduleModel model(c, role, peaks);
  return model.cost(model.present_order()).peak_bytes;
}

}  // namespace

std::int64_t peak_bytes(const Computation& c) { return peak_of(c, c.module().entry() == &c ? Role::Entry : Role::Other); }

void schedule(hlo::Module& module) {
  const std::vector<Computation*> computations = step_computations(module);
  if (!module.config().is_scheduled) {
    for (Computation* c : computations) c->sort();
    const Roles roles_of = roles(computations);
    // Callees first, since callers count with their peaks.
    ScheduleModel::Peaks peaks;
    for (auto c = computations.rbegin(); c != computations.rend(); ++c) {
      const ScheduleModel model(**c, roles_of.at(*c), peaks);
      const Order best = best_order(model);
      peaks[*c] = model.cost(best).peak_bytes;
      (*c)->set_order(model.instructions(best));
    }
  }
  module.config().is_scheduled = true;
}

}  // namespace hloom::buffers

#include "compiler/collective_oracle.h"

#include "base/check.h"
#include "base/try.h"
#include "hlo/participants.h"
#include "interp/interpret.h"

namespace hloom::compiler {
namespace {

using hlo::Instruction;
using hlo::Literal;

// The instruction itself, or the start that it is the done of.
const Instruction& start_of(const Instruction& i) { return hlo::has_participants(i.opcode()) ? i : *i.operand(0); }

// The user that ends a start; null for what is no start.
const Instruction* done_of(const Instruction& start) {
  using hlo::Opcode;
  for (const Instruction* user : start.users())
    if (user->opcode() == Opcode::AllGatherDone || user->opcode() == Opcode::AllReduceDone ||
        user->opcode() == Opcode::CollectivePermuteDone)
      return user;
  return nullptr;
}

Instruction* find(hlo::Module& module, const std::string& name) {
  for (hlo::Computation& c : module.computations())
    for (Instruction& i : c.instructions())
      if (i.name() == name) return &i;
  HLOOM_CHECK(false);
  return nullptr;
}

}  // namespace

CollectiveOracle::CollectiveOracle(const hlo::Module& module) : module_(module) {}

std::unique_ptr<hlo::Module> CollectiveOracle::alone(const Instruction& start) const {
  std::unique_ptr<hlo::Module> module = module_.clone();
  const Instruction& copy = *find(*module, start.name());
  hlo::Computation* entry = module->add_computation("collective");
  std::vector<Instruction*> operands;
  for (std::int64_t k = 0; k < copy.num_operands(); ++k)
    operands.push_back(entry->add_parameter(k, copy.operand(k)->shape()));
  Instruction* root = entry->add_clone(copy, operands);
  if (const Instruction* done = done_of(copy); done != nullptr) root = entry->add_clone(*done, {root});
  entry->set_root(root);
  module->set_entry(entry);
  return module;
}

CollectiveOracle::One& CollectiveOracle::of(const Instruction& start) {
  const auto [at, added] = all_.try_emplace(&start);
  if (added) {
    at->second.module = alone(start);
    const hlo::ModuleConfig& config = module_.config();
    at->second.given.resize(static_cast<std::size_t>(config.replica_count * config.num_partitions));
  }
  return at->second;
}

void CollectiveOracle::give(std::int64_t device, const Instruction& i, std::int64_t n, std::vector<Literal> operands) {
  const std::lock_guard<std::mutex> lock(mutex_);
  of(i).given[static_cast<std::size_t>(device)][static_cast<std::size_t>(n % 2)] = {n, std::move(operands)};
}

Expected<Literal> CollectiveOracle::want(std::int64_t device, const Instruction& i, std::int64_t n) {
  std::unique_lock<std::mutex> lock(mutex_);
  const One& one = of(start_of(i));
  std::vector<std::vector<Literal>> arguments;
  for (const auto& of_device : one.given) {
    const One::Operands& last = of_device[static_cast<std::size_t>(n % 2)];
    arguments.emplace_back(last.n == n ? last.values : std::vector<Literal>());
    if (last.n == n) continue;
    // It is in another group, and does not count.
    for (const Instruction* p : one.module->entry()->parameters()) arguments.back().emplace_back(p->shape());
  }
  lock.unlock();
  interp::Options options;
  options.replicas = module_.config().replica_count;
  options.partitions = module_.config().num_partitions;
  options.sums_in_f64 = false;
  std::vector<Literal> results = TRY(interp::interpret_devices(*one.module, arguments, options));
  return std::move(results[static_cast<std::size_t>(device)]);
}

}  // namespace hloom::compiler

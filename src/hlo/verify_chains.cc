// Asynchronous chains (H720) and pairs of start and done (H721).
#include <algorithm>

#include "hlo/verify_rules.h"

namespace hloom::hlo {
namespace {

bool is_async_link(const Instruction& i) {
  return i.opcode() == Opcode::AsyncUpdate || i.opcode() == Opcode::AsyncDone;
}

// Start and updates have one user each, the next link.
void check_async_link(const Instruction& i, Report& report) {
  if (i.users().size() != 1 || !is_async_link(*i.users().front()))
    report.add("H720", i, "must be used by one async-update or async-done, found ", i.users().size(), " users");
}

void check_async_thread(const Instruction& i, Report& report) {
  const std::string& thread = i.attr<AsyncAttr>().execution_thread;
  const auto* before = i.operand(0)->attributes().get_if<AsyncAttr>();
  if (before != nullptr && before->execution_thread != thread)
    report.add("H720", i, "runs on thread \"", thread, "\", its start on \"", before->execution_thread, "\"");
}

bool is_transfer(Opcode opcode) {
  return opcode == Opcode::Send || opcode == Opcode::SendDone || opcode == Opcode::Recv || opcode == Opcode::RecvDone;
}

// Only parameters and the root, unless it groups transfers.
void check_async_start(const Instruction& i, const std::vector<Instruction*>& callers, Report& report) {
  check_async_link(i, report);
  const Computation& wrapped = *i.called(0);
  if (callers.size() != 1) report.add("H720", i, "shares ", wrapped.name(), " with another caller");
  const std::string& thread = i.attr<AsyncAttr>().execution_thread;
  if (wrapped.execution_thread() != thread && wrapped.execution_thread() != "main")
    report.add("H720", i, "runs on thread \"", thread, "\", ", wrapped.name(), " on \"", wrapped.execution_thread(),
               "\"");
  const auto expected =
      static_cast<std::int64_t>(wrapped.parameters().size()) + (wrapped.root()->opcode() == Opcode::Parameter ? 0 : 1);
  const bool groups_transfers =
      std::ranges::any_of(wrapped.instructions(), [](const Instruction& x) { return is_transfer(x.opcode()); });
  if (wrapped.num_instructions() != expected && !groups_transfers)
    report.add("H720", i, wrapped.name(), " must hold its root and parameters only");
}

// One done for each start, which nothing else uses.
void check_one_done(const Instruction& start, Opcode done, Report& report) {
  const auto& users = start.users();
  if (users.size() != 1 || users.front()->opcode() != done)
    report.add("H721", start, "must be used by one ", done, ", found ", users.size(), " users");
}

// A transfer may also be carried to its done by a loop or an asynchronous group.
bool may_carry(Opcode opcode) {
  return opcode == Opcode::GetTupleElement || opcode == Opcode::Parameter || opcode == Opcode::AsyncDone ||
         opcode == Opcode::OptBarrier;
}

void check_transfer_done(const Instruction& done, Opcode start, Report& report) {
  const Instruction& before = *done.operand(0);
  if (before.opcode() != start) {
    if (!may_carry(before.opcode()))
      report.add("H721", done, "its operand must be ", start, ", found ", before.opcode());
    return;
  }
  const auto &a = before.attr<TransferAttr>(), &b = done.attr<TransferAttr>();
  if (a.is_host_transfer != b.is_host_transfer)
    report.add("H721", done, "is_host_transfer differs from that of ", before.name());
  if (a.channel_id && b.channel_id && a.channel_id != b.channel_id)
    report.add("H721", done, "channel ", *b.channel_id, " differs from that of ", before.name(), " (", *a.channel_id,
               ")");
  const auto dones =
      std::ranges::count_if(before.users(), [&](const Instruction* u) { return u->opcode() == done.opcode(); });
  if (dones != 1) report.add("H721", before, "must have one ", done.opcode(), ", found ", dones);
}

void check_pairs(const Instruction& i, Report& report) {
  switch (i.opcode()) {
    case Opcode::CopyStart: return check_one_done(i, Opcode::CopyDone, report);
    case Opcode::AllReduceStart: return check_one_done(i, Opcode::AllReduceDone, report);
    case Opcode::AllGatherStart: return check_one_done(i, Opcode::AllGatherDone, report);
    case Opcode::CollectivePermuteStart: return check_one_done(i, Opcode::CollectivePermuteDone, report);
    case Opcode::SendDone: return check_transfer_done(i, Opcode::Send, report);
    case Opcode::RecvDone: return check_transfer_done(i, Opcode::Recv, report);
    case Opcode::CopyDone:
      if (i.operand(0)->opcode() != Opcode::CopyStart)
        report.add("H721", i, "its operand must be copy-start, found ", i.operand(0)->opcode());
      return;
    default: return;
  }
}

}  // namespace

void verify_chains(const Module& module, Report& report) {
  const auto called_by = callers(module);
  for (const Computation& c : module.computations())
    for (const Instruction& i : c.instructions()) {
      if (report.full()) return;
      check_pairs(i, report);
      if (i.opcode() == Opcode::AsyncStart) check_async_start(i, called_by.at(i.called(0)), report);
      if (i.opcode() == Opcode::AsyncUpdate) check_async_link(i, report);
      if (is_async_link(i)) check_async_thread(i, report);
    }
}

}  // namespace hloom::hlo

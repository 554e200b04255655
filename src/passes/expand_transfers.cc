#include "passes/expand_transfers.h"

#include <optional>
#include <string>
#include <unordered_map>

#include "base/try.h"
#include "hlo/device_transfers.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

// library/host_transfer.h names them too; passes know no routines.
constexpr std::string_view kTake = "hloom.take_from_host", kGive = "hloom.give_to_host";

using Channel = std::optional<std::int64_t>;

Shape row_major(Shape shape) {
  for (Shape& e : shape.elements()) e = row_major(std::move(e));
  return shape.is_array() ? Shape::array(shape.dtype(), shape.dims()) : shape;
}

// `i` with copies of the arrays that lie in another order than `wanted` says.
Instruction* in_layout(Make& make, Instruction* i, const Shape& wanted) {
  if (i->shape() == wanted || i->shape().is_token()) return i;
  if (!wanted.is_tuple()) return make.op(Opcode::Copy, wanted, {i});
  std::vector<Instruction*> elements;
  for (std::int64_t k = 0; k < std::ssize(wanted.elements()); ++k)
    elements.push_back(in_layout(make, make.element(i, k), wanted.element(k)));
  return make.tuple(elements);
}

// The call has the name of the instruction that it stands for, which errors tell.
void take_name(Instruction& from, Instruction& to) {
  const std::string name = from.name();
  from.module().rename(from, "transferred");
  to.module().rename(to, name);
}

Instruction* call(Instruction& of, std::string_view target, Shape shape, const std::vector<Instruction*>& operands, std::string config) {
  Instruction* i = Make(of).op(Opcode::CustomCall, std::move(shape), operands);
  auto& attr = i->mutable_attr<hlo::CustomCallAttr>();
  attr.target = target;
  attr.has_side_effect = true;
  attr.api_version = hlo::ApiVersion::TypedFfi;
  attr.operand_layouts.emplace();
  for (const Instruction* operand : operands) attr.operand_layouts->push_back(operand->shape());
  take_name(of, *i);
  i->mutable_annotations().backend_config = std::move(config);
  return i;
}

std::string config_of(Channel channel) { return channel ? "{channel = " + std::to_string(*channel) + " : i64}" : std::string(); }

// (value, token) of the written shape.
Instruction* take(Instruction& i, std::string_view target, Instruction* token, std::string config) {
  Make make(i);
  return in_layout(make, call(i, target, row_major(i.shape()), {token}, std::move(config)), i.shape());
}

Instruction* give(Instruction& i, std::string_view target, std::string config) {
  Make make(i);
  Instruction* value = in_layout(make, i.operand(0), row_major(i.operand(0)->shape()));
  return call(i, target, Shape::token(), {value, i.operand(1)}, std::move(config));
}

bool goes_to_host(const Instruction& i) { return i.attr<hlo::TransferAttr>().is_host_transfer; }
std::string channel_of(const Instruction& i) { return config_of(i.attr<hlo::TransferAttr>().channel_id.value_or(0)); }

Expected<Instruction*> infeed(Instruction& i) { return take(i, kTake, i.operand(0), ""); }
Expected<Instruction*> outfeed(Instruction& i) { return give(i, kGive, ""); }

// (value, context, token)
Expected<Instruction*> recv(Instruction& i) {
  Make make(i);
  Instruction* nothing = in_layout(make, make.zeros(i.shape().element(0)), i.shape().element(0));
  return make.tuple({nothing, make.zeros(i.shape().element(1)), i.operand(0)});
}

Expected<Instruction*> send_done(Instruction& i) { return Make(i).element(i.operand(0), 2); }

/// What the transfers between devices are, found before any is replaced.
class Transfers {
 public:
  static Expected<Transfers> in(const hlo::Module& module) {
    const hlo::DeviceTransfers all(module);
    Transfers result;
    for (const hlo::Computation& c : module.computations())
      for (const Instruction& i : c.instructions()) {
        const bool counts = is(&i, Opcode::Send) || is(&i, Opcode::Recv) || is(&i, Opcode::RecvDone);
        if (!counts || goes_to_host(i)) continue;
        const hlo::DeviceTransfer transfer = TRY(all.of(i));
        result.of_.emplace(&i, hlo::to_text(transfer));
      }
    return result;
  }

  // (value, context, token)
  Expected<Instruction*> send(Instruction& i) {
    Make make(i);
    Instruction* given = goes_to_host(i) ? give(i, kGive, channel_of(i)) : give(i, hlo::kSendToDevice, of_.at(&i));
    if (!goes_to_host(i)) sends_.push_back(given);
    Instruction* value = in_layout(make, i.operand(0), i.shape().element(0));
    return make.tuple({value, make.zeros(i.shape().element(1)), given});
  }

  Expected<Instruction*> recv_done(Instruction& i) {
    Instruction* token = Make(i).element(i.operand(0), 2);
    if (goes_to_host(i)) return take(i, kTake, token, channel_of(i));
    Make make(i);
    Instruction* taken = call(i, hlo::kTakeFromDevice, row_major(i.shape()), {token}, of_.at(&i));
    receives_.push_back(taken);
    return in_layout(make, taken, i.shape());
  }

  void send_first() {
    for (const auto& [send, receive] : hlo::sends_before_receives(sends_, receives_)) receive->add_control_predecessor(send);
  }

 private:
  std::unordered_map<const Instruction*, std::string> of_;
  std::vector<Instruction*> sends_, receives_;
};

}  // namespace

Expected<Changed> expand_transfers(hlo::Module& module) {
  Transfers transfers = TRY(Transfers::in(module));
  const std::pair<Opcode, Expansion> kAll[] = {
      {Opcode::Infeed, infeed},
      {Opcode::Outfeed, outfeed},
      {Opcode::Send, [&](Instruction& i) { return transfers.send(i); }},
      {Opcode::SendDone, send_done},
      {Opcode::RecvDone, [&](Instruction& i) { return transfers.recv_done(i); }},
      {Opcode::Recv, recv}};
  auto changed = Changed::No;
  for (const auto& [opcode, expansion] : kAll) {
    const Changed one = TRY(expand(module, opcode, expansion));
    changed |= one;
  }
  transfers.send_first();
  return changed;
}

}  // namespace hloom::passes

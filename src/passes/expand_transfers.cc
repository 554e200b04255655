#include "passes/expand_transfers.h"

#include <optional>
#include <string>

#include "base/try.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

// library/host_transfer.h names them too; passes know no routines.
constexpr const char *kTake = "hloom.take_from_host", *kGive = "hloom.give_to_host";

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

Instruction* call(Instruction& of, const char* target, Shape shape, const std::vector<Instruction*>& operands, Channel channel) {
  Instruction* i = Make(of).op(Opcode::CustomCall, std::move(shape), operands);
  auto& attr = i->mutable_attr<hlo::CustomCallAttr>();
  attr.target = target;
  attr.has_side_effect = true;
  attr.api_version = hlo::ApiVersion::TypedFfi;
  attr.operand_layouts.emplace();
  for (const Instruction* operand : operands) attr.operand_layouts->push_back(operand->shape());
  take_name(of, *i);
  if (channel) i->mutable_annotations().backend_config = "{channel = " + std::to_string(*channel) + " : i64}";
  return i;
}

// (value, token) of the written shape.
Instruction* take(Instruction& i, Instruction* token, Channel channel) {
  Make make(i);
  return in_layout(make, call(i, kTake, row_major(i.shape()), {token}, channel), i.shape());
}

Instruction* give(Instruction& i, Channel channel) {
  Make make(i);
  Instruction* value = in_layout(make, i.operand(0), row_major(i.operand(0)->shape()));
  return call(i, kGive, Shape::token(), {value, i.operand(1)}, channel);
}

bool goes_to_host(const Instruction& i) { return i.attr<hlo::TransferAttr>().is_host_transfer; }
Channel channel_of(const Instruction& i) { return i.attr<hlo::TransferAttr>().channel_id.value_or(0); }

Expected<Instruction*> infeed(Instruction& i) { return take(i, i.operand(0), {}); }
Expected<Instruction*> outfeed(Instruction& i) { return give(i, {}); }

// (value, context, token)
Expected<Instruction*> send(Instruction& i) {
  if (!goes_to_host(i)) return nullptr;
  Make make(i);
  return make.tuple({i.operand(0), make.zeros(i.shape().element(1)), give(i, channel_of(i))});
}

Expected<Instruction*> recv(Instruction& i) {
  if (!goes_to_host(i)) return nullptr;
  Make make(i);
  return make.tuple({make.zeros(i.shape().element(0)), make.zeros(i.shape().element(1)), i.operand(0)});
}

Expected<Instruction*> send_done(Instruction& i) {
  return goes_to_host(i) ? Make(i).element(i.operand(0), 2) : nullptr;
}

Expected<Instruction*> recv_done(Instruction& i) {
  return goes_to_host(i) ? take(i, Make(i).element(i.operand(0), 2), channel_of(i)) : nullptr;
}

}  // namespace

Expected<Changed> expand_transfers(hlo::Module& module) {
  constexpr std::pair<Opcode, Expected<Instruction*> (*)(Instruction&)> kAll[] = {
      {Opcode::Infeed, infeed},       {Opcode::Outfeed, outfeed}, {Opcode::Send, send},
      {Opcode::SendDone, send_done}, {Opcode::Recv, recv},       {Opcode::RecvDone, recv_done}};
  auto changed = Changed::No;
  for (const auto& [opcode, expansion] : kAll) {
    const Changed one = TRY(expand(module, opcode, expansion));
    changed |= one;
  }
  return changed;
}

}  // namespace hloom::passes

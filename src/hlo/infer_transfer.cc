// Asynchronous copies, transfers to a host, custom calls, hlo-ops 11.
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

Expected<> want_token(const Instruction& i, std::int64_t k) {
  if (i.operand(k)->shape().is_token()) return {};
  return wrong(i, "operand ", k, " must be a token, found ", i.operand(k)->shape());
}

// The written tuple's element 0: what an operation without data operand brings.
Expected<Shape> written_data(const Instruction& i, std::size_t elements) {
  const Shape& s = i.shape();
  if (!s.is_valid()) return wrong(i, i.opcode(), " needs its shape written");
  if (!s.is_tuple() || s.elements().size() != elements)
    return wrong(i, i.opcode(), " gives a tuple of ", elements, " elements, not ", s);
  return s.element(0);
}

// Element k of the operand's tuple.
Expected<Shape> element_of_operand(const Instruction& i, std::int64_t k) {
  const Shape& s = i.operand(0)->shape();
  if (!s.is_tuple() || static_cast<std::int64_t>(s.elements().size()) <= k)
    return wrong(i, "the operand must be a tuple of more than ", k, " elements, found ", s);
  return s.element(k);
}

// (destination, source, context…): the destination's layout and the context are what is written.
Expected<Shape> infer_copy_start(const Instruction& i) {
  const Shape& source = i.operand(0)->shape();
  const Shape& written = i.shape();
  if (!written.is_valid()) return Shape::tuple({source, source, Shape::scalar(DType::U32)});
  const Shape destination = TRY(written_data(i, std::max<std::size_t>(written.elements().size(), 2)));
  if (!compatible(destination, source)) return wrong(i, "copies ", source, " to ", destination);
  std::vector<Shape> elements{destination, source};
  for (std::size_t k = 2; k < written.elements().size(); ++k) elements.push_back(written.elements()[k]);
  return Shape::tuple(std::move(elements));
}

Expected<Shape> infer_outfeed(const Instruction& i) {
  TRY(want_token(i, 1));
  const Shape &data = i.operand(0)->shape(), &stated = i.attr<FeedAttr>().outfeed_shape;
  if (stated.is_valid() && !compatible(stated, data)) return wrong(i, "outfeed_shape is ", stated, ", data ", data);
  return Shape::token();
}

}  // namespace

Expected<Shape> infer_transfer(const Instruction& i) {
  const Shape context = Shape::scalar(DType::U32);
  switch (i.opcode()) {
    case Opcode::CopyStart: return infer_copy_start(i);
    case Opcode::CopyDone: return element_of_operand(i, 0);
    case Opcode::Send: TRY(want_token(i, 1)); return Shape::tuple({i.operand(0)->shape(), context, Shape::token()});
    case Opcode::SendDone: TRY(element_of_operand(i, 2)); return Shape::token();
    case Opcode::Recv: {
      TRY(want_token(i, 0));
      Shape data = TRY(written_data(i, 3));
      return Shape::tuple({std::move(data), context, Shape::token()});
    }
    case Opcode::RecvDone: {
      Shape data = TRY(element_of_operand(i, 0));
      return Shape::tuple({std::move(data), Shape::token()});
    }
    case Opcode::Infeed: {
      TRY(want_token(i, 0));
      Shape data = TRY(written_data(i, 2));
      return Shape::tuple({std::move(data), Shape::token()});
    }
    case Opcode::Outfeed: return infer_outfeed(i);
    case Opcode::CustomCall:
      if (!i.shape().is_valid()) return wrong(i, "custom-call needs its shape written");
      return i.shape();
    default: return wrong(i, i.opcode(), " transfers nothing");
  }
}

}  // namespace hloom::hlo

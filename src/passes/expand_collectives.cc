#include "passes/expand_collectives.h"

#include <algorithm>
#include <string>

#include "base/fail.h"
#include "base/try.h"
#include "hlo/permute_slices.h"
#include "passes/expand.h"
#include "passes/make.h"

namespace hloom::passes {
namespace {

using hlo::PermuteSlice;

/// A permute of slices: from each input's offsets to where the target's own output offsets say.
class SlicesPermute {
 public:
  SlicesPermute(Instruction& i, std::vector<PermuteSlice> slices) : i_(i), make_(i), slices_(std::move(slices)) {}

  // The output with the slices that came.
  Instruction* made() {
    std::vector<Instruction*> given;
    for (const PermuteSlice& s : slices_) given.push_back(make_.dynamic_slice(array(0, s), starts(2, s), s.sizes));
    given.push_back(make_.integer(DType::Pred, 1));
    Instruction* came = permuted(given);
    Instruction* any = make_.element(came, std::ssize(slices_));
    std::vector<Instruction*> outputs;
    const Shape& output = i_.operand(1)->shape();
    for (std::int64_t k = 0; k < (output.is_tuple() ? std::ssize(output.elements()) : 1); ++k)
      outputs.push_back(output.is_tuple() ? make_.element(i_.operand(1), k) : i_.operand(1));
    for (std::size_t k = 0; k < slices_.size(); ++k) {
      const PermuteSlice& s = slices_[k];
      Instruction*& to = outputs[static_cast<std::size_t>(s.array)];
      const std::vector<Instruction*> at = starts(3, s);
      Instruction* what_was = make_.dynamic_slice(to, at, s.sizes);
      Instruction* what_came = make_.element(came, static_cast<std::int64_t>(k));
      to = make_.dynamic_update_slice(to, make_.select(make_.broadcast_scalar(any, s.sizes), what_came, what_was), at);
    }
    return output.is_tuple() ? make_.tuple(outputs) : outputs[0];
  }

 private:
  Instruction* array(std::int64_t operand, const PermuteSlice& s) {
    Instruction* whole = i_.operand(operand);
    return whole->shape().is_tuple() ? make_.element(whole, s.array) : whole;
  }

  std::vector<Instruction*> starts(std::int64_t operand, const PermuteSlice& s) {
    Instruction* offsets = i_.operand(operand);
    for (const std::int64_t k : s.offsets) offsets = make_.element(offsets, k);
    std::vector<Instruction*> all;
    for (std::int64_t d = 0; d < std::ssize(s.sizes); ++d) all.push_back(make_.element(offsets, d));
    return all;
  }

  Instruction* permuted(const std::vector<Instruction*>& given) {
    std::vector<Shape> shapes;
    for (const Instruction* g : given) shapes.push_back(Shape::array(g->shape().dtype(), g->shape().dims()));
    Instruction* permute = make_.op(Opcode::CollectivePermute, Shape::tuple(std::move(shapes)), given);
    const auto& attr = i_.attr<hlo::PermuteAttr>();
    permute->mutable_attr<hlo::PermuteAttr>() = {attr.channel_id, attr.pairs, {}};
    return permute;
  }

  Instruction& i_;
  Make make_;
  std::vector<PermuteSlice> slices_;
};

Expected<Instruction*> permute(Instruction& i) {
  if (hlo::moves_slices(i)) return SlicesPermute(i, TRY(hlo::permute_slices(i))).made();
  if (i.attr<hlo::PermuteAttr>().slice_sizes.empty()) return nullptr;
  return fail(Code::Unimplemented, i.name(), ": no meaning is known of slice_sizes at a permute of whole arrays");
}

// (input, output, context …): nobody reads the context.
Expected<Instruction*> permute_start(Instruction& i) {
  Instruction* output = TRY(permute(i));
  if (output == nullptr) return nullptr;
  Make make(i);
  std::vector<Instruction*> elements = {i.operand(0), output};
  for (std::size_t k = 2; k < i.shape().elements().size(); ++k) elements.push_back(make.zeros(i.shape().elements()[k]));
  return make.tuple(elements);
}

// Before its start is replaced.
Expected<Instruction*> permute_done(Instruction& i) {
  if (!hlo::moves_slices(*i.operand(0))) return nullptr;
  return Make(i).element(i.operand(0), 1);
}

Expected<Instruction*> ragged(Instruction& i) {
  const Shape& offsets = i.operand(2)->shape();
  const bool narrow = bit_width(offsets.dtype()) < 8;
  if (offsets.rank() == 1 && !narrow) return nullptr;
  Make make(i);
  std::vector<Instruction*> operands = i.operands();
  for (std::size_t k = 2; k < operands.size(); ++k) {
    operands[k] = make.reshape(operands[k], {offsets.num_elements()});
    if (narrow) operands[k] = make.convert(operands[k], DType::S32);
  }
  Instruction* with = make.op(Opcode::RaggedAllToAll, i.shape(), operands);
  with->set_attributes(i.attributes());
  return with;
}

// Of a root that is data and has less than a byte only these bits count.
Expected<Instruction*> rooted(Instruction& i) {
  Instruction* root = i.operand(i.num_operands() - 1);
  if (!i.attr<hlo::CollectiveAttr>().has_dynamic_root || bit_width(root->shape().dtype()) >= 8) return nullptr;
  std::vector<Instruction*> operands = i.operands();
  operands.back() = Make(i).convert(root, DType::S32);
  Instruction* with = Make(i).op(i.opcode(), i.shape(), operands);
  with->set_attributes(i.attributes());
  if (is(&i, Opcode::CollectiveReduce)) with->set_called({i.to_apply()});
  return with;
}

}  // namespace

Expected<Changed> expand_collectives(hlo::Module& module) {
  constexpr std::pair<Opcode, Expected<Instruction*> (*)(Instruction&)> kAll[] = {
      {Opcode::CollectivePermuteDone, permute_done},
      {Opcode::CollectivePermuteStart, permute_start},
      {Opcode::CollectivePermute, permute},
      {Opcode::RaggedAllToAll, ragged},
      {Opcode::CollectiveBroadcast, rooted},
      {Opcode::CollectiveReduce, rooted}};
  auto changed = Changed::No;
  for (const auto& [opcode, expansion] : kAll) {
    const Changed one = TRY(expand(module, opcode, expansion));
    changed |= one;
  }
  return changed;
}

}  // namespace hloom::passes

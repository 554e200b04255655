#include "passes/dynamic_collectives.h"

#include "base/try.h"
#include "hlo/participants.h"
#include "hlo/permute_slices.h"
#include "passes/dynamic_windows.h"

namespace hloom::passes {
namespace {

class CollectiveRules {
 public:
  CollectiveRules(Instruction& i, const SizesOf& sizes_of) : i_(i), make_(i) {
    for (std::int64_t k = 0; k < i.num_operands(); ++k) sizes_.push_back(sizes_of(i.operand(k)));
  }

  Expected<Sized> apply() {
    switch (i_.opcode()) {
      case Opcode::AllReduce: return agreed();
      case Opcode::AllGather:
      case Opcode::ReduceScatter: return along(i_.dimension(0));
      case Opcode::AllToAll:
        if (!i_.attr<hlo::CollectiveAttr>().has_dimension) return no_dynamic_form(i_);
        return along(i_.dimension(0));
      case Opcode::CollectivePermute:
        if (hlo::moves_slices(i_)) return no_dynamic_form(i_);
        return moved({});
      case Opcode::CollectiveBroadcast:
        if (!i_.attr<hlo::CollectiveAttr>().has_dynamic_root) return moved({});
        sizes_.pop_back();
        return moved({i_.operands().back()});
      default: return no_dynamic_form(i_);
    }
  }

 private:
  Expected<Sized> along(std::int64_t dimension) {
    for (const DimSizes& own : sizes_)
      if (own[static_cast<std::size_t>(dimension)] != nullptr) return no_dynamic_form(i_);
    return agreed();
  }

  Expected<Sized> agreed() {
    if (Instruction* own = joined(); own != nullptr) {
      Instruction* least = exchanged(Opcode::AllReduce, {own});
      TRY(keep_groups(*least));
      least->set_called({add_combiner(i_.module(), Opcode::Minimum, DType::S32)});
      part(least);
    }
    return on_bounds();
  }

  // With one added, so that the zero of a device that is sent nothing is no size.
  Expected<Sized> moved(const std::vector<Instruction*>& root) {
    if (Instruction* own = joined(); own != nullptr) {
      Instruction* ones = make_.integer(DType::S32, 1, own->shape().dims());
      std::vector<Instruction*> operands{make_.binary(Opcode::Add, own, ones)};
      operands.insert(operands.end(), root.begin(), root.end());
      Instruction* got = exchanged(i_.opcode(), std::move(operands));
      Instruction* nothing = make_.compare(hlo::Direction::Eq, got, make_.integer(DType::S32, 0, own->shape().dims()));
      part(make_.select(nothing, own, make_.binary(Opcode::Subtract, got, ones)));
    }
    return on_bounds();
  }

  // Among those who exchange the arrays.
  Instruction* exchanged(Opcode opcode, std::vector<Instruction*> operands) {
    const Shape shape = operands[0]->shape();
    Instruction* result = make_.op(opcode, shape, std::move(operands));
    result->set_attributes(i_.attributes());
    return result;
  }

  // A channel makes the ids of an all-to-all partitions, but those of an all-reduce replicas with all their partitions.
  Expected<> keep_groups(Instruction& all_reduce) const {
    if (i_.opcode() != Opcode::AllToAll) return {};
    auto& attr = all_reduce.mutable_attr<hlo::CollectiveAttr>();
    attr.has_dimension = false;
    if (!attr.channel_id) return {};
    attr.groups = {};
    attr.groups.groups = TRY(hlo::device_groups(i_));
    attr.use_global_device_ids = true;
    return {};
  }

  // All sizes in a vector; null if there are none.
  Instruction* joined() {
    std::vector<Instruction*> scalars;
    for (const DimSizes& own : sizes_)
      for (Instruction* size : own)
        if (size != nullptr) scalars.push_back(make_.reshape(size, {1}));
    if (scalars.size() < 2) return scalars.empty() ? nullptr : scalars[0];
    Instruction* vector = make_.op(Opcode::Concatenate, Shape::array(DType::S32, {std::ssize(scalars)}), scalars);
    vector->set_dimensions({0});
    return vector;
  }

  // The elements of such a vector in their places.
  void part(Instruction* vector) {
    std::int64_t next = 0;
    for (DimSizes& own : sizes_)
      for (Instruction*& size : own) {
        if (size == nullptr) continue;
        size = make_.reshape(make_.slice(vector, {{next}, {next + 1}, {1}}), {});
        ++next;
      }
  }

  Expected<Sized> on_bounds() {
    i_.set_shape(with_bounds(i_.shape()));
    return Sized{&i_, std::move(sizes_)};
  }

  Instruction& i_;
  Make make_;
  std::vector<DimSizes> sizes_;  // of operands, then of results
};

}  // namespace

Expected<Sized> apply_collective_sizes(Instruction& i, const SizesOf& sizes_of) { return CollectiveRules(i, sizes_of).apply(); }

}  // namespace hloom::passes

#include "hlo/permute_slices.h"

#include <algorithm>

#include "base/try.h"
#include "hlo/infer_rules.h"

namespace hloom::hlo {
namespace {

bool is_offsets(const Shape& shape) {
  return shape.is_tuple() && std::ranges::all_of(shape.elements(), [](const Shape& e) {
           return e.is_array() && e.rank() == 0 && is_integral(e.dtype());
         });
}

const Shape& array_of(const Shape& arrays, std::int64_t k) { return arrays.is_tuple() ? arrays.element(k) : arrays; }

class Reader {
 public:
  explicit Reader(const Instruction& i) : i_(i), sizes_(i.attr<PermuteAttr>().slice_sizes) {}

  Expected<std::vector<PermuteSlice>> read() {
    const Shape &input = i_.operand(0)->shape(), &output = i_.operand(1)->shape(), &offsets = i_.operand(2)->shape();
    if (!compatible(offsets, i_.operand(3)->shape()))
      return wrong(i_, "offsets ", offsets, " and ", i_.operand(3)->shape(), " must be of one form");
    if (input.is_tuple() != output.is_tuple() || (input.is_tuple() && input.elements().size() != output.elements().size()))
      return wrong(i_, "input ", input, " and output ", output, " must be as many arrays");
    if (!input.is_tuple()) {
      TRY(slices_of(0, offsets, {}));
    } else {
      if (!offsets.is_tuple() || offsets.elements().size() != input.elements().size())
        return wrong(i_, "offsets ", offsets, " must be a tuple for each of the ", input.elements().size(), " arrays");
      for (std::int64_t k = 0; k < std::ssize(input.elements()); ++k) TRY(slices_of(k, offsets.element(k), {k}));
    }
    if (slices_.size() != sizes_.size())
      return wrong(i_, "has ", sizes_.size(), " slice_sizes for offsets of ", slices_.size(), " slices");
    return std::move(slices_);
  }

 private:
  Expected<> slices_of(std::int64_t array, const Shape& offsets, std::vector<std::int64_t> at) {
    if (is_offsets(offsets)) return slice(array, offsets, std::move(at));
    if (!offsets.is_tuple()) return wrong(i_, "offsets must be tuples of integers, found ", offsets);
    for (std::int64_t k = 0; k < std::ssize(offsets.elements()); ++k) {
      if (!is_offsets(offsets.element(k))) return wrong(i_, "offsets must be tuples of integers, found ", offsets.element(k));
      std::vector<std::int64_t> inner = at;
      inner.push_back(k);
      TRY(slice(array, offsets.element(k), std::move(inner)));
    }
    return {};
  }

  Expected<> slice(std::int64_t array, const Shape& offsets, std::vector<std::int64_t> at) {
    const Shape &from = array_of(i_.operand(0)->shape(), array), &to = array_of(i_.operand(1)->shape(), array);
    if (!from.is_array() || !to.is_array() || from.dtype() != to.dtype() || from.rank() != to.rank())
      return wrong(i_, "input ", from, " and output ", to, " must be arrays of one type and rank");
    if (slices_.size() >= sizes_.size()) return wrong(i_, "has ", sizes_.size(), " slice_sizes, and offsets of more slices");
    const Dims& sizes = sizes_[slices_.size()];
    if (std::ssize(sizes) != from.rank() || std::ssize(offsets.elements()) != from.rank())
      return wrong(i_, "a slice of ", from, " needs ", from.rank(), " sizes and offsets, found ", sizes.size(), " and ",
                   offsets.elements().size());
    for (std::int64_t d = 0; d < from.rank(); ++d) {
      const std::int64_t size = sizes[static_cast<std::size_t>(d)];
      if (size < 0 || size > from.dim(d) || size > to.dim(d))
        return wrong(i_, "a slice of size ", size, " in dimension ", d, " does not fit ", from, " and ", to);
    }
    slices_.push_back({array, sizes, std::move(at)});
    return {};
  }

  const Instruction& i_;
  const std::vector<Dims>& sizes_;
  std::vector<PermuteSlice> slices_;
};

}  // namespace

bool moves_slices(const Instruction& permute) {
  const auto* attr = permute.attributes().get_if<PermuteAttr>();
  return attr != nullptr && permute.num_operands() == 4 && !attr->slice_sizes.empty();
}

Expected<std::vector<PermuteSlice>> permute_slices(const Instruction& i) { return Reader(i).read(); }

}  // namespace hloom::hlo

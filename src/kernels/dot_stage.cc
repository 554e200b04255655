// A padded operand that exists line by line: each cell writes what it reads of it into scratch, so that loops and
// addresses are those of an array without borders, and the array is not needed.
#include <algorithm>

#include "base/try.h"
#include "kernels/dot_builder.h"

namespace hloom::kernels {

namespace {

constexpr int kStageLanes = 32;

}  // namespace

std::int64_t DotBuilder::staged_lines() const {
  const std::size_t axis = p_.stage.axis;
  return p_.stage.lines_of(axis < p_.lhs_axis && shares(axis) ? held(axis) : 1);
}

// Behind all else.
void DotBuilder::place_stage() {
  stage_base_ = scratch_elements_;
  if (p_.stage.line > 0) scratch_elements_ += staged_lines() * p_.stage.line;
}

Expected<> DotBuilder::after_staging(const Body& body) {
  if (p_.stage.line == 0) return body();
  Index first;
  for (std::size_t a = 0; a < p_.lhs_axis; ++a) first = first + first_of(a) * (p_.axes[a].lhs / p_.stage.line);
  TRY(fill_stage(first));
  return after_packing([&] {
    stage_ = first * -p_.stage.line + written_ + stage_base_;
    return body();
  });
}

Expected<> DotBuilder::fill_stage(const Index& first_line) {
  const hlo::Dims& dims = fusion_.staged->shape().dims();
  const hlo::Dims outer(dims.begin(), dims.begin() + static_cast<std::ptrdiff_t>(p_.stage.first_dim));
  const std::int64_t all = fusion_.staged->shape().num_elements() / p_.stage.line, most = std::min(staged_lines(), all);
  Index length{most, {}};
  if (!first_line.terms.empty()) {  // the last cell may have fewer
    length = index_of(b_.line(hlo::Opcode::Minimum, DType::S64, {b_.affine(first_line * -1 + all), b_.constant_index(most)}));
    b_.set_range(length.terms[0].value, {1, most});
  }
  const Index line = begin_part(most, length);
  Point point = b_.delinearise(first_line + line, outer);
  point.resize(dims.size());
  TRY(fill_line(point, p_.stage.first_dim, line * p_.stage.line + stage_base_));
  b_.end_loop();
  return {};
}

// Before, inside and behind what is padded, each a loop that asks for nothing.
Expected<> DotBuilder::fill_line(Point& point, std::size_t dim, const Index& at) {
  const hlo::Dims& dims = fusion_.staged->shape().dims();
  if (dim == dims.size()) {
    b_.store_linear(scratch_, at, TRY(elements_.staged(point)));
    return {};
  }
  std::int64_t stride = 1;
  for (std::size_t d = dim + 1; d < dims.size(); ++d) stride *= dims[d];
  const hlo::PadDim& pad = fusion_.staged->attr<hlo::PadAttr>().dims[dim];
  const std::int64_t low = std::clamp<std::int64_t>(pad.low, 0, dims[dim]);
  const std::int64_t high = std::clamp<std::int64_t>(dims[dim] - std::max<std::int64_t>(pad.high, 0), low, dims[dim]);
  const std::int64_t ends[] = {low, high, dims[dim]};
  std::int64_t begin = 0;
  for (const std::int64_t end : ends) {
    if (begin == end) continue;
    point[dim] = index_of(b_.begin_loop(begin, end, dim + 1 == dims.size() ? kStageLanes : 0));
    TRY(fill_line(point, dim + 1, at + point[dim] * stride));
    b_.end_loop();
    begin = end;
  }
  return {};
}

}  // namespace hloom::kernels

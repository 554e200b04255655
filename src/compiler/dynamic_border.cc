#include "compiler/dynamic_border.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::compiler {
namespace {

using Dims = std::vector<std::int64_t>;

Shape static_of(Shape shape) {
  for (std::int64_t d = 0; d < shape.rank(); ++d) shape.set_dynamic_dim(d, false);
  return shape;
}

// Copies the rows that both arrays have.
hlo::Literal resized(const hlo::Literal& from, const Shape& shape) {
  hlo::Literal to(shape);
  const Dims &a = from.shape().dims(), &b = shape.dims();
  const std::int64_t width = byte_width(shape.dtype());
  Dims box, at(a.size(), 0);
  for (std::size_t d = 0; d < a.size(); ++d) box.push_back(std::min(a[d], b[d]));
  if (std::ranges::find(box, 0) != box.end()) return to;
  const std::span<std::byte> bytes = to.mutable_bytes();
  for (;;) {
    std::int64_t source = 0, target = 0;
    for (std::size_t d = 0; d < a.size(); ++d) {
      source = source * a[d] + at[d];
      target = target * b[d] + at[d];
    }
    const std::int64_t row = box.empty() ? 1 : box.back();
    std::memcpy(bytes.data() + target * width, from.bytes().data() + source * width, static_cast<std::size_t>(row * width));
    std::size_t d = a.empty() ? 0 : a.size() - 1;  // the last dimension went as a row
    while (d > 0 && ++at[d - 1] == box[d - 1]) at[--d] = 0;
    if (d == 0) return to;
  }
}

}  // namespace

bool has_dynamic_leaf(std::span<const Shape> leaves) {
  return std::ranges::any_of(leaves, [](const Shape& leaf) { return leaf.has_dynamic_dims(); });
}

Expected<Shape> sized(const Shape& bound, const Dims& dims) {
  const auto fail_to_fit = [&] {
    return fail(Code::InvalidArgument, "an array of ", Shape::array(bound.dtype(), dims), " does not fit ", bound);
  };
  if (std::ssize(dims) != bound.rank()) return fail_to_fit();
  Shape result = static_of(bound);
  for (std::int64_t d = 0; d < bound.rank(); ++d) {
    const std::int64_t size = dims[static_cast<std::size_t>(d)];
    if (size > bound.dim(d) || (size != bound.dim(d) && !bound.is_dynamic_dim(d))) return fail_to_fit();
    result.set_dim(d, size);
  }
  return result;
}

Expected<std::vector<hlo::Literal>> with_sizes(std::span<const Shape> parameters, std::vector<hlo::Literal> arguments) {
  if (arguments.size() != parameters.size())
    return fail(Code::InvalidArgument, "the program takes ", parameters.size(), " arrays, found ", arguments.size());
  std::vector<hlo::Literal> sizes;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Shape& bound = parameters[i];
    if (!bound.has_dynamic_dims()) continue;
    TRY(sized(bound, arguments[i].shape().dims()));
    std::vector<std::int32_t> own;
    for (std::int64_t d = 0; d < bound.rank(); ++d)
      if (bound.is_dynamic_dim(d)) own.push_back(static_cast<std::int32_t>(arguments[i].shape().dim(d)));
    hlo::Literal literal(Shape::array(DType::S32, {std::ssize(own)}));
    std::ranges::copy(own, literal.mutable_data<std::int32_t>().begin());
    sizes.push_back(std::move(literal));
    arguments[i] = resized(arguments[i], static_of(bound));
  }
  arguments.insert(arguments.end(), sizes.begin(), sizes.end());
  return arguments;
}

std::vector<hlo::Literal> without_sizes(std::span<const Shape> results, std::vector<hlo::Literal> values) {
  HLOOM_CHECK(values.size() >= results.size());
  std::size_t next = results.size();
  for (std::size_t i = 0; i < results.size(); ++i) {
    if (!results[i].has_dynamic_dims()) continue;
    const auto sizes = values[next++].data<std::int32_t>();
    Shape shape = static_of(results[i]);
    std::size_t k = 0;
    for (std::int64_t d = 0; d < shape.rank(); ++d)
      if (results[i].is_dynamic_dim(d)) shape.set_dim(d, sizes[k++]);
    values[i] = resized(values[i], shape);
  }
  values.resize(results.size());
  return values;
}

}  // namespace hloom::compiler

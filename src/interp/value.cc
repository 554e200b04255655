#include "interp/value.h"

#include "base/check.h"
#include "interp/index.h"

namespace hloom::interp {

Value::Value(hlo::Literal literal) : node_(std::make_shared<Node>()) {
  node_->is_tuple = literal.is_tuple();
  if (!node_->is_tuple) {
    node_->array = std::move(literal);
    return;
  }
  for (hlo::Literal& element : literal.elements()) node_->elements.emplace_back(std::move(element));
}

Value::Value(hlo::Literal array, std::vector<std::int64_t> sizes) : Value(std::move(array)) {
  HLOOM_CHECK(!node_->is_tuple && sizes.size() == node_->array.shape().dims().size());
  if (sizes != node_->array.shape().dims()) node_->sizes = std::move(sizes);
}

Value Value::tuple(std::vector<Value> elements) {
  Value value;
  value.node_ = std::make_shared<Node>();
  value.node_->is_tuple = true;
  value.node_->elements = std::move(elements);
  return value;
}

bool Value::is_dynamic() const {
  if (!node_->is_tuple) return !node_->sizes.empty();
  for (const Value& element : node_->elements)
    if (element.is_dynamic()) return true;
  return false;
}

hlo::Literal Value::take_array() && {
  if (node_.use_count() == 1) return std::move(node_->array);
  return node_->array;
}

hlo::Literal to_literal(const Value& value, const Shape& shape) {
  if (value.is_tuple()) {
    std::vector<hlo::Literal> elements;
    for (std::size_t i = 0; i < value.elements().size(); ++i)
      elements.push_back(to_literal(value.elements()[i], shape.elements()[i]));
    return hlo::Literal::tuple(std::move(elements));
  }
  const hlo::Literal& array = value.array();
  if (!shape.is_array()) return array;
  if (value.sizes().empty() && array.shape() == shape) return array;
  hlo::Literal result(shape);
  const Dims& sizes = value.sizes().empty() ? array.shape().dims() : value.sizes();
  const Strided from{0, row_major(array.shape().dims())}, to{0, row_major(shape.dims())};
  copy_box(result.mutable_bytes().data(), to, array.bytes().data(), from, sizes, byte_width(shape.dtype()));
  return result;
}

}  // namespace hloom::interp

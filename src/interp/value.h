// What instructions compute: arrays with their run-time sizes, tokens, and tuples of these.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "hlo/literal.h"

namespace hloom::interp {

/// A value, shared until somebody takes it apart. Copies cost a reference.
class Value {
 public:
  Value() = default;
  /// An array or token; a tuple literal becomes a tuple of its elements.
  Value(hlo::Literal literal);
  /// An array of which only the first sizes[d] of each dimension count. Full sizes are dropped.
  Value(hlo::Literal array, std::vector<std::int64_t> sizes);
  static Value tuple(std::vector<Value> elements);

  bool is_tuple() const { return node_->is_tuple; }
  const hlo::Literal& array() const { return node_->array; }
  const std::vector<Value>& elements() const { return node_->elements; }
  const Value& element(std::int64_t i) const { return node_->elements[static_cast<std::size_t>(i)]; }
  /// Run-time sizes, or empty where all of the array counts.
  const std::vector<std::int64_t>& sizes() const { return node_->sizes; }
  /// Whether some array in it has run-time sizes.
  bool is_dynamic() const;

  /// The array, whose bytes may be written without copying where nobody else holds the value.
  hlo::Literal take_array() &&;

 private:
  struct Node {
    bool is_tuple = false;
    hlo::Literal array;
    std::vector<std::int64_t> sizes;
    std::vector<Value> elements;
  };
  std::shared_ptr<Node> node_;
};

/// The value in the form and layout of `shape`. What lies past run-time sizes is zero.
hlo::Literal to_literal(const Value&, const Shape& shape);

}  // namespace hloom::interp

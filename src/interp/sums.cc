#include "interp/sums.h"

#include <utility>

namespace hloom::interp {

bool is_float_sum(const ScalarFunction& function, const Options& options) {
  return options.sums_in_f64 && function.is_plain_add() && is_floating(function.result_type(0));
}

hlo::Literal as_type(const hlo::Literal& literal, DType type) {
  if (literal.dtype() == type) return literal;
  Shape shape = literal.shape();
  shape.set_dtype(type);
  hlo::Literal result(std::move(shape));
  convert(result.mutable_bytes().data(), type, literal.bytes().data(), literal.dtype(), literal.num_elements());
  return result;
}

Value tuple_unless_one(std::vector<hlo::Literal> results) {
  if (results.size() == 1) return std::move(results[0]);
  std::vector<Value> elements;
  for (hlo::Literal& result : results) elements.emplace_back(std::move(result));
  return Value::tuple(std::move(elements));
}

}  // namespace hloom::interp

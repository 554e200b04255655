#include "kernels/kernel.h"

namespace hloom::kernels {

Argument argument_of(const Shape& array, std::string name, bool written) {
  return {std::move(name),
          array.dtype(),
          array.num_elements(),
          written,
          byte_width(array.dtype()),
          false,
          array.layout().memory_space(),
          array.layout().parts().splits};
}

std::int64_t argument_bytes(const Argument& argument) {
  return argument.num_elements * (argument.type == DType::Invalid ? 1 : byte_width(argument.type));
}

Index index_of(Value value, std::int64_t coefficient) {
  Index index;
  if (coefficient != 0) index.terms.push_back({value, coefficient});
  return index;
}

Index operator+(const Index& a, const Index& b) {
  Index sum;
  sum.offset = a.offset + b.offset;
  auto x = a.terms.begin();
  auto y = b.terms.begin();
  while (x != a.terms.end() || y != b.terms.end()) {
    if (y == b.terms.end() || (x != a.terms.end() && x->value < y->value)) {
      sum.terms.push_back(*x++);
    } else if (x == a.terms.end() || y->value < x->value) {
      sum.terms.push_back(*y++);
    } else {
      const std::int64_t coefficient = x->coefficient + y->coefficient;
      if (coefficient != 0) sum.terms.push_back({x->value, coefficient});
      ++x, ++y;
    }
  }
  return sum;
}

Index operator+(const Index& a, std::int64_t offset) {
  Index sum = a;
  sum.offset += offset;
  return sum;
}

Index operator*(const Index& a, std::int64_t factor) {
  if (factor == 0) return {};
  Index product = a;
  product.offset *= factor;
  for (Index::Term& t : product.terms) t.coefficient *= factor;
  return product;
}

}  // namespace hloom::kernels

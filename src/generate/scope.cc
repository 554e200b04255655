#include "generate/scope.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "generate/literals.h"
#include "hlo/infer_shape.h"
#include "hlo/narrow_float.h"

namespace hloom::generate {

std::int64_t count(const Dims& dims) {
  return std::accumulate(dims.begin(), dims.end(), std::int64_t{1}, std::multiplies<>());
}

double exact_limit(DType type) {
  type = real_type(type);
  if (!is_floating(type)) return kUnbounded;
  return std::ldexp(1.0, hlo::float_format(type).mantissa_bits + 1);
}

Dims iota(std::int64_t n) {
  Dims numbers(static_cast<std::size_t>(n));
  std::iota(numbers.begin(), numbers.end(), std::int64_t{0});
  return numbers;
}

Instruction* Scope::add(Opcode opcode, std::vector<Instruction*> operands, const std::function<void(Instruction&)>& set,
                        Shape written) {
  for (const Instruction* operand : operands)
    if (operand == nullptr) return nullptr;
  Instruction* root = computation_.root();
  Instruction* i = computation_.add(opcode, std::move(written), std::move(operands));
  if (set) set(*i);
  auto shape = hlo::infer_shape(*i);
  bool good = shape.has_value();
  if (good)
    for (const Shape* leaf : leaves(*shape))
      if (leaf->is_array()) good = good && leaf->num_elements() <= 4 * draw_.max_elements;
  if (!good) {
    computation_.set_root(root);
    computation_.remove(i);
    return nullptr;
  }
  i->set_shape(*std::move(shape));
  return keep(i, kUnbounded);
}

Instruction* Scope::keep(Instruction* i, double bound) {
  if (i == nullptr || !i->shape().is_array()) return i;
  if (std::ranges::find(values_, i) == values_.end()) values_.push_back(i);
  bounds_[i] = bound;
  return i;
}

double Scope::bound(const Instruction* i) const {
  const auto found = bounds_.find(i);
  if (found == bounds_.end()) return kUnbounded;
  const DType type = i->shape().dtype();
  const double limit = is_integral(type) ? std::ldexp(1.0, bit_width(type) - 1) : exact_limit(type);
  return found->second < limit ? found->second : kUnbounded;
}

Instruction* Scope::pick(const std::function<bool(const Instruction&)>& condition) {
  std::vector<Instruction*> fit;
  for (Instruction* v : values_)
    if (condition(*v)) fit.push_back(v);
  if (fit.empty()) return nullptr;
  // Half of the time one of the last three: programs are chains with side branches.
  const auto size = static_cast<std::int64_t>(fit.size());
  const std::int64_t from = random().chance(50) ? std::max<std::int64_t>(0, size - 3) : 0;
  return fit[static_cast<std::size_t>(random().pick(from, size - 1))];
}

Instruction* Scope::make(DType type, const Dims& dims) {
  const auto same = [&](const Instruction& i) { return i.shape().dtype() == type && i.shape().dims() == dims; };
  if (random().chance(75))
    if (Instruction* there = pick(same)) return there;
  if (random().chance(50))
    if (Instruction* other = pick([&](const Instruction& i) { return i.shape().dims() == dims; }))
      return convert(other, type);
  if (random().chance(40) && !dims.empty()) {  // a vector along one dimension
    const auto d = static_cast<std::int64_t>(random().pick(0, static_cast<std::int64_t>(dims.size()) - 1));
    const std::int64_t size = dims[static_cast<std::size_t>(d)];
    Instruction* vector =
        pick([&](const Instruction& i) { return i.shape().dtype() == type && i.shape().dims() == Dims{size}; });
    if (vector != nullptr)
      if (Instruction* b = add(
              Opcode::Broadcast, {vector}, [&](Instruction& i) { i.set_dimensions({d}); }, Shape::array(type, dims)))
        return keep(b, bound(vector));
  }
  if (random().chance(25)) return splat(type, random().pick(-2, 3), dims);
  return make_new(type, dims);
}

Instruction* Scope::make_new(DType type, const Dims& dims) {
  const std::int64_t parameters = static_cast<std::int64_t>(computation_.parameters().size());
  if (open_ && parameters < 10 && random().chance(60)) {
    Instruction* p = computation_.add_parameter(parameters, Shape::array(type, dims), "p");
    return keep(p, draw_.wild ? kUnbounded : is_unsigned(type) || is_signed(type) ? kUnbounded : 4);
  }
  if (count(dims) <= 64 && random().chance(40)) {
    const hlo::Literal literal = numbers(Shape::array(type, dims), random(), draw_.wild && random().chance(50));
    return keep(computation_.add_constant(literal), draw_.wild ? kUnbounded : 4);
  }
  return pattern(type, dims);
}

// Small numbers that depend on the place: bits of a multiple of the element's number.
Instruction* Scope::pattern(DType type, const Dims& dims) {
  const std::int64_t n = count(dims);
  Instruction* x = add(Opcode::Iota, {}, {}, Shape::array(DType::S32, {n}));
  x = add(Opcode::Multiply, {x, splat(DType::S32, random().of({37, 59, 101, 211}), {n})});
  x = add(Opcode::ShiftRightLogical, {x, splat(DType::S32, random().pick(2, 5), {n})});
  x = keep(add(Opcode::And, {x, splat(DType::S32, random().of({1, 3, 7}), {n})}), 7);
  x = keep(add(Opcode::Reshape, {x}, {}, Shape::array(DType::S32, dims)), 7);
  return convert(x, type);
}

Instruction* Scope::scalar(DType type, std::int64_t value) {
  if (is_unsigned(type) && value < -1) value = -value;
  Instruction* c = computation_.add_constant(number(type, value));
  return keep(c, std::fabs(static_cast<double>(value)));
}

Instruction* Scope::splat(DType type, std::int64_t value, const Dims& dims) {
  Instruction* c = scalar(type, value);
  if (dims.empty()) return c;
  Instruction* b = add(Opcode::Broadcast, {c}, {}, Shape::array(type, dims));
  return keep(b, bound(c));
}

Instruction* Scope::convert(Instruction* x, DType type) {
  if (x == nullptr || x->shape().dtype() == type) return x;
  const DType from = x->shape().dtype();
  const double before = from == DType::Pred ? 1 : bound(x);
  Instruction* c = add(Opcode::Convert, {x}, {}, Shape::array(type, x->shape().dims()));
  const bool fits = type == DType::Pred || (is_integral(type) && bit_width(type) < 8 && before > 1) ||
                    (is_unsigned(type) && !is_unsigned(from) && from != DType::Pred);
  return keep(c, type == DType::Pred ? 1 : fits ? kUnbounded : before);
}

Dims Scope::dims(std::int64_t rank) {
  Dims dims;
  for (std::int64_t d = 0; d < rank; ++d) dims.push_back(dim());
  while (count(dims) > draw_.max_elements) {
    std::int64_t& largest = *std::ranges::max_element(dims);
    largest = std::max<std::int64_t>(1, largest / 2);
  }
  return dims;
}

std::int64_t Scope::dim() {
  const std::int64_t kind = random().pick(0, 99);
  if (kind < 1) return 0;
  if (kind < 10) return 1;
  if (kind < 60) return random().pick(2, 9);
  if (kind < 85) return random().of({11, 13, 15, 16, 17, 19, 23, 31, 32, 33});
  if (kind < 97) return random().of({47, 63, 64, 65, 67, 96, 100, 127, 128, 129, 131});
  return random().of({255, 256, 257, 511, 1021, 1024, 2047});
}

DType Scope::type() {
  constexpr std::array kTypes = {DType::F32, DType::S32, DType::Pred,     DType::U32,   DType::F64,
                                 DType::U64, DType::S64, DType::BF16,     DType::F16,   DType::U8,
                                 DType::S8,  DType::S16, DType::U16,      DType::C64,   DType::C128,
                                 DType::S4,  DType::U4,  DType::F8E4M3FN, DType::F8E5M2,
                                 DType::S2,  DType::U2,  DType::F4E2M1FN, DType::F8E4M3B11FNUZ};
  constexpr std::array kWeights = {400, 180, 90, 60, 70, 15, 25, 40, 30, 20, 20, 8, 8, 20, 5, 6, 6, 4, 4, 4, 4, 4, 2};
  return kTypes[random().weighted(kWeights)];
}

DType Scope::float_type() {
  constexpr std::array kTypes = {DType::F32, DType::F64, DType::BF16, DType::F16};
  constexpr std::array kWeights = {70, 15, 8, 7};
  return kTypes[random().weighted(kWeights)];
}

DType Scope::index_type() {
  constexpr std::array kTypes = {DType::S32, DType::S64, DType::U32, DType::S8, DType::U8, DType::S16, DType::U64};
  constexpr std::array kWeights = {80, 8, 5, 2, 2, 2, 1};
  return kTypes[random().weighted(kWeights)];
}

Instruction* Scope::tame(Instruction* x, double terms, double factor) {
  if (x == nullptr) return x;
  const DType type = x->shape().dtype();
  if (draw_.wild || !(is_floating(type) || is_complex(type))) return x;
  if (terms * factor * bound(x) <= exact_limit(type)) return x;
  if (is_complex(type)) {
    Instruction* re = tame(add(Opcode::Real, {x}), terms, 2 * factor);
    Instruction* im = tame(add(Opcode::Imag, {x}), terms, 2 * factor);
    return keep(add(Opcode::Complex, {re, im}), 3);
  }
  // Conversion saturates, a NaN gives 0.
  const std::int64_t mask = terms * factor * 3 <= exact_limit(type) ? 3 : 1;
  const Dims& dims = x->shape().dims();
  Instruction* whole = add(Opcode::Convert, {x}, {}, Shape::array(DType::S32, dims));
  Instruction* small = keep(add(Opcode::And, {whole, splat(DType::S32, mask, dims)}), static_cast<double>(mask));
  return convert(small, type);
}

void Scope::steps(int number) {
  for (int s = 0; s < number && draw_.steps_left > 0; ++s) {
    --draw_.steps_left;
    step();
  }
}

void Scope::step() {
  struct Group {
    int weight;
    std::span<const Family> families;
  };
  const Group groups[] = {{45, elementwise_families()}, {28, movement_families()},   {9, index_families()},
                          {12, reduction_families()},   {5, contraction_families()}, {7, control_families()},
                          {3, transform_families()},    {2, dynamic_families()},  {meets_ ? 25 : 0, collective_families()}};
  std::vector<int> weights;
  for (const Group& g : groups) weights.push_back(g.weight);
  const std::span<const Family> families = groups[random().weighted(weights)].families;
  weights.clear();
  for (const Family& f : families) weights.push_back(f.weight);
  families[random().weighted(weights)].draw(*this);
}

}  // namespace hloom::generate

#include "hlo/literal.h"

#include <cstring>

#include "hlo/narrow_float.h"

namespace hloom::hlo {
namespace {

std::int64_t array_bytes(const Shape& shape) {
  return shape.is_array() ? shape.num_elements() * byte_width(shape.dtype()) : 0;
}

std::uint64_t raw_bits(const Literal& literal, std::int64_t i, std::int64_t width) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, literal.bytes().data() + i * byte_width(literal.dtype()), static_cast<std::size_t>(width));
  return bits;
}

void collect(const Literal& literal, std::vector<const Literal*>& out) {
  if (!literal.is_tuple()) return out.push_back(&literal);
  for (const Literal& e : literal.elements()) collect(e, out);
}

}  // namespace

Literal::Literal(Shape shape) : shape_(std::move(shape)) {
  if (shape_.is_tuple())
    for (const Shape& e : shape_.elements()) elements_.emplace_back(e);
  else
    bytes_ = std::make_shared<std::vector<std::byte>>(static_cast<std::size_t>(array_bytes(shape_)));
}

Literal Literal::tuple(std::vector<Literal> elements) {
  Literal result;
  std::vector<Shape> shapes;
  for (const Literal& e : elements) shapes.push_back(e.shape());
  result.shape_ = Shape::tuple(std::move(shapes));
  result.elements_ = std::move(elements);
  return result;
}

Literal Literal::from_bytes(Shape shape, std::vector<std::byte> bytes) {
  HLOOM_CHECK(array_bytes(shape) == static_cast<std::int64_t>(bytes.size()));
  Literal result;
  result.shape_ = std::move(shape);
  result.bytes_ = std::make_shared<std::vector<std::byte>>(std::move(bytes));
  return result;
}

std::span<std::byte> Literal::mutable_bytes() {
  if (!bytes_) return {};
  if (bytes_.use_count() > 1) bytes_ = std::make_shared<std::vector<std::byte>>(*bytes_);
  return *bytes_;
}

void Literal::release() {
  bytes_.reset();
  for (Literal& element : elements_) element.release();
}

bool operator==(const Literal& a, const Literal& b) {
  if (!(a.shape_ == b.shape_) || a.elements_ != b.elements_) return false;
  const auto x = a.bytes(), y = b.bytes();
  return x.size() == y.size() && (x.data() == y.data() || x.empty() || std::memcmp(x.data(), y.data(), x.size()) == 0);
}

std::vector<const Literal*> leaves(const Literal& literal) {
  std::vector<const Literal*> out;
  collect(literal, out);
  return out;
}

double element_as_double(const Literal& literal, std::int64_t i) {
  const DType type = real_type(literal.dtype());
  if (is_floating(type)) return decode_float(float_format(type), raw_bits(literal, i, byte_width(type)));
  if (literal.dtype() == DType::U64) return static_cast<double>(raw_bits(literal, i, 8));
  return static_cast<double>(element_as_int64(literal, i));
}

std::int64_t element_as_int64(const Literal& literal, std::int64_t i) {
  const DType type = literal.dtype();
  HLOOM_CHECK(is_integral(type) || type == DType::Pred);
  const std::uint64_t bits = raw_bits(literal, i, byte_width(type));
  const int unused = 64 - bit_width(type);
  if (is_signed(type)) return static_cast<std::int64_t>(bits << unused) >> unused;
  return static_cast<std::int64_t>(bits << unused >> unused);
}

bool is_splat(const Literal& literal) {
  const auto b = literal.bytes();
  const auto width = static_cast<std::size_t>(byte_width(literal.dtype()));
  return b.size() <= width || std::memcmp(b.data(), b.data() + width, b.size() - width) == 0;
}

}  // namespace hloom::hlo

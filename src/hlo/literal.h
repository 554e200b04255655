// A value: a dense array, or a tuple of values.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/check.h"
#include "hloom/shape.h"

namespace hloom::hlo {

/// The elements of an array in row-major logical order, whatever the layout of its shape says, one element
/// in byte_width(dtype) bytes (sub-byte types: the value in the low bits of a byte, sign- or zero-extended;
/// pred: 0 or 1; complex: real part first). Or a tuple, depth first. Tokens have no bytes.
/// Copies share the bytes until one writes.
class Literal {
 public:
  Literal() = default;
  /// Zeros of this shape. Needs: counts that fit.
  explicit Literal(Shape shape);
  static Literal tuple(std::vector<Literal> elements);
  /// A scalar or array with these raw bytes. Needs: as many bytes as the shape has.
  static Literal from_bytes(Shape shape, std::vector<std::byte> bytes);

  const Shape& shape() const { return shape_; }
  void set_shape_layout(Layout layout) { shape_.set_layout(std::move(layout)); }
  bool is_tuple() const { return shape_.is_tuple(); }
  DType dtype() const { return shape_.dtype(); }
  std::int64_t num_elements() const { return shape_.num_elements(); }

  std::span<const std::byte> bytes() const {
    return bytes_ ? std::span<const std::byte>(*bytes_) : std::span<const std::byte>();
  }
  /// Unshares. The pointer stays good until this literal is copied or destroyed.
  std::span<std::byte> mutable_bytes();

  /// Lets go of the bytes of all leaves, for a value that is kept elsewhere. The shape stays; it prints as `{...}`.
  void release();
  /// Whether an array's bytes are there.
  bool is_released() const { return shape_.is_array() && bytes_ == nullptr; }

  /// The elements as T. Needs: sizeof(T) == byte_width(dtype).
  template <typename T>
  std::span<const T> data() const {
    HLOOM_CHECK(static_cast<std::int64_t>(sizeof(T)) == byte_width(dtype()));
    return {reinterpret_cast<const T*>(bytes().data()), bytes().size() / sizeof(T)};
  }
  template <typename T>
  std::span<T> mutable_data() {
    HLOOM_CHECK(static_cast<std::int64_t>(sizeof(T)) == byte_width(dtype()));
    const auto b = mutable_bytes();
    return {reinterpret_cast<T*>(b.data()), b.size() / sizeof(T)};
  }

  const std::vector<Literal>& elements() const { return elements_; }
  std::vector<Literal>& elements() { return elements_; }

  /// Same shape and bytes (NaN payloads and zeros' signs count).
  friend bool operator==(const Literal&, const Literal&);

 private:
  Shape shape_;
  std::shared_ptr<std::vector<std::byte>> bytes_;
  std::vector<Literal> elements_;
};

/// The leaves of a literal depth first. Pointers into it.
std::vector<const Literal*> leaves(const Literal&);

/// Element `i` (row-major) of an array as a double: floats and integers by value (64-bit ones rounded), pred 0 or 1,
/// complex by its real part.
double element_as_double(const Literal&, std::int64_t i);
/// Element `i` of an integer or pred array; u64 keeps its bits.
std::int64_t element_as_int64(const Literal&, std::int64_t i);
/// Whether all elements have the same bits as the first (true for empty).
bool is_splat(const Literal&);

}  // namespace hloom::hlo

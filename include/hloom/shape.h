// Element types, layouts and shapes: what a value looks like, inside and at the border of a program.
//
//   Shape s = Shape::array(DType::F32, {2, 3});      // f32[2,3]{1,0}
//   s.num_elements() == 6; s.size_bytes() == 24; to_string(s) == "f32[2,3]{1,0}"
//   Shape t = Shape::tuple({s, Shape::array(DType::Pred, {})});
//
// Values are plain: copy, compare, keep. Sizes of user shapes may overflow: ask element_count() first.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "hloom/error.h"

namespace hloom {

/// Element types, numbered as xla.PrimitiveType.
enum class DType : std::uint8_t {
  Invalid = 0,
  Pred = 1,
  S8 = 2,
  S16 = 3,
  S32 = 4,
  S64 = 5,
  U8 = 6,
  U16 = 7,
  U32 = 8,
  U64 = 9,
  F16 = 10,
  F32 = 11,
  F64 = 12,
  Tuple = 13,
  Opaque = 14,
  C64 = 15,
  BF16 = 16,
  Token = 17,
  C128 = 18,
  F8E5M2 = 19,
  F8E4M3FN = 20,
  S4 = 21,
  U4 = 22,
  F8E4M3B11FNUZ = 23,
  F8E5M2FNUZ = 24,
  F8E4M3FNUZ = 25,
  S2 = 26,
  U2 = 27,
  F8E4M3 = 28,
  F8E3M4 = 29,
  S1 = 30,
  U1 = 31,
  F4E2M1FN = 32,
  F8E8M0FNU = 33,
  Buffer = 34,
};

/// The type's name in HLO text: "f32", "pred", "bf16" …; "tuple", "buffer", "invalid" for those.
std::string_view name(DType);
/// The type of that name, if it is a primitive type's (not tuple or buffer).
std::optional<DType> dtype_named(std::string_view);

bool is_floating(DType);  ///< every float, f8 and f4 included; not complex
bool is_complex(DType);
bool is_signed(DType);    ///< s1 … s64
bool is_unsigned(DType);  ///< u1 … u64; not pred
bool is_integral(DType);  ///< signed or unsigned; not pred
bool is_array_type(DType);  ///< has elements: not tuple, token, opaque, buffer, invalid

/// Significant bits of an element: 1 for pred, 4 for s4, 64 for c64 …; 0 if it has none.
int bit_width(DType);
/// Bytes of one stored element where nothing is packed: sub-byte types and pred take 1.
std::int64_t byte_width(DType);
/// The type of the parts: C64 → F32, C128 → F64, else the type itself.
DType real_type(DType);
std::ostream& operator<<(std::ostream&, DType);

/// The storage of an array's dimensions and what else a layout says (hlo-text 8).
struct Layout {
  enum class DimKind : std::uint8_t { Dense, Compressed, Singleton, LooselyCompressed };
  struct Dim {
    DimKind kind = DimKind::Dense;
    bool unique = true;
    bool ordered = true;
    bool operator==(const Dim&) const = default;
  };
  /// Tile dimensions, outermost first; kCombine merges a dimension with the next more minor one.
  using Tile = std::vector<std::int64_t>;
  static constexpr std::int64_t kCombine = INT64_MIN;
  struct Split {
    std::int64_t dimension = 0;
    std::vector<std::int64_t> indices;
    bool operator==(const Split&) const = default;
  };
  /// The parts that programs for CPUs hardly ever have, kept apart so that a layout stays small.
  struct Extra {
    std::vector<Dim> dims;
    std::vector<Tile> tiles;
    std::int64_t tail_padding = 1;
    DType index_type = DType::Invalid;
    DType pointer_type = DType::Invalid;
    std::int64_t element_bits = 0;
    std::int64_t memory_space = 0;
    std::vector<Split> splits;
    std::string physical_shape;  ///< text of the shape in P(…), canonical
    std::int64_t metadata_bytes = 0;
    bool operator==(const Extra&) const = default;
  };

  std::vector<std::int64_t> minor_to_major;  ///< first = fastest varying
  std::shared_ptr<const Extra> extra;        ///< null = all defaults

  /// Row-major: {rank-1, …, 0}.
  static Layout descending(std::int64_t rank);
  bool is_descending() const;
  /// Dense, untiled, unpacked: what kernels can address by strides.
  bool is_plain() const;
  /// The extra parts, or the defaults.
  const Extra& parts() const;
  /// Sets the extra parts; all-default parts become null so that equal layouts compare equal.
  void set_parts(Extra);
  std::int64_t memory_space() const { return parts().memory_space; }
  void set_memory_space(std::int64_t);
  /// The same in memory space 0 and without splits: how the bytes lie, wherever that is.
  Layout unplaced() const;

  friend bool operator==(const Layout& a, const Layout& b) {
    return a.minor_to_major == b.minor_to_major && (a.extra == b.extra || a.parts() == b.parts());
  }
};

/// The shape of a value: an array, a tuple, a token, an opaque handle or a buffer b(…).
class Shape {
 public:
  static constexpr std::int64_t kUnbounded = -1;  ///< dimension `?`
  static constexpr std::int64_t kMaxRank = 64;

  Shape() = default;  ///< invalid
  /// An array with the row-major layout.
  static Shape array(DType, std::vector<std::int64_t> dims);
  static Shape array(DType, std::vector<std::int64_t> dims, Layout);
  static Shape scalar(DType type) { return array(type, {}); }
  static Shape tuple(std::vector<Shape> elements);
  static Shape token();
  static Shape opaque();
  static Shape buffer(Shape held);

  DType dtype() const { return dtype_; }
  bool is_array() const { return is_array_type(dtype_); }
  bool is_tuple() const { return dtype_ == DType::Tuple; }
  bool is_token() const { return dtype_ == DType::Token; }
  bool is_valid() const { return dtype_ != DType::Invalid; }
  /// An array without dimensions.
  bool is_scalar() const { return is_array() && dims_.empty(); }

  /// Arrays: sizes, most major logical dimension first; a dynamic one holds its bound, or kUnbounded.
  const std::vector<std::int64_t>& dims() const { return dims_; }
  std::int64_t dim(std::int64_t i) const { return dims_[static_cast<std::size_t>(i)]; }
  std::int64_t rank() const { return static_cast<std::int64_t>(dims_.size()); }
  bool is_dynamic_dim(std::int64_t i) const {
    return ((dynamic_ >> i) & 1) != 0;
  }
  bool has_dynamic_dims() const { return dynamic_ != 0; }
  void set_dim(std::int64_t i, std::int64_t size) { dims_[static_cast<std::size_t>(i)] = size; }
  void set_dynamic_dim(std::int64_t i, bool dynamic);
  void set_dtype(DType type) { dtype_ = type; }

  /// The layout, if the shape has one. Arrays made by array() have one.
  bool has_layout() const { return has_layout_; }
  const Layout& layout() const { return layout_; }
  void set_layout(Layout layout) {
    layout_ = std::move(layout);
    has_layout_ = true;
  }
  void clear_layout() {
    layout_ = {};
    has_layout_ = false;
  }

  /// Tuples: their elements. Buffers: the one shape held.
  const std::vector<Shape>& elements() const { return elements_; }
  std::vector<Shape>& elements() { return elements_; }
  const Shape& element(std::int64_t i) const { return elements_[static_cast<std::size_t>(i)]; }

  /// Elements of an array, or nothing if a dimension is unbounded or the count exceeds 2^63 - 1.
  std::optional<std::int64_t> element_count() const;
  /// Needs: an array whose count is known. (Verified modules hold no other.)
  std::int64_t num_elements() const;
  /// Bytes of an array stored one element a byte where sub-byte (packed only under an E(n) layout),
  /// tiles' padding included. Tuples: the sum. Tokens: 0. Needs: counts that fit.
  std::int64_t size_bytes() const;

  /// Everything, layouts included.
  bool operator==(const Shape&) const;

 private:
  DType dtype_ = DType::Invalid;
  bool has_layout_ = false;
  std::vector<std::int64_t> dims_;
  std::uint64_t dynamic_ = 0;  ///< bit i: dimension i is dynamic
  Layout layout_;
  std::vector<Shape> elements_;
};

/// Same structure, element types, dimensions, dynamic flags; layouts do not count.
bool compatible(const Shape&, const Shape&);
/// As compatible(), and any two float types count as the same.
bool compatible_ignoring_precision(const Shape&, const Shape&);
/// Same dimensions (arrays), whatever the element type and layout.
bool same_dims(const Shape&, const Shape&);

/// Number of leaves (arrays, tokens, opaques) depth first.
std::int64_t num_leaves(const Shape&);
/// The leaves depth first. Pointers into `shape`.
std::vector<const Shape*> leaves(const Shape& shape);
/// Path into nested tuples.
using ShapeIndex = std::vector<std::int64_t>;
/// The shape at `index`, or null if there is none.
const Shape* subshape(const Shape&, const ShapeIndex& index);
/// Paths of all leaves, depth first.
std::vector<ShapeIndex> leaf_indices(const Shape&);

/// HLO text, with or without layouts. Tuples carry an index comment before each fifth element.
std::string to_string(const Shape&, bool with_layout = true);
std::string to_string(const Layout&);
std::ostream& operator<<(std::ostream&, const Shape&);

}  // namespace hloom

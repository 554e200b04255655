#include "hloom/shape.h"

#include <algorithm>
#include <limits>
#include <sstream>
#include <unordered_map>

#include "base/check.h"

namespace hloom {
namespace {

struct TypeInfo {
  DType type;
  std::string_view name;
  int bits;
  enum class Class : std::uint8_t { Pred, Signed, Unsigned, Float, Complex, Other } of;
};

using Class = TypeInfo::Class;

constexpr TypeInfo kTypes[] = {
    {DType::Invalid, "invalid", 0, Class::Other},
    {DType::Pred, "pred", 1, Class::Pred},
    {DType::S8, "s8", 8, Class::Signed},
    {DType::S16, "s16", 16, Class::Signed},
    {DType::S32, "s32", 32, Class::Signed},
    {DType::S64, "s64", 64, Class::Signed},
    {DType::U8, "u8", 8, Class::Unsigned},
    {DType::U16, "u16", 16, Class::Unsigned},
    {DType::U32, "u32", 32, Class::Unsigned},
    {DType::U64, "u64", 64, Class::Unsigned},
    {DType::F16, "f16", 16, Class::Float},
    {DType::F32, "f32", 32, Class::Float},
    {DType::F64, "f64", 64, Class::Float},
    {DType::Tuple, "tuple", 0, Class::Other},
    {DType::Opaque, "opaque", 0, Class::Other},
    {DType::C64, "c64", 64, Class::Complex},
    {DType::BF16, "bf16", 16, Class::Float},
    {DType::Token, "token", 0, Class::Other},
    {DType::C128, "c128", 128, Class::Complex},
    {DType::F8E5M2, "f8e5m2", 8, Class::Float},
    {DType::F8E4M3FN, "f8e4m3fn", 8, Class::Float},
    {DType::S4, "s4", 4, Class::Signed},
    {DType::U4, "u4", 4, Class::Unsigned},
    {DType::F8E4M3B11FNUZ, "f8e4m3b11fnuz", 8, Class::Float},
    {DType::F8E5M2FNUZ, "f8e5m2fnuz", 8, Class::Float},
    {DType::F8E4M3FNUZ, "f8e4m3fnuz", 8, Class::Float},
    {DType::S2, "s2", 2, Class::Signed},
    {DType::U2, "u2", 2, Class::Unsigned},
    {DType::F8E4M3, "f8e4m3", 8, Class::Float},
    {DType::F8E3M4, "f8e3m4", 8, Class::Float},
    {DType::S1, "s1", 1, Class::Signed},
    {DType::U1, "u1", 1, Class::Unsigned},
    {DType::F4E2M1FN, "f4e2m1fn", 4, Class::Float},
    {DType::F8E8M0FNU, "f8e8m0fnu", 8, Class::Float},
    {DType::Buffer, "buffer", 0, Class::Other},
};

const TypeInfo& info(DType type) {
  const TypeInfo& found = kTypes[static_cast<std::size_t>(type)];
  HLOOM_DCHECK(found.type == type);
  return found;
}

}  // namespace

std::string_view name(DType type) { return info(type).name; }

std::optional<DType> dtype_named(std::string_view text) {
  static const auto* const table = [] {
    auto* t = new std::unordered_map<std::string_view, DType>;
    for (const TypeInfo& type : kTypes)
      if (type.type != DType::Invalid && type.type != DType::Tuple && type.type != DType::Buffer)
        t->emplace(type.name, type.type);
    return t;
  }();
  const auto found = table->find(text);
  if (found == table->end()) return std::nullopt;
  return found->second;
}

bool is_floating(DType type) { return info(type).of == Class::Float; }
bool is_complex(DType type) { return info(type).of == Class::Complex; }
bool is_signed(DType type) { return info(type).of == Class::Signed; }
bool is_unsigned(DType type) { return info(type).of == Class::Unsigned; }
bool is_integral(DType type) { return is_signed(type) || is_unsigned(type); }
bool is_array_type(DType type) { return info(type).of != Class::Other; }
int bit_width(DType type) { return info(type).bits; }
std::int64_t byte_width(DType type) { return (info(type).bits + 7) / 8; }
DType real_type(DType type) {
  return type == DType::C64 ? DType::F32 : type == DType::C128 ? DType::F64 : type;
}
std::ostream& operator<<(std::ostream& out, DType type) { return out << name(type); }

Layout Layout::descending(std::int64_t rank) {
  Layout layout;
  for (std::int64_t d = rank - 1; d >= 0; --d) layout.minor_to_major.push_back(d);
  return layout;
}

bool Layout::is_descending() const {
  return std::is_sorted(minor_to_major.rbegin(), minor_to_major.rend());
}

bool Layout::is_plain() const {
  const Extra& p = parts();
  return p.tiles.empty() && p.element_bits == 0 && p.tail_padding == 1 && p.metadata_bytes == 0 &&
         p.index_type == DType::Invalid && p.pointer_type == DType::Invalid && p.physical_shape.empty() &&
         std::ranges::all_of(p.dims, [](const Dim& d) { return d == Dim{}; });
}

const Layout::Extra& Layout::parts() const {
  static const Extra kDefault;
  return extra ? *extra : kDefault;
}

void Layout::set_parts(Extra value) {
  if (value == Extra{})
    extra = nullptr;
  else
    extra = std::make_shared<const Extra>(std::move(value));
}

void Layout::set_memory_space(std::int64_t space) {
  Extra changed = parts();
  changed.memory_space = space;
  set_parts(std::move(changed));
}

Layout Layout::unplaced() const {
  Layout result = *this;
  if (extra == nullptr) return result;
  Extra rest = *extra;
  rest.memory_space = 0;
  rest.splits.clear();
  result.set_parts(std::move(rest));
  return result;
}

Shape Shape::array(DType type, std::vector<std::int64_t> dims) {
  Layout layout = Layout::descending(static_cast<std::int64_t>(dims.size()));
  return array(type, std::move(dims), std::move(layout));
}

Shape Shape::array(DType type, std::vector<std::int64_t> dims, Layout layout) {
  Shape shape;
  shape.dtype_ = type;
  shape.dims_ = std::move(dims);
  shape.set_layout(std::move(layout));
  return shape;
}

Shape Shape::tuple(std::vector<Shape> elements) {
  Shape shape;
  shape.dtype_ = DType::Tuple;
  shape.elements_ = std::move(elements);
  return shape;
}

Shape Shape::token() {
  Shape shape;
  shape.dtype_ = DType::Token;
  return shape;
}

Shape Shape::opaque() {
  Shape shape;
  shape.dtype_ = DType::Opaque;
  return shape;
}

Shape Shape::buffer(Shape held) {
  Shape shape;
  shape.dtype_ = DType::Buffer;
  shape.elements_.push_back(std::move(held));
  return shape;
}

void Shape::set_dynamic_dim(std::int64_t i, bool dynamic) {
  HLOOM_CHECK(i >= 0 && i < rank() && i < kMaxRank);
  const std::uint64_t bit = 1ull << i;
  dynamic_ = dynamic ? dynamic_ | bit : dynamic_ & ~bit;
}

std::optional<std::int64_t> Shape::element_count() const {
  std::int64_t count = 1;
  bool overflow = false, zero = false;
  for (const std::int64_t d : dims_) {
    if (d == kUnbounded) return std::nullopt;
    if (d == 0) zero = true;
    if (__builtin_mul_overflow(count, std::max<std::int64_t>(d, 1), &count)) overflow = true;
    if (overflow) count = 1;
  }
  if (zero) return 0;
  return overflow ? std::nullopt : std::optional(count);
}

std::int64_t Shape::num_elements() const {
  const auto count = element_count();
  HLOOM_CHECK(is_array() && count.has_value());
  return *count;
}

bool Shape::operator==(const Shape& other) const {
  return dtype_ == other.dtype_ && dims_ == other.dims_ && dynamic_ == other.dynamic_ &&
         has_layout_ == other.has_layout_ && layout_ == other.layout_ && elements_ == other.elements_;
}

namespace {

// Sizes of the storage's dimensions after all tiles, most major first (hlo-text 8.1).
std::vector<std::int64_t> tiled_dims(const Shape& shape) {
  const Layout& layout = shape.layout();
  std::vector<std::int64_t> sizes;
  for (auto d = layout.minor_to_major.rbegin(); d != layout.minor_to_major.rend(); ++d)
    sizes.push_back(shape.dim(*d));
  for (Layout::Tile tile : layout.parts().tiles) {
    for (std::size_t i = 0; i + 1 < tile.size(); ++i) {
      if (tile[i] != Layout::kCombine) continue;
      const std::size_t at = sizes.size() - tile.size() + i;
      sizes[at + 1] *= sizes[at];
      sizes.erase(sizes.begin() + static_cast<std::ptrdiff_t>(at));
      tile.erase(tile.begin() + static_cast<std::ptrdiff_t>(i));
      --i;
    }
    const std::size_t first = sizes.size() - std::min(sizes.size(), tile.size());
    for (std::size_t i = 0; i < tile.size() && first + i < sizes.size(); ++i)
      sizes[first + i] = (sizes[first + i] + tile[i] - 1) / tile[i];
    sizes.insert(sizes.end(), tile.begin(), tile.end());
  }
  return sizes;
}

bool compatible_types(DType a, DType b, bool ignore_precision) {
  return a == b || (ignore_precision && is_floating(a) && is_floating(b));
}

bool compatible_with(const Shape& a, const Shape& b, bool ignore_precision) {
  if (!compatible_types(a.dtype(), b.dtype(), ignore_precision) || a.dims() != b.dims()) return false;
  for (std::int64_t i = 0; i < a.rank(); ++i)
    if (a.is_dynamic_dim(i) != b.is_dynamic_dim(i)) return false;
  return std::ranges::equal(a.elements(), b.elements(), [&](const Shape& x, const Shape& y) {
    return compatible_with(x, y, ignore_precision);
  });
}

}  // namespace

std::int64_t Shape::size_bytes() const {
  if (is_tuple() || dtype_ == DType::Buffer) {
    std::int64_t total = 0;
    for (const Shape& e : elements_) total += e.size_bytes();
    return total;
  }
  if (!is_array()) return 0;
  const Layout::Extra& p = layout_.parts();
  std::int64_t count = num_elements();
  if (!p.tiles.empty()) {
    count = 1;
    for (const std::int64_t d : tiled_dims(*this)) count *= d;
  }
  count = (count + p.tail_padding - 1) / p.tail_padding * p.tail_padding;
  const std::int64_t bits = p.element_bits != 0 ? p.element_bits : byte_width(dtype_) * 8;
  return p.metadata_bytes + (count * bits + 7) / 8;
}

bool compatible(const Shape& a, const Shape& b) { return compatible_with(a, b, false); }
bool compatible_ignoring_precision(const Shape& a, const Shape& b) { return compatible_with(a, b, true); }
bool same_dims(const Shape& a, const Shape& b) { return a.dims() == b.dims(); }

namespace {
void collect_leaves(const Shape& shape, std::vector<const Shape*>& out) {
  if (!shape.is_tuple()) return out.push_back(&shape);
  for (const Shape& e : shape.elements()) collect_leaves(e, out);
}

void collect_indices(const Shape& shape, ShapeIndex& at, std::vector<ShapeIndex>& out) {
  if (!shape.is_tuple()) return out.push_back(at);
  for (std::size_t i = 0; i < shape.elements().size(); ++i) {
    at.push_back(static_cast<std::int64_t>(i));
    collect_indices(shape.elements()[i], at, out);
    at.pop_back();
  }
}
}  // namespace

std::vector<const Shape*> leaves(const Shape& shape) {
  std::vector<const Shape*> out;
  collect_leaves(shape, out);
  return out;
}

std::int64_t num_leaves(const Shape& shape) { return static_cast<std::int64_t>(leaves(shape).size()); }

const Shape* subshape(const Shape& shape, const ShapeIndex& index) {
  const Shape* at = &shape;
  for (const std::int64_t i : index) {
    if (!at->is_tuple() || i < 0 || i >= static_cast<std::int64_t>(at->elements().size())) return nullptr;
    at = &at->element(i);
  }
  return at;
}

std::vector<ShapeIndex> leaf_indices(const Shape& shape) {
  std::vector<ShapeIndex> out;
  ShapeIndex at;
  collect_indices(shape, at, out);
  return out;
}

namespace {

template <typename Range>
void append_joined(std::string& out, const Range& values) {
  const char* comma = "";
  for (const auto v : values) {
    out += comma;
    out += std::to_string(v);
    comma = ",";
  }
}

void append_extra(std::string& out, const Layout::Extra& p) {
  if (!p.dims.empty()) {
    out += "D(";
    const char* comma = "";
    for (const Layout::Dim& d : p.dims) {
      out += comma;
      out += "DCSH"[static_cast<int>(d.kind)];
      if (!d.unique) out += '+';
      if (!d.ordered) out += '~';
      comma = ",";
    }
    out += ')';
  }
  if (!p.tiles.empty()) out += 'T';
  for (const Layout::Tile& tile : p.tiles) {
    out += '(';
    for (std::size_t i = 0; i < tile.size(); ++i) {
      if (i != 0) out += ',';
      out += tile[i] == Layout::kCombine ? "*" : std::to_string(tile[i]);
    }
    out += ')';
  }
  if (p.tail_padding != 1) out += "L(" + std::to_string(p.tail_padding) + ")";
  if (p.index_type != DType::Invalid) out.append("#(").append(name(p.index_type)).append(")");
  if (p.pointer_type != DType::Invalid) out.append("*(").append(name(p.pointer_type)).append(")");
  if (p.element_bits != 0) out += "E(" + std::to_string(p.element_bits) + ")";
  if (p.memory_space != 0) out += "S(" + std::to_string(p.memory_space) + ")";
  if (!p.splits.empty()) out += "SC";
  for (const Layout::Split& s : p.splits) {
    out += "(" + std::to_string(s.dimension) + ":";
    append_joined(out, s.indices);
    out += ')';
  }
  if (!p.physical_shape.empty()) out += "P(" + p.physical_shape + ")";
  if (p.metadata_bytes != 0) out += "M(" + std::to_string(p.metadata_bytes) + ")";
}

void append_shape(std::string& out, const Shape& shape, bool with_layout) {
  if (shape.is_tuple()) {
    out += '(';
    for (std::size_t i = 0; i < shape.elements().size(); ++i) {
      if (i != 0) out += ", ";
      if (i != 0 && i % 5 == 0) out += "/*index=" + std::to_string(i) + "*/";
      append_shape(out, shape.elements()[i], with_layout);
    }
    out += ')';
    return;
  }
  if (shape.dtype() == DType::Buffer) {
    out += "b(";
    append_shape(out, shape.element(0), with_layout);
    out += ')';
    return;
  }
  out.append(name(shape.dtype())) += '[';
  for (std::int64_t i = 0; i < shape.rank(); ++i) {
    if (i != 0) out += ',';
    if (shape.dim(i) == Shape::kUnbounded) {
      out += '?';
    } else {
      if (shape.is_dynamic_dim(i)) out += "<=";
      out += std::to_string(shape.dim(i));
    }
  }
  out += ']';
  if (with_layout && shape.has_layout() && (shape.rank() > 0 || shape.layout().extra))
    out += to_string(shape.layout());
}

}  // namespace

std::string to_string(const Layout& layout) {
  std::string out = "{";
  append_joined(out, layout.minor_to_major);
  if (layout.extra) {
    out += ':';
    append_extra(out, *layout.extra);
  }
  return out + "}";
}

std::string to_string(const Shape& shape, bool with_layout) {
  std::string out;
  append_shape(out, shape, with_layout);
  return out;
}

std::ostream& operator<<(std::ostream& out, const Shape& shape) { return out << to_string(shape, false); }

}  // namespace hloom

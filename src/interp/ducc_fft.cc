#include "interp/ducc_fft.h"

#include <cstring>
#include <numeric>
#include <vector>

#include "base/fail.h"
#include "base/try.h"

namespace hloom::interp {
namespace {

using hlo::Dims;
using hlo::FftType;

Error broken() { return fail(Code::InvalidArgument, "its descriptor is not one of a transform"); }

/// The root table of a FlatBuffers message: fields by number, those that are not there being zero.
class Table {
 public:
  explicit Table(std::span<const std::byte> bytes) : bytes_(bytes) {}

  Expected<> open() {
    at_ = TRY(read<std::uint32_t>(0));
    const auto back = TRY(read<std::int32_t>(at_));
    fields_ = at_ - back;
    num_fields_ = (TRY(read<std::uint16_t>(fields_)) - 4) / 2;
    return {};
  }

  template <typename T>
  Expected<T> scalar(std::int64_t field) const {
    const std::int64_t place = TRY(place_of(field));
    if (place == 0) return T();
    return read<T>(place);
  }

  template <typename T>
  Expected<Dims> list(std::int64_t field) const {
    const std::int64_t place = TRY(place_of(field));
    if (place == 0) return Dims();
    const std::int64_t from = place + TRY(read<std::uint32_t>(place));
    const std::int64_t length = TRY(read<std::uint32_t>(from));
    if (length > 64) return broken();
    Dims values;
    for (std::int64_t k = 0; k < length; ++k)
      values.push_back(static_cast<std::int64_t>(TRY(read<T>(from + 4 + k * static_cast<std::int64_t>(sizeof(T))))));
    return values;
  }

 private:
  template <typename T>
  Expected<T> read(std::int64_t at) const {
    if (at < 0 || at > std::ssize(bytes_) - static_cast<std::int64_t>(sizeof(T))) return broken();
    T value;
    std::memcpy(&value, bytes_.data() + at, sizeof(T));
    return value;
  }

  Expected<std::int64_t> place_of(std::int64_t field) const {
    if (field >= num_fields_) return 0;
    const std::int64_t offset = TRY(read<std::uint16_t>(fields_ + 4 + 2 * field));
    return offset == 0 ? 0 : at_ + offset;
  }

  std::span<const std::byte> bytes_;
  std::int64_t at_ = 0, fields_ = 0, num_fields_ = 0;
};

// What a descriptor and the operands beside it say.
struct Description {
  enum class Kind : std::uint8_t { Complex, ToReal, ToComplex };
  std::int64_t kind = 0;
  bool forward = false;
  double factor = 1;
  Dims shape, strides_in, strides_out, axes;
};

Expected<Description> read_static(std::span<const std::byte> bytes) {
  Table table(bytes);
  TRY(table.open());
  Description d;
  d.kind = TRY(table.scalar<std::uint8_t>(1));
  d.shape = TRY(table.list<std::uint64_t>(2));
  d.strides_in = TRY(table.list<std::uint64_t>(3));
  d.strides_out = TRY(table.list<std::uint64_t>(4));
  d.axes = TRY(table.list<std::uint32_t>(5));
  d.forward = TRY(table.scalar<std::uint8_t>(6)) != 0;
  d.factor = TRY(table.scalar<double>(7));
  return d;
}

Expected<Dims> integers(const Expected<hlo::Literal>& literal) {
  if (!literal) return literal.error();
  if (!literal->shape().is_array() || !is_integral(literal->dtype())) return broken();
  Dims values;
  for (std::int64_t k = 0; k < literal->num_elements(); ++k) values.push_back(element_as_int64(*literal, k));
  return values;
}

using Operand = std::function<Expected<hlo::Literal>(std::int64_t)>;

Expected<Description> read_dynamic(std::span<const std::byte> bytes, const Operand& operand) {
  Table table(bytes);
  TRY(table.open());
  Description d;
  d.kind = TRY(table.scalar<std::uint8_t>(2));
  d.axes = TRY(table.list<std::uint32_t>(3));
  d.forward = TRY(table.scalar<std::uint8_t>(4)) != 0;
  d.shape = TRY(integers(operand(2)));
  d.strides_in = TRY(integers(operand(3)));
  d.strides_out = TRY(integers(operand(4)));
  const hlo::Literal factor = TRY(operand(5));
  if (factor.dtype() != DType::F64 || factor.num_elements() != 1) return broken();
  d.factor = element_as_double(factor, 0);
  return d;
}

Dims row_major_strides(const Dims& dims) {
  Dims strides(dims.size(), 1);
  for (std::size_t d = dims.size(); d-- > 1;) strides[d - 1] = strides[d] * dims[d];
  return strides;
}

// The last dimensions, in order.
bool are_last(const Dims& axes, std::int64_t rank) {
  for (std::size_t k = 0; k < axes.size(); ++k)
    if (axes[k] != rank - std::ssize(axes) + static_cast<std::int64_t>(k)) return false;
  return !axes.empty() && std::ssize(axes) <= 3;
}

Expected<> check(const Description& d, const Shape& from, const Shape& to) {
  using Kind = Description::Kind;
  const Shape& whole = d.kind == static_cast<std::int64_t>(Kind::ToReal) ? to : from;
  const bool complex_in = d.kind != static_cast<std::int64_t>(Kind::ToComplex);
  const bool complex_out = d.kind != static_cast<std::int64_t>(Kind::ToReal);
  if (d.kind > 2 || is_complex(from.dtype()) != complex_in || is_complex(to.dtype()) != complex_out ||
      real_type(from.dtype()) != real_type(to.dtype()))
    return fail(Code::InvalidArgument, "its descriptor is of other types than ", from, " and ", to);
  if (d.shape != whole.dims() || d.strides_in != row_major_strides(from.dims()) ||
      d.strides_out != row_major_strides(to.dims()) || !are_last(d.axes, from.rank()))
    return fail(Code::InvalidArgument, "transforms the last dimensions of row-major arrays, not what its operands say of ",
                from, " and ", to);
  return {};
}

}  // namespace

Expected<DuccFft> read_ducc_fft(const hlo::Instruction& call, const Operand& operand) {
  const bool dynamic = call.attr<hlo::CustomCallAttr>().target == "dynamic_ducc_fft";
  const std::int64_t least = dynamic ? 6 : 2;
  if (call.num_operands() < least || !call.operand(1)->shape().is_array() || !call.shape().is_array())
    return fail(Code::InvalidArgument, "takes ", least, " operands, an array second, and gives an array");
  const hlo::Literal bytes = TRY(operand(0));
  if (bytes.dtype() != DType::U8) return broken();
  const Description d = TRY(dynamic ? read_dynamic(bytes.bytes(), operand) : read_static(bytes.bytes()));
  TRY(check(d, call.operand(1)->shape(), call.shape()));
  using Kind = Description::Kind;
  DuccFft result;
  for (const std::int64_t axis : d.axes) result.attr.length.push_back(d.shape[static_cast<std::size_t>(axis)]);
  const auto kind = static_cast<Kind>(d.kind);
  if (d.forward == (kind == Kind::ToReal)) 
    return fail(Code::InvalidArgument, "transforms forwards to real numbers, or backwards from them");
  result.attr.type = kind == Kind::ToReal      ? FftType::Irfft
                     : kind == Kind::ToComplex ? FftType::Rfft
                     : d.forward               ? FftType::Fft
                                               : FftType::Ifft;
  // HLO's inverse divides by the number of elements; here the factor does.
  const double count = static_cast<double>(
      std::accumulate(result.attr.length.begin(), result.attr.length.end(), std::int64_t{1}, std::multiplies<>()));
  const double natural = d.forward ? 1 : 1 / count;
  result.factor = d.factor == natural ? 1 : d.forward ? d.factor : d.factor * count;
  return result;
}

}  // namespace hloom::interp

#include "arrays/npy.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cstring>
#include <optional>
#include <sstream>
#include <utility>

#include "arrays/files.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

constexpr std::string_view kMagic("\x93NUMPY", 6);
static_assert(std::endian::native == std::endian::little);

struct Header {
  std::optional<std::string> descr;
  std::optional<bool> fortran;
  std::optional<std::vector<std::int64_t>> dims;
};

// Reads the header, a Python dict of three known entries. Anything else is an error: these files are written
// by programs, all in much the same way.
class HeaderReader {
 public:
  explicit HeaderReader(std::string_view text) : text_(text) {}

  std::optional<Header> read() {
    Header header;
    if (!take('{')) return std::nullopt;
    while (!take('}')) {
      const auto key = quoted();
      if (!key || !take(':') || !value(*key, header)) return std::nullopt;
      if (!take(',') && peek() != '}') return std::nullopt;
    }
    skip_space();
    if (at_ != text_.size() || !header.descr || !header.fortran || !header.dims) return std::nullopt;
    return header;
  }

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\n' || text_[at_] == '\t')) ++at_;
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool take(char c) {
    if (peek() != c) return false;
    ++at_;
    return true;
  }
  bool take_word(std::string_view word) {
    skip_space();
    if (text_.substr(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }
  std::optional<std::string> quoted() {
    const char quote = peek();
    if (quote != '\'' && quote != '"') return std::nullopt;
    const std::size_t end = text_.find(quote, ++at_);
    if (end == std::string_view::npos) return std::nullopt;
    std::string result(text_.substr(at_, end - at_));
    at_ = end + 1;
    return result;
  }
  std::optional<std::int64_t> number() {
    skip_space();
    std::int64_t n = 0;
    const char* begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), n);
    if (error != std::errc() || n < 0) return std::nullopt;
    at_ += static_cast<std::size_t>(end - begin);
    return n;
  }
  std::optional<std::vector<std::int64_t>> tuple() {
    std::vector<std::int64_t> dims;
    if (!take('(')) return std::nullopt;
    while (!take(')')) {
      const auto n = number();
      if (!n) return std::nullopt;
      dims.push_back(*n);
      if (!take(',') && peek() != ')') return std::nullopt;
    }
    return dims;
  }
  bool value(const std::string& key, Header& header) {
    if (key == "descr" && !header.descr) return (header.descr = quoted()).has_value();
    if (key == "shape" && !header.dims) return (header.dims = tuple()).has_value();
    if (key != "fortran_order" || header.fortran) return false;
    header.fortran = peek() == 'T';
    return take_word(*header.fortran ? "True" : "False");
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

std::optional<DType> type_of(std::string_view kind_and_size) {
  static constexpr std::pair<std::string_view, DType> kTypes[] = {
      {"b1", DType::Pred}, {"i1", DType::S8},    {"i2", DType::S16}, {"i4", DType::S32},
      {"i8", DType::S64},  {"u1", DType::U8},    {"u2", DType::U16}, {"u4", DType::U32},
      {"u8", DType::U64},  {"f2", DType::F16},   {"f4", DType::F32}, {"f8", DType::F64},
      {"c8", DType::C64},  {"c16", DType::C128}, {"V1", DType::U8},  {"V2", DType::U16}};
  for (const auto& [text, type] : kTypes)
    if (text == kind_and_size) return type;
  return std::nullopt;
}

std::string_view descr_of(DType type) {
  switch (type) {
    case DType::Pred: return "|b1";
    case DType::S8: return "|i1";
    case DType::S16: return "<i2";
    case DType::S32: return "<i4";
    case DType::S64: return "<i8";
    case DType::U8: return "|u1";
    case DType::U16: return "<u2";
    case DType::U32: return "<u4";
    case DType::U64: return "<u8";
    case DType::F16: return "<f2";
    case DType::F32: return "<f4";
    case DType::F64: return "<f8";
    case DType::C64: return "<c8";
    case DType::C128: return "<c16";
    default: HLOOM_CHECK(!"a type that numpy has"); return {};
  }
}

void swap_bytes(std::vector<std::byte>& bytes, DType type) {
  const auto width = static_cast<std::size_t>(byte_width(real_type(type)));
  for (std::size_t i = 0; i + width <= bytes.size(); i += width)
    std::reverse(bytes.begin() + static_cast<std::ptrdiff_t>(i),
                 bytes.begin() + static_cast<std::ptrdiff_t>(i + width));
}

// From column-major to row-major order: the elements are taken in row-major order, each from where it lies.
void to_row_major(Array& array) {
  const auto width = static_cast<std::size_t>(byte_width(array.type));
  const std::size_t rank = array.dims.size();
  std::vector<std::byte> rows(array.bytes.size());
  std::vector<std::int64_t> index(rank), stride(rank);
  std::int64_t step = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    stride[d] = step;
    step *= array.dims[d];
  }
  std::int64_t from = 0;
  for (std::size_t to = 0; to < rows.size(); to += width) {
    std::memcpy(rows.data() + to, array.bytes.data() + static_cast<std::size_t>(from) * width, width);
    for (std::size_t d = rank; d-- > 0;) {
      from += stride[d];
      if (++index[d] < array.dims[d]) break;
      from -= stride[d] * array.dims[d];
      index[d] = 0;
    }
  }
  array.bytes = std::move(rows);
}

struct Parts {
  std::string_view header;
  std::span<const std::byte> data;
};

Expected<Parts> split(std::span<const std::byte> file, std::string_view entry) {
  const std::string_view text(reinterpret_cast<const char*>(file.data()), file.size());
  if (text.substr(0, 6) != kMagic || file.size() < 10) return fail(Code::InvalidArgument, entry, ": is no .npy file");
  const int major = std::to_integer<int>(file[6]);
  if (major < 1 || major > 3)
    return fail(Code::Unimplemented, entry, ": is an .npy file of version ", major, "; versions 1 to 3 are known");
  const std::size_t width = major == 1 ? 2 : 4;
  std::uint32_t length = 0;
  if (file.size() >= 8 + width) std::memcpy(&length, file.data() + 8, width);
  if (file.size() < 8 + width || file.size() - 8 - width < length)
    return fail(Code::InvalidArgument, entry, ": ends within the .npy header");
  return Parts{text.substr(8 + width, length), file.subspan(8 + width + length)};
}

}  // namespace

Expected<Array> parse_npy(std::span<const std::byte> file, std::string_view entry) {
  const Parts parts = TRY(split(file, entry));
  auto header = HeaderReader(parts.header).read();
  if (!header) return fail(Code::InvalidArgument, entry, ": cannot read the .npy header ", parts.header);
  const std::string& descr = *header->descr;
  const bool has_order = !descr.empty() && std::string_view("<>|=").find(descr[0]) != std::string_view::npos;
  const auto type = type_of(std::string_view(descr).substr(has_order ? 1 : 0));
  if (!type) return fail(Code::Unimplemented, entry, ": elements of numpy type ", descr, " have no counterpart");
  if (header->dims->size() > static_cast<std::size_t>(Shape::kMaxRank))
    return fail(Code::InvalidArgument, entry, ": has ", header->dims->size(), " dimensions");
  Array array{*type, std::move(*header->dims), {}};
  const auto count = Shape::array(*type, array.dims).element_count();
  const auto held = static_cast<std::int64_t>(parts.data.size());
  if (!count || *count > INT64_MAX / byte_width(*type) || *count * byte_width(*type) != held)
    return fail(Code::InvalidArgument, entry, ": holds ", held,
                " bytes of elements, not as many as its header says: ", parts.header);
  array.bytes.assign(parts.data.begin(), parts.data.end());
  if (descr[0] == '>') swap_bytes(array.bytes, *type);
  if (*header->fortran) to_row_major(array);
  return array;
}

std::vector<std::byte> npy_header(const Array& array) {
  std::ostringstream dict;
  dict << "{'descr': '" << descr_of(array.type) << "', 'fortran_order': False, 'shape': (";
  for (std::size_t i = 0; i < array.dims.size(); ++i) dict << (i > 0 ? ", " : "") << array.dims[i];
  dict << (array.dims.size() == 1 ? ",), }" : "), }");
  std::string text = std::move(dict).str();
  // The elements start at a multiple of 64 bytes, as numpy's do. 64 dimensions fit version 1's 16-bit length.
  text.append(63 - (10 + text.size()) % 64, ' ');
  text += '\n';
  const auto length = static_cast<std::uint16_t>(text.size());
  std::string head(kMagic);
  head += {'\1', '\0', static_cast<char>(length & 0xFF), static_cast<char>(length >> 8)};
  head += text;
  const auto* bytes = reinterpret_cast<const std::byte*>(head.data());
  return {bytes, bytes + head.size()};
}

Expected<Array> read_npy(const std::string& path) {
  const std::vector<std::byte> bytes = TRY(read_file(path));
  return parse_npy(bytes, path);
}

Expected<> write_npy(const std::string& path, const Array& array) {
  OutputFile file = TRY(OutputFile::create(path));
  TRY(file.write(npy_header(array)));
  TRY(file.write(array.bytes));
  return file.commit();
}

}  // namespace hloom::arrays

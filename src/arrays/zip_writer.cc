#include <zlib.h>

#include <algorithm>

#include "arrays/zip.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

constexpr std::uint64_t kDosDate = (1 << 5) | 1;  // 1 January 1980: archives of equal content are equal

struct Out {
  std::vector<std::byte> bytes;
  Out& number(std::uint64_t value, int width) {
    for (int i = 0; i < width; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
    return *this;
  }
  Out& u16(std::uint64_t value) { return number(value, 2); }
  Out& u32(std::uint64_t value) { return number(value, 4); }
  Out& u64(std::uint64_t value) { return number(value, 8); }
  Out& text(const std::string& value) {
    for (const char c : value) bytes.push_back(static_cast<std::byte>(c));
    return *this;
  }
};

std::uint64_t version(bool wide) { return wide ? 45 : 20; }

// Deflates the parts as one stream. zlib fails for want of memory alone.
Expected<std::vector<std::byte>> deflated(std::span<const std::span<const std::byte>> parts, const std::string& name) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
    return fail(Code::ResourceExhausted, name, ": no memory to deflate");
  std::vector<std::byte> out;
  std::vector<std::byte> chunk(1 << 18);
  const auto feed = [&](std::span<const std::byte> part, int flush) {
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(part.data()));
    stream.avail_in = static_cast<uInt>(part.size());
    do {
      stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
      stream.avail_out = static_cast<uInt>(chunk.size());
      deflate(&stream, flush);
      out.insert(out.end(), chunk.begin(), chunk.end() - static_cast<std::ptrdiff_t>(stream.avail_out));
    } while (stream.avail_out == 0);
  };
  for (std::span<const std::byte> part : parts)
    while (!part.empty()) {
      const std::size_t size = std::min<std::size_t>(part.size(), 1u << 30);
      feed(part.first(size), Z_NO_FLUSH);
      part = part.subspan(size);
    }
  feed({}, Z_FINISH);
  deflateEnd(&stream);
  return out;
}

}  // namespace

Expected<> ZipWriter::put(std::span<const std::byte> bytes) {
  written_ += bytes.size();
  return file_.write(bytes);
}

Expected<> ZipWriter::put_local_header(const Record& r) {
  const bool wide = r.size >= wide_from_ || r.packed >= wide_from_;
  Out out;
  out.u32(0x04034b50).u16(version(wide)).u16(0).u16(r.deflated ? 8 : 0).u16(0).u16(kDosDate).u32(r.crc);
  out.u32(wide ? 0xFFFFFFFF : r.packed).u32(wide ? 0xFFFFFFFF : r.size).u16(r.name.size()).u16(wide ? 20 : 0);
  out.text(r.name);
  if (wide) out.u16(1).u16(16).u64(r.size).u64(r.packed);
  return put(out.bytes);
}

Expected<> ZipWriter::add(const std::string& name, std::span<const std::span<const std::byte>> parts, bool deflate) {
  if (name.size() > 0xFFFF) return fail(Code::InvalidArgument, "the entry's name has ", name.size(), " bytes");
  Record record{name, deflate, 0, 0, 0, written_};
  for (const auto part : parts) {
    if (part.empty()) continue;  // zlib takes a null pointer for a wish to start anew
    record.crc =
        static_cast<std::uint32_t>(crc32_z(record.crc, reinterpret_cast<const Bytef*>(part.data()), part.size()));
    record.size += part.size();
  }
  std::vector<std::byte> packed;
  if (deflate) packed = TRY(deflated(parts, name));
  record.packed = deflate ? packed.size() : record.size;
  TRY(put_local_header(record));
  if (deflate)
    TRY(put(packed));
  else
    for (const auto part : parts) TRY(put(part));
  records_.push_back(std::move(record));
  return {};
}

std::vector<std::byte> ZipWriter::directory() const {
  Out out;
  for (const Record& r : records_) {
    const bool wide = r.size >= wide_from_ || r.packed >= wide_from_ || r.offset >= wide_from_;
    out.u32(0x02014b50).u16(version(wide)).u16(version(wide)).u16(0).u16(r.deflated ? 8 : 0).u16(0).u16(kDosDate);
    out.u32(r.crc).u32(wide ? 0xFFFFFFFF : r.packed).u32(wide ? 0xFFFFFFFF : r.size);
    out.u16(r.name.size()).u16(wide ? 28 : 0).u16(0).u16(0).u16(0).u32(0).u32(wide ? 0xFFFFFFFF : r.offset);
    out.text(r.name);
    if (wide) out.u16(1).u16(24).u64(r.size).u64(r.packed).u64(r.offset);
  }
  return std::move(out.bytes);
}

Expected<> ZipWriter::finish() {
  const std::uint64_t start = written_, count = records_.size();
  const std::vector<std::byte> entries = directory();
  TRY(put(entries));
  const bool wide = count >= (wide_from_ & 0xFFFF) || entries.size() >= wide_from_ || start >= wide_from_;
  Out out;
  if (wide) {
    out.u32(0x06064b50).u64(44).u16(45).u16(45).u32(0).u32(0).u64(count).u64(count).u64(entries.size()).u64(start);
    out.u32(0x07064b50).u32(0).u64(start + entries.size()).u32(1);
  }
  out.u32(0x06054b50).u16(0).u16(0).u16(wide ? 0xFFFF : count).u16(wide ? 0xFFFF : count);
  out.u32(wide ? 0xFFFFFFFF : entries.size()).u32(wide ? 0xFFFFFFFF : start).u16(0);
  return put(out.bytes);
}

}  // namespace hloom::arrays

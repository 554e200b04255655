// An archive is read from its end: the end record tells where the directory is, the directory where entries are. The
// sizes beside the entries themselves are ignored, for streams write them late; both must name the same place though.

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <optional>

#include "arrays/zip.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

constexpr std::uint32_t kLocal = 0x04034b50, kCentral = 0x02014b50, kEnd = 0x06054b50, kWideEnd = 0x06064b50,
                        kWideEndLocator = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30, kCentralSize = 46, kEndSize = 22, kWideEndSize = 56, kLocatorSize = 20;
constexpr std::uint64_t kAbsent32 = 0xFFFFFFFF;

// Little-endian numbers at offsets. Needs: offsets inside, which callers have checked.
class Bytes {
 public:
  explicit Bytes(std::span<const std::byte> bytes) : bytes_(bytes) {}
  std::uint64_t size() const { return bytes_.size(); }
  /// Whether [offset, offset + length) lies inside.
  bool holds(std::uint64_t offset, std::uint64_t length) const { return offset <= size() && length <= size() - offset; }
  std::uint64_t u16(std::uint64_t at) const { return number(at, 2); }
  std::uint32_t u32(std::uint64_t at) const { return static_cast<std::uint32_t>(number(at, 4)); }
  std::uint64_t u64(std::uint64_t at) const { return number(at, 8); }
  std::span<const std::byte> part(std::uint64_t at, std::uint64_t length) const { return bytes_.subspan(at, length); }
  std::string text(std::uint64_t at, std::uint64_t length) const {
    return {reinterpret_cast<const char*>(bytes_.data()) + at, length};
  }

 private:
  std::uint64_t number(std::uint64_t at, std::size_t width) const {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes_.data() + at, width);
    return value;
  }
  std::span<const std::byte> bytes_;
};

struct Directory {
  std::uint64_t offset = 0, size = 0, count = 0;
};

// The end record is the last one whose comment reaches exactly to the end of the file.
std::optional<std::uint64_t> find_end(const Bytes& zip) {
  if (zip.size() < kEndSize) return std::nullopt;
  for (std::uint64_t at = zip.size() - kEndSize;; --at) {
    if (zip.u32(at) == kEnd && at + kEndSize + zip.u16(at + 20) == zip.size()) return at;
    if (at == 0 || zip.size() - at > kEndSize + 0xFFFF) return std::nullopt;
  }
}

Expected<Directory> wide_directory(const Bytes& zip, std::uint64_t end, std::string_view path) {
  const std::uint64_t at = zip.u64(end - kLocatorSize + 8);
  if (!zip.holds(at, kWideEndSize) || zip.u32(at) != kWideEnd)
    return fail(Code::InvalidArgument, path, ": has no zip64 end record where it should be");
  return Directory{zip.u64(at + 48), zip.u64(at + 40), zip.u64(at + 32)};
}

Expected<Directory> find_directory(const Bytes& zip, std::string_view path) {
  const auto end = find_end(zip);
  if (!end) return fail(Code::InvalidArgument, path, ": is no ZIP archive, or is cut off");
  Directory directory{zip.u32(*end + 16), zip.u32(*end + 12), zip.u16(*end + 10)};
  if (*end >= kLocatorSize && zip.u32(*end - kLocatorSize) == kWideEndLocator)
    directory = TRY(wide_directory(zip, *end, path));
  if (!zip.holds(directory.offset, directory.size) || directory.count > directory.size / kCentralSize)
    return fail(Code::InvalidArgument, path, ": the directory does not lie in the archive");
  return directory;
}

struct Sizes {
  std::uint64_t size, packed, offset;
};

// Reads what the zip64 extra field says in place of those that are all ones. False if it lacks one.
bool widen(Sizes& sizes, const Bytes& extra) {
  std::uint64_t at = 0;
  while (extra.holds(at, 4) && extra.u16(at) != 1) at += 4 + extra.u16(at + 2);
  std::uint64_t next = at + 4;
  const std::uint64_t end = extra.holds(at, 4) ? next + extra.u16(at + 2) : 0;
  for (std::uint64_t* field : {&sizes.size, &sizes.packed, &sizes.offset}) {
    if (*field != kAbsent32) continue;
    if (next + 8 > end || !extra.holds(next, 8)) return false;
    *field = extra.u64(next);
    next += 8;
  }
  return true;
}

Expected<ZipEntry> read_entry(const Bytes& zip, std::uint64_t at, const Directory& directory, std::string_view path) {
  const std::uint64_t name_size = zip.u16(at + 28), extra_size = zip.u16(at + 30);
  ZipEntry entry;
  entry.name = zip.text(at + kCentralSize, name_size);
  Sizes sizes{zip.u32(at + 24), zip.u32(at + 20), zip.u32(at + 42)};
  if (!widen(sizes, Bytes(zip.part(at + kCentralSize + name_size, extra_size))))
    return fail(Code::InvalidArgument, path, ": entry ", entry.name, " lacks its zip64 sizes");
  const std::uint64_t flags = zip.u16(at + 8), method = zip.u16(at + 10);
  if ((flags & 1) != 0) return fail(Code::Unimplemented, path, ": entry ", entry.name, " is encrypted");
  if (method != 0 && method != 8)
    return fail(Code::Unimplemented, path, ": entry ", entry.name, " is packed by method ", method,
                "; stored (0) and deflated (8) are known");
  const std::uint64_t local = sizes.offset;
  if (local >= directory.offset || !zip.holds(local, kLocalSize) || zip.u32(local) != kLocal)
    return fail(Code::InvalidArgument, path, ": entry ", entry.name, " is not where the directory says");
  const std::uint64_t data = local + kLocalSize + zip.u16(local + 26) + zip.u16(local + 28);
  if (data > directory.offset || sizes.packed > directory.offset - data)
    return fail(Code::InvalidArgument, path, ": entry ", entry.name, " reaches into the directory");
  entry.deflated = method == 8;
  entry.crc = zip.u32(at + 16);
  entry.size_bytes = sizes.size;
  entry.data = zip.part(data, sizes.packed);
  // Deflate packs at most 1032 to one, so a claim beyond that is false; nothing is allocated for it.
  const bool possible = entry.deflated ? sizes.size / 1040 <= sizes.packed : sizes.size == sizes.packed;
  if (!possible)
    return fail(Code::InvalidArgument, path, ": entry ", entry.name, " claims ", sizes.size, " bytes, but holds ",
                sizes.packed);
  return entry;
}

bool inflate_all(std::span<const std::byte> packed, std::vector<std::byte>& out) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) return false;
  constexpr std::size_t kChunk = 1u << 30;  // zlib counts in 32 bits
  std::size_t in = 0, done = 0;
  int state = Z_OK;
  while (state == Z_OK) {
    const std::size_t give = std::min(packed.size() - in, kChunk), room = std::min(out.size() - done, kChunk);
    stream.next_in = const_cast<Bytef*>(reinterpret_cast<const Bytef*>(packed.data() + in));
    stream.avail_in = static_cast<uInt>(give);
    stream.next_out = reinterpret_cast<Bytef*>(out.data() + done);
    stream.avail_out = static_cast<uInt>(room);
    state = inflate(&stream, Z_NO_FLUSH);
    in += give - stream.avail_in;
    done += room - stream.avail_out;
  }
  inflateEnd(&stream);
  return state == Z_STREAM_END && done == out.size() && in == packed.size();
}

}  // namespace

Expected<std::vector<ZipEntry>> zip_entries(std::span<const std::byte> archive, std::string_view path) {
  const Bytes zip(archive);
  const Directory directory = TRY(find_directory(zip, path));
  std::vector<ZipEntry> entries;
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.count; ++i) {
    const std::uint64_t left = directory.offset + directory.size - at;
    if (left < kCentralSize || zip.u32(at) != kCentral)
      return fail(Code::InvalidArgument, path, ": entry ", i, " of the directory is damaged");
    const std::uint64_t size = kCentralSize + zip.u16(at + 28) + zip.u16(at + 30) + zip.u16(at + 32);
    if (left < size) return fail(Code::InvalidArgument, path, ": entry ", i, " of the directory is cut off");
    entries.push_back(TRY(read_entry(zip, at, directory, path)));
    at += size;
  }
  return entries;
}

Expected<std::vector<std::byte>> unzip(const ZipEntry& entry, std::string_view path) {
  std::vector<std::byte> out(entry.deflated ? entry.size_bytes : 0);
  if (!entry.deflated)
    out.assign(entry.data.begin(), entry.data.end());
  else if (!out.empty() && !inflate_all(entry.data, out))
    return fail(Code::DataLoss, path, ": entry ", entry.name, " does not unpack to ", entry.size_bytes, " bytes");
  const auto crc = static_cast<std::uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(out.data()), out.size()));
  if (crc != entry.crc) return fail(Code::DataLoss, path, ": the checksum of entry ", entry.name, " is wrong");
  return out;
}

}  // namespace hloom::arrays

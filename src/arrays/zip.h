// ZIP archives in memory: what .npz files are made of. Stored and deflated entries, zip64; no encryption, no volumes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/files.h"
#include "hloom/error.h"

namespace hloom::arrays {

/// An entry as the archive's directory describes it; `data` lies in the archive's bytes.
struct ZipEntry {
  std::string name;
  bool deflated = false;
  std::uint32_t crc = 0;
  std::uint64_t size_bytes = 0;  ///< uncompressed
  std::span<const std::byte> data;
};

/// The entries in the directory's order. `path` is what messages call the archive.
/// Errors: InvalidArgument if the bytes are no archive or contradict themselves; Unimplemented for other methods.
Expected<std::vector<ZipEntry>> zip_entries(std::span<const std::byte> archive, std::string_view path);

/// The uncompressed bytes. Errors: DataLoss, naming the entry, if they do not unpack to the size and checksum noted.
Expected<std::vector<std::byte>> unzip(const ZipEntry&, std::string_view path);

/// Writes an archive entry by entry.
class ZipWriter {
 public:
  /// Sizes and offsets from `wide_from` on, and counts from its low 16 bits on, take the zip64 form: the default is
  /// where the format asks for it.
  explicit ZipWriter(OutputFile& file, std::uint64_t wide_from = 0xFFFFFFFF) : file_(file), wide_from_(wide_from) {}

  /// Appends an entry whose content is `parts` one after the other, deflated if asked.
  /// Errors: those of OutputFile::write; InvalidArgument for a name of 64 KiB or more.
  Expected<> add(const std::string& name, std::span<const std::span<const std::byte>> parts, bool deflate);
  /// Writes the directory. The file is not committed.
  Expected<> finish();

 private:
  struct Record {
    std::string name;
    bool deflated;
    std::uint32_t crc;
    std::uint64_t packed, size, offset;
  };
  Expected<> put(std::span<const std::byte> bytes);
  Expected<> put_local_header(const Record&);
  std::vector<std::byte> directory() const;

  OutputFile& file_;
  std::uint64_t wide_from_;
  std::uint64_t written_ = 0;
  std::vector<Record> records_;
};

}  // namespace hloom::arrays

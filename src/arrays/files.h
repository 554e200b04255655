// Whole files: read at once, written so that they appear complete or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "hloom/error.h"

namespace hloom::arrays {

/// All bytes of a file. Errors: NotFound, PermissionDenied or Unavailable, naming the path and the system's reason.
Expected<std::vector<std::byte>> read_file(const std::string& path);

/// A file that takes its name when it is complete. Writes go to a new file beside it, which commit() renames; without
/// a commit it is removed. Where the path is no regular file (a pipe, /dev/stdout) the bytes go there directly.
class OutputFile {
 public:
  /// Errors: PermissionDenied, NotFound (no such folder), Unavailable.
  static Expected<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&&) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();

  /// Errors: ResourceExhausted if the disk is full, Unavailable.
  Expected<> write(std::span<const std::byte> bytes);
  /// Needs: no commit yet. Errors: as write().
  Expected<> commit();

 private:
  OutputFile(int descriptor, std::string path, std::string temporary)
      : descriptor_(descriptor), path_(std::move(path)), temporary_(std::move(temporary)) {}

  int descriptor_;
  std::string path_, temporary_;  // temporary_ is empty where bytes go to the path directly
};

}  // namespace hloom::arrays

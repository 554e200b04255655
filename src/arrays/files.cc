#include "arrays/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

Code code_of(int error) {
  switch (error) {
    case ENOENT:
    case ENOTDIR: return Code::NotFound;
    case EACCES:
    case EPERM:
    case EROFS: return Code::PermissionDenied;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM: return Code::ResourceExhausted;
    default: return Code::Unavailable;
  }
}

Error system_error(const std::string& path, const char* doing) {
  const int error = errno;
  return fail(code_of(error), path, ": ", doing, ": ", std::strerror(error));
}

// Reads to the end, whatever size the file claims: pipes have none.
Expected<std::vector<std::byte>> read_all(int descriptor, const std::string& path) {
  struct stat status{};
  if (fstat(descriptor, &status) != 0) return system_error(path, "cannot be read");
  if (S_ISDIR(status.st_mode)) return fail(Code::InvalidArgument, path, ": is a folder");
  std::vector<std::byte> bytes(static_cast<std::size_t>(status.st_size) + 1);
  std::size_t filled = 0;
  for (;;) {
    if (filled == bytes.size()) bytes.resize(2 * bytes.size());
    const ssize_t got = ::read(descriptor, bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(path, "cannot be read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  return bytes;
}

bool is_special(const std::string& path) {
  struct stat status{};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// Where the bytes of a symbolic link's target are, so that the link stays.
std::string resolved(const std::string& path) {
  std::error_code none;
  const std::filesystem::path full = std::filesystem::canonical(path, none);
  return none ? path : full.string();
}

}  // namespace

Expected<std::vector<std::byte>> read_file(const std::string& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return system_error(path, "cannot be opened");
  auto bytes = read_all(descriptor, path);
  ::close(descriptor);
  return bytes;
}

Expected<OutputFile> OutputFile::create(const std::string& path) {
  if (is_special(path)) {
    const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
    if (descriptor < 0) return system_error(path, "cannot be written");
    return OutputFile(descriptor, path, "");
  }
  std::string target = resolved(path);
  std::string temporary = target + ".XXXXXX";
  const int descriptor = ::mkstemp(temporary.data());
  if (descriptor < 0) return system_error(path, "cannot be written");
  const mode_t mask = umask(0);  // read by setting: there is no other way
  umask(mask);
  ::fchmod(descriptor, 0666 & ~mask);
  return OutputFile(descriptor, std::move(target), std::move(temporary));
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)),
      path_(std::move(other.path_)),
      temporary_(std::move(other.temporary_)) {}

OutputFile::~OutputFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

Expected<> OutputFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t done = ::write(descriptor_, bytes.data(), bytes.size());
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) return system_error(path_, "cannot be written");
    bytes = bytes.subspan(static_cast<std::size_t>(done));
  }
  return {};
}

Expected<> OutputFile::commit() {
  HLOOM_CHECK(descriptor_ >= 0);
  const int closed = ::close(std::exchange(descriptor_, -1));
  if (temporary_.empty()) {
    if (closed != 0) return system_error(path_, "cannot be written");
    return {};
  }
  if (closed != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
    Error error = system_error(path_, "cannot be written");
    ::unlink(temporary_.c_str());
    return error;
  }
  return {};
}

}  // namespace hloom::arrays

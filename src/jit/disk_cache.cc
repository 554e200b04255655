#include "jit/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "base/fail.h"
#include "base/try.h"
#include "jit/cache_entry.h"
#include "jit/target.h"

namespace hloom::jit {
namespace {

constexpr std::string_view kObject = ".o.hloom", kConstant = ".c.hloom", kTemporary = ".tmp-";
constexpr std::size_t kMaxProblems = 10;
constexpr std::time_t kAbandoned = 3600;  // s: a temporary file of that age has lost its writer

/// A descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  ~Descriptor() {
    if (number_ >= 0) ::close(number_);
  }
  int number() const { return number_; }

 private:
  int number_;
};

Error system_error(const std::string& path, const char* what) {
  const int error = errno;
  Code code = Code::Unavailable;
  if (error == ENOENT || error == ENOTDIR) code = Code::NotFound;
  if (error == EACCES || error == EPERM || error == EROFS) code = Code::PermissionDenied;
  if (error == ENOSPC || error == EDQUOT || error == EFBIG || error == ENOMEM) code = Code::ResourceExhausted;
  return fail(code, path, ": ", what, ": ", std::strerror(error));
}

Expected<> check_is_ours(const struct stat& status, const std::string& path) {
  if (status.st_uid != geteuid()) return fail(Code::PermissionDenied, path, ": belongs to another user");
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) return fail(Code::PermissionDenied, path, ": others may write there");
  return {};
}

Expected<> make_folder(const std::string& path) {
  std::error_code none;  // what is wrong shows below
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), none);
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return system_error(path, "cannot be made");
  return {};
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.ends_with('/')) path.pop_back();  // behind a slash a link would be followed
  return path;
}

std::string file_name(const ObjectKey& key) { return to_hex(key).append(kObject); }

/// A file of the cache as trim() sees it.
struct Entry {
  std::string name;
  std::int64_t bytes = 0;
  timespec used{};
};

std::vector<Entry> entries_of(int folder) {
  std::vector<Entry> entries;
  const int copy = ::openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* stream = copy < 0 ? nullptr : ::fdopendir(copy);
  if (stream == nullptr) {
    if (copy >= 0) ::close(copy);
    return entries;
  }
  while (const dirent* file = ::readdir(stream)) {
    const std::string name = file->d_name;
    struct stat status{};
    const bool is_kept = name.ends_with(kObject) || name.ends_with(kConstant);
    if (!is_kept && !name.starts_with(kTemporary)) continue;
    if (::fstatat(folder, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (name.starts_with(kTemporary)) {
      if (status.st_mtime + kAbandoned < std::time(nullptr)) ::unlinkat(folder, name.c_str(), 0);
      continue;
    }
    entries.push_back({name, status.st_size, status.st_mtim});
  }
  ::closedir(stream);
  return entries;
}

}  // namespace

Expected<std::shared_ptr<DiskCache>> DiskCache::open(const std::string& folder, std::int64_t limit_bytes) {
  const std::string path = without_slashes(folder);
  TRY(make_folder(path));
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) {
    std::error_code none;
    if (std::filesystem::is_symlink(path, none)) return fail(Code::PermissionDenied, path, ": is a symbolic link");
    return system_error(path, "cannot be opened");
  }
  std::shared_ptr<DiskCache> cache(new DiskCache(descriptor, path, limit_bytes));
  struct stat status{};
  if (::fstat(descriptor, &status) != 0) return system_error(path, "cannot be opened");
  TRY(check_is_ours(status, path));
  if (::faccessat(descriptor, ".", W_OK | X_OK, AT_EACCESS) != 0) return system_error(path, "cannot be written");
  return cache;
}

DiskCache::~DiskCache() { ::close(descriptor_); }

void DiskCache::note(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  if (problems_.size() < kMaxProblems) problems_.push_back(problem);
}

namespace {

Expected<> check_file(int descriptor, struct stat& status, const std::string& path) {
  if (::fstat(descriptor, &status) != 0) return system_error(path, "cannot be read");
  if (!S_ISREG(status.st_mode)) return fail(Code::PermissionDenied, path, ": is no file");
  return check_is_ours(status, path);
}

// It was used: trim() goes by this.
void touch(int descriptor) {
  const timespec now[] = {{0, UTIME_OMIT}, {0, UTIME_NOW}};
  ::futimens(descriptor, now);
}

}  // namespace

// To be closed by who gets it. NotFound where there is no such file.
Expected<int> DiskCache::open_file(const std::string& name, struct stat& status) {
  const std::string path = folder_ + "/" + name;
  const int file = ::openat(descriptor_, name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return system_error(path, "cannot be opened");
  if (const Expected<> good = check_file(file, status, path); !good) {
    ::close(file);
    return good.error();
  }
  return file;
}

Expected<std::string> DiskCache::read(const std::string& name) {
  struct stat status{};
  const int number = TRY(open_file(name, status));
  const Descriptor file(number);
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  while (filled < bytes.size()) {
    const ssize_t got = ::read(file.number(), bytes.data() + filled, bytes.size() - filled);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return system_error(folder_ + "/" + name, "cannot be read");
    if (got == 0) break;
    filled += static_cast<std::size_t>(got);
  }
  bytes.resize(filled);
  touch(file.number());
  return bytes;
}

std::optional<Object> DiskCache::load(const ObjectKey& key) {
  const std::string name = file_name(key), path = folder_ + "/" + name;
  Expected<std::string> bytes = read(name);
  Expected<Object> object = bytes ? read_entry(key, *bytes) : Expected<Object>(bytes.error());
  if (bytes && !object) note(path + ": " + std::string(object.error().message()));
  if (!bytes && bytes.error().code() != Code::NotFound) note(std::string(bytes.error().message()));
  const std::lock_guard lock(mutex_);
  ++(object ? statistics_.hits : statistics_.misses);
  if (!object) return std::nullopt;
  return *std::move(object);
}

// Under a name of its own first, so that a reader never sees a part.
Expected<> DiskCache::write(const std::string& name, std::string_view bytes) {
  static std::atomic<std::uint64_t> number = 0;
  const std::string temporary = std::string(kTemporary) + std::to_string(getpid()) + "-" + std::to_string(number++) + "-" +
                                std::to_string(std::chrono::steady_clock::now().time_since_epoch().count());
  const std::string path = folder_ + "/" + name;
  const auto give_up = [&] {
    Error error = system_error(path, "cannot be written");
    ::unlinkat(descriptor_, temporary.c_str(), 0);
    return error;
  };
  {
    const Descriptor file(
        ::openat(descriptor_, temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
    if (file.number() < 0) return system_error(path, "cannot be written");
    while (!bytes.empty()) {
      const ssize_t done = ::write(file.number(), bytes.data(), bytes.size());
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) return give_up();
      bytes.remove_prefix(static_cast<std::size_t>(done));
    }
  }
  if (::renameat(descriptor_, temporary.c_str(), descriptor_, name.c_str()) != 0) return give_up();
  return {};
}

void DiskCache::store(const ObjectKey& key, const Object& object, const base::Target& target) {
  Expected<std::string> features = required_features(target);
  if (!features) return note(std::string(features.error().message()));
  if (const Expected<> done = write(file_name(key), write_entry(key, *features, object)); !done)
    return note(std::string(done.error().message()));
  const std::lock_guard lock(mutex_);
  ++statistics_.stored;
}

std::shared_ptr<const MappedFile> DiskCache::map(std::span<const std::byte> bytes) {
  if (std::ssize(bytes) > limit_bytes_ / 2) return nullptr;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  const std::string name = to_hex(digest(text)).append(kConstant), path = folder_ + "/" + name;
  for (const bool is_written : {false, true}) {
    struct stat status{};
    const Expected<int> opened = open_file(name, status);
    if (opened) {
      const Descriptor file(*opened);
      auto mapped = std::make_shared<const MappedFile>(file.number(), status.st_size);
      touch(file.number());
      if (std::ranges::equal(mapped->bytes(), bytes)) return mapped;
      note(path + ": is damaged, or cannot be mapped");
    } else if (opened.error().code() != Code::NotFound) {
      note(std::string(opened.error().message()));
    }
    if (is_written) break;
    if (const Expected<> done = write(name, text); !done) {
      note(std::string(done.error().message()));
      break;
    }
  }
  return nullptr;
}

void DiskCache::trim() {
  // A lock of its own descriptor, for those of one process are shared.
  const Descriptor lock(::openat(descriptor_, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock.number() < 0 || ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0) return;
  std::vector<Entry> entries = entries_of(descriptor_);
  std::int64_t total = 0;
  for (const Entry& entry : entries) total += entry.bytes;
  if (total <= limit_bytes_) return;
  std::ranges::sort(entries, [](const Entry& a, const Entry& b) {
    return std::pair(a.used.tv_sec, a.used.tv_nsec) < std::pair(b.used.tv_sec, b.used.tv_nsec);
  });
  for (const Entry& entry : entries) {
    if (total <= limit_bytes_ / 10 * 9) return;
    if (::unlinkat(descriptor_, entry.name.c_str(), 0) == 0) total -= entry.bytes;
  }
}

DiskCache::Statistics DiskCache::statistics() const {
  const std::lock_guard lock(mutex_);
  return statistics_;
}

std::vector<std::string> DiskCache::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

std::string default_cache_folder() {
  const char* cache = std::getenv("XDG_CACHE_HOME");
  // The specification has relative paths ignored.
  if (cache != nullptr && cache[0] == '/') return std::string(cache) + "/hloom";
  const char* home = std::getenv("HOME");
  return home != nullptr && home[0] == '/' ? std::string(home) + "/.cache/hloom" : std::string();
}

}  // namespace hloom::jit

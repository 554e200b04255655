#include "jit/cache_entry.h"

#include <cstring>

#include "base/fail.h"
#include "jit/target.h"

namespace hloom::jit {
namespace {

constexpr std::string_view kMagic = "hloomobj";
constexpr std::uint32_t kVersion = 1;

void put(std::string& to, std::uint64_t number) {
  char bytes[sizeof(number)];
  std::memcpy(bytes, &number, sizeof(number));
  to.append(bytes, sizeof(bytes));
}

void put_sized(std::string& to, std::string_view bytes) {
  put(to, bytes.size());
  to.append(bytes);
}

std::string_view view(const ObjectKey& key) { return {reinterpret_cast<const char*>(key.data()), key.size()}; }

/// Takes from the front; what is missing makes it fail from there on.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  std::string_view take(std::uint64_t size) {
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    const std::string_view bytes = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return bytes;
  }
  std::uint64_t number() {
    std::uint64_t result = 0;
    const std::string_view bytes = take(sizeof(result));
    if (good_) std::memcpy(&result, bytes.data(), sizeof(result));
    return result;
  }
  std::string_view take_sized() { return take(number()); }
  std::string_view rest() const { return rest_; }
  bool at_good_end() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool good_ = true;
};

}  // namespace

std::string write_entry(const ObjectKey& key, std::string_view required_features, const Object& object) {
  std::string rest;
  put(rest, kVersion);
  rest.append(view(key));
  put_sized(rest, required_features);
  put_sized(rest, {object.bytes.data(), object.bytes.size()});
  std::string file(kMagic);
  file.append(view(digest(rest)));
  return file.append(rest);
}

Expected<Object> read_entry(const ObjectKey& key, std::string_view file) {
  Reader reader(file);
  const bool magic = reader.take(kMagic.size()) == kMagic;
  const std::string_view sum = reader.take(key.size());
  const bool whole = magic && sum == view(digest(reader.rest()));
  const bool version = reader.number() == kVersion, same = reader.take(key.size()) == view(key);
  const std::string_view features = reader.take_sized(), bytes = reader.take_sized();
  if (!whole || !version || !same || !reader.at_good_end()) return fail(Code::DataLoss, "is damaged");
  if (const std::string missing = missing_features(features); !missing.empty())
    return fail(Code::FailedPrecondition, "needs ", missing, ", which this machine lacks");
  return Object{"cached", {bytes.begin(), bytes.end()}};
}

}  // namespace hloom::jit

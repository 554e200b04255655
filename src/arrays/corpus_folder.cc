#include "arrays/corpus_folder.h"

#include <filesystem>

#include "arrays/npz.h"
#include "arrays/test_files.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

constexpr std::int64_t kMaxDevices = 1024;

// Floats that have to be exact may differ in the sign of zeros.
Expected<std::vector<Tolerance>> tolerances_of(const nlohmann::json& meta, const std::string& path) {
  std::vector<Tolerance> tolerances;
  for (const nlohmann::json& rule : member(meta, "tolerance", nlohmann::json::array())) {
    if (!rule.is_object()) return fail(Code::InvalidArgument, path, ": has a tolerance that is no object");
    tolerances.push_back(member(rule, "exact", false)
                             ? Tolerance::equal()
                             : Tolerance::close(member(rule, "rtol", 0.0), member(rule, "atol", 0.0)));
  }
  return tolerances;
}

// `which` of device k is in which.devK.npz; of a program for one device in which.npz.
Expected<std::vector<hlo::Literal>> arrays_of(const std::string& folder, const std::string& which,
                                              const std::string& device, const std::string& prefix,
                                              const nlohmann::json& types) {
  const std::string path = folder + "/" + which + device + ".npz";
  const Npz npz = TRY(read_npz(path));
  return typed_arrays(npz, prefix, types, path);
}

}  // namespace

bool is_corpus_folder(const std::string& path) {
  std::error_code none;
  return std::filesystem::is_regular_file(path + "/program.hlo", none) &&
         std::filesystem::is_regular_file(path + "/meta.json", none);
}

Expected<CorpusFolder> read_corpus_folder(const std::string& path) {
  const std::string meta_path = path + "/meta.json";
  const nlohmann::json meta = TRY(read_json(meta_path));
  CorpusFolder folder;
  folder.what = member<std::string>(meta, "what", "");
  folder.program_path = path + "/program.hlo";
  folder.num_replicas = member(meta, "num_replicas", std::int64_t{1});
  folder.num_partitions = member(meta, "num_partitions", std::int64_t{1});
  for (const nlohmann::json& target : member(meta, "custom_calls", nlohmann::json::array()))
    if (target.is_string()) folder.custom_calls.push_back(target.get<std::string>());
  folder.tolerances = TRY(tolerances_of(meta, meta_path));
  const nlohmann::json types = member(meta, "dtypes", nlohmann::json::object());
  const nlohmann::json inputs = member(types, "inputs", nlohmann::json::array()),
                       expected = member(types, "expected", nlohmann::json::array());
  if (expected.size() != folder.tolerances.size())
    return fail(Code::InvalidArgument, meta_path, ": has ", folder.tolerances.size(), " tolerances for ",
                expected.size(), " results");
  const std::int64_t r = folder.num_replicas, p = folder.num_partitions;
  if (r < 1 || p < 1 || r > kMaxDevices || p > kMaxDevices / r)
    return fail(Code::InvalidArgument, meta_path, ": names ", r, " replicas of ", p, " partitions");
  const std::int64_t num_devices = r * p;
  for (std::int64_t k = 0; k < num_devices; ++k) {
    const std::string device = num_devices == 1 ? "" : ".dev" + std::to_string(k);
    folder.inputs.push_back(TRY(arrays_of(path, "inputs", device, "arg", inputs)));
    folder.expected.push_back(TRY(arrays_of(path, "expected", device, "out", expected)));
  }
  return folder;
}

}  // namespace hloom::arrays

#include "arrays/conformance.h"

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "arrays/files.h"
#include "arrays/npz.h"
#include "arrays/test_files.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {
namespace {

constexpr std::string_view kSuffix = ".cases.hlo", kSeparator = "// -----\n", kCase = "// case: ";

std::optional<Tolerance> tolerance_of(const nlohmann::json& rule) {
  const std::string kind = member<std::string>(rule, "kind", "");
  if (kind == "bits") return Tolerance::bits();
  if (kind == "exact") return Tolerance::exact();
  if (kind == "equal") return Tolerance::equal();
  if (kind == "none") return Tolerance::none();
  if (kind != "ulp") return std::nullopt;
  Tolerance tolerance = Tolerance::within_ulp(member(rule, "ulp", 0.0));
  if (rule.contains("abs")) tolerance.abs = member(rule, "abs", 0.0);
  return tolerance;
}

std::vector<std::string_view> modules_of(std::string_view text) {
  std::vector<std::string_view> modules;
  for (std::size_t end = 0; end != std::string_view::npos; text.remove_prefix(end + kSeparator.size())) {
    end = text.find(kSeparator);
    modules.push_back(text.substr(0, end));
    if (end == std::string_view::npos) break;
  }
  return modules;
}

std::string name_of(std::string_view module) {
  const std::size_t at = module.find(kCase);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = module.substr(at + kCase.size());
  return std::string(rest.substr(0, rest.find('\n')));
}

Expected<ConformanceCase> read_case(const std::string& path, std::string_view module, const nlohmann::json& all,
                                    const Npz& npz) {
  ConformanceCase result;
  result.name = name_of(module);
  result.text = module;
  if (!all.contains(result.name)) return fail(Code::NotFound, path, ".json: has no case ", result.name);
  const nlohmann::json& info = all[result.name];
  for (const char* key : {"args", "outs", "tolerance"})
    if (!info.contains(key) || !info[key].is_array())
      return fail(Code::InvalidArgument, path, ".json: case ", result.name, " has no ", key);
  result.arguments = TRY(typed_arrays(npz, result.name + "/arg", info["args"], path + ".npz"));
  result.expected = TRY(typed_arrays(npz, result.name + "/out", info["outs"], path + ".npz"));
  for (const nlohmann::json& rule : info["tolerance"]) {
    const auto tolerance = rule.is_object() ? tolerance_of(rule) : std::nullopt;
    if (!tolerance) return fail(Code::InvalidArgument, path, ".json: case ", result.name, " has an unknown tolerance");
    result.tolerances.push_back(*tolerance);
  }
  if (result.tolerances.size() != result.expected.size())
    return fail(Code::InvalidArgument, path, ".json: case ", result.name, " has ", result.tolerances.size(),
                " tolerances for ", result.expected.size(), " results");
  return result;
}

}  // namespace

Expected<std::vector<std::string>> conformance_opcodes(const std::string& folder) {
  std::vector<std::string> opcodes;
  std::error_code none;
  for (const auto& file : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = file.path().filename().string();
    if (name.ends_with(kSuffix)) opcodes.push_back(name.substr(0, name.size() - kSuffix.size()));
  }
  if (opcodes.empty()) return fail(Code::NotFound, folder, ": has no files *", kSuffix);
  std::sort(opcodes.begin(), opcodes.end());
  return opcodes;
}

Expected<std::vector<ConformanceCase>> read_conformance(const std::string& folder, const std::string& opcode) {
  const std::string path = folder + "/" + opcode;
  const std::vector<std::byte> bytes = TRY(read_file(path + std::string(kSuffix)));
  const nlohmann::json all = TRY(read_json(path + ".json"));
  const Npz npz = TRY(read_npz(path + ".npz"));
  std::vector<ConformanceCase> cases;
  for (const std::string_view module : modules_of({reinterpret_cast<const char*>(bytes.data()), bytes.size()})) {
    cases.push_back(TRY(read_case(path, module, all, npz)));
    cases.back().opcode = opcode;
  }
  return cases;
}

}  // namespace hloom::arrays

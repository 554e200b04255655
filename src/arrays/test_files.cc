#include "arrays/test_files.h"

#include "arrays/files.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {

Expected<nlohmann::json> read_json(const std::string& path) {
  const std::vector<std::byte> bytes = TRY(read_file(path));
  const auto* text = reinterpret_cast<const char*>(bytes.data());
  auto json = nlohmann::json::parse(text, text + bytes.size(), nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return fail(Code::InvalidArgument, path, ": is no JSON object");
  return json;
}

Expected<std::vector<hlo::Literal>> typed_arrays(const Npz& npz, const std::string& prefix, const nlohmann::json& types,
                                                 const std::string& path) {
  std::vector<hlo::Literal> values;
  for (const auto& entry : types) {
    const std::string name = prefix + std::to_string(values.size());
    const auto type = entry.is_string() ? dtype_of_numpy_name(entry.get<std::string>()) : std::nullopt;
    if (!type) return fail(Code::InvalidArgument, path, ": ", name, " has no known type");
    const Array* array = npz.find(name);
    if (array == nullptr) return fail(Code::NotFound, path, ": has no array ", name);
    values.push_back(TRY(to_literal(*array, Shape::array(*type, array->dims), path + ": " + name)));
  }
  return values;
}

}  // namespace hloom::arrays

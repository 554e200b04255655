// What conformance cases and corpus folders have in common: JSON files that describe the arrays of .npz files.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "arrays/compare.h"
#include "arrays/npz.h"

namespace hloom::arrays {

/// The file as JSON. Errors: InvalidArgument, and those of read_file.
Expected<nlohmann::json> read_json(const std::string& path);
/// The member of an object if it is there and of a type that fits, else `otherwise`. (The library's value() throws.)
template <typename T>
T member(const nlohmann::json& object, const char* key, T otherwise) {
  const auto found = object.find(key);
  if (found == object.end()) return otherwise;
  const nlohmann::json like(otherwise);
  const bool fits = like.is_number() ? found->is_number() : found->type() == like.type();
  return fits ? found->template get<T>() : otherwise;
}

/// The arrays prefix0, prefix1, … with the types that `types` lists by numpy's names, in the dimensions that they have.
Expected<std::vector<hlo::Literal>> typed_arrays(const Npz&, const std::string& prefix, const nlohmann::json& types,
                                                 const std::string& path);

}  // namespace hloom::arrays

#include "arrays/npz.h"

#include <utility>

#include "arrays/files.h"
#include "arrays/npy.h"
#include "arrays/zip.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::arrays {

const Array* Npz::find(std::string_view name) const {
  const auto found = arrays_.find(name);
  return found == arrays_.end() ? nullptr : &found->second;
}

bool Npz::add(std::string name, Array array) {
  const bool added = arrays_.emplace(name, std::move(array)).second;
  if (added) names_.push_back(std::move(name));
  return added;
}

Expected<Npz> parse_npz(std::span<const std::byte> file, std::string_view path) {
  Npz npz;
  const std::vector<ZipEntry> entries = TRY(zip_entries(file, path));
  for (const ZipEntry& entry : entries) {
    std::string name = entry.name;
    if (name.ends_with(".npy")) name.resize(name.size() - 4);
    const std::vector<std::byte> bytes = TRY(unzip(entry, path));
    Array array = TRY(parse_npy(bytes, std::string(path) + ": " + entry.name));
    if (!npz.add(std::move(name), std::move(array)))
      return fail(Code::InvalidArgument, path, ": has two entries ", entry.name);
  }
  return npz;
}

Expected<Npz> read_npz(const std::string& path) {
  const std::vector<std::byte> bytes = TRY(read_file(path));
  return parse_npz(bytes, path);
}

Expected<> write_npz(const std::string& path, const Npz& npz, Packing packing) {
  OutputFile file = TRY(OutputFile::create(path));
  ZipWriter zip(file);
  for (const std::string& name : npz.names()) {
    const Array& array = *npz.find(name);
    const std::vector<std::byte> header = npy_header(array);
    const std::span<const std::byte> parts[] = {header, array.bytes};
    TRY(zip.add(name + ".npy", parts, packing == Packing::Deflated));
  }
  TRY(zip.finish());
  return file.commit();
}

Expected<std::vector<hlo::Literal>> literals(const Npz& npz, std::string_view prefix, std::span<const Shape> shapes,
                                             std::string_view path) {
  std::vector<hlo::Literal> values;
  for (const Shape& shape : shapes) {
    const std::string name = std::string(prefix) + std::to_string(values.size());
    const Array* array = npz.find(name);
    if (array == nullptr) return fail(Code::NotFound, path, ": has no array ", name);
    values.push_back(TRY(to_literal(*array, shape, std::string(path) + ": " + name)));
  }
  return values;
}

Npz npz_of(std::span<const hlo::Literal> values, std::string_view prefix) {
  Npz npz;
  for (const hlo::Literal& value : values)
    for (const hlo::Literal* leaf : hlo::leaves(value))
      if (leaf->shape().is_array()) npz.add(std::string(prefix) + std::to_string(npz.names().size()), to_array(*leaf));
  return npz;
}

}  // namespace hloom::arrays

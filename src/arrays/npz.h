// The .npz format: named arrays in one file.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/array.h"
#include "hloom/error.h"

namespace hloom::arrays {

/// Arrays by name, in the order in which they were added.
class Npz {
 public:
  const std::vector<std::string>& names() const { return names_; }
  bool contains(std::string_view name) const { return arrays_.contains(name); }
  /// The array of that name, or null.
  const Array* find(std::string_view name) const;
  /// False, and nothing changed, if the name is taken.
  bool add(std::string name, Array array);

 private:
  std::vector<std::string> names_;
  std::map<std::string, Array, std::less<>> arrays_;
};

/// Names are those of the entries without ".npy". `path` is what messages call the file.
/// Errors: InvalidArgument, DataLoss, Unimplemented, naming the entry.
Expected<Npz> parse_npz(std::span<const std::byte> file, std::string_view path);
/// Errors: also those of read_file.
Expected<Npz> read_npz(const std::string& path);

enum class Packing : std::uint8_t { Stored, Deflated };
/// Writes all arrays; the file appears complete or not at all. Equal arrays give equal files.
/// Errors: those of OutputFile.
Expected<> write_npz(const std::string& path, const Npz&, Packing = Packing::Stored);

/// The arrays `prefix`0, `prefix`1, … as values of these shapes.
/// Errors: NotFound if one is missing; those of to_literal.
Expected<std::vector<hlo::Literal>> literals(const Npz&, std::string_view prefix, std::span<const Shape> shapes,
                                             std::string_view path);
/// The leaves of the values, depth first, as `prefix`0, `prefix`1, …; tokens are left out, their numbers too.
Npz npz_of(std::span<const hlo::Literal> values, std::string_view prefix);

}  // namespace hloom::arrays

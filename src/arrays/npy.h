// The .npy format: one array in a file (versions 1.0 to 3.0).
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "arrays/array.h"
#include "hloom/error.h"

namespace hloom::arrays {

/// The array of a file's bytes, in row-major order and this machine's byte order. Raw elements of one and two bytes
/// ("|V1", "|V2": what numpy writes for types of ml_dtypes) come as u8 and u16. `entry` is what messages call the file.
/// Errors: InvalidArgument if the bytes are no such file; Unimplemented for types without a counterpart.
Expected<Array> parse_npy(std::span<const std::byte> file, std::string_view entry);
/// The bytes before the elements, which follow as they lie in memory.
std::vector<std::byte> npy_header(const Array&);

/// Errors: those of parse_npy and read_file.
Expected<Array> read_npy(const std::string& path);
/// Errors: those of OutputFile.
Expected<> write_npy(const std::string& path, const Array&);

}  // namespace hloom::arrays

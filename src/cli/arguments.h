// What a program is run on.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cli/options.h"
#include "cli/source.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::cli {

/// How many devices run the program.
struct Devices {
  std::int64_t replicas = 1, partitions = 1;
  std::int64_t count() const { return replicas * partitions; }
};
/// Errors: InvalidArgument if there are more than 1024.
Expected<Devices> devices_of(const hlo::Module&);

/// The longest wait of a device for others.
std::chrono::milliseconds collective_timeout(const Options&);

/// The path of device k's own file: in.npz becomes in.dev3.npz.
std::string device_path(const std::string& path, std::int64_t k);
/// The file for device k of `devices`: its own where there are several and it exists, else the one for all.
std::string file_of_device(const std::string& path, std::int64_t k, std::int64_t devices);

/// For each device the leaves of the parameters: from --inputs, else the folder's, else made up, which is said on
/// standard error.
/// Errors: those of reading the files; InvalidArgument, naming file and array, if an array does not fit or is too many;
///         ResourceExhausted if arguments and results are larger than this machine's memory.
Expected<std::vector<std::vector<hlo::Literal>>> read_arguments(const Options&, const Source&, const hlo::Module&,
                                                                const Devices&);

}  // namespace hloom::cli

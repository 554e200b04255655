// What the words of the command line say.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace hloom::cli {

/// Exit statuses.
inline constexpr int kGood = 0, kBad = 1, kWrongWords = 2;

enum class Command { Run, Bench, Check, Opt, Show, Reduce };

struct Options {
  Command command = Command::Run;
  std::string program;              ///< a path, or "-"
  std::string module;               ///< of several in a file; empty: the only one
  bool fill_elided = false;
  std::optional<bool> bench_scale;  ///< of a corpus folder: bench.hlo instead of program.hlo; empty: the command's own

  std::string inputs, output, expect;  ///< paths; empty: none
  std::string host_in, host_out;         ///< paths; empty: none
  std::string random;  ///< the seed as written; empty: not asked for
  std::uint64_t random_seed = 0;
  std::optional<double> rtol, atol;
  bool interpret = false, check_nans = false, bisect_passes = false, debug_memory = false, profile = false, perf = false, time = false, json = false, list = false;
  std::string cache;  ///< a folder, or * for the user's own; empty: none
  std::string cpu;  ///< as LLVM names it; empty: this machine's
  int threads = 0;  ///< 0: as many as the process may use
  std::int64_t replicas = 0, partitions = 0;  ///< 0: as the program says
  double collective_timeout_s = 300;
  double work = 0;  ///< of check: steps of the interpreter for one run of an instruction; 0: any number
  double seconds = 2;
  std::string dump;  ///< a folder
  std::vector<std::string> passes;
  std::string require_in_place;   ///< names with commas, or * for all updates; empty: none
  std::int64_t memory_limit = 0;  ///< bytes; 0: none
  std::int64_t concurrency_memory = 0;  ///< bytes
  std::string budget, write_budget, against;  ///< paths; empty: none
  std::string script;             ///< of reduce: a shell command
  std::string stage, format;  ///< of show; no format: text
};

/// Options, or the status to exit with because all has been said.
struct Parsed {
  Options options;
  std::optional<int> exit;
};

/// Reads the words; prints help, version, or what is wrong with them. Does not throw.
Parsed parse_arguments(int argc, const char* const* argv);

}  // namespace hloom::cli

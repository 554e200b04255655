#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/fail.h"
#include "base/try.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/source.h"
#include "shrink/shrink.h"
#include "text/print.h"

namespace hloom::cli {
namespace {

/// A file that goes with the object.
class TemporaryFile {
 public:
  static Expected<TemporaryFile> create() {
    std::error_code problem;
    std::string path = (std::filesystem::temp_directory_path(problem) / "hloom-reduce-XXXXXX.hlo").string();
    const int file = mkstemps(path.data(), 4);
    if (file < 0) return fail(Code::Unavailable, path, ": cannot be made");
    close(file);
    return TemporaryFile(std::move(path));
  }
  TemporaryFile(TemporaryFile&& other) noexcept : path_(std::exchange(other.path_, {})) {}
  TemporaryFile& operator=(TemporaryFile&&) = delete;
  ~TemporaryFile() {
    if (!path_.empty()) unlink(path_.c_str());
  }
  const std::string& path() const { return path_; }

 private:
  explicit TemporaryFile(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

// Whether the shell command, with the file's path as its last word, ends with status 0. Its output goes nowhere.
Expected<bool> run_script(const std::string& command, const std::string& path) {
  const std::string line = command + " \"$1\" >/dev/null 2>&1";
  const pid_t child = fork();
  if (child < 0) return fail(Code::ResourceExhausted, command, ": there are no more processes");
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", line.c_str(), "sh", path.c_str(), static_cast<char*>(nullptr));
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFEXITED(status) && (WEXITSTATUS(status) == 126 || WEXITSTATUS(status) == 127))
    return fail(Code::NotFound, command, ": cannot be run");
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Asks the script about programs; after an error nothing has the fault.
class Script {
 public:
  Script(const Options& options, const std::string& path) : options_(options), path_(path) {}

  bool has_fault(const shrink::Program& program) {
    if (!state_) return false;
    state_ = write_file(path_, text::print(*program.module));
    if (!state_) return false;
    const Expected<bool> answer = run_script(options_.script, path_);
    if (!answer) state_ = answer.error();
    return answer && *answer;
  }
  const Expected<>& state() const { return state_; }

 private:
  const Options& options_;
  const std::string& path_;
  Expected<> state_;
};

std::int64_t num_instructions(const hlo::Module& module) {
  std::int64_t n = 0;
  for (const hlo::Computation& c : module.computations()) n += c.num_instructions();
  return n;
}

}  // namespace

Expected<int> reduce(const Options& options) {
  const Source source = TRY(read_source(options));
  shrink::Program program;
  program.module = TRY(read_module(source, options));
  program.has_arguments = false;
  const TemporaryFile file = TRY(TemporaryFile::create());
  Script script(options, file.path());
  const bool there = script.has_fault(program);
  TRY(script.state());
  if (!there)
    return fail(Code::InvalidArgument, source.path, ": the script does not end with status 0 for the program as it is");
  const std::int64_t before = num_instructions(*program.module);
  const auto has_fault = [&](const shrink::Program& p) { return script.has_fault(p); };
  const shrink::Result small = shrink::shrink(std::move(program), has_fault);
  TRY(script.state());
  const std::string text = text::print(*small.program.module);
  TRY(options.output.empty() ? write_output(text) : write_file(options.output, text));
  say(source.path + ": " + std::to_string(before) + " instructions, now " +
      std::to_string(num_instructions(*small.program.module)) + ", after " + std::to_string(small.tries) + " tries" +
      (small.is_minimal ? "" : ", which is the most"));
  return kGood;
}

}  // namespace hloom::cli

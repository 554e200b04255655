#include "cli/command_line.h"

#include <unistd.h>

#include <new>

#include "cli/commands.h"
#include "cli/output.h"

namespace hloom::cli {
namespace {

Expected<int> run_command(const Options& options) {
  switch (options.command) {
    case Command::Run: return run(options);
    case Command::Bench: return bench(options);
    case Command::Check: return check(options);
    case Command::Opt: return opt(options);
    case Command::Show: return show(options);
    case Command::Reduce: return reduce(options);
  }
  return kWrongWords;
}

[[noreturn]] void out_of_memory() {
  constexpr char kWords[] = "hloom: there is not enough memory\n";
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(kBad);
}

}  // namespace

int run_command_line(int argc, const char* const* argv) {
  handle_signals();
  std::set_new_handler(out_of_memory);
  const Parsed parsed = parse_arguments(argc, argv);
  if (parsed.exit) return *parsed.exit;
  const Expected<int> status = run_command(parsed.options);
  if (status) return *status;
  // A reader that has gone away, as `head` does, knows why.
  if (status.error().code() != Code::Cancelled) say("hloom: " + status.error().message());
  return kBad;
}

}  // namespace hloom::cli

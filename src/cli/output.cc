#include "cli/output.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <span>

#include "arrays/files.h"
#include "base/fail.h"
#include "base/try.h"

namespace hloom::cli {
namespace {

constexpr char kInterrupted[] = "\nhloom: interrupted\n";

// Ends the process as the signal would have, so that a shell sees it.
void interrupted(int signal) {
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, kInterrupted, sizeof(kInterrupted) - 1);
  raise(signal);  // SA_RESETHAND: the default action now
}

}  // namespace

Expected<> write_output(std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written >= 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
      continue;
    }
    if (errno == EINTR) continue;
    const Code code = errno == EPIPE ? Code::Cancelled : errno == ENOSPC ? Code::ResourceExhausted : Code::Unavailable;
    return fail(code, "standard output: ", std::strerror(errno));
  }
  return {};
}

void say(std::string_view words) {
  const std::string line = std::string(words) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

Expected<> uninterrupted(const std::function<Expected<>()>& write) {
  sigset_t interrupts, before;
  sigemptyset(&interrupts);
  sigaddset(&interrupts, SIGINT);
  sigaddset(&interrupts, SIGTERM);
  sigaddset(&interrupts, SIGHUP);
  sigprocmask(SIG_BLOCK, &interrupts, &before);
  Expected<> result = write();
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return result;
}

Expected<> write_file(const std::string& path, std::string_view text) {
  return uninterrupted([&]() -> Expected<> {
    arrays::OutputFile file = TRY(arrays::OutputFile::create(path));
    TRY(file.write(std::as_bytes(std::span(text))));
    return file.commit();
  });
}

void handle_signals() {
  signal(SIGPIPE, SIG_IGN);
  struct sigaction action = {};
  sigaction(SIGINT, nullptr, &action);
  if (action.sa_handler == SIG_IGN) return;  // so asked by who started it: nohup, a shell's background
  action.sa_handler = interrupted;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_NODEFER);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace hloom::cli

#include "cli/progress.h"

#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace hloom::cli {

Progress::Progress(std::string what)
    : what_(std::move(what)),
      thread_(isatty(STDERR_FILENO) == 1 ? base::Thread::start("progress", [this] { show(); }) : std::nullopt) {}

Progress::~Progress() {
  if (!thread_) return;
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
  }
  wake_.notify_one();
  thread_->join();
}

void Progress::show() {
  std::unique_lock lock(mutex_);
  int seconds = 0;
  while (!wake_.wait_for(lock, std::chrono::seconds(1), [this] { return done_; }))
    std::fprintf(stderr, "\rhloom: %s, %d s", what_.c_str(), ++seconds);
  if (seconds > 0) std::fprintf(stderr, "\r\033[K");
}

}  // namespace hloom::cli

// A sign of life while something takes long.
#pragma once

#include <condition_variable>
#include <mutex>
#include <optional>
#include <string>

#include "base/thread.h"

namespace hloom::cli {

/// While it lives, and standard error is a terminal, a line there says what is going on and for how long, from the
/// second second on. The line is gone afterwards.
class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

 private:
  void show();

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::optional<base::Thread> thread_;
};

}  // namespace hloom::cli

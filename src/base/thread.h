// A thread that may fail to start, which std::thread cannot say without exceptions.
#pragma once

#include <pthread.h>

#include <functional>
#include <optional>
#include <utility>

namespace hloom::base {

/// A running thread; join() before it goes.
class Thread {
 public:
  /// Starts `body` on a thread that blocks all signals, named `name` (cut to 15 characters) for debuggers.
  /// Nothing, if the system has no more threads: then do the work on those there are.
  static std::optional<Thread> start(const char* name, std::function<void()> body);

  Thread(Thread&& other) noexcept : handle_(other.handle_), running_(std::exchange(other.running_, false)) {}
  Thread& operator=(Thread&&) = delete;
  ~Thread();

  /// Waits for the body's end. Needs: not joined yet.
  void join();
  /// Forgets the thread: in a forked child it does not exist.
  void forget() { running_ = false; }

 private:
  explicit Thread(pthread_t handle) : handle_(handle), running_(true) {}

  pthread_t handle_;
  bool running_;
};

}  // namespace hloom::base

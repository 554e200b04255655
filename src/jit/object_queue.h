// Modules become objects while others are being made.
//
//   ObjectQueue queue(threads, target);
//   const std::size_t number = queue.add(build);  // … more
//   Object object = TRY(queue.take(number));
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "base/thread.h"
#include "jit/compile_object.h"

namespace hloom::jit {

/// Compiles the modules that one thread adds, in their order, on this thread and others. At most kMostWaiting wait: then
/// who adds compiles too. Objects do not depend on the number of threads. After a module fails, later ones are not begun.
class ObjectQueue {
 public:
  static constexpr std::size_t kMostWaiting = 32;

  /// `num_threads`: the caller's included; they start as modules come. What `cache` has is not compiled, what it lacks is put
  /// there; null: none, else it must outlive this.
  explicit ObjectQueue(int num_threads, const base::Target& target = host_target(), Level level = Level::Default,
                       DiskCache* cache = nullptr);
  ObjectQueue(const ObjectQueue&) = delete;
  ~ObjectQueue();  ///< Ends what is under way, and begins nothing more.

  /// Gives the module's number, from 0. Needs: a module that may be built beside others, on any thread.
  std::size_t add(BuildModule);
  /// The object of a module, once: compiles what nobody has begun until it is there. Needs: numbers in ascending order, up to the
  /// first that fails.
  /// Errors: the module's.
  Expected<Object> take(std::size_t number);

 private:
  class Machine;
  void work_alone();
  void compile_next(std::unique_lock<std::mutex>&, Machine&);

  const std::size_t num_threads_;
  const base::Target target_;
  const Level level_;
  DiskCache* const cache_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<BuildModule> modules_;
  std::deque<std::optional<Expected<Object>>> objects_;
  std::size_t next_ = 0;  ///< the first that nobody has begun
  bool ended_ = false, failed_ = false;
  std::vector<base::Thread> threads_;
  std::unique_ptr<Machine> own_;  ///< of the thread that adds and takes
};

}  // namespace hloom::jit

// Threads of the embedder's that run programs.
#pragma once

namespace hloom {

/// Derive from it to have programs run on threads that a process has already (CompileOptions::pool).
class WorkerPool {
 public:
  WorkerPool() = default;
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;
  virtual ~WorkerPool() = default;

  /// Threads that may work at once, the caller of run() among them. Always the same.
  virtual int num_threads() const = 0;

  using Body = void (*)(void* context, int part, int parts);
  /// Calls body(context, p, parts) once for each p in [0, parts) and returns when all have returned: on any threads, in
  /// any order, at the same time or one after the other. That part p comes to the same thread each time keeps data in
  /// its caches. `parts` is at most num_threads(). hloom calls it from any number of threads at once, never from a body.
  virtual void run(int parts, Body body, void* context) = 0;
};

}  // namespace hloom

// A library of somebody's that has hloom's runtime inside, for unload_test.cc.
#include "runtime/threads.h"

extern "C" __attribute__((visibility("default"))) int parts_done() {
  std::atomic<int> done = 0;
  hloom::runtime::ThreadPool& pool = hloom::runtime::process_pool();
  pool.start_all();
  pool.run(pool.num_threads(), [](void* context, int, int) { ++*static_cast<std::atomic<int>*>(context); }, &done);
  return done == pool.num_threads() ? done.load() : -1;
}

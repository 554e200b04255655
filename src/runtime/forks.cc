#include "runtime/forks.h"

#include <pthread.h>

#include <mutex>
#include <vector>

#include "base/check.h"

namespace hloom::runtime {

class Forks {
 public:
  static void add(SurvivesFork* object) {
    static const int registered = pthread_atfork(before, [] { after(false); }, [] { after(true); });
    HLOOM_CHECK(registered == 0);
    const std::lock_guard<std::mutex> guard(state().mutex);
    state().objects.push_back(object);
  }
  static void remove(SurvivesFork* object) {
    const std::lock_guard<std::mutex> guard(state().mutex);
    std::erase(state().objects, object);
  }

 private:
  struct State {
    std::mutex mutex;
    std::vector<SurvivesFork*> objects;
  };
  static State& state() {
    static State& state = *new State;  // outlives all objects and the last fork
    return state;
  }
  static void before() {
    state().mutex.lock();
    for (SurvivesFork* object : state().objects) object->before_fork();
  }
  static void after(bool in_child) {
    for (SurvivesFork* object : state().objects) object->after_fork(in_child);
    state().mutex.unlock();
  }
};

void SurvivesFork::start_surviving() { Forks::add(this); }
void SurvivesFork::stop_surviving() { Forks::remove(this); }

}  // namespace hloom::runtime

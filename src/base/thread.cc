#include "base/thread.h"

#include <signal.h>

#include <memory>
#include <string>

#include "base/check.h"

namespace hloom::base {
namespace {

struct Start {
  std::string name;
  std::function<void()> body;
};

void* run(void* argument) {
  const std::unique_ptr<Start> start(static_cast<Start*>(argument));
  pthread_setname_np(pthread_self(), start->name.c_str());
  start->body();
  return nullptr;
}

}  // namespace

std::optional<Thread> Thread::start(const char* name, std::function<void()> body) {
  auto start = std::make_unique<Start>(Start{std::string(name).substr(0, 15), std::move(body)});
  // The embedder's signal handlers run on the embedder's threads.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_t handle;
  const int failed = pthread_create(&handle, nullptr, run, start.get());
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  if (failed != 0) return std::nullopt;
  start.release();
  return Thread(handle);
}

Thread::~Thread() { HLOOM_CHECK(!running_); }

void Thread::join() {
  HLOOM_CHECK(running_);
  HLOOM_CHECK(pthread_join(handle_, nullptr) == 0);
  running_ = false;
}

}  // namespace hloom::base

// Whoever loads hloom may unload it, and end, while workers of the process's pool sleep.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>

namespace {

using PartsDone = int (*)();

PartsDone load(void*& library) {
  library = dlopen(HLOOM_UNLOAD_MODULE, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<PartsDone>(dlsym(library, "parts_done"));
}

TEST(Unload, WorkersMayStillSleepInIt) {
  for (int i = 0; i < 3; ++i) {
    void* library = nullptr;
    const PartsDone parts_done = load(library);
    ASSERT_NE(parts_done, nullptr) << dlerror();
    EXPECT_GE(parts_done(), 1);
    EXPECT_EQ(dlclose(library), 0);
    usleep(2000);  // workers have looked for work and fallen asleep
  }
}

TEST(Unload, AProcessEndsWithWorkers) {
  const pid_t child = fork();
  if (child == 0) {
    void* library = nullptr;
    const PartsDone parts_done = load(library);
    const bool good = parts_done != nullptr && parts_done() >= 1;
    alarm(20);  // a hang is a failure
    std::exit(good ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

}  // namespace

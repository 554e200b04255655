// From the third run on, its results released, a program allocates nothing, faults no page and makes no system call on
// one thread; on more it only sleeps and wakes sleepers, each at most once for each time that it slept.
//
// Programs on several devices and those with custom calls, whose callees do as they like, are left out.

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/futex.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <limits>

#include "arrays/corpus_folder.h"
#include "arrays/files.h"
#include "compiler/compile.h"
#include "compiler/execute_literals.h"
#include "compiler/layout_bytes.h"
#include "compiler/read_program.h"
#include "program_folders.h"
#include "runtime/buffer_runs.h"
#include "runtime/pages.h"
#include "runtime/process_allocator.h"

namespace {
std::atomic<std::int64_t> heap_allocations = 0;
}

// All of the process's allocations come through here, those of libraries too.
extern "C" {
void* __libc_malloc(std::size_t);
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_realloc(void*, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

void* malloc(std::size_t size) {
  ++heap_allocations;
  return __libc_malloc(size);
}
void* calloc(std::size_t count, std::size_t size) {
  ++heap_allocations;
  return __libc_calloc(count, size);
}
void* realloc(void* memory, std::size_t size) {
  ++heap_allocations;
  return __libc_realloc(memory, size);
}
void* memalign(std::size_t alignment, std::size_t size) {
  ++heap_allocations;
  return __libc_memalign(alignment, size);
}
void* aligned_alloc(std::size_t alignment, std::size_t size) { return memalign(alignment, size); }
int posix_memalign(void** memory, std::size_t alignment, std::size_t size) {
  *memory = memalign(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}
}

namespace hloom {
namespace {

// What a child that runs under the filter tells its parent, in memory of both.
struct Calls {
  std::atomic<int> other = -1;  ///< a system call that is neither of the two
  std::atomic<std::int64_t> waits = 0, wakes = 0;
  std::atomic<bool> failed = false;
};
Calls* calls = nullptr;

#if defined(__x86_64__)
constexpr long kCounted = 0x68c00001;  // the sixth argument of a futex call that the handler makes

void count_call(int, siginfo_t* info, void* context) {
  auto& registers = static_cast<ucontext_t*>(context)->uc_mcontext.gregs;
  if (info->si_syscall != SYS_futex) {
    calls->other = info->si_syscall;
    registers[REG_RAX] = -ENOSYS;
    return;
  }
  const long operation = registers[REG_RSI] & FUTEX_CMD_MASK;
  ++(operation == FUTEX_WAKE ? calls->wakes : calls->waits);
  const int before = errno;
  const long result = syscall(SYS_futex, registers[REG_RDI], registers[REG_RSI], registers[REG_RDX],
                              registers[REG_R10], registers[REG_R8], kCounted);
  registers[REG_RAX] = result < 0 ? -errno : result;
  errno = before;
}

// From here on all threads' system calls are counted. False if the system has no such filter.
bool count_system_calls() {
  struct sigaction action = {};
  action.sa_sigaction = count_call;
  action.sa_flags = SA_SIGINFO | SA_NODEFER;
  sigaction(SIGSYS, &action, nullptr);
  constexpr auto kNumber = static_cast<std::uint32_t>(offsetof(seccomp_data, nr));
  constexpr auto kSixth = static_cast<std::uint32_t>(offsetof(seccomp_data, args) + 5 * sizeof(std::uint64_t));
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kNumber),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 6, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 5, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_sched_yield, 4, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 0, 2),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, kSixth),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kCounted, 1, 0),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(filter)), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) == 0;
}
#else
bool count_system_calls() { return false; }
#endif

// Workers block all signals; that of the filter they must take.
void unblock_on_all(runtime::ThreadPool& pool) {
  ASSERT_TRUE(pool.start_all());
  std::atomic<int> begun = 0;
  pool.run(pool.num_threads(), [](void* context, int, int n) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGSYS);
    pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
    auto& all = *static_cast<std::atomic<int>*>(context);
    for (++all; all < n;) sched_yield();  // each part on a thread of its own
  }, &begun);
}

struct Prepared {
  std::unique_ptr<runtime::Executor> executor;
  std::vector<Buffer> args;
};

Expected<Prepared> prepare(const arrays::CorpusFolder& folder, const std::string& text) {
  auto module = compiler::read_program(text, {.file_name = folder.program_path});
  if (!module) return module.error();
  compiler::Options options;
  options.threads = 2;
  auto compiled = compiler::compile(*std::move(module), options);
  if (!compiled) return compiled.error();
  Prepared prepared;
  const std::vector<Shape> shapes = compiler::parameter_leaves(*compiled->module);
  const std::vector<hlo::Literal> values = leaves_of(folder.inputs[0]);
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    prepared.args.push_back(*Buffer::allocate(shapes[i].size_bytes()));
    if (shapes[i].is_array()) compiler::store_literal(values[i], shapes[i], prepared.args[i].mutable_bytes());
  }
  auto executor = runtime::Executor::create(std::move(compiled->program));
  if (!executor) return executor.error();
  prepared.executor = *std::move(executor);
  return prepared;
}

std::int64_t page_faults() {
  rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_minflt + usage.ru_majflt;
}

void expect_no_allocation_and_no_fault(Prepared& prepared, int threads) {
  runtime::ThreadPool pool(threads);
  const runtime::BufferRuns runs(*prepared.executor, runtime::process_allocator());
  for (int i = 0; i < 2; ++i) {
    const auto done = runs.run(prepared.args, pool, {});
    ASSERT_TRUE(done) << done.error().message();
  }
  std::int64_t allocations = 0, faults = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 5; ++i) {
    const std::int64_t allocations_before = heap_allocations, faults_before = page_faults();
    const bool good = runs.run(prepared.args, pool, {}).has_value();
    faults = std::min(faults, page_faults() - faults_before);
    allocations += heap_allocations - allocations_before;
    ASSERT_TRUE(good);
  }
  EXPECT_EQ(allocations, 0) << "on " << threads << " threads";
  EXPECT_EQ(faults, 0) << "on " << threads << " threads";
}

// In the child: two runs, then some that are watched.
void run_watched(Prepared& prepared, int threads) {
  runtime::ThreadPool pool(threads);
  const runtime::BufferRuns runs(*prepared.executor, runtime::process_allocator());
  unblock_on_all(pool);
  for (int i = 0; i < 2; ++i) calls->failed = calls->failed || !runs.run(prepared.args, pool, {});
  if (!count_system_calls()) _exit(2);
  for (int i = 0; i < 3; ++i) calls->failed = calls->failed || !runs.run(prepared.args, pool, {});
  _exit(0);
}

void expect_few_system_calls(Prepared& prepared, int threads) {
  void* const shared = mmap(nullptr, sizeof(Calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(shared, MAP_FAILED);
  calls = new (shared) Calls;
  const pid_t child = fork();
  if (child == 0) run_watched(prepared, threads);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this system has no filter of system calls";
  EXPECT_FALSE(calls->failed);
  EXPECT_EQ(calls->other, -1) << "a system call of that number on " << threads << " threads";
  if (threads == 1) {
    EXPECT_EQ(calls->waits + calls->wakes, 0);
  } else {
    EXPECT_LE(calls->wakes, calls->waits + threads);  // some may have slept before they were watched
  }
  munmap(shared, sizeof(Calls));
}

class SteadyState : public testing::TestWithParam<std::string> {};

TEST_P(SteadyState, AllocatesFaultsAndCallsNothing) {
  const std::string path = program_folder(GetParam());
  if (!arrays::is_corpus_folder(path)) GTEST_SKIP() << path << " is not here";
  const auto folder = arrays::read_corpus_folder(path);
  ASSERT_TRUE(folder) << folder.error().message();
  if (folder->num_replicas * folder->num_partitions > 1) GTEST_SKIP() << "runs on several devices";
  if (!folder->custom_calls.empty()) GTEST_SKIP() << "calls " << folder->custom_calls[0];
  const auto bytes = arrays::read_file(folder->program_path);
  ASSERT_TRUE(bytes) << bytes.error().message();
  auto prepared = prepare(*folder, std::string(reinterpret_cast<const char*>(bytes->data()), bytes->size()));
  ASSERT_TRUE(prepared) << prepared.error().message();
  for (const int threads : {1, 2}) {
    expect_no_allocation_and_no_fault(*prepared, threads);
    expect_few_system_calls(*prepared, threads);
  }
}

// The instruments see what they are for.
TEST(SteadyStateInstruments, SeeAllocationsFaultsAndCalls) {
  const std::int64_t allocations = heap_allocations;
  char* volatile memory = new char[100];  // not for the optimizer to leave out
  delete[] memory;
  EXPECT_GT(heap_allocations, allocations);
  const std::int64_t faults = page_faults();
  const auto pages = runtime::Pages::map(1 << 20);
  std::fill_n(pages->data(), 1 << 20, std::byte{1});
  EXPECT_GE(page_faults() - faults, 100);
  void* const shared = mmap(nullptr, sizeof(Calls), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  calls = new (shared) Calls;
  const pid_t child = fork();
  if (child == 0) {
    if (!count_system_calls()) _exit(2);
    std::uint32_t word = 0;
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
    getppid();
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  if (WEXITSTATUS(status) == 2) GTEST_SKIP() << "this system has no filter of system calls";
  EXPECT_EQ(calls->wakes, 1);
  EXPECT_EQ(calls->other, SYS_getppid);
  munmap(shared, sizeof(Calls));
}

INSTANTIATE_TEST_SUITE_P(All, SteadyState, testing::ValuesIn(program_names()),
                         [](const auto& p) { return test_name(p.param); });

}  // namespace
}  // namespace hloom

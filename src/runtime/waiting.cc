#include "runtime/waiting.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <limits>

namespace hloom::runtime {
namespace {

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void futex(Word& word, int operation, std::uint32_t value) {
  static_assert(sizeof(Word) == sizeof(std::uint32_t));
  syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), operation, value, nullptr, nullptr, 0);
}

// Looks at the word, apart from the bits that do not matter, for a while; true if it changed.
bool spin_until_changed(const Word& word, std::uint32_t seen, std::uint32_t ignored, std::int64_t spin_ns) {
  const auto changed = [&] { return (word.load(std::memory_order_acquire) & ~ignored) != seen; };
  if (changed()) return true;
  if (spin_ns == 0) return false;
  const std::int64_t until = now_ns() + spin_ns;
  do {
    for (int i = 0; i < 32; ++i) {
      if (changed()) return true;
      pause_processor();
    }
  } while (now_ns() < until);
  return false;
}

// Until the word is not that any more.
void sleep_while(Word& word, std::uint32_t value) {
  do {
    futex(word, FUTEX_WAIT_PRIVATE, value);
  } while (word.load(std::memory_order_acquire) == value);
}

}  // namespace

std::uint32_t wait_until_changed(Word& word, std::uint32_t seen, std::int64_t spin_ns) {
  if (spin_until_changed(word, seen, 0, spin_ns)) return word.load(std::memory_order_acquire);
  std::uint32_t found = seen;
  if (!word.compare_exchange_strong(found, seen | kAsleep, std::memory_order_acq_rel)) return found;
  sleep_while(word, seen | kAsleep);
  return word.load(std::memory_order_acquire);
}

void tell(Word& word, std::uint32_t number) {
  if ((word.exchange(number, std::memory_order_acq_rel) & kAsleep) != 0) futex(word, FUTEX_WAKE_PRIVATE, 1);
}

void poke(Word& word, std::uint32_t bit) {
  std::uint32_t before = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(before, (before & ~kAsleep) | bit, std::memory_order_acq_rel)) {
  }
  if ((before & kAsleep) != 0) futex(word, FUTEX_WAKE_PRIVATE, 1);
}

void wait_with_others(Word& word, std::uint32_t seen, std::int64_t spin_ns) {
  if (spin_until_changed(word, seen, kAsleep, spin_ns)) return;
  std::uint32_t found = seen;
  if (word.compare_exchange_strong(found, seen | kAsleep, std::memory_order_acq_rel) || found == (seen | kAsleep))
    sleep_while(word, seen | kAsleep);
}

void tell_all(Word& word) {
  std::uint32_t before = word.load(std::memory_order_relaxed);
  while (!word.compare_exchange_weak(before, (before & ~kAsleep) + 2, std::memory_order_acq_rel)) {
  }
  if ((before & kAsleep) != 0) futex(word, FUTEX_WAKE_PRIVATE, std::numeric_limits<std::int32_t>::max());
}

}  // namespace hloom::runtime

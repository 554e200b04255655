// Words that threads wait for: spinning for a while, then asleep. Internal to runtime/.
#pragma once

#include <atomic>
#include <cstdint>

namespace hloom::runtime {

/// Who writes a word leaves its lowest bit 0; who falls asleep waiting for it sets that bit first, so that the writer
/// learns in the same step that it must wake a sleeper.
using Word = std::atomic<std::uint32_t>;
inline constexpr std::uint32_t kAsleep = 1;

/// Returns when the word is not `seen`, with what it is. Needs: only this thread waits for it.
std::uint32_t wait_until_changed(Word& word, std::uint32_t seen, std::int64_t spin_ns);

/// Sets a bit of the word and wakes who waits.
void poke(Word& word, std::uint32_t bit);

/// Writes the word and wakes who waits. The three are for words for which one thread waits.
void tell(Word& word, std::uint32_t number);

/// Returns when the word, without its lowest bit, is not `seen`. Any number of threads may wait.
void wait_with_others(Word& word, std::uint32_t seen, std::int64_t spin_ns);

/// Counts the word up by 2, from any thread, and wakes all who wait.
void tell_all(Word& word);

}  // namespace hloom::runtime

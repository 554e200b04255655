#include "runtime/arena.h"

#include <algorithm>
#include <utility>

#include "base/fail.h"
#include "base/try.h"
#include "runtime/cpus.h"

namespace hloom::runtime {
namespace {

Expected<Pages> map_for(const Program& program, std::string_view what, std::int64_t size_bytes) {
  if (size_bytes == 0) return Pages();
  Expected<Pages> pages = Pages::map(size_bytes);
  if (!pages) return fail(Code::ResourceExhausted, program.name, ": ", what, ": ", pages.error().message());
  return pages;
}

}  // namespace

std::unique_ptr<RunState> ProgramArena::take() {
  std::unique_ptr<RunState> state(first_.exchange(nullptr, std::memory_order_acq_rel));
  if (state != nullptr) return state;
  const std::lock_guard<std::mutex> lock(mutex_);
  if (others_.empty()) return nullptr;
  state = std::move(others_.back());
  others_.pop_back();
  return state;
}

Expected<std::unique_ptr<RunState>> ProgramArena::make() const {
  auto state = std::make_unique<RunState>();
  state->arena = TRY(map_for(program_, "arena", layout_.arena_bytes));
  state->ports.resize(program_.parameters.size() + program_.results.size());
  state->ranges.reserve(state->ports.size());
  state->iterations.resize(static_cast<std::size_t>(layout_.num_loops));
  for (const TableEntry& entry : layout_.table) {
    std::byte* base = state->arena.data();
    if (entry.base == TableEntry::Base::Constant)
      base = const_cast<std::byte*>(program_.constants[static_cast<std::size_t>(entry.number)].data());
    if (entry.base == TableEntry::Base::Status) base = reinterpret_cast<std::byte*>(&state->status);
    state->pointers.push_back(entry.base == TableEntry::Base::Port ? nullptr : base + entry.offset);
  }
  return state;
}

Expected<std::unique_ptr<RunState>> ProgramArena::acquire(std::int32_t num_threads) {
  std::unique_ptr<RunState> state = take();
  if (state == nullptr) state = TRY(make());
  if (state->num_threads < num_threads) {
    Expected<Pages> scratch = map_for(program_, "scratch", layout_.scratch_bytes(num_threads));
    if (!scratch) {
      release(std::move(state));
      return scratch.error();
    }
    state->scratch = *std::move(scratch);
    state->num_threads = num_threads;
  }
  return state;
}

void ProgramArena::release(std::unique_ptr<RunState> state) {
  RunState* none = nullptr;
  if (first_.compare_exchange_strong(none, state.get(), std::memory_order_acq_rel)) {
    static_cast<void>(state.release());
    return;
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  const std::int64_t most = std::max<std::int64_t>(available_cpus(), num_devices(program_));
  if (static_cast<std::int64_t>(others_.size()) + 1 < most) others_.push_back(std::move(state));
}

void ProgramArena::trim() {
  const std::unique_ptr<RunState> first(first_.exchange(nullptr, std::memory_order_acq_rel));
  const std::lock_guard<std::mutex> lock(mutex_);
  others_.clear();
}

std::int64_t ProgramArena::num_kept() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<std::int64_t>(others_.size()) + (first_.load(std::memory_order_acquire) != nullptr ? 1 : 0);
}

}  // namespace hloom::runtime

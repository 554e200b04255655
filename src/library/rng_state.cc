#include "library/rng_state.h"

#include <atomic>
#include <cstring>

namespace hloom::library {
namespace {

__extension__ using Wide = unsigned __int128;
__extension__ using SignedWide = __int128;

struct Descriptor {
  RngState* states;  // by device
  std::int64_t delta;
};

// Buffers: descriptor, device, result.
void take_state(void* const* buffers, std::int64_t, std::int64_t, void*) {
  Descriptor d;
  std::memcpy(&d, buffers[0], sizeof(d));
  std::int64_t device;
  std::memcpy(&device, buffers[1], sizeof(device));
  RngState& state = d.states[device];
  const std::atomic_ref<std::int32_t> lock(state.lock);
  while (lock.exchange(1, std::memory_order_acquire) != 0) {}
  const std::uint64_t words[2] = {state.low, state.high};
  const Wide next = (static_cast<Wide>(words[1]) << 64 | words[0]) + static_cast<Wide>(static_cast<SignedWide>(d.delta));
  state.low = static_cast<std::uint64_t>(next);
  state.high = static_cast<std::uint64_t>(next >> 64);
  lock.store(0, std::memory_order_release);
  std::memcpy(buffers[2], words, sizeof(words));
}

}  // namespace

RoutinePlan plan_rng_state(std::shared_ptr<RngStates> states, std::int64_t delta) {
  const Descriptor d{states->data(), delta};
  Routine routine;
  routine.function = take_state;
  routine.arguments = {{Argument::Kind::Descriptor, 0}, {Argument::Kind::Device, 0}, {Argument::Kind::Result, 0}};
  routine.descriptor = base::AlignedBytes(std::as_bytes(std::span(&d, 1)));
  RoutinePlan plan;
  plan.calls.push_back(std::move(routine));
  plan.keeps = std::move(states);
  return plan;
}

}  // namespace hloom::library

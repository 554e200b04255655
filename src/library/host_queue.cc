#include <optional>

#include "base/fail.h"
#include "base/try.h"
#include "hloom/host_transfers.h"

namespace hloom {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kLook{2};  // how often who waits asks whether to go on

bool is_cancelled(const HostWait& wait) { return wait.cancel != nullptr && wait.cancel->is_cancelled(); }

// Asked without the lock: `stopped` may wait for others.
bool has_stopped(std::unique_lock<std::mutex>& lock, const HostWait& wait) {
  if (!wait.stopped) return false;
  lock.unlock();
  const bool stopped = wait.stopped();
  lock.lock();
  return stopped;
}

}  // namespace

template <typename Ready>
Expected<> HostQueue::wait_until(std::unique_lock<std::mutex>& lock, const HostWait& wait, const Ready& ready) {
  const Clock::time_point end = Clock::now() + wait.timeout;
  const bool asks = wait.cancel != nullptr || wait.stopped != nullptr;
  while (!ready()) {
    if (is_cancelled(wait) || has_stopped(lock, wait)) return fail(Code::Cancelled, "the wait was cancelled");
    if (ready()) break;
    const Clock::time_point now = Clock::now();
    const bool ends = wait.timeout.count() > 0;
    if (ends && now >= end)
      return fail(Code::DeadlineExceeded, "waited for ", std::to_string(wait.timeout.count()), " ms");
    if (asks)
      changed_.wait_until(lock, ends ? std::min(end, now + kLook) : now + kLook);
    else if (ends)
      changed_.wait_until(lock, end);
    else
      changed_.wait(lock);
  }
  return {};
}

Expected<> HostQueue::push(HostValue value, const HostWait& wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  TRY(wait_until(lock, wait, [&] { return closed_ || capacity_ == 0 || values_.size() < capacity_; }));
  if (closed_) return fail(Code::FailedPrecondition, "the queue is closed");
  values_.push_back(std::move(value));
  changed_.notify_all();
  return {};
}

Expected<HostValue> HostQueue::pop(const HostWait& wait) {
  std::unique_lock<std::mutex> lock(mutex_);
  TRY(wait_until(lock, wait, [&] { return closed_ || !values_.empty(); }));
  if (values_.empty()) return fail(Code::FailedPrecondition, "the queue is closed, and nothing is left in it");
  HostValue value = std::move(values_.front());
  values_.pop_front();
  changed_.notify_all();
  return value;
}

void HostQueue::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  changed_.notify_all();
}

std::size_t HostQueue::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return values_.size();
}

HostQueue& HostTransfers::channel_of(Channels& channels, std::int64_t channel) {
  const std::lock_guard<std::mutex> lock(mutex_);
  const auto [at, added] = channels.try_emplace(channel);
  if (added && closed_) at->second.close();
  return at->second;
}

void HostTransfers::close() {
  const std::lock_guard<std::mutex> lock(mutex_);
  closed_ = true;
  infeed_.close();
  outfeed_.close();
  for (Channels* channels : {&to_device_, &from_device_})
    for (auto& [number, queue] : *channels) queue.close();
}

}  // namespace hloom

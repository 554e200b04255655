#include "collectives/rendezvous.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "base/check.h"
#include "base/fail.h"
#include "base/try.h"

// A device publishes a stage by one store to its own line of the operation and then looks whether anybody sleeps; who
// is going to sleep says so first and looks at the line once more. Both in sequentially consistent order: one of the
// two sees the other. Before a device works it says so (stage 2) and then looks whether the run has failed, so that
// whoever saw the failure first and wants to go sees who still reads its memory.

namespace hloom::collectives {
namespace {

constexpr std::uint64_t kArrived = 1, kWorking = 2, kFinished = 3;
constexpr int kSpins = 4000;
constexpr std::size_t kNamed = 8;  // devices that a message lists

std::uint64_t stage_of(std::uint64_t round, std::uint64_t part) { return 4 * round + part; }
std::uint64_t part_of(std::uint64_t stage) { return stage % 4; }

std::int64_t bytes(const Array& array) { return array.rows * array.piece_bytes; }

std::int64_t total_bytes(const Operation& operation) {
  std::int64_t total = 0;
  for (const Array& array : operation.arrays) total += bytes(array);
  return total;
}

void pause_processor() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

void clear(const Operation& operation, Rendezvous::Buffers arrays) {
  for (std::size_t k = 0; k < operation.arrays.size(); ++k)
    if (const std::int64_t size = bytes(operation.arrays[k]); size > 0) std::memset(arrays[k], 0, static_cast<std::size_t>(size));
}

Rendezvous::Rendezvous(std::int64_t num_devices, std::int64_t num_operations)
    : num_operations_(num_operations),
      lines_(new Line[static_cast<std::size_t>(num_devices * num_operations)]),
      devices_(static_cast<std::size_t>(num_devices)),
      ended_(num_devices) {
  for (Device& device : devices_) device.members.reserve(devices_.size());
}

void Rendezvous::begin(std::chrono::milliseconds timeout, bool spin) {
  HLOOM_CHECK(ended_ == num_devices());
  timeout_ = timeout;
  spin_ = spin;
  failed_.store(false, std::memory_order_relaxed);
  error_.reset();
  ended_ = 0;
  for (auto& [key, box] : mail_) box.clear();
  for (Device& device : devices_) {
    device.ended = false;
    device.last.store(nullptr, std::memory_order_relaxed);
  }
  for (std::int64_t k = 0; k < num_devices() * num_operations_; ++k) {
    Line& line = lines_[static_cast<std::size_t>(k)];
    line.stage.store(0, std::memory_order_relaxed);
    line.round = 0;
  }
}

Expected<> Rendezvous::arrive(std::int64_t device, const Operation& operation, Buffers buffers) {
  HLOOM_CHECK(operation.member(device).group >= 0);
  if (failed()) return error();
  Line& mine = line(device, operation);
  mine.operation = &operation;
  mine.buffers = buffers;
  of(device).last.store(&operation, std::memory_order_relaxed);
  publish(device, operation, stage_of(++mine.round, kArrived));
  return {};
}

Expected<std::span<const Rendezvous::Buffers>> Rendezvous::wait(std::int64_t device, const Operation& operation) {
  Line& mine = line(device, operation);
  TRY(await_all(device, operation, stage_of(mine.round, kArrived)));
  TRY(check_agreement(device, operation));
  mine.stage.store(stage_of(mine.round, kWorking), std::memory_order_seq_cst);
  if (failed_.load(std::memory_order_seq_cst)) {
    mine.stage.store(stage_of(mine.round, kFinished), std::memory_order_seq_cst);
    return error();
  }
  std::vector<Buffers>& members = of(device).members;
  members.clear();
  for (const std::int64_t member : operation.group_of(device)) members.push_back(line(member, operation).buffers);
  return std::span<const Buffers>(members);
}

Expected<> Rendezvous::leave(std::int64_t device, const Operation& operation) {
  const std::uint64_t finished = stage_of(line(device, operation).round, kFinished);
  publish(device, operation, finished);
  TRY(await_all(device, operation, finished));
  if (failed()) return error();  // a member may have left its part undone
  return {};
}

void Rendezvous::publish(std::int64_t device, const Operation& operation, std::uint64_t stage) {
  line(device, operation).stage.store(stage, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) == 0) return;
  const std::lock_guard<std::mutex> lock(mutex_);
  for (const std::int64_t member : operation.group_of(device)) {
    const Device& sleeper = of(member);
    const bool waits_for_this = sleeper.waits_for == device && sleeper.waits_at->number == operation.number;
    if (waits_for_this && sleeper.waits_for_stage <= stage) of(member).wake.notify_one();
  }
}

Expected<> Rendezvous::await_all(std::int64_t device, const Operation& operation, std::uint64_t stage) {
  for (const std::int64_t member : operation.group_of(device)) TRY(await(device, operation, member, stage));
  return {};
}

Expected<> Rendezvous::await(std::int64_t device, const Operation& operation, std::int64_t member,
                             std::uint64_t stage) {
  if (spin_until(member, operation, stage)) return {};
  if (std::optional<Error> error = sleep_until(device, operation, member, stage)) return *std::move(error);
  return {};
}

bool Rendezvous::spin_until(std::int64_t member, const Operation& operation, std::uint64_t stage) {
  for (int i = spin_ ? kSpins : 1; i > 0; --i) {
    if (has_come(member, operation, stage)) return true;
    if (i > 1) pause_processor();
  }
  return false;
}

// With the mutex: until it has come, or the run has an error.
template <typename Come, typename TooLate>
void Rendezvous::sleep(std::unique_lock<std::mutex>& lock, Device& me, const Come& has_come, const TooLate& too_late) {
  const auto deadline = std::chrono::steady_clock::now() + timeout_;
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  while (!has_come() && !error_) {
    if (all_wait_in_vain()) {
      fail_locked(waits_in_vain());
    } else if (timeout_.count() == 0) {
      me.wake.wait(lock);
    } else if (me.wake.wait_until(lock, deadline) == std::cv_status::timeout && !has_come() && !error_) {
      fail_locked(too_late());
    }
  }
  sleepers_.fetch_sub(1, std::memory_order_seq_cst);
  me.waits_for = -1;
  me.waits_for_mail = nullptr;
  me.waits_at = nullptr;
}

std::optional<Error> Rendezvous::sleep_until(std::int64_t device, const Operation& operation, std::int64_t member,
                                             std::uint64_t stage) {
  Device& me = of(device);
  std::unique_lock<std::mutex> lock(mutex_);
  me.waits_at = &operation;
  me.waits_for = member;
  me.waits_for_stage = stage;
  const auto come = [&] { return has_come(member, operation, stage); };
  sleep(lock, me, come, [&] { return too_late(device, operation, stage); });
  return come() ? std::nullopt : error_;
}

Mailbox& Rendezvous::mailbox(const Operation& operation, std::int64_t source, std::int64_t target) {
  return mail_[{operation.mailbox, source, target}];
}

Expected<> Rendezvous::send(std::int64_t device, const Operation& operation, Buffers arrays) {
  if (failed()) return error();
  of(device).last.store(&operation, std::memory_order_relaxed);
  const std::int64_t target = operation.targets[static_cast<std::size_t>(device)];
  if (target < 0) return {};
  std::unique_lock<std::mutex> lock(mutex_);
  Mailbox& box = mailbox(operation, device, target);
  Mailbox::Bytes message = box.spare();
  lock.unlock();
  message.resize(static_cast<std::size_t>(total_bytes(operation)));
  std::byte* to = message.data();
  for (std::size_t k = 0; k < operation.arrays.size(); ++k) {
    const auto size = static_cast<std::size_t>(bytes(operation.arrays[k]));
    if (size > 0) std::memcpy(to, arrays[k], size);
    to += size;
  }
  lock.lock();
  box.push(std::move(message));
  if (of(target).waits_for_mail == &box) of(target).wake.notify_one();
  return {};
}

Expected<> Rendezvous::take(std::int64_t device, const Operation& operation, Buffers arrays) {
  if (failed()) return error();
  Device& me = of(device);
  me.last.store(&operation, std::memory_order_relaxed);
  const std::int64_t source = operation.sources[static_cast<std::size_t>(device)];
  if (source < 0) {
    clear(operation, arrays);
    return {};
  }
  std::unique_lock<std::mutex> lock(mutex_);
  Mailbox& box = mailbox(operation, source, device);
  me.waits_at = &operation;
  me.waits_for_mail = &box;
  sleep(lock, me, [&] { return !box.empty(); }, [&] { return too_late(device, operation, whereabouts(source)); });
  if (box.empty()) return *error_;
  Mailbox::Bytes message = box.pop();
  lock.unlock();
  if (std::ssize(message) != total_bytes(operation)) {
    fail(base::fail(Code::InvalidArgument, operation.name, ": device ", device, " takes ", total_bytes(operation),
                    " bytes, device ", source, " sent ", message.size()));
    return error();
  }
  const std::byte* from = message.data();
  for (std::size_t k = 0; k < operation.arrays.size(); ++k) {
    const auto size = static_cast<std::size_t>(bytes(operation.arrays[k]));
    if (size > 0) std::memcpy(arrays[k], from, size);
    from += size;
  }
  lock.lock();
  box.give_back(std::move(message));
  return {};
}

Expected<> Rendezvous::check_agreement(std::int64_t device, const Operation& operation) {
  for (const std::int64_t member : operation.group_of(device)) {
    const auto problem = difference(operation, *line(member, operation).operation);
    if (!problem) continue;
    fail(base::fail(Code::InvalidArgument, operation.name, ": devices ", device, " and ", member,
                    " do not mean the same: ", *problem));
    return error();
  }
  return {};
}

// With the mutex: nobody runs, and nobody who sleeps has what it waits for.
bool Rendezvous::all_wait_in_vain() {
  if (sleepers_.load(std::memory_order_seq_cst) + ended_ != num_devices()) return false;
  for (const Device& device : devices_) {
    if (device.waits_for >= 0 && has_come(device.waits_for, *device.waits_at, device.waits_for_stage)) return false;
    if (device.waits_for_mail != nullptr && !device.waits_for_mail->empty()) return false;
  }
  return true;
}

void Rendezvous::fail_locked(Error error) {
  if (error_) return;
  error_ = std::move(error);
  failed_.store(true, std::memory_order_seq_cst);
  for (Device& device : devices_) device.wake.notify_one();
}

void Rendezvous::fail(Error error) {
  const std::lock_guard<std::mutex> lock(mutex_);
  fail_locked(std::move(error));
}

Error Rendezvous::error() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return *error_;
}

std::string Rendezvous::whereabouts(std::int64_t device) {
  const Device& d = of(device);
  std::string text = "device " + std::to_string(device);
  if (d.ended) return text + " has ended";
  if (d.waits_at != nullptr) return text + " waits at " + d.waits_at->name;
  const Operation* last = d.last.load(std::memory_order_relaxed);
  return text + (last == nullptr ? " has met nobody yet" : " was last at " + last->name);
}

Error Rendezvous::waits_in_vain() {
  std::string all;
  for (std::size_t k = 0; k < std::min(devices_.size(), kNamed); ++k)
    all += (k > 0 ? ", " : "") + whereabouts(static_cast<std::int64_t>(k));
  return base::fail(Code::InvalidArgument, "devices wait for each other in vain: ", all,
                    devices_.size() > kNamed ? ", …" : "");
}

Error Rendezvous::too_late(std::int64_t device, const Operation& operation, std::uint64_t stage) {
  std::string missing;
  std::size_t count = 0;
  for (const std::int64_t member : operation.group_of(device)) {
    if (has_come(member, operation, stage) || ++count > kNamed) continue;
    missing += (count > 1 ? ", " : "") + whereabouts(member);
  }
  return too_late(device, operation, missing + (count > kNamed ? ", …" : ""));
}

Error Rendezvous::too_late(std::int64_t device, const Operation& operation, const std::string& missing) const {
  return base::fail(Code::DeadlineExceeded, operation.name, ": device ", device, " has waited ", timeout_.count(),
                    " ms for the other participants; missing: ", missing);
}

void Rendezvous::end(std::int64_t device) {
  if (failed()) {
    // Meetings that it leaves behind: who had begun before the failure may still be at work on its memory.
    for (std::int64_t number = 0; number < num_operations_; ++number) {
      const Line& mine = lines_[static_cast<std::size_t>(device * num_operations_ + number)];
      if (mine.round == 0) continue;
      for (const std::int64_t member : mine.operation->group_of(device)) {
        if (member == device) continue;
        while (part_of(line(member, *mine.operation).stage.load(std::memory_order_seq_cst)) == kWorking)
          std::this_thread::yield();
      }
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  of(device).ended = true;
  ++ended_;
  if (sleepers_.load(std::memory_order_seq_cst) > 0 && all_wait_in_vain()) fail_locked(waits_in_vain());
}

}  // namespace hloom::collectives

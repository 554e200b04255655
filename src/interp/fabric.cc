#include "interp/fabric.h"

#include <sstream>

#include "base/fail.h"

namespace hloom::interp {

void Fabric::enter(std::int64_t device) {
  std::unique_lock<std::mutex> lock(mutex_);
  turn_changed_.wait(lock, [&] { return turn_ == device; });
}

void Fabric::leave(std::int64_t device, bool failed) {
  const std::lock_guard<std::mutex> lock(mutex_);
  of(device).state = State::Ended;
  if (failed && !failure_) failure_ = Error(Code::Aborted, "another device stopped the run");
  if (turn_ == device) pass_turn(device);
}

void Fabric::yield(std::int64_t device) {
  std::unique_lock<std::mutex> lock(mutex_);
  pass_turn(device);
  turn_changed_.wait(lock, [&] { return turn_ == device; });
}

bool Fabric::failed() {
  const std::lock_guard<std::mutex> lock(mutex_);
  return failure_.has_value();
}

// To the next device that is ready. If none is, but some wait, they wait in vain.
void Fabric::pass_turn(std::int64_t device) {
  const auto n = static_cast<std::int64_t>(devices_.size());
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (std::int64_t step = 1; step <= n; ++step) {
      const std::int64_t next = (device + step) % n;
      if (of(next).state != State::Ready) continue;
      turn_ = next;
      turn_changed_.notify_all();
      return;
    }
    fail_all();
  }
}

void Fabric::fail_all() {
  std::ostringstream message;
  message << "devices wait for each other in vain:";
  std::size_t waiting = 0;
  for (std::size_t k = 0; k < devices_.size(); ++k) {
    Device& device = devices_[k];
    if (waiting < 8) message << (waiting > 0 ? "," : "") << " device " << k;
    if (waiting < 8 && device.state == State::Waiting) message << " at " << device.at->name();
    if (waiting < 8 && device.state == State::Ended) message << " has ended";
    ++waiting;
    if (device.state == State::Waiting) device.state = State::Ready;
  }
  if (!failure_) failure_ = Error(Code::InvalidArgument, std::move(message).str());
}

bool Fabric::is_complete(const hlo::Instruction& instruction, const std::vector<std::int64_t>& group) {
  for (const std::int64_t member : group) {
    const Device& device = of(member);
    if (device.state != State::Waiting || device.at != &instruction || device.group != group) return false;
  }
  return true;
}

Expected<std::vector<Value>> Fabric::exchange(std::int64_t device, const hlo::Instruction& instruction,
                                              const std::vector<std::int64_t>& group, Value mine) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_) return *failure_;
  Device& me = of(device);
  me.state = State::Waiting;
  me.at = &instruction;
  me.group = group;
  me.offer = std::move(mine);
  if (!is_complete(instruction, group)) {
    pass_turn(device);
    turn_changed_.wait(lock, [&] { return turn_ == device && of(device).state == State::Ready; });
    if (failure_) return *failure_;
    return std::move(me.taken);
  }
  std::vector<Value> all;
  for (const std::int64_t member : group) all.push_back(std::move(of(member).offer));
  for (const std::int64_t member : group) {
    of(member).state = State::Ready;
    of(member).taken = all;
  }
  return std::move(me.taken);
}

void Fabric::post(const Mail& mail, Value value) {
  const std::lock_guard<std::mutex> lock(mutex_);
  mail_[mail].push_back(std::move(value));
  Device& receiver = of(std::get<2>(mail));
  if (receiver.state == State::Waiting && receiver.group.empty() && receiver.mail == mail) receiver.state = State::Ready;
}

Expected<Value> Fabric::take(const Mail& mail, const hlo::Instruction& instruction) {
  std::unique_lock<std::mutex> lock(mutex_);
  if (failure_) return *failure_;
  const std::int64_t device = std::get<2>(mail);
  std::deque<Value>& box = mail_[mail];
  if (box.empty()) {
    Device& me = of(device);
    me.state = State::Waiting;
    me.at = &instruction;
    me.group.clear();
    me.mail = mail;
    pass_turn(device);
    turn_changed_.wait(lock, [&] { return turn_ == device && of(device).state == State::Ready; });
    if (failure_) return *failure_;
  }
  Value value = std::move(box.front());
  box.pop_front();
  return value;
}

}  // namespace hloom::interp

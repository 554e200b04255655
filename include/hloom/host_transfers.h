// What a running program and its host give each other: infeed, outfeed, and send and recv with is_host_transfer.
//
//   hloom::HostTransfers host;
//   TRY(host.infeed().push({{hloom::Shape::array(hloom::DType::F32, {4}), bytes}}));  // from any thread, before or during the run
//   hloom::Expected<hloom::Results> results = program->run(args, {.hosts = {&host, 1}});
//   hloom::Expected<hloom::HostValue> value = host.outfeed().pop();                    // what the program wrote first
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "hloom/cancel_token.h"
#include "hloom/error.h"
#include "hloom/shape.h"

namespace hloom {

/// An array: its elements row by row, whatever the layout of its shape says, each in byte_width(dtype) bytes.
struct HostArray {
  Shape shape;
  std::vector<std::byte> bytes;
};

/// A value that is given as one: its leaves, tuples depth first. Tokens are none.
using HostValue = std::vector<HostArray>;

/// How long to wait at a queue.
struct HostWait {
  std::chrono::milliseconds timeout = std::chrono::minutes(5);  ///< 0: for ever
  const CancelToken* cancel = nullptr;
  /// Asked every few milliseconds, if given; true ends the wait as a cancellation does.
  std::function<bool()> stopped = nullptr;
};

/// Values in order, from one side to the other. Any number of threads may push and pop.
class HostQueue {
 public:
  /// Holds at most `capacity` values; who pushes one more waits. 0: any number.
  explicit HostQueue(std::size_t capacity = 0) : capacity_(capacity) {}

  /// Errors: FailedPrecondition if the queue is closed; DeadlineExceeded, Cancelled if the wait for room ends so.
  Expected<> push(HostValue value, const HostWait& wait = {});
  /// The oldest value, which is then gone. Errors: FailedPrecondition if there is none and the queue is closed;
  /// DeadlineExceeded, Cancelled if the wait for one ends so.
  Expected<HostValue> pop(const HostWait& wait = {});
  /// Nothing more comes. What is there can still be taken.
  void close();
  std::size_t size() const;

 private:
  template <typename Ready>
  Expected<> wait_until(std::unique_lock<std::mutex>& lock, const HostWait& wait, const Ready& ready);

  const std::size_t capacity_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<HostValue> values_;
  bool closed_ = false;
};

/// The queues between one device of a program and its host. Several devices have one each. A program takes and gives in the order of
/// its tokens; without one between them in the order of its schedule.
class HostTransfers {
 public:
  HostQueue& infeed() { return infeed_; }
  HostQueue& outfeed() { return outfeed_; }
  /// What `recv` of that channel takes, and what `send` of it gives.
  HostQueue& to_device(std::int64_t channel) { return channel_of(to_device_, channel); }
  HostQueue& from_device(std::int64_t channel) { return channel_of(from_device_, channel); }
  /// Closes all queues, those too that are asked for later.
  void close();

 private:
  using Channels = std::map<std::int64_t, HostQueue>;
  HostQueue& channel_of(Channels& channels, std::int64_t channel);

  HostQueue infeed_, outfeed_;
  std::mutex mutex_;
  Channels to_device_, from_device_;
  bool closed_ = false;
};

}  // namespace hloom

// Files as the host of a program: what infeeds and receives take, and what outfeeds and sends give.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "cli/arguments.h"
#include "cli/options.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "hloom/host_transfers.h"

namespace hloom::cli {

/// The queues of all devices, closed behind what --host-in has. Values follow each other as the program's text has their instructions,
/// again and again; their leaves are infeed0, infeed1, … and for channel C recvC_0, recvC_1, …
class HostFiles {
 public:
  /// Errors: those of the file; InvalidArgument, naming file and array, for an array that does not fit or that nothing takes.
  static Expected<HostFiles> read(const Options&, const hlo::Module&, const Devices&);

  std::span<HostTransfers> transfers() { return *transfers_; }

  /// Writes what the program gave to --host-out, as outfeed0, …, sendC_0, …; says what it did not take. Errors: those of the files.
  Expected<> write(const Options&);

 private:
  /// Instructions that use one queue: the shapes of their values, in the order of the text.
  struct Queue {
    std::vector<Shape> values;
    std::string prefix;
  };
  Expected<> fill(HostQueue& queue, const Queue& what, const class HostArrays& arrays);

  std::unique_ptr<std::vector<HostTransfers>> transfers_;
  std::map<std::int64_t, Queue> takes_, gives_;  ///< by channel; -1: infeed and outfeed
};

}  // namespace hloom::cli

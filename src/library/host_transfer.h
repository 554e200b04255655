// A program's side of the transfers between it and its host.
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hloom/ffi.h"
#include "hloom/host_transfers.h"
#include "library/routine.h"

namespace hloom::library {

/// The host of a run, as far as the run needs it.
struct HostPort {
  HostTransfers* host = nullptr;  ///< null: the run was given none
  HostWait wait;
};

/// What is transferred, known before the run.
struct HostTransfer {
  bool takes = true;                    ///< from the host, else gives to it
  std::optional<std::int64_t> channel;  ///< of send and recv
  std::vector<Shape> arrays;            ///< leaves of the value, without tokens
};

/// The custom calls that infeed, outfeed, send and recv become: (token) → (value, token), and (value, token) → token.
/// Their attribute `channel` is that of send and recv.
inline constexpr std::string_view kTakeFromHost = "hloom.take_from_host", kGiveToHost = "hloom.give_to_host";

/// The transfer that such a custom call is. Operands and results are leaves, tokens among them.
std::optional<HostTransfer> host_transfer(std::string_view target, const ffi::Attributes& attributes,
                                          const std::vector<Shape>& operands, const std::vector<Shape>& results);

/// Waits for the host's next value and writes its arrays, row by row, to `arrays`.
/// Errors: FailedPrecondition without a host, or if it closed the queue; InvalidArgument if the value's arrays are others;
///         DeadlineExceeded, Cancelled. Nothing is written then. The value is gone.
Expected<> take(const HostPort&, const HostTransfer&, std::span<void* const> arrays);

/// Gives the host copies of the arrays. Errors: FailedPrecondition, DeadlineExceeded, Cancelled.
Expected<> give(const HostPort&, const HostTransfer&, std::span<const void* const> arrays);

/// A call that does it, at the port that the run's HostPort argument points to. Operands and results are leaves, tokens among them.
RoutinePlan plan_host_transfer(HostTransfer, const std::vector<Shape>& operands, const std::vector<Shape>& results);

}  // namespace hloom::library

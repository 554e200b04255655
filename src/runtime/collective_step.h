// A device's part in a collective, for the executor and for who runs steps in another way.
#pragma once

#include <cstdint>
#include <vector>

#include "collectives/operation.h"
#include "collectives/rendezvous.h"
#include "hloom/error.h"
#include "runtime/program.h"
#include "runtime/threads.h"

namespace hloom::runtime {

/// Which device a run is, and where it meets the others.
struct Device {
  std::int64_t number = 0;
  collectives::Rendezvous* others = nullptr;  ///< null: there are none
};

/// Sends or takes, if the operation is that. Else arrives, waits for the others, works on `pool` and leaves; a start only arrives, a done does the rest. `buffers` are
/// those of the operands, then of the results; they stay until the device has left. `room` keeps pointers: the same
/// vector again allocates nothing. An error is told to the others. Errors: those of the rendezvous and of the share.
Expected<> run_collective(const Device&, const collectives::Operation&, Collective::Part,
                          collectives::Rendezvous::Buffers buffers, ThreadPool& pool, std::vector<void*>& room);

}  // namespace hloom::runtime

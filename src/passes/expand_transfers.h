#pragma once

#include "passes/pass.h"

namespace hloom::passes {

/// Makes infeed, outfeed, and send and recv with is_host_transfer custom calls that take a value from the host or give it one
/// (library/host_transfer.h), on row-major arrays. A send gives when it starts; a recv takes when it is done, so that what
/// the host waits for can be sent in between. Those between devices become calls that send to and take from a device
/// (hlo/device_transfers.h); a computation's sends come before its receives, unless they need them.
/// Cost: linear, and the instructions times the receives. Errors: those of DeviceTransfers::of().
Expected<Changed> expand_transfers(hlo::Module&);

}  // namespace hloom::passes

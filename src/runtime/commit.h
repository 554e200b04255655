// Memory that is there before it is used.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "hloom/error.h"

namespace hloom::runtime {

/// Bytes that this process may still take: what the machine has free or can free at once, and what the limits of the
/// control groups leave.
std::int64_t available_bytes();

/// What the memory limits leave of the group that `membership` (the text of /proc/self/cgroup) names and of all groups
/// above it, version 2 or 1, whose files are under `root` ("/sys/fs/cgroup"); file pages that are not in use count as
/// left. The largest number, if there is no limit.
std::int64_t cgroup_bytes_left(const std::string& root, std::string_view membership);

/// Pages of the range that are not in memory, in bytes.
std::int64_t absent_bytes(std::span<const std::byte>);

/// A page that is missing when it is first written ends the process where a limit is reached. These two say so before.
/// Errors: ResourceExhausted, if more of the range is absent than available_bytes().
Expected<> check_room(std::span<const std::byte>);
/// Makes all pages of the range be there, their content as it was; the calling thread touches them, whose node they then
/// lie on. Cost: a fault for each page that is absent. Errors: ResourceExhausted if the system refuses.
Expected<> populate(std::span<std::byte>);

/// Both.
Expected<> commit(std::span<std::byte>);

}  // namespace hloom::runtime

// What the machine can do at most, on one thread, as shares are measured by. Each is the best of some runs, by that thread's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hloom::bench {

/// Seconds of this thread's time.
double thread_seconds();

/// How often work on so many bytes is done for one look at the clock, which takes as long as some kilobytes do.
std::int64_t times_for(std::int64_t bytes);

/// Seconds that memcpy takes to read half of the bytes and write the other half.
double copy_seconds(std::int64_t bytes);

/// Seconds to read the bytes: vectors of floats added up, as one stream, two or four.
double read_seconds(std::int64_t bytes);

/// Seconds that a loop takes to copy a row for each index, asking for rows ahead of it. Needs: rows of 4, 64, 128, 256
/// or 1024 bytes, indices of rows of the table, room for all of them.
double rows_seconds(std::span<const std::byte> table, std::int64_t row_bytes, std::span<const std::int32_t> indices,
                    std::span<std::byte> to);

/// Multiplications and additions of floats a second, with all of the processor's vectors.
double peak_flops();

}  // namespace hloom::bench

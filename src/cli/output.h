// Standard output and files, with errors where they arise.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "hloom/error.h"

namespace hloom::cli {

/// Writes to standard output, unbuffered.
/// Errors: Cancelled if the reader has gone away; ResourceExhausted if the disk is full; Unavailable.
Expected<> write_output(std::string_view text);

/// Words on standard error, with a line break.
void say(std::string_view words);

/// Does `write` while interrupts wait, so that it ends with a whole file or with none.
Expected<> uninterrupted(const std::function<Expected<>()>& write);

/// Writes a whole file. Errors: those of arrays::OutputFile.
Expected<> write_file(const std::string& path, std::string_view text);

/// From here on a closed pipe is an error instead of a signal, and an interrupt says so before it ends the process.
void handle_signals();

}  // namespace hloom::cli

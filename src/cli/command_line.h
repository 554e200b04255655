// The whole program.
#pragma once

namespace hloom::cli {

/// Does what the words say; gives the exit status. To be called once, from main().
int run_command_line(int argc, const char* const* argv);

}  // namespace hloom::cli

// What this program is made of.
#pragma once

#include <string>

namespace hloom::cli {

/// Version and parts, several lines.
std::string version_text();

}  // namespace hloom::cli

// The page that draws a program's memory.
#pragma once

#include <string>

namespace hloom::compiler {

/// An HTML file that needs nothing else, around what memory_json() says and "arena": [{"offset", "bytes", "live",
/// "values", "source"}, …], "end": the last point in time.
std::string memory_page(const std::string& json);

}  // namespace hloom::compiler

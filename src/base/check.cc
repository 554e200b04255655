#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hloom::base {

void check_failed(const char* condition, const char* file, int line) {
  std::fprintf(stderr, "hloom: a fault of hloom itself, please report it: %s:%d: check failed: %s\n", file, line,
               condition);
  std::abort();
}

}  // namespace hloom::base

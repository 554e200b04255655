// Random modules for libFuzzer: the first eight bytes are the seed, the next one how large the module may be.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "compiler/agreement.h"
#include "generate/generate.h"
#include "text/print.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  std::uint64_t seed = 0;
  std::memcpy(&seed, data, size < sizeof(seed) ? size : sizeof(seed));
  hloom::generate::Options options;
  if (size > sizeof(seed)) options.max_steps = 2 + data[sizeof(seed)] % 60;
  const auto module = hloom::generate::module(seed, options);
  static const hloom::compiler::Agreement agreement;
  const auto found = agreement.difference(*module, hloom::generate::arguments(*module, seed));
  const bool unimplemented = !found && found.error().code() == hloom::Code::Unimplemented;
  if (unimplemented || (found && !*found)) return 0;
  std::fprintf(stderr, "%s\n%s\n", found ? (*found)->c_str() : found.error().message().c_str(),
               hloom::text::print(*module).c_str());
  std::abort();
}

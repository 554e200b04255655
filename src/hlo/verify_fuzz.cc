// Any text that parses verifies without a crash, and what verifies stays good when it is copied.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "hlo/verify.h"
#include "text/parse.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto module = hloom::text::parse_module(text, {.verify = false});
  if (!module) return 0;
  const bool good = hloom::hlo::check_module(**module).has_value();
  if (good && !hloom::hlo::check_module(*(*module)->clone())) std::abort();
  hloom::hlo::verify(**module, {.layout_sensitive = true, .mixed_precision = true, .all_reached = true});
  return 0;
}

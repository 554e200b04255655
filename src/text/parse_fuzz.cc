// Any bytes are a module that prints and reads back as itself, or an error.
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::text {
namespace {

// print(m) reads as an equal module, and prints as the same text.
void check_round_trip(const hlo::Module& module) {
  const std::string text = print(module);
  const auto again = parse_module(text);
  HLOOM_CHECK(again.has_value());
  HLOOM_CHECK(equal(module, **again));
  HLOOM_CHECK(print(**again) == text);
}

// Forms that leave something out read back as well, and from then on do not change.
void check_short_form(const hlo::Module& module, const PrintOptions& options) {
  const std::string text = print(module, options);
  const auto again = parse_module(text);
  HLOOM_CHECK(again.has_value());
  HLOOM_CHECK(print(**again, options) == text);
}

// A copy is equal; without what is not called the module reads back as well.
void check_copies(hlo::Module& module) {
  const auto copy = module.clone();
  HLOOM_CHECK(equal(module, *copy));
  HLOOM_CHECK(fingerprint(module) == fingerprint(*copy));
  module.sort();
  module.remove_unreachable();
  check_round_trip(module);
}

}  // namespace
}  // namespace hloom::text

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace hloom::text;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto modules = parse_modules(text, {.file_name = "fuzz"});
  if (!modules) return 0;
  for (const auto& module : *modules) {
    check_round_trip(*module);
    PrintOptions options;
    options.percent = options.signatures = false;
    options.operand_shapes = true;
    check_short_form(*module, options);
    check_copies(*module);
  }
  return 0;
}

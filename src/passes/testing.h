// What the tests of passes share.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <string_view>

#include "passes/all.h"
#include "passes/run.h"
#include "text/parse.h"
#include "text/print.h"

namespace hloom::passes::testing {

inline std::unique_ptr<hlo::Module> parse(std::string_view text) {
  auto module = text::parse_module(text);
  if (!module) ADD_FAILURE() << module.error().message();
  return module ? *std::move(module) : nullptr;
}

inline constexpr auto kNoDump = nullptr;
inline RunOptions checking() { return {.verify = true, .check_changed = true, .dump = kNoDump, .times = nullptr}; }

inline Changed run(std::string_view pass, hlo::Module& module) {
  const auto changed = passes::run(*pass_named(pass), module, checking());
  EXPECT_TRUE(changed) << changed.error().message();
  return changed ? *changed : Changed::No;
}

/// The instructions of the module's computations, one a line, without header, metadata and layouts.
inline std::string body(const hlo::Module& module) {
  auto options = text::PrintOptions::short_parsable();
  options.layouts = false;
  std::string result;
  for (const hlo::Computation& c : module.computations())
    for (const hlo::Instruction& i : c.instructions())
      result += (i.is_root() ? "ROOT " : "") + text::print(i, options) + "\n";
  return result;
}

/// Runs the pass, and remove-dead, over the text: gives what is left. The pass then finds nothing more.
inline std::string after(std::string_view pass, std::string_view text) {
  const auto module = parse(text);
  if (!module) return "";
  run(pass, *module);
  run("remove-dead", *module);
  const std::string result = body(*module);
  EXPECT_EQ(run(pass, *module), Changed::No) << "a second run changed\n" << result << "to\n" << body(*module);
  return result;
}

/// As after(), for the body of one computation without braces.
inline std::string after_in_entry(std::string_view pass, std::string_view instructions) {
  return after(pass, "HloModule m\nENTRY e {\n" + std::string(instructions) + "\n}\n");
}

}  // namespace hloom::passes::testing

// A program compiled and run in all ways that must not matter, against the interpreter.
//
//   const Agreement agreement;
//   auto difference = TRY(agreement.difference(*module, arguments));
//   if (difference) return report(*difference);
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "runtime/executor.h"
#include "runtime/threads.h"

namespace hloom::compiler {

struct AgreementOptions {
  int max_threads = 4;        ///< it is run on 1 to so many
  bool steps = true;          ///< also without regions
  bool float_modes = true;    ///< also compiled and run by a caller who flushes denormals and rounds to zero
  bool instructions = true;   ///< also each instruction by itself (check.h)
  std::int64_t max_interpreter_steps = 200'000;
};

/// Runs programs in several ways. Any number of threads may use one at once.
class Agreement {
 public:
  explicit Agreement(AgreementOptions = {});
  ~Agreement();

  /// What differs: all ways of running must give the same bits, those must be the interpreter's where they are exact
  /// (exact_results.h), and each instruction must hold by itself. Nothing if all agree.
  /// Errors: those of compiling, running and interpreting, Unimplemented above all.
  Expected<std::optional<std::string>> difference(const hlo::Module&, std::span<const hlo::Literal> arguments) const;

  /// The same on several devices; `arguments` by device.
  Expected<std::optional<std::string>> difference(const hlo::Module&, const std::vector<std::vector<hlo::Literal>>& arguments) const;

 private:
  using ByDevice = std::vector<std::vector<hlo::Literal>>;
  struct Borders {
    std::vector<Shape> parameters, results;  ///< leaves
  };
  Expected<ByDevice> run(const runtime::Executor&, const Borders&, const ByDevice& arguments, runtime::ThreadPool&) const;
  Expected<std::optional<std::string>> compiled_difference(const hlo::Module&, const ByDevice& arguments, bool regions,
                                                           ByDevice& first) const;

  AgreementOptions options_;
  std::vector<std::unique_ptr<runtime::ThreadPool>> pools_;  ///< of 1, 2, … threads
};

}  // namespace hloom::compiler

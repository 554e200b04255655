// The verifier: what every stage may rely on in a module (rules H701 … H735 of hlo-ops 14; H736 of placement).
//
//   if (auto good = hlo::check_module(module); !good) return good.error();
#pragma once

#include <string>
#include <vector>

#include "hlo/module.h"
#include "hloom/error.h"

namespace hloom::hlo {

/// One broken rule.
struct Diagnostic {
  std::string code;                          ///< "H701"; H302 and H303 for sizes out of range and unbounded ones
  const Instruction* instruction = nullptr;  ///< or null, if no single one is at fault
  const Computation* computation = nullptr;  ///< or null, if the module as a whole is
  std::string message;                       ///< begins with the name of instruction, computation or module
};

struct VerifyOptions {
  int max_diagnostics = 20;
  /// Every array has a layout, and operations that cannot change it keep it.
  bool layout_sensitive = false;
  /// Operands of one operation may be floats of different precision.
  bool mixed_precision = false;
  /// Every computation is called.
  bool all_reached = false;
};

/// What is wrong with the module, in its order; nothing if it is good. Takes any module that can be built.
/// Cost: linear in the module, and in the elements of tuples for each instruction that takes a whole tuple.
std::vector<Diagnostic> verify(const Module&, const VerifyOptions& = {});

/// verify() as one error with a line `H713 dot.3: …` for each diagnostic.
/// Errors: InvalidArgument.
Expected<> check_module(const Module&, const VerifyOptions& = {});

}  // namespace hloom::hlo

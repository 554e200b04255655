// Makes a program smaller as long as it has a property.
//
//   shrink::Result small = shrink::shrink({module->clone(), arguments}, [&](const shrink::Program& p) {
//     return differs(*p.module, p.arguments);
//   });
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "hlo/module.h"

namespace hloom::shrink {

/// A module, and values for the leaves of its entry's parameters where somebody asks for them.
struct Program {
  std::unique_ptr<hlo::Module> module;
  std::vector<hlo::Literal> arguments;
  bool has_arguments = true;  ///< false: `arguments` stays empty
};

/// Whether the fault is still there. Sees modules that verify, and as many arguments as their parameters have leaves.
using HasFault = std::function<bool(const Program&)>;

struct Options {
  int max_tries = 10'000;  ///< calls of HasFault
  /// Called whenever the program became smaller, with what was done.
  std::function<void(const Program&, const std::string& step)> progress;
};

struct Result {
  Program program;
  int tries = 0;
  bool is_minimal = false;  ///< no step is left; else the tries were used up
};

/// Needs: a program that verifies and has the fault. Cost: some tries for each instruction.
Result shrink(Program, const HasFault&, const Options& = {});

}  // namespace hloom::shrink

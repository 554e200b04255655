// Compiled code against the interpreter, instruction by instruction.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "hlo/literal.h"
#include "hlo/module.h"
#include "hloom/error.h"
#include "hloom/host_transfers.h"

namespace hloom::compiler {

struct CheckOptions {
  Options compile;  ///< how; regions and taps are as the check wants them
  /// An instruction in a loop is checked when it runs for the first, second, fourth, eighth … time.
  bool every_run = false;
  /// Steps of the interpreter, roughly, for one run of one instruction; what takes more is checked in a sample of its
  /// result, boxes at both ends and others that depend on its name and run, with as much of its operands as these read.
  /// What has no parts is interpreted all the same up to 2e9 steps, and else run, not checked, and counted.
  double work = std::numeric_limits<double>::infinity();
  /// What the program takes from its host and gives to it, by device; empty: that is an error.
  std::span<HostTransfers> hosts = {};
};

/// An instruction whose compiled value is not within what the numeric contract allows.
struct Difference {
  std::string instruction;
  std::string kernel;   ///< or routine, or copy: the step that it is in
  std::string what;     ///< opcode and shape
  std::string message;  ///< element, both values, the bound
  std::string source;   ///< "model.py:12"; empty: not known
  std::string loops;    ///< "iteration 3 of while.1, 0 of while.2"; empty: in none
  std::int64_t device = -1;  ///< -1: there is one
};
/// All of it in a line.
std::string to_string(const Difference&);

struct CheckReport {
  std::int64_t instructions = 0;  ///< that were checked at least once
  std::int64_t checks = 0;
  std::int64_t runs = 0;          ///< of steps, checked or not
  std::int64_t elements = 0;             ///< that were compared
  std::int64_t elements_of_checked = 0;  ///< that were there
  std::int64_t skipped = 0;       ///< too large to interpret
  std::vector<Difference> differences;  ///< in the order of execution; at most 20
  std::vector<hlo::Literal> results;    ///< leaves of the program's result
};

/// Compiles the module with a step for each kernel and a result for each instruction fused into one, runs it on
/// `arguments` (leaves of the parameters), and gives each instruction's operands as the compiled run had them to the
/// interpreter. So an error is seen where it arises. Data that is moved and exact operations are held to the bit,
/// functions to their bounds in ULP, sums to n·eps·Σ|x|, transforms, factors and solutions to the bound of their error.
/// Errors: those of compile() and of the interpreter.
Expected<CheckReport> check(std::unique_ptr<hlo::Module>, std::span<const hlo::Literal> arguments,
                            const CheckOptions& = {});

/// The same for a program on several devices, which walk it at the same time; `arguments` by device. Each collective is given the operands that
/// all devices had, its sums in the elements' type in the order of ranks; what a device receives from another must be what that sent. Results are those of device 0.
/// Errors: as check(); the first device's that has one.
Expected<CheckReport> check_devices(std::unique_ptr<hlo::Module>, std::span<const std::vector<hlo::Literal>> arguments,
                                    const CheckOptions& = {});

/// An instruction that makes a NaN or an infinity out of finite operands.
struct NotFinite {
  Difference place;    ///< `message` has the element and its value
  bool found = false;
  std::int64_t arguments = 0;  ///< leaves of the parameters that have one from the start
};

/// Runs as check() does, up to the first such instruction. Constants make none. Errors: as check().
Expected<NotFinite> first_not_finite(std::unique_ptr<hlo::Module>, std::span<const hlo::Literal> arguments,
                                     const CheckOptions& = {});

/// The same on several devices; `arguments` by device. `place` has the device, the first by number that finds something before
/// it hears of another's. Errors: as check_devices().
Expected<NotFinite> first_not_finite_devices(std::unique_ptr<hlo::Module>, std::span<const std::vector<hlo::Literal>> arguments,
                                             const CheckOptions& = {});

}  // namespace hloom::compiler
